/* What the observers share: one row per kind, records, and traces by what this machine offers. */
#ifndef TRACEFAN_WATCH_OBSERVER_H
#define TRACEFAN_WATCH_OBSERVER_H

#include "consumers/watch/watch.h"

struct watch {
	const struct observer *observer;
	struct tfan *tfan;
	struct watch_sink sink;
	char *library; /* the C library's file; NULL: it isn't known */
	void *state;   /* the observer's own */
};

struct observer {
	const char *name;
	bool of_folder;
	/* What it can't do without, NULL-ended, as a policy names it; "library": a uprobe in the C library. */
	const char *const *needs;
	/* Makes state and traces. Returns 0 or a negative errno, as watch_open. */
	int (*open)(struct watch *watch, const char *folder, int *ret_folder_error);
	void (*start)(void *state); /* NULL: nothing to do */
	void (*close)(void *state); /* takes half-built state */
	void (*lost)(void *state);
};

extern const struct observer observer_exec, observer_connect, observer_listen, observer_files;

/* ---- records ---- */

void observer_begin(struct watch_record *record, const char *kind, const struct tfan_event *event);
void observer_integer(struct watch_record *record, const char *name, int64_t value);
void observer_bool(struct watch_record *record, const char *name, bool value);
void observer_unknown(struct watch_record *record, const char *name);
/* NULL: unknown. */
void observer_text(struct watch_record *record, const char *name, const char *text);
void observer_bytes(struct watch_record *record, const char *name, const char *bytes, size_t size);
void observer_list(struct watch_record *record, const char *name, const struct watch_text *list, size_t count);
void observer_tell(struct watch *watch, const struct watch_record *record);
void observer_note(struct watch *watch, const char *text);

/* ---- traces ---- */

/* [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... as tfan_trace_bind takes it; context is the watch. Returns 0 or a negative errno. */
int observer_trace(struct watch *watch, const char *place, const struct tfan_shape *shape, tfan_handler handler);
/* With another context. */
int observer_trace_for(struct watch *watch, const char *place, const struct tfan_shape *shape, tfan_handler handler, void *context);
/* The same of a function of the C library, with the arguments to fetch behind its name. */
int observer_library(struct watch *watch, const char *function, const struct tfan_shape *shape, tfan_handler handler,
	void *context);
/* The first of the places that can be had, NULL-ended. */
int observer_first(struct watch *watch, const char *const *places, const struct tfan_shape *shape, tfan_handler handler);
/* Whether the last failure means that this machine, or this user, does not have it, and another way may be tried. */
bool observer_may_do_without(const struct watch *watch, int r);

#endif
