/* Ready-made observers: what happened, told from several probes each, on nothing but libtracefan.
 *
 * An observer makes typed traces on the caller's connection, disabled; the caller enables them, calls
 * tfan_dispatch, and passes on what its notice is told of losses. Each observer keeps a bounded table of what
 * is half told: a call that was entered and has not returned. Over a loss all of it is forgotten, so that no
 * entry is paired with another call's return. */
#ifndef TRACEFAN_WATCH_WATCH_H
#define TRACEFAN_WATCH_WATCH_H

#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum watch_value_kind {
	WATCH_UNKNOWN = 0,
	WATCH_INTEGER = 1,
	WATCH_BOOL = 2,
	WATCH_TEXT = 3,
	WATCH_LIST = 4, /* of texts */
};

/* Any bytes; not NUL-ended. */
struct watch_text {
	const char *bytes;
	size_t size;
};

struct watch_value {
	enum watch_value_kind kind;
	int64_t integer; /* WATCH_BOOL: 0 or 1 */
	struct watch_text text;
	const struct watch_text *list;
	size_t count;
};

struct watch_field {
	const char *name;
	struct watch_value value;
};

#define WATCH_FIELDS_MAX 16

/* Something that happened. Valid until the sink returns. */
struct watch_record {
	const char *kind;
	const struct tfan_event *event; /* the one that completed it: time, CPU, thread */
	struct watch_field fields[WATCH_FIELDS_MAX];
	size_t count;
};

struct watch_sink {
	void (*record)(void *context, const struct watch_record *record);
	/* What the observer can't know here, once, in a sentence. */
	void (*note)(void *context, const char *text);
	void *context;
};

struct watch;

/* `what` is one of watch_kind_at(); `folder` is for files alone, else NULL. On failure tfan_failure() tells why, unless
 * it is -EINVAL (no such kind, a folder missing or too many), -ENOMEM, or *ret_folder_error: the folder's errno. */
int watch_open(struct tfan *tfan, const char *what, const char *folder, const struct watch_sink *sink, struct watch **ret,
	int *ret_folder_error);
/* Once the traces are enabled, and before a command is let go: looks at what is there already. */
void watch_start(struct watch *watch);
/* Before the connection is closed, whose traces they stay. Takes NULL. */
void watch_close(struct watch *watch);

/* Events were lost, or the stream has a gap: what is half told is forgotten. */
void watch_lost(struct watch *watch);

/* The i-th kind's name; NULL past the last. */
const char *watch_kind_at(size_t i);

/* The i-th place that a session's policy has to allow for it, as a line of that has it (tracefan-policy(5)). False: past the
 * last. */
bool watch_need(const char *what, size_t i, char *place, size_t size);

#endif
