/* Writes the stream as it comes from the reader into a file: shm/recording_abi.h. */
#ifndef TRACEFAN_ROUTER_RECORDER_H
#define TRACEFAN_ROUTER_RECORDER_H

#include "shm/control_abi.h"
#include "shm/pool_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder {
	int fd;        /* -1: nothing is recorded */
	int error;     /* the first -errno; nothing is written behind it */
	uint8_t *held; /* what is not written yet */
	size_t held_size;
};

/* Takes ownership of fd (-1: every other call does nothing). Returns 0 or -ENOMEM. */
int recorder_init(struct recorder *recorder, int fd);
/* Writes the end, flushes and closes. Returns 0 or the first -errno of the recording. */
int recorder_finish(struct recorder *recorder);

void recorder_begin(struct recorder *recorder, const struct control_router_welcome *welcome, uint32_t slot_size);
void recorder_blob(struct recorder *recorder, uint32_t frame_kind, const void *blob, size_t size);
void recorder_format(struct recorder *recorder, uint64_t probe_id, uint32_t kind, const char *system,
	const char *event, const char *name, const void *format, size_t size);
void recorder_entry(struct recorder *recorder, const struct pool_entry *entry, const void *data);

#endif
