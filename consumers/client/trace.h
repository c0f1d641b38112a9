/* A trace as this connection sees it, and the index that finds it by the id in a record. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_TRACE_H
#define TRACEFAN_CONSUMERS_CLIENT_TRACE_H

#include "consumers/client/shape.h"
#include "consumers/client/tracefan.h"
#include "shm/control_abi.h"
#include "shm/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a field is read, decided once when the schema comes. */
enum field_access {
	FIELD_CHECKED = 0, /* by shm/schema.h: foreign byte order, text source, dynamic place, no integer */
	FIELD_DIRECT = 1,
};

/* An integer in native order is read by one load of the eight bytes that end with it, and a shift: no branch
 * depends on its size or sign. The bytes before it are the payload's or the record's header's. */
struct field {
	int32_t window; /* where the eight bytes begin in the payload, -7 at least */
	uint8_t shift;  /* 64 - the field's bits */
	uint8_t access; /* enum field_access */
	uint64_t sign;  /* a signed field's topmost bit, else 0 */
	const struct schema_field *schema;
};

/* What the router knows as one trace. A static probe may stand at several places of a program; then the
 * user's one trace has a part for each, whose events all have the same fields. */
struct trace_part {
	struct tfan_trace *trace;
	uint64_t id;
	uint64_t delivered; /* events that were returned, whoever was the router */
	uint64_t passed;    /* events that the present router has sent once more: they are among its columns */
	uint64_t throttled_at; /* ns: when the router disabled it for bringing too many; 0: never */
	struct ledger_carried carried; /* of the routers before */
	struct control_create *definition; /* owned; as it was asked for, NULL: it was not made here */
	void *schema_bytes;   /* owned; read from the router's sealed segment and checked once */
	struct schema schema; /* view of schema_bytes */
	struct field *fields; /* owned; without the hidden ones */
	size_t field_count;
	size_t direct_count;  /* so many of the first fields are read by one load */
	uint32_t direct_size; /* a payload of this size holds every field that is read by one load */
};

struct tfan_trace {
	struct tfan *tfan;
	char *name;   /* owned */
	char *filter; /* owned; its own one, NULL: none */
	char *shared; /* owned; what tfan_set_filter set beside it, NULL: nothing */
	struct trace_part **parts; /* owned */
	size_t part_count;
	struct target *target; /* a reference; the file that its probes are in, NULL: the kernel's */
	bool enabled;
	uint64_t enabled_at;   /* ns, CLOCK_MONOTONIC */
	uint64_t asked_at;     /* the same: when the caller last asked for its being enabled */
	struct binding *binding; /* owned; a typed trace's, NULL for others */
	bool closed;  /* given back: freed when no event can refer to it any more */
	bool unknown; /* all_events: the router would not say what it is; its events are passed over */
};

/* Takes NULL. */
void trace_part_free(struct trace_part *part);

/* Asks for the schema of part->id, checks it and compiles it. `ret_name` may be NULL; the name
 * that the router has for the trace is the caller's to free, and not written where there is none. */
int trace_part_fetch(struct tfan *tfan, struct trace_part *part, char **ret_name);

/* id -> part: open addressing, at most half full. */
struct trace_index {
	struct trace_index_row {
		uint64_t id;
		struct trace_part *part; /* NULL: free */
	} *rows;
	size_t room, used; /* room is a power of two, or 0 */
};

void trace_index_release(struct trace_index *index);
/* Returns 0, -EEXIST or -ENOMEM. */
int trace_index_add(struct trace_index *index, struct trace_part *part);
void trace_index_remove(struct trace_index *index, const struct trace_part *part);

static inline size_t trace_index_place(const struct trace_index *index, uint64_t id)
{
	return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (index->room - 1);
}

static inline struct trace_part *trace_index_find(const struct trace_index *index, uint64_t id)
{
	if (index->room == 0)
		return NULL;
	for (size_t i = trace_index_place(index, id);; i = (i + 1) & (index->room - 1)) {
		const struct trace_index_row *row = &index->rows[i];

		if (!row->part || row->id == id)
			return row->part;
	}
}

/* Creates a trace, disabled: `plan` is a typed trace's and may be NULL. Returns 0 or -errno with the failure
 * set. */
int trace_create(struct tfan *tfan, const char *probe, const struct shape_plan *plan, struct tfan_trace **ret);

/* Fetches the schema of a trace that this connection did not create (all_events) and takes the trace in.
 * A trace that the router doesn't know is taken in as unknown. Returns 0 or -errno with the failure set. */
int trace_adopt(struct tfan *tfan, uint64_t id, struct trace_part **ret);

/* Makes a part again at a new router, under its id. Returns 0 or -errno with the failure set. */
int trace_part_remake(struct trace_part *part);
/* Enables what was enabled at the last one. */
int trace_enable_again(struct tfan_trace *trace);

/* The filter in force, its own and the shared one, as the router gets it: "" for none. Returns 0 or -errno with the failure
 * set. */
int trace_filter_text(const struct tfan_trace *trace, char out[static CONTROL_FILTER_MAX]);

/* ns of the session's clock: the machine's CLOCK_MONOTONIC. */
uint64_t trace_now(const struct tfan *tfan);

/* Frees the traces that were closed while an event could still refer to them. */
void trace_bury(struct tfan *tfan);

/* Frees it without telling the router. */
void trace_free(struct tfan_trace *trace);

#endif
