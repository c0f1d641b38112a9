/* A typed trace's tie to the caller's structure: which field fills which member, and whom to hand it to. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_BINDING_H
#define TRACEFAN_CONSUMERS_CLIENT_BINDING_H

#include "consumers/client/shape.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct binding {
	tfan_handler handler;
	void *context;
	void *filled; /* the structure; owned. Members that no table names stay zero */
	struct binding_member {
		size_t offset;
		uint8_t size; /* of an integer */
		uint8_t kind; /* enum tfan_member_kind */
		bool is_big_endian;
		unsigned int field, address_field;
	} *members; /* owned */
	size_t member_count, string_count;
	char *condition; /* the table's own; owned */
	uint64_t done, unreadable;
	uint64_t lost_ring; /* the router's last answer */
};

/* Copies of the strings of one event, with their NULs. The ring's own bytes won't do: the router could take a
 * NUL away after it was seen. */
struct binding_strings {
	char *bytes;
	size_t used, room;
};

/* Ties a new trace to the plan. Returns 0 or -errno with the failure set. */
int binding_make(struct tfan_trace *trace, const struct shape_plan *plan, tfan_handler handler, void *context);
/* Takes NULL. */
void binding_free(struct binding *binding);

/* Fills the structure from an event of the trace. Returns 0 or -errno: a member's field can't be read. */
int binding_fill(struct binding *binding, const struct tfan_event *event, struct binding_strings *strings);

#endif
