#include "router/page.h"

#include "base/checked.h"
#include "tests/support/guarded.h"
#include "tests/support/page_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

static int make_guarded(void **state)
{
	(void)state;
	guarded_create(&guarded, PAGE_IMAGE_MAX);
	return 0;
}

static int release_guarded(void **state)
{
	(void)state;
	guarded_release(&guarded);
	return 0;
}

static void begin(const struct machine *machine, uint32_t size)
{
	page_image_begin(&image, machine->big_endian, machine->long_size, size, TIME);
}

/* Opens a copy of the image's `size` first bytes that lies right before untouchable memory. */
static int open_image(struct page_cursor *cursor, size_t size)
{
	return page_open(cursor, &image.layout, guarded_copy(&guarded, image.bytes, size), size);
}

static void expect_event(struct page_cursor *cursor, uint64_t time, const void *data, uint32_t size)
{
	struct page_event event;

	assert_int_equal(page_next(cursor, &event), 1);
	assert_int_equal(event.time, time);
	assert_int_equal(event.size, size);
	assert_memory_equal(event.data, data, size);
}

static void expect_end(struct page_cursor *cursor)
{
	struct page_event event;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(page_next(cursor, &event), 0);
		assert_int_equal(cursor->error, PAGE_OK);
	}
}

static void expect_error(struct page_cursor *cursor, enum page_error error, uint32_t at)
{
	struct page_event event;

	/* Asked again, it still says so. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(page_next(cursor, &event), -1);
		assert_int_equal(cursor->error, error);
		assert_int_equal(cursor->error_at, at);
	}
}

static void an_empty_page(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t last = 42;

		begin(&machines[m], 4096);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_int_equal(cursor.start_time, TIME);
		assert_false(cursor.missed);
		assert_int_equal(page_count(&cursor, &last), 0);
		assert_int_equal(last, 42);
		expect_end(&cursor);
	}
}

static void events_of_every_short_size(void **state)
{
	uint8_t data[112];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t time = TIME, last = 0;

		begin(&machines[m], 4096);
		for (uint32_t size = 4; size <= 112; size += 4)
			page_image_event(&image, size, data, size);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_int_equal(page_count(&cursor, &last), 28);
		for (uint32_t size = 4; size <= 112; size += 4)
			expect_event(&cursor, time += size, data, size);
		assert_int_equal(last, time);
		expect_end(&cursor);
	}
}

static void deltas_add_up(void **state)
{
	const uint32_t longest = (1U << 27) - 1;

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;

		begin(&machines[m], 4096);
		page_image_event(&image, longest, "abcd", 4);
		page_image_event(&image, 0, "efgh", 4);
		page_image_event(&image, longest, "ijkl", 4);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		expect_event(&cursor, TIME + longest, "abcd", 4);
		expect_event(&cursor, TIME + longest, "efgh", 4);
		expect_event(&cursor, TIME + 2 * (uint64_t)longest, "ijkl", 4);
		expect_end(&cursor);
	}
}

/* Records of more than a small page, as three strings of 4095 bytes make them, need a larger sub-buffer. */
static void an_event_longer_than_4096_bytes(void **state)
{
	static uint8_t data[3 * 4095 + 32];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + 5);
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		struct page_event event;

		begin(&machines[m], 16384);
		page_image_event(&image, 3, "head", 4);
		page_image_event(&image, 5, data, sizeof(data));
		page_image_event(&image, 7, "tail", 4);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 16384), 0);
		expect_event(&cursor, TIME + 3, "head", 4);
		assert_int_equal(page_next(&cursor, &event), 1);
		assert_int_equal(event.size, (sizeof(data) + 3) & ~3U);
		assert_int_equal(event.time, TIME + 8);
		assert_memory_equal(event.data, data, sizeof(data));
		expect_event(&cursor, TIME + 15, "tail", 4);
		expect_end(&cursor);
	}
}

/* Machines that want 8-byte aligned data write array[0] for every event. */
static void a_short_event_with_its_length_in_front(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint32_t at;

		begin(&machines[m], 4096);
		page_image_long_event(&image, 1, "abcdefgh", 8);
		page_image_long_event(&image, 1, "", 0);
		/* A length that is not rounded: the next event begins at the next word. */
		at = image.at;
		page_image_long_event(&image, 1, "ijklm", 5);
		page_image_put(&image, at + 4, 4 + 5, 4);
		page_image_event(&image, 1, "tail", 4);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		expect_event(&cursor, TIME + 1, "abcdefgh", 8);
		expect_event(&cursor, TIME + 2, "", 0);
		expect_event(&cursor, TIME + 3, "ijklm", 5);
		expect_event(&cursor, TIME + 4, "tail", 4);
		expect_end(&cursor);
	}
}

/* The page ends inside the last word: reading must too. */
static void an_unrounded_length_at_the_very_end(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint32_t at;

		begin(&machines[m], 4096);
		at = image.at;
		page_image_long_event(&image, 1, "ijklm", 5);
		page_image_put(&image, at + 4, 4 + 5, 4);
		image.at -= 3;
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, image.at), 0);
		expect_event(&cursor, TIME + 1, "ijklm", 5);
		expect_end(&cursor);
	}
}

static void time_extends(void **state)
{
	const uint64_t far = (UINT64_C(0xfedcba98) << 27) + 0x7654321;

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t last = 0;

		begin(&machines[m], 4096);
		page_image_extend(&image, UINT64_C(1) << 27);
		page_image_event(&image, 0, "abcd", 4);
		page_image_extend(&image, far);
		page_image_event(&image, 9, "efgh", 4);
		page_image_extend(&image, 5);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		/* A time record at the end belongs to no event. */
		assert_int_equal(page_count(&cursor, &last), 2);
		assert_int_equal(last, TIME + (UINT64_C(1) << 27) + far + 9);
		expect_event(&cursor, TIME + (UINT64_C(1) << 27), "abcd", 4);
		expect_event(&cursor, last, "efgh", 4);
		expect_end(&cursor);
	}
}

struct stamp_case {
	uint64_t running, stamped, expected;
};

/* 59 bits of the stamp, five of the running time. */
static void absolute_stamps(void **state)
{
	const uint64_t top = UINT64_C(0x28) << 56, span = UINT64_C(1) << 59;
	const struct stamp_case cases[] = {
		{ TIME, TIME + 77, TIME + 77 },
		{ top + TIME, top + TIME + 77, top + TIME + 77 },
		/* The stamp has wrapped since the running time: with the upper bits 0 and with others. */
		{ span - 10, span + 5, span + 5 },
		{ top + span - 10, top + span + 5, top + span + 5 },
		/* A clock that stepped back a second is no wrap. */
		{ top + 5 * TIME, top + 4 * TIME, top + 4 * TIME },
	};

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct page_cursor cursor;

			begin(&machines[m], 4096);
			page_image_put(&image, 0, cases[i].running, 8);
			page_image_stamp(&image, cases[i].stamped);
			page_image_event(&image, 3, "abcd", 4);
			page_image_commit(&image);
			assert_int_equal(open_image(&cursor, 4096), 0);
			expect_event(&cursor, cases[i].expected + 3, "abcd", 4);
			expect_end(&cursor);
		}
	}
}

static void discarded_events(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t last = 0;

		begin(&machines[m], 4096);
		page_image_event(&image, 10, "abcd", 4);
		page_image_discarded(&image, 100, 24);
		page_image_event(&image, 1000, "efgh", 4);
		/* The kernel wrote 1 for a delta of 0. */
		page_image_discarded(&image, 0, 200);
		page_image_event(&image, 5, "ijkl", 4);
		page_image_discarded(&image, 3, 4);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_int_equal(page_count(&cursor, &last), 3);
		assert_int_equal(last, TIME + 1115);
		expect_event(&cursor, TIME + 10, "abcd", 4);
		expect_event(&cursor, TIME + 1110, "efgh", 4);
		expect_event(&cursor, TIME + 1115, "ijkl", 4);
		expect_end(&cursor);
	}
}

static void filler_ends_the_page(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t last = 0;

		begin(&machines[m], 4096);
		page_image_event(&image, 10, "abcd", 4);
		page_image_filler(&image);
		/* What lies behind it is of an earlier turn of the ring. */
		page_image_event(&image, 10, "old!", 4);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_int_equal(page_count(&cursor, &last), 1);
		expect_event(&cursor, TIME + 10, "abcd", 4);
		expect_end(&cursor);
	}
}

static void filler_in_the_last_word(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;

		begin(&machines[m], 4096);
		page_image_filler(&image);
		page_image_commit(&image);
		assert_int_equal(open_image(&cursor, image.at), 0);
		expect_end(&cursor);
	}
}

static void lost_events_with_their_count(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		const uint64_t count = machines[m].long_size == 8 ? UINT64_C(0x123456789a) : 0x12345678;
		struct page_cursor cursor;

		begin(&machines[m], 4096);
		page_image_event(&image, 10, "abcd", 4);
		page_image_lost(&image, &count);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_true(cursor.missed);
		assert_true(cursor.missed_counted);
		assert_int_equal(cursor.missed_count, count);
		expect_event(&cursor, TIME + 10, "abcd", 4);
		/* The count is no event. */
		expect_end(&cursor);
	}
}

static void lost_events_without_a_count(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		const uint64_t unknown = UINT64_MAX, count = 5;
		struct page_cursor cursor;

		begin(&machines[m], 4096);
		page_image_event(&image, 10, "abcd", 4);
		page_image_lost(&image, NULL);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_true(cursor.missed);
		assert_false(cursor.missed_counted);
		expect_event(&cursor, TIME + 10, "abcd", 4);
		expect_end(&cursor);

		/* All ones: the kernel itself does not know. */
		page_image_lost(&image, &unknown);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_true(cursor.missed);
		assert_false(cursor.missed_counted);

		/* The page was cut inside the count: the events stand, the count is unknown. */
		page_image_lost(&image, &count);
		assert_int_equal(open_image(&cursor, image.at + machines[m].long_size - 1), 0);
		assert_true(cursor.missed);
		assert_false(cursor.missed_counted);
		expect_event(&cursor, TIME + 10, "abcd", 4);
		expect_end(&cursor);
	}
}

/* A full page has no room for the count. */
static void lost_events_before_a_full_page(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct page_cursor cursor;
		uint64_t last = 0;

		begin(&machines[m], 4096);
		while (image.at + 8 <= 4096)
			page_image_event(&image, 1, "abcd", 4);
		if (image.at < 4096)
			page_image_filler(&image);
		page_image_lost(&image, NULL);
		assert_int_equal(open_image(&cursor, 4096), 0);
		assert_true(cursor.missed);
		assert_int_equal(page_count(&cursor, &last), (4096 - image.layout.data_offset) / 8);
	}
}

/* ---- damage ---- */

static void a_page_shorter_than_its_header(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		begin(&machines[m], 4096);
		for (uint32_t size = 0; size < image.layout.data_offset; size++) {
			struct page_cursor cursor;

			assert_int_equal(open_image(&cursor, size), -1);
			expect_error(&cursor, PAGE_SHORT, size);
			assert_false(cursor.missed);
		}
	}
}

static void a_commit_outside_the_page(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		const uint64_t lengths[] = { 4096 - image.layout.data_offset + 1, 1U << 20, (1U << 27) - 1 };

		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			struct page_cursor cursor;
			uint64_t last = 0;

			begin(&machines[m], 4096);
			page_image_set_commit(&image, (4096 - image.layout.data_offset + 1) | lengths[i] | UINT64_C(1) << 31);
			assert_int_equal(open_image(&cursor, 4096), -1);
			expect_error(&cursor, PAGE_COMMIT_OUTSIDE, image.layout.commit_offset);
			assert_int_equal(page_count(&cursor, &last), 0);
			/* The flag itself could be read. */
			assert_true(cursor.missed);
			assert_false(cursor.missed_counted);
		}
	}
}

/* What came before the damage stands; the place is the event's. */
static void expect_damage(enum page_error error, uint32_t at)
{
	struct page_cursor cursor;
	uint64_t last = 0;

	page_image_commit(&image);
	assert_int_equal(open_image(&cursor, image.at), 0);
	assert_int_equal(page_count(&cursor, &last), 1);
	assert_int_equal(last, TIME + 10);
	expect_event(&cursor, TIME + 10, "good", 4);
	expect_error(&cursor, error, at);
}

static uint32_t begin_damage(const struct machine *machine)
{
	begin(machine, 4096);
	page_image_event(&image, 10, "good", 4);
	return image.at;
}

static void an_event_outside_the_commit(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		uint32_t at;

		/* Half a header, and a header alone. */
		for (uint32_t size = 1; size < 4; size++) {
			at = begin_damage(&machines[m]);
			image.at += size;
			expect_damage(PAGE_EVENT_OUTSIDE, at);
		}
		for (uint32_t type = 1; type <= 28; type++) {
			at = begin_damage(&machines[m]);
			page_image_header(&image, type, 1);
			image.at += type * 4 - 1;
			expect_damage(PAGE_EVENT_OUTSIDE, at);
		}
		/* The long form: no length, and lengths that are too large. */
		at = begin_damage(&machines[m]);
		page_image_header(&image, 0, 1);
		expect_damage(PAGE_EVENT_OUTSIDE, at);
		for (uint32_t length = 9; length; length = length < 1U << 31 ? length * 2 : 0) {
			at = begin_damage(&machines[m]);
			page_image_header(&image, 0, 1);
			page_image_word(&image, length);
			page_image_word(&image, 0);
			expect_damage(PAGE_EVENT_OUTSIDE, at);
		}
		at = begin_damage(&machines[m]);
		page_image_header(&image, 0, 1);
		page_image_word(&image, UINT32_MAX);
		expect_damage(PAGE_EVENT_OUTSIDE, at);
	}
}

static void a_length_that_cannot_be(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		for (uint32_t length = 0; length < 4; length++) {
			uint32_t at = begin_damage(&machines[m]);

			page_image_header(&image, 0, 1);
			page_image_word(&image, length);
			expect_damage(PAGE_ZERO_LENGTH, at);

			at = begin_damage(&machines[m]);
			page_image_header(&image, 29, 1);
			page_image_word(&image, length);
			expect_damage(PAGE_ZERO_LENGTH, at);
		}
	}
}

static void a_discarded_event_outside_the_commit(void **state)
{
	const uint32_t lengths[] = { 9, 4096, 1U << 31, UINT32_MAX };

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		uint32_t at = begin_damage(&machines[m]);

		page_image_header(&image, 29, 1);
		expect_damage(PAGE_PADDING_OUTSIDE, at);
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			at = begin_damage(&machines[m]);
			page_image_header(&image, 29, 1);
			page_image_word(&image, lengths[i]);
			page_image_word(&image, 0);
			expect_damage(PAGE_PADDING_OUTSIDE, at);
		}
	}
}

static void a_time_record_without_its_second_word(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		for (uint32_t type = 30; type <= 31; type++) {
			for (uint32_t more = 0; more < 4; more++) {
				uint32_t at = begin_damage(&machines[m]);

				page_image_header(&image, type, 1);
				image.at += more;
				expect_damage(PAGE_TIME_TRUNCATED, at);
			}
		}
	}
}

static void every_error_has_its_own_name(void **state)
{
	(void)state;
	for (int a = PAGE_OK; a <= PAGE_TIME_TRUNCATED; a++)
		for (int b = PAGE_OK; b < a; b++)
			assert_string_not_equal(page_error_name(a), page_error_name(b));
	assert_string_equal(page_error_name(PAGE_TIME_TRUNCATED + 1), "unknown error");
}

/* ---- everything at once ---- */

/* A page with every kind of record; the same events whatever the machine. */
static void make_mixed(const struct machine *machine)
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

/* Walks what the cursor has; every event lies between `low` and `high`. */
static uint32_t walk(struct page_cursor *cursor, const uint8_t *low, const uint8_t *high)
{
	struct page_event event;
	uint32_t count = 0;
	int r;

	while ((r = page_next(cursor, &event)) > 0) {
		assert_true(event.data >= low && event.data <= high && event.size <= (size_t)(high - event.data));
		count++;
	}
	assert_int_equal(r < 0, cursor->error != PAGE_OK);
	return count;
}

/* Cut at every place, the events are the whole ones before it, and nothing behind it is touched. */
static void a_page_cut_at_every_place(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		uint32_t end, before = 0;

		make_mixed(&machines[m]);
		end = image.at;
		for (uint32_t size = image.layout.data_offset; size <= end; size++) {
			const uint8_t *copy;
			struct page_cursor cursor;
			uint64_t last;
			uint32_t count;

			page_image_set_commit(&image, size - image.layout.data_offset);
			copy = guarded_copy(&guarded, image.bytes, size);
			assert_int_equal(page_open(&cursor, &image.layout, copy, size), 0);
			count = page_count(&cursor, &last);
			assert_int_equal(walk(&cursor, copy, copy + size), count);
			assert_true(count == before || count == before + 1);
			before = count;
		}
		assert_int_equal(before, 4);
	}
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* Always the same bytes, so that a failure repeats. */
static void pages_with_wrong_bytes(void **state)
{
	uint64_t seed = 1;
	uint32_t damaged = 0;

	(void)state;
	for (int round = 0; round < 40000; round++) {
		const struct machine *machine = &machines[round % (int)ARRAY_SIZE(machines)];
		struct page_cursor cursor;
		const uint8_t *copy;
		uint64_t last;
		uint32_t size, count;

		make_mixed(machine);
		size = image.at + next_random(&seed) % 16;
		for (uint32_t changes = 1 + next_random(&seed) % 4; changes; changes--)
			image.bytes[8 + next_random(&seed) % (size - 8)] ^= (uint8_t)(1 + next_random(&seed) % 255);
		copy = guarded_copy(&guarded, image.bytes, size);
		if (page_open(&cursor, &image.layout, copy, size)) {
			assert_int_not_equal(cursor.error, PAGE_OK);
			assert_int_equal(walk(&cursor, copy, copy + size), 0);
			damaged++;
			continue;
		}
		count = page_count(&cursor, &last);
		assert_int_equal(walk(&cursor, copy, copy + size), count);
		if (cursor.error) {
			assert_true(cursor.error_at >= image.layout.data_offset && cursor.error_at < size);
			damaged++;
		}
	}
	/* The damage was real. */
	assert_true(damaged > 4000);
}

/* The machine's own byte order takes another path than the foreign one; both see the same. */
static void both_byte_orders_see_the_same(void **state)
{
	struct page_cursor cursors[2];
	struct page_image other;

	(void)state;
	for (uint32_t long_size = 4; long_size <= 8; long_size += 4) {
		struct page_event a, b;

		make_mixed(&(struct machine){ true, long_size });
		other = image;
		make_mixed(&(struct machine){ false, long_size });
		assert_int_equal(page_open(&cursors[0], &image.layout, image.bytes, image.size), 0);
		assert_int_equal(page_open(&cursors[1], &other.layout, other.bytes, other.size), 0);
		assert_int_equal(cursors[0].missed_count, 99);
		assert_int_equal(cursors[1].missed_count, 99);
		while (page_next(&cursors[0], &a) > 0) {
			assert_int_equal(page_next(&cursors[1], &b), 1);
			assert_int_equal(a.time, b.time);
			assert_int_equal(a.size, b.size);
			assert_memory_equal(a.data, b.data, a.size);
		}
		expect_end(&cursors[0]);
		expect_end(&cursors[1]);
	}
}

/* ---- events/header_page ---- */

struct layout_case {
	const char *text;
	int result;
	uint32_t commit_size, data_offset, size;
};

static const struct layout_case layouts[] = {
	{ "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
	  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n",
	  0, 8, 16, 4096 },
	/* 32 bits, without `signed`, without `overwrite`, blanks, no last newline, larger sub-buffers */
	{ " field: u64 timestamp;  offset:0;  size:8;\n field: local_t commit;  offset:8;  size:4;\n"
	  " field: char data;  offset:12;  size:65524;",
	  0, 4, 12, 65536 },
	{ "", -EBADMSG, 0, 0, 0 },
	{ "\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\tfield: local_t commit;\toffset:8;\tsize:8;\n", -EBADMSG, 0, 0, 0 },
	/* a commit of no known size; one over the time; data over the commit; numbers that are none */
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:2;\n"
	  "field: char data;\toffset:16;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:4;\tsize:8;\n"
	  "field: char data;\toffset:16;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:8;\n"
	  "field: char data;\toffset:12;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:8;\n"
	  "field: char data;\toffset:-16;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:8;\n"
	  "field: char data;\toffset:99999999999999999999999;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:8;\n"
	  "field: char data;\toffset:16;\tsize:4080",
	  -EBADMSG, 0, 0, 0 },
	{ "field: u64 timestamp;\toffset:8;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:8;\n"
	  "field: char data;\toffset:16;\tsize:4080;\n",
	  -EBADMSG, 0, 0, 0 },
};

static void header_page_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		size_t size = strlen(layouts[i].text);
		const char *text = (const char *)guarded_copy(&guarded, layouts[i].text, size);
		struct page_layout layout = { .data_offset = 7 };

		assert_int_equal(page_layout_parse(text, size, true, &layout), layouts[i].result);
		if (layouts[i].result) {
			assert_int_equal(layout.data_offset, 7);
			continue;
		}
		assert_int_equal(layout.commit_offset, 8);
		assert_int_equal(layout.commit_size, layouts[i].commit_size);
		assert_int_equal(layout.data_offset, layouts[i].data_offset);
		assert_int_equal(layout.size, layouts[i].size);
		assert_true(layout.big_endian);
	}
}

static void a_header_page_file_cut_at_every_place(void **state)
{
	size_t whole = strlen(layouts[0].text);

	(void)state;
	for (size_t size = 0; size < whole; size++) {
		const char *text = (const char *)guarded_copy(&guarded, layouts[0].text, size);
		struct page_layout layout;
		bool complete = size >= whole - strlen("\tsigned:0;\n");

		assert_int_equal(page_layout_parse(text, size, false, &layout), complete ? 0 : -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_page),
		cmocka_unit_test(events_of_every_short_size),
		cmocka_unit_test(deltas_add_up),
		cmocka_unit_test(an_event_longer_than_4096_bytes),
		cmocka_unit_test(a_short_event_with_its_length_in_front),
		cmocka_unit_test(an_unrounded_length_at_the_very_end),
		cmocka_unit_test(time_extends),
		cmocka_unit_test(absolute_stamps),
		cmocka_unit_test(discarded_events),
		cmocka_unit_test(filler_ends_the_page),
		cmocka_unit_test(filler_in_the_last_word),
		cmocka_unit_test(lost_events_with_their_count),
		cmocka_unit_test(lost_events_without_a_count),
		cmocka_unit_test(lost_events_before_a_full_page),
		cmocka_unit_test(a_page_shorter_than_its_header),
		cmocka_unit_test(a_commit_outside_the_page),
		cmocka_unit_test(an_event_outside_the_commit),
		cmocka_unit_test(a_length_that_cannot_be),
		cmocka_unit_test(a_discarded_event_outside_the_commit),
		cmocka_unit_test(a_time_record_without_its_second_word),
		cmocka_unit_test(every_error_has_its_own_name),
		cmocka_unit_test(a_page_cut_at_every_place),
		cmocka_unit_test(pages_with_wrong_bytes),
		cmocka_unit_test(both_byte_orders_see_the_same),
		cmocka_unit_test(header_page_files),
		cmocka_unit_test(a_header_page_file_cut_at_every_place),
	};

	return cmocka_run_group_tests(tests, make_guarded, release_guarded);
}
