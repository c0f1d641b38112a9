/* The record ring's two ends. One writer process, one reader process; neither trusts the other: the
 * writer clamps the consumer's cursor, the reader checks every size before it follows it. */
#ifndef TRACEFAN_SHM_RING_H
#define TRACEFAN_SHM_RING_H

#include "shm/record_abi.h"
#include "shm/ring_abi.h"
#include "shm/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the router's end ---- */
struct ring_writer {
	struct segment head;    /* SEGMENT_RING's first page */
	struct segment cursor;  /* SEGMENT_CURSOR, mapped read-only */
	uint8_t *data;          /* the first of the two mappings of the data */
	uint64_t capacity;
	uint64_t reserved;      /* end of what has been written, published or not */
	uint64_t published;     /* last value stored in ring_head.published */
	uint64_t consumed;      /* last clamped copy of the consumer's cursor */
	uint64_t oldest;        /* RING_OVERWRITE: first record that is still whole */
	uint64_t signalled;     /* wake_needed's memory */
	enum ring_overflow overflow;
	int wake_fd;            /* eventfd that the consumer polls */
};

/* Makes both segments and the eventfd. capacity: a power of two between RING_CAPACITY_MIN and
 * RING_CAPACITY_MAX. Returns 0 or -errno. The writer is owned by the caller: ring_writer_release. */
int ring_writer_create(size_t capacity, enum ring_overflow overflow, struct ring_writer *ret);
void ring_writer_release(struct ring_writer *writer);

/* Room for a record of `size` bytes (a multiple of RECORD_ALIGN, at most capacity / 4), or NULL when
 * there is none (RING_DROP only: RING_OVERWRITE always finds room). What is returned is contiguous and
 * is the caller's to fill completely before the next call; it becomes visible with publish. The cost of
 * the cursor's cache line is paid only when the last known cursor leaves no room. */
struct record_header *ring_writer_reserve(struct ring_writer *writer, size_t size);

/* Makes all reserved records visible and wakes the consumer if it sleeps. Returns 0 or -errno (of the
 * eventfd). Cheap when nothing was reserved. */
int ring_writer_publish(struct ring_writer *writer);

/* Bytes that are published or reserved and not consumed, by the clamped cursor. */
uint64_t ring_writer_used(struct ring_writer *writer);

/* Descriptors for the consumer, duplicates owned by the caller: ring, cursor, eventfd.
 * Returns 0 or -errno. */
int ring_writer_share(const struct ring_writer *writer, int ret_fds[3]);

/* ---- the consumer's end ---- */
struct ring_reader {
	struct segment head;   /* read-only */
	struct segment cursor; /* writable */
	const uint8_t *data;
	uint64_t capacity;
	uint64_t position;     /* of the next record */
	uint64_t limit;        /* acquire-loaded copy of published */
	uint64_t released;     /* last value stored in the cursor */
	enum ring_overflow overflow;
	int wake_fd;
	uint8_t *copy;         /* RING_OVERWRITE: the record is copied here and then proved whole */
	size_t copy_size;
	uint64_t overwritten;  /* bytes that were overwritten before they could be read, in all */
};

/* Attaches to the descriptors of ring_writer_share; takes ownership of them on success only. */
int ring_reader_attach(const int fds[3], struct ring_reader *ret);
void ring_reader_release(struct ring_reader *reader);

/* The next record, valid until the next call on this reader. Returns 1, 0 (none now), or
 * -EBADMSG (the writer broke the layout: the ring can't be read further),
 * -EOVERFLOW (RING_OVERWRITE: records were overwritten; reading goes on at the oldest whole one). */
int ring_reader_next(struct ring_reader *reader, const struct record_header **ret);

/* Tells the writer that everything before the current record may be overwritten. ring_reader_next does
 * it by itself each time an eighth of the ring has been read and when it finds no more. */
void ring_reader_release_read(struct ring_reader *reader);

/* Announces sleep (wake_prepare_sleep) and looks once more. Returns true when the caller may wait for
 * reader->wake_fd to become readable, false when a record came in the meantime. */
bool ring_reader_prepare_sleep(struct ring_reader *reader);

#endif
