#include "tests/router/page_fixture.h"

#include <errno.h>

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

/* ---- everything at once ---- */

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
		cmocka_unit_test(both_byte_orders_see_the_same),
		cmocka_unit_test(header_page_files),
		cmocka_unit_test(a_header_page_file_cut_at_every_place),
	};

	return cmocka_run_group_tests(tests, make_guarded, release_guarded);
}
