/* The slot pool between reader and router: layout only.
 *
 *   memfd SEGMENT_POOL, made and written by the reader, read-only to the router:
 *     +------------------+---------------------------------+--------------------------------+
 *     | struct pool_head | filled ring: `filled_capacity`  | slots: `slot_count` times      |
 *     | one page         | times struct pool_entry         | `slot_size`, page-aligned      |
 *     +------------------+---------------------------------+--------------------------------+
 *   memfd SEGMENT_FREE, made by the reader, size sealed, written by the router:
 *     +------------------+------------------------------+
 *     | struct free_head | uint32_t[free_capacity]      |
 *     | one page         | slots that come back         |
 *     +------------------+------------------------------+
 *
 * A slot is owned by the reader until its entry is published, then by the router until its index comes
 * back in the free ring. The reader checks each index that comes back: in range, owned by the router. */
#ifndef TRACEFAN_SHM_POOL_ABI_H
#define TRACEFAN_SHM_POOL_ABI_H

#include "shm/segment_abi.h"

#include <stdint.h>

#define POOL_PAGE           4096
#define POOL_SLOT_SIZE_MIN  4096
#define POOL_SLOT_SIZE_MAX  (1U << 20)
#define POOL_SLOT_COUNT_MAX (1U << 16)
#define POOL_CPU_ALL        0xffffffffU

/* Only the reader writes this page. */
struct pool_head {
	struct segment_header segment;
	uint32_t slot_size;       /* bytes: the sub-buffer size, or the text read size */
	uint32_t slot_count;
	uint32_t filled_capacity; /* entries: a power of two, at least 4 * slot_count */
	uint32_t free_capacity;   /* entries of the free ring: a power of two, at least slot_count */
	uint64_t filled_offset;   /* bytes from the segment's start */
	uint64_t slots_offset;
	uint8_t pad0[32];
	uint64_t filled;          /* own line: entries published, runs free; release-stored */
	uint64_t reader_sleeps;   /* raised before the reader waits for the free ring (shm/wake.h) */
	uint8_t pad1[48];
};
_Static_assert(sizeof(struct pool_head) == 192, "pool head");

/* What the slots that came back held, so that a router which takes over goes on counting where the last one
 * stopped. The reader carries it from one router to the next and never looks at it. */
struct pool_counters {
	uint64_t freed; /* the value of free_head.freed with which these hold */
	uint64_t decoded;
	uint64_t undecodable;
	uint64_t told_lost; /* losses in the kernel that pages or lines told of, with a count */
	uint64_t lost_reader; /* taken out of the kernel by readers that died before they published it */
};
_Static_assert(sizeof(struct pool_counters) == 40, "pool counters");

/* Only the router writes this page. */
struct free_head {
	struct segment_header segment;
	uint64_t taken;         /* entries of the filled ring that the router has read, runs free */
	uint64_t freed;         /* entries of the free ring published, runs free; release-stored */
	uint64_t router_sleeps; /* raised before the router waits for the filled ring */
	uint64_t reserved;
	uint8_t pad0[32];
	/* Written in turn, each before the store to `freed` that makes it hold: so one of them does, wherever
	 * the router dies. */
	struct pool_counters counters[2];
};
_Static_assert(sizeof(struct free_head) == 208, "free head");

enum pool_entry_kind {
	POOL_DATA = 1,    /* `slot` holds `length` bytes of `cpu` (POOL_CPU_ALL: the merged text) */
	POOL_BUSY = 2,    /* in this sweep `cpu` was not found empty */
	POOL_SWEEP = 3,   /* every CPU that no POOL_BUSY named since the last sweep had nothing left
			   * that is older than `time` */
	POOL_FLUSH = 4,   /* a flush asked for at `time`; `value` is its cookie */
	POOL_ACCOUNT = 5, /* the kernel's counts with cookie `value` were read at this place in the stream */
	POOL_CLOCK = 6,   /* `time` is CLOCK_MONOTONIC, `value` CLOCK_REALTIME, `length` the error in ns */
	POOL_END = 7,     /* nothing follows; `value` is an enum end_reason */
	POOL_CLEARED = 8, /* between `value` and `time`, both ns, events may have been cleared that nobody counted */
};

enum pool_entry_flag {
	POOL_REPUBLISHED = 1 << 0, /* an earlier router had it already */
};

struct pool_entry {
	uint64_t sequence; /* counts POOL_DATA entries of the session; for the others, that of the last one */
	uint64_t time;     /* ns, CLOCK_MONOTONIC */
	uint64_t value;
	uint32_t slot;
	uint32_t cpu;
	uint32_t length;
	uint8_t kind;      /* enum pool_entry_kind */
	uint8_t flags;     /* enum pool_entry_flag */
	uint16_t reserved;
	uint64_t reserved1;
};
_Static_assert(sizeof(struct pool_entry) == 48, "pool entry");

#endif
