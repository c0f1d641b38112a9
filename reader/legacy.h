/* What a reader leaves behind for the one that takes over when it is killed: the file "legacy" in the session's folder.
 *
 *   +------------------+-------------------+-------------------+--
 *   | struct legacy_head | record of a probe | record of a probe | ...
 *   +------------------+-------------------+-------------------+--
 *
 * It is written by the reader alone, root's and for nobody else, so it is believed; but a reader can die in the middle
 * of a write, so a record counts only once its id is there, which is written last. Only readers of one build read each
 * other's. */
#ifndef TRACEFAN_READER_LEGACY_H
#define TRACEFAN_READER_LEGACY_H

#include "reader/instance.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct probe;

/* What holds for all readers of the session. */
struct legacy_session {
	uint32_t source; /* enum control_source */
	uint32_t flags;  /* SESSION_FALLBACK: the proof of io_uring has failed here */
	char tag[CONTROL_NAME_MAX];
};

/* The kernel's counts begin again when its buffers are cleared (probe_park.c): what it had counted before. */
struct legacy_clearing {
	struct instance_counts before; /* without the last time, if that is under way */
	struct instance_counts now;    /* as they were just before it */
	uint64_t under_way;            /* 1: it may have happened, or not */
};

struct legacy {
	int fd;         /* -1: nothing is kept */
	bool *used;     /* by place */
	uint32_t count; /* places */
};
#define LEGACY_NONE                                                                                  \
	{                                                                                          \
		.fd = -1                                                                           \
	}
#define LEGACY_NAME "legacy"

/* Begins a file of a new session. Returns 0 or -errno; on success ended by legacy_close, which leaves the file. */
int legacy_make(int folder, const struct legacy_session *session, struct legacy *ret);
/* Opens the one of a reader that died. Returns 0, -ENOENT, -EBADMSG (another build's) or another -errno. */
int legacy_take(int folder, struct legacy_session *ret_session, struct legacy *ret);
void legacy_close(struct legacy *legacy);

int legacy_set_clearing(struct legacy *legacy, const struct legacy_clearing *clearing);
int legacy_clearing(const struct legacy *legacy, struct legacy_clearing *ret);

/* Adds a probe; its place is remembered in probe->place. Returns 0 or -errno. */
int legacy_add(struct legacy *legacy, struct probe *probe);
void legacy_drop(struct legacy *legacy, const struct probe *probe);
/* Reads the next record from place *at on into *ret, whose place is filled in. Returns 1, 0 (no more) or -errno. */
int legacy_next(struct legacy *legacy, uint32_t *at, struct probe *ret);

#endif
