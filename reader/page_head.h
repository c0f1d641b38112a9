/* As much of raw pages as it takes to put them into the order of time: for page dumps, whose pages
 * carry no word of the reader that took them. Pure. */
#ifndef TRACEFAN_READER_PAGE_HEAD_H
#define TRACEFAN_READER_PAGE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The traced kernel's events/header_page. */
struct page_head {
	uint32_t page_size;
	uint32_t data_offset;
	uint32_t commit_offset, commit_size;
	bool big_endian;
};

/* Returns 0, or -EBADMSG. The byte order isn't in it. */
int page_head_parse(const char *text, struct page_head *ret);

/* Bytes of a page's head that the two calls below look at. */
#define PAGE_HEAD_BYTES 32

/* How plausible the page's head is in this byte order: a point for a committed length that fits
 * into the page, one for a time within the first two years of a machine. */
int page_head_fits(
	const struct page_head *head, const uint8_t *bytes, size_t size, bool big_endian);

/* The time of the page's first event; 0 for a page too short to have one. */
uint64_t page_head_time(const struct page_head *head, const uint8_t *bytes, size_t size);

#endif
