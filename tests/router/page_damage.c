/* Pages that no kernel writes: every error is found where it is, and nothing behind the page is read. */
#include "tests/router/page_fixture.h"

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

/* ---- cut, and with wrong bytes ---- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_shorter_than_its_header),
		cmocka_unit_test(a_commit_outside_the_page),
		cmocka_unit_test(an_event_outside_the_commit),
		cmocka_unit_test(a_length_that_cannot_be),
		cmocka_unit_test(a_discarded_event_outside_the_commit),
		cmocka_unit_test(a_time_record_without_its_second_word),
		cmocka_unit_test(every_error_has_its_own_name),
		cmocka_unit_test(a_page_cut_at_every_place),
		cmocka_unit_test(pages_with_wrong_bytes),
	};

	return cmocka_run_group_tests(tests, make_guarded, release_guarded);
}
