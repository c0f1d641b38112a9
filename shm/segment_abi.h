/* The head of every shared-memory segment: layout only.
 *
 *   0        8    10   12        16          24           32      40          64
 *   +--------+----+----+---------+-----------+------------+-------+-----------+
 *   | magic  |kind|ver | reserved| compatible|incompatible| size  | reserved  |
 *   +--------+----+----+---------+-----------+------------+-------+-----------+
 *
 * Written once by the process that makes the segment, before the descriptor is handed out; read by
 * whoever attaches. A reader refuses a segment whose magic, kind, version or size is not what it
 * expects, or that has an incompatible feature bit which it doesn't know. Native byte order: a segment
 * never leaves the host. */
#ifndef TRACEFAN_SHM_SEGMENT_ABI_H
#define TRACEFAN_SHM_SEGMENT_ABI_H

#include <stdint.h>

#define SEGMENT_MAGIC   UINT64_C(0x4e41464543415254) /* "TRACEFAN" in memory, little-endian */
#define SEGMENT_VERSION 1

enum segment_kind {
	SEGMENT_POOL = 1,   /* reader -> router: filled ring and slots */
	SEGMENT_FREE = 2,   /* router -> reader: free ring and the router's positions */
	SEGMENT_RING = 3,   /* router -> consumer: records */
	SEGMENT_CURSOR = 4, /* consumer -> router: the consumer's cursor */
	SEGMENT_SCHEMA = 5, /* router -> consumer: one trace's schema */
};

struct segment_header {
	uint64_t magic;
	uint16_t kind;
	uint16_t version;
	uint32_t reserved0;
	uint64_t compatible;
	uint64_t incompatible;
	uint64_t size; /* bytes of the whole segment, this header included */
	uint64_t reserved1[3];
};
_Static_assert(sizeof(struct segment_header) == 64, "segment header");

#endif
