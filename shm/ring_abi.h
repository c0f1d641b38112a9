/* The record ring from the router to one consumer: layout only.
 *
 *   memfd SEGMENT_RING, made and written by the router, sealed read-only for everybody else:
 *     +---------------------+----------------------------------------+
 *     | struct ring_head    | data: `capacity` bytes, a power of two  |
 *     | RING_HEAD bytes     | mapped twice in a row by both sides     |
 *     +---------------------+----------------------------------------+
 *   memfd SEGMENT_CURSOR, one page, written by the consumer, read by the router (RING_OVERWRITE: `consumed` is
 *   written by both).
 *
 * Positions count bytes since the ring was made and run free. They are compared by unsigned difference only.
 *
 * RING_OVERWRITE: (position & (capacity - 1)) is the place.
 *
 * RING_DROP: the data are chunks of ring_chunk_size(capacity) bytes, a power of two. The chunk that holds the positions
 * from n * size on is number order[n & (chunks - 1)] of the data: the writer takes the chunk that came back last, which
 * is still in the cache. A chunk comes back when the consumer's cursor has passed its end. No record lies across the
 * end of a chunk: where the next one does not fit, a record size of 0 says that the rest is passed over. */
#ifndef TRACEFAN_SHM_RING_ABI_H
#define TRACEFAN_SHM_RING_ABI_H

#include "shm/record_abi.h"
#include "shm/segment_abi.h"

#include <stdint.h>

#define RING_PAGE         4096
#define RING_HEAD         16384
#define RING_CAPACITY_MIN (64U << 10)
#define RING_CAPACITY_MAX (1U << 30)
#define RING_CHUNK_MIN    (16U << 10)
#define RING_CHUNKS       16   /* of a ring, if that makes them neither smaller nor larger than is good */
#define RING_CHUNK_GOOD   (256U << 10)
#define RING_CHUNKS_MAX   1024

enum ring_overflow {
	RING_DROP = 0,      /* no room: the new record is lost and told */
	RING_OVERWRITE = 1, /* no room: the oldest records are lost and told (flight recorder) */
};

/* A record's position and how many RECORD_EVENTs began before it. */
struct ring_resume {
	uint64_t position;
	uint64_t events;
};
_Static_assert(sizeof(struct ring_resume) == 16, "ring resume");

/* Losses that no record tells of yet, as there was no room for it: so that a router that dies owes them to nobody. */
struct ring_debt {
	uint64_t serial;    /* 0: does not hold; written last */
	uint64_t published; /* holds while the ring's is this */
	struct record_lost lost[LOST_SOURCES]; /* by source; at_least 0: none */
	uint32_t cpu;       /* of the last event that was lost at this ring, whose time is lost[LOST_RING].to */
	uint32_t same;      /* how many were lost at that very place of the merged order */
	uint64_t reader_total; /* lost by readers in all, those of lost[LOST_READER] included */
};
_Static_assert(sizeof(struct ring_debt) == 32 + 40 * LOST_SOURCES, "ring debt");

/* What a consumer's trace has lost and not been given, of which no record tells: for the next router, should this one die. A
 * consumer has counted by itself what it was given. */
struct ring_column {
	uint64_t trace_id;
	uint64_t filtered; /* as of the last time that it was looked: a moment ago */
	uint64_t lost_ring; /* as of what is published */
};
_Static_assert(sizeof(struct ring_column) == 24, "ring column");

#define RING_COLUMNS 256 /* traces; more are not kept */

struct ring_columns {
	uint64_t serial; /* 0: does not hold; written last */
	uint64_t count;
	struct ring_column rows[RING_COLUMNS];
};
_Static_assert(sizeof(struct ring_columns) == 16 + 24 * RING_COLUMNS, "ring columns");

/* Only the router writes this. */
struct ring_head {
	struct segment_header segment;
	uint64_t capacity; /* bytes of data */
	uint32_t overflow; /* enum ring_overflow */
	uint32_t reserved0;
	uint8_t pad0[48];
	/* Own cache line: the end of the published records. Release-stored by ring_writer_show,
	 * acquire-loaded by the consumer. */
	uint64_t published;
	/* RING_OVERWRITE: where a consumer that was overtaken goes on, and how many events began before. The writer
	 * fills in the pair that is not in use, then raises `turn` (release-stored), then moves the consumer's
	 * cursor to the same position: the pair of that position is whole as long as neither `turn` nor the cursor
	 * changes, even if the writer is interrupted for long. */
	uint64_t turn;
	struct ring_resume resume[2];
	/* 1: the router waits for room in this ring, for what it has to tell or, in a recording, for events: a consumer that finds
	 * it empty says so by CONTROL_ROOM before it sleeps. */
	uint32_t waits;
	uint32_t readerless; /* 1: the session's reader is dead, and nothing comes until another takes over */
	uint8_t pad1[8];
	/* Of the two that hold for what is published, the one with the greater serial counts. The writer fills in the
	 * other one before it publishes, so wherever it dies, one is right. Read once the writer is gone. */
	struct ring_debt debts[2];
	/* RING_DROP: stored before anything is published that lies in the chunk, and not again before that came
	 * back. */
	uint16_t order[RING_CHUNKS_MAX];
	/* The one with the greater serial counts. Read once the writer is gone. */
	struct ring_columns columns[2];
};
_Static_assert(sizeof(struct ring_head) == 192 + 2 * (32 + 40 * LOST_SOURCES) + 2 * RING_CHUNKS_MAX + 2 * (16 + 24 * RING_COLUMNS), "ring head");
_Static_assert(sizeof(struct ring_head) <= RING_HEAD, "ring head fits");

/* Only the consumer writes this page, `consumed` aside. The router loads each field once and clamps it. */
struct ring_cursor {
	struct segment_header segment;
	/* RING_DROP: records before this position are no longer needed; release-stored by the consumer.
	 * RING_OVERWRITE: the next record, moved by compare-and-exchange only. The consumer copies a record and then
	 * moves on by its size: if that succeeds, the record is its own and whole. The router moves it on before it
	 * overwrites what lies there: then all that was passed over is lost, and both know it. */
	uint64_t consumed;
	uint8_t pad0[56];
	/* Own cache line, for the router looks at it with each batch: raised by one each time before the
	 * consumer goes to sleep; the router signals when the value is another than the one that it last
	 * signalled for (see shm/wake.h). */
	uint64_t sleeps;
	uint8_t pad1[56];
};
_Static_assert(sizeof(struct ring_cursor) == 192, "ring cursor");

#endif
