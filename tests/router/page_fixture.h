/* What the tests of pages share: a page made by hand in each machine's form, and what is read of a copy of it. */
#ifndef TRACEFAN_TESTS_ROUTER_PAGE_FIXTURE_H
#define TRACEFAN_TESTS_ROUTER_PAGE_FIXTURE_H

#include "router/page.h"

#include "base/checked.h"
#include "tests/support/guarded.h"
#include "tests/support/page_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define TIME UINT64_C(1000000000)

/* Every rule is tested in each machine's form. */
struct machine {
	bool big_endian;
	uint32_t long_size;
};
static const struct machine machines[] = { { false, 8 }, { false, 4 }, { true, 8 }, { true, 4 } };

static struct page_image image;
static struct guarded guarded;

static inline int make_guarded(void **state)
{
	(void)state;
	guarded_create(&guarded, PAGE_IMAGE_MAX);
	return 0;
}

static inline int release_guarded(void **state)
{
	(void)state;
	guarded_release(&guarded);
	return 0;
}

static inline void begin(const struct machine *machine, uint32_t size)
{
	page_image_begin(&image, machine->big_endian, machine->long_size, size, TIME);
}

/* Opens a copy of the image's `size` first bytes that lies right before untouchable memory. */
static inline int open_image(struct page_cursor *cursor, size_t size)
{
	return page_open(cursor, &image.layout, guarded_copy(&guarded, image.bytes, size), size);
}

static inline void expect_event(struct page_cursor *cursor, uint64_t time, const void *data, uint32_t size)
{
	struct page_event event;

	assert_int_equal(page_next(cursor, &event), 1);
	assert_int_equal(event.time, time);
	assert_int_equal(event.size, size);
	assert_memory_equal(event.data, data, size);
}

static inline void expect_end(struct page_cursor *cursor)
{
	struct page_event event;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(page_next(cursor, &event), 0);
		assert_int_equal(cursor->error, PAGE_OK);
	}
}

static inline void expect_error(struct page_cursor *cursor, enum page_error error, uint32_t at)
{
	struct page_event event;

	/* Asked again, it still says so. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(page_next(cursor, &event), -1);
		assert_int_equal(cursor->error, error);
		assert_int_equal(cursor->error_at, at);
	}
}

/* A page with every kind of record; the same events whatever the machine. */
static inline void make_mixed(const struct machine *machine)
{
	static const uint8_t data[300] = { 1, 2, 3 };
	const uint64_t count = 99;

	begin(machine, 4096);
	page_image_event(&image, 10, data, 20);
	page_image_discarded(&image, 20, 40);
	page_image_extend(&image, UINT64_C(1) << 30);
	page_image_event(&image, 30, data, 300);
	page_image_stamp(&image, UINT64_C(1) << 40);
	page_image_event(&image, 40, data, 4);
	page_image_long_event(&image, 50, data, 8);
	page_image_filler(&image);
	page_image_lost(&image, &count);
}

#endif
