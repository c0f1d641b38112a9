/* Checked and aligned arithmetic for sizes that a peer or a user had a hand in. */
#ifndef TRACEFAN_BASE_CHECKED_H
#define TRACEFAN_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Rounds v up to a multiple of align, a power of two. The caller knows that v is not within align of the top. */
static inline uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* True when [offset, offset + length) lies inside [0, size), computed without wrapping. */
static inline bool range_inside(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

#endif
