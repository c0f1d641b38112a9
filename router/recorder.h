/* Writes the stream as it comes from the reader into a file: shm/recording_abi.h. */
#ifndef TRACEFAN_ROUTER_RECORDER_H
#define TRACEFAN_ROUTER_RECORDER_H

#include "shm/control_abi.h"
#include "shm/pool_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_layout;

struct recorder {
	int fd;        /* -1: nothing is recorded */
	int error;     /* the first -errno; nothing is written behind it */
	bool begun;    /* the file may be written to */
	bool told;     /* the owner's: that there is an error */
	uint8_t *held; /* whole frames that are not written yet, behind the header where the file has not begun */
	size_t held_size, held_room;
	size_t skip;   /* what stands in front of the first of them: the header */
	const struct page_layout *layout; /* NULL: the stream is text */
	uint64_t unrecorded; /* events that came and did not get into the file; LEDGER_UNKNOWN */
};

/* Takes ownership of fd (-1: every other call does nothing). */
void recorder_init(struct recorder *recorder, int fd);
/* From here on the file may be written to. Before, it stays as it was: the first probe may be refused yet. */
void recorder_start(struct recorder *recorder);
/* Writes out what is held; the errors are the recorder's. */
void recorder_flush(struct recorder *recorder);
/* Writes the end, flushes and closes; the file of a recording that did not start stays as it was. Returns 0 or the first
 * -errno of the recording. */
int recorder_finish(struct recorder *recorder);

void recorder_begin(struct recorder *recorder, const struct control_router_welcome *welcome, uint32_t slot_size);
void recorder_blob(struct recorder *recorder, uint32_t frame_kind, const void *blob, size_t size);
void recorder_format(struct recorder *recorder, uint64_t probe_id, uint32_t kind, const char *system,
	const char *event, const char *name, const void *format, size_t size);
/* `layout` outlives the recorder. */
void recorder_entry(struct recorder *recorder, const struct page_layout *layout, const struct pool_entry *entry, const void *data);

#endif
