/* The build id of an ELF file. Pure: bytes in, offsets out; whoever made the file chose the bytes. */
#ifndef TRACEFAN_READER_BUILD_ID_H
#define TRACEFAN_READER_BUILD_ID_H

#include "shm/state_abi.h"

#include <stddef.h>
#include <stdint.h>

/* How much of a file's begin holds its headers, and how much of a segment of notes is looked at. */
#define BUILD_ID_BYTES    4096
#define BUILD_ID_SEGMENTS 8

struct build_id_segment {
	uint64_t offset, size; /* in the file */
	uint64_t align;        /* of its notes: 4 or 8 */
};

/* Finds the segments of notes by the first bytes of a file of this machine's byte order. Returns how many, or
 * -EBADMSG: no such file. */
int build_id_segments(const void *head, size_t size, struct build_id_segment ret[BUILD_ID_SEGMENTS]);

/* Finds the build id among notes: its size in bytes, at most STATE_BUILD_ID_MAX, or 0. */
size_t build_id_find(const void *notes, size_t size, uint64_t align, const uint8_t **ret);

#endif
