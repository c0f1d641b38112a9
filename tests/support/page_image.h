/* Sub-buffers made by hand, in any byte order and size of long, as the kernel would lay them out. */
#ifndef TRACEFAN_TESTS_SUPPORT_PAGE_IMAGE_H
#define TRACEFAN_TESTS_SUPPORT_PAGE_IMAGE_H

#include "router/page.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAGE_IMAGE_MAX 65536

struct page_image {
	struct page_layout layout;
	uint32_t size; /* of the sub-buffer */
	uint32_t at;   /* where the next event goes */
	uint8_t bytes[PAGE_IMAGE_MAX];
};

static inline void page_image_put(struct page_image *image, uint32_t at, uint64_t value, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		image->bytes[at + i] = (uint8_t)(value >> 8 * (image->layout.big_endian ? size - 1 - i : i));
}

static inline void page_image_word(struct page_image *image, uint32_t value)
{
	assert(image->at + 4 <= PAGE_IMAGE_MAX);
	page_image_put(image, image->at, value, 4);
	image->at += 4;
}

/* An event's first word. */
static inline void page_image_header(struct page_image *image, uint32_t type, uint32_t delta)
{
	page_image_word(image, image->layout.big_endian ? type << 27 | delta : delta << 5 | type);
}

/* `commit` as the kernel has it: the length, flags or'ed in. */
static inline void page_image_set_commit(struct page_image *image, uint64_t commit)
{
	page_image_put(image, image->layout.commit_offset, commit, image->layout.commit_size);
}

/* Everything up to here is committed. */
static inline void page_image_commit(struct page_image *image)
{
	page_image_set_commit(image, image->at - image->layout.data_offset);
}

static inline void page_image_begin(struct page_image *image, bool big_endian, uint32_t long_size, uint32_t size,
	uint64_t time)
{
	assert(size <= PAGE_IMAGE_MAX);
	memset(image, 0, sizeof(*image));
	image->layout = (struct page_layout){
		.commit_offset = 8,
		.commit_size = long_size,
		.data_offset = 8 + long_size,
		.size = size,
		.big_endian = big_endian,
	};
	image->size = size;
	image->at = image->layout.data_offset;
	page_image_put(image, 0, time, 8);
}

/* A data event with a length of its own in array[0], whatever its size. */
static inline void page_image_long_event(struct page_image *image, uint32_t delta, const void *data, uint32_t size)
{
	uint32_t rounded = (size + 3) & ~3U;

	page_image_header(image, 0, delta);
	page_image_word(image, rounded + 4);
	assert(image->at + rounded <= PAGE_IMAGE_MAX);
	memcpy(image->bytes + image->at, data, size);
	image->at += rounded;
}

/* A data event, in the form that the kernel picks for its size. */
static inline void page_image_event(struct page_image *image, uint32_t delta, const void *data, uint32_t size)
{
	uint32_t words = (size + 3) / 4;

	if (!words || words > 28) {
		page_image_long_event(image, delta, data, size);
		return;
	}
	page_image_header(image, words, delta);
	assert(image->at + words * 4 <= PAGE_IMAGE_MAX);
	memcpy(image->bytes + image->at, data, size);
	image->at += words * 4;
}

/* An event of `size` bytes that was reserved and given up. */
static inline void page_image_discarded(struct page_image *image, uint32_t delta, uint32_t size)
{
	page_image_header(image, 29, delta ? delta : 1);
	page_image_word(image, size);
	image->at += size - 4;
}

static inline void page_image_filler(struct page_image *image)
{
	page_image_header(image, 29, 0);
}

static inline void page_image_time(struct page_image *image, uint32_t type, uint64_t value)
{
	page_image_header(image, type, (uint32_t)(value & ((1U << 27) - 1)));
	page_image_word(image, (uint32_t)(value >> 27));
}

static inline void page_image_extend(struct page_image *image, uint64_t delta)
{
	page_image_time(image, 30, delta);
}

static inline void page_image_stamp(struct page_image *image, uint64_t time)
{
	page_image_time(image, 31, time & ((UINT64_C(1) << 59) - 1));
}

/* The loss flags, with the count behind the data where `count` isn't NULL. Commit first. */
static inline void page_image_lost(struct page_image *image, const uint64_t *count)
{
	uint64_t commit = (image->at - image->layout.data_offset) | UINT64_C(1) << 31;

	/* On 64-bit kernels the flag is a negative int that is added to a long. */
	if (image->layout.commit_size == 8)
		commit |= UINT64_C(0xffffffff) << 32;
	if (count) {
		commit += UINT64_C(1) << 30;
		page_image_put(image, image->at, *count, image->layout.commit_size);
	}
	page_image_set_commit(image, commit);
}

#endif
