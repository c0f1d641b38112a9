/* How a trace's events are shown, worked out once per trace: which fields, and the text that stands before
 * each value. The kernel's own are not among them: common_ fields, which are the line's columns, and its
 * bookkeeping, whose names begin with two underscores (__probe_ip, __syscall_nr). */
#ifndef TRACEFAN_CLI_PLAN_H
#define TRACEFAN_CLI_PLAN_H

#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_field {
	size_t index; /* of the trace's fields */
	enum tfan_type kind;
	enum tfan_display display;
	unsigned int size;
	bool is_signed;
	bool is_opaque; /* no array of integers: shown byte by byte */
	bool is_body;   /* the whole text of an event that was read as text: shown when nothing else was read */
	const char *key;
	size_t key_size;
};

struct plan {
	const struct tfan_trace *trace;
	char *head; /* what stands between the line's columns and the fields; the keys lie behind it */
	size_t head_size;
	struct plan_field *fields;
	size_t count;
	uint64_t shown; /* events written so far; the output counts */
};

/* What an output format puts before fields. */
struct plan_style {
	void (*head)(struct writer *writer, const struct tfan_trace *trace, bool decorated);
	void (*key)(struct writer *writer, const char *name, bool decorated);
};

struct plan_set {
	const struct plan_style *style;
	bool decorated; /* handed to the style: aligned and coloured */
	bool from_text; /* the session reads the kernel's text, and an event's last field is all of it */
	struct plan *plans; /* open addressing by the trace's address; a power of two */
	size_t size, used;
	struct plan *last;
};

void plan_set_release(struct plan_set *set);

/* The plan of a trace, made when it is first seen. NULL: no memory. */
struct plan *plan_make(struct plan_set *set, const struct tfan_trace *trace);
/* NULL when it has not been seen. */
const struct plan *plan_find(const struct plan_set *set, const struct tfan_trace *trace);

static inline struct plan *plan_get(struct plan_set *set, const struct tfan_trace *trace)
{
	if (set->last && set->last->trace == trace)
		return set->last;
	return plan_make(set, trace);
}

#endif
