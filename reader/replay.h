/* A session that lies in files: what a replay publishes, in which order, and what it knows of the
 * traced kernel. Each kind of file is one replay_*.c. Nothing here needs a right beyond reading the
 * files. */
#ifndef TRACEFAN_READER_REPLAY_H
#define TRACEFAN_READER_REPLAY_H

#include "reader/facts.h"
#include "reader/tracedir.h"
#include "shm/control_abi.h"
#include "shm/pool_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One event that the files describe. */
struct replay_format {
	uint64_t id;   /* of the probe in this replay */
	uint32_t kind; /* enum control_probe_kind */
	char system[CONTROL_NAME_MAX];
	char event[CONTROL_NAME_MAX];
	char name[2 * CONTROL_NAME_MAX]; /* under which it is shown; empty: the recorded session's
					    own */
	char *format;
	size_t format_size;
};

/* What comes next: an entry of the filled ring and, for POOL_DATA, where the first `stored` of its bytes lie; the rest are
 * zeros. */
struct replay_item {
	struct pool_entry entry;
	int fd;
	uint64_t offset;
	uint32_t stored;
};

struct replay;

struct replay_ops {
	/* Returns 1 with *ret, 0 at the end, or -errno. */
	int (*next)(struct replay *replay, struct replay_item *ret);
	void (*close)(struct replay *replay);
	/* A text log, which has no format files: the first line that seems to be of this event, *ret the
	 * caller's to free. Returns 0, -ENOENT (there is none) or another -errno. NULL: not a log. */
	int (*find)(const struct replay *replay, const char *event, char **ret, size_t *ret_size);
};

struct replay {
	const struct replay_ops *ops;
	uint32_t source;    /* enum control_source */
	uint32_t slot_size; /* no item has more bytes */
	uint32_t cpu_count;
	char group[CONTROL_NAME_MAX];
	char tag[CONTROL_NAME_MAX];
	struct facts facts, names; /* the blobs' bytes */
	struct replay_format *formats;
	uint32_t format_count;
	bool damaged; /* not all that was recorded can be replayed; where and why was logged */
};

/* Open one kind of file. On failure *ret_problem says why. *ret is owned by the caller. Return 0 or
 * -errno. */
int replay_recording_open(
	const char *path, struct replay **ret, struct tracedir_problem *ret_problem);
int replay_text_open(const char *path, struct replay **ret, struct tracedir_problem *ret_problem);
int replay_pages_open(const char *path, struct replay **ret, struct tracedir_problem *ret_problem);
/* Takes NULL. */
void replay_close(struct replay *replay);

/* ---- for the kinds ---- */

/* Adds a format, its bytes copied, and tells it to the router in the facts. Returns 0 or -errno. */
int replay_add_format(struct replay *replay, const struct replay_format *format);
/* Reads exactly `size` bytes at `offset`. Returns 0, -ENODATA (the file ends before) or another
 * -errno. */
int replay_read(int fd, uint64_t offset, void *bytes, size_t size);
/* Opens a regular file for reading and tells its size. Returns the descriptor or -errno with
 * *ret_problem. */
int replay_open_file(const char *path, uint64_t *ret_size, struct tracedir_problem *ret_problem);
/* Fills in a problem; returns `error`. */
int replay_problem(struct tracedir_problem *problem, int status, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
