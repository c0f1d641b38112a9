/* Any bytes as a sub-buffer. The first byte picks the machine: bit 0 big-endian, bit 1 a long of 4 bytes; bit
 * 2 takes the rest as an events/header_page file instead. */
#include "router/page.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>

/* What holds for every page, however damaged. */
static void check_walk(struct page_cursor *cursor, const uint8_t *page, size_t size)
{
	uint64_t last = 0, seen = 0;
	uint32_t count = page_count(cursor, &last), events = 0;
	struct page_event event;
	int r;

	while ((r = page_next(cursor, &event)) > 0) {
		if (event.data < page || event.data > page + size || event.size > (size_t)(page + size - event.data))
			abort();
		seen = event.time;
		events++;
	}
	if (events != count || seen != last || (r < 0) != (cursor->error != PAGE_OK))
		abort();
	if (cursor->error && cursor->error_at > size)
		abort();
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16, .size = 4096 };
	struct page_cursor cursor;

	if (!size)
		return;
	layout.big_endian = bytes[0] & 1;
	if (bytes[0] & 2) {
		layout.commit_size = 4;
		layout.data_offset = 12;
	}
	if (bytes[0] & 4) {
		(void)page_layout_parse((const char *)bytes + 1, size - 1, false, &layout);
		return;
	}
	if (!page_open(&cursor, &layout, bytes + 1, size - 1))
		check_walk(&cursor, bytes + 1, size - 1);
	else if (!cursor.error)
		abort();
}
