/* A ring that overwrites what its consumer has not read: both sides know exactly what is gone. */
#include "shm/ring.h"

#include "base/checked.h"
#include "tests/shm/ring_pair.h"

#include <errno.h>

#define CAPACITY ((size_t)RING_CAPACITY_MIN)
#define NEAR_TOP (UINT64_MAX - 3 * CAPACITY / 2 + 1)

static void check_overwrite(uint64_t start)
{
	const struct record_header *record;
	uint64_t written = 0, read = 0, first;
	struct ring_pair pair;
	int r;

	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, start);
	for (int lap = 1; lap <= 4; lap++) {
		uint64_t lost = pair.reader.lost_events;

		for (; written < (uint64_t)lap * 3000; written++) {
			assert_true(ring_pair_write(&pair, written, ring_pair_size(written, 512)));
			assert_int_equal(ring_writer_publish(&pair.writer), 0);
		}
		first = read;
		assert_int_equal(ring_reader_next(&pair.reader, &record), -EOVERFLOW);
		lost = pair.reader.lost_events - lost;
		assert_true(lost > 0);
		read += lost;
		while ((r = ring_reader_next(&pair.reader, &record)) == 1) {
			assert_int_equal(record->time, read++);
			assert_true(ring_pair_whole(record));
		}
		assert_int_equal(r, 0);
		assert_int_equal(read, written);
		assert_true(read - first > lost);
		/* Most of the ring was still there. */
		assert_true(
			ring_writer_reserved(&pair.writer) - pair.writer.oldest > CAPACITY * 7 / 8);
	}
	assert_true(
		pair.reader.overwritten > pair.reader.lost_events * sizeof(struct record_header));
	ring_pair_close(&pair);
}

static void overwrite_loses_the_oldest_and_counts_them(void **state)
{
	(void)state;
	check_overwrite(0);
	check_overwrite(NEAR_TOP);
}

/* Wherever the writer dies amid a batch: what is behind the lost ones is there, and tells the consumer where it is. */
static void behind_what_is_lost_there_is_more(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t written = 0;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, 0);
	assert_true(ring_pair_write(&pair, written++, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	while (!pair.writer.oldest)
		assert_true(ring_pair_write(&pair, written++, 64));
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EOVERFLOW);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(record->time, pair.reader.lost_events);
	ring_pair_close(&pair);
}

static void only_events_are_counted_as_lost_events(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t events = 0;
	int r;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, 0);
	for (uint64_t n = 0; n < 5000; n++)
		ring_pair_fill(ring_writer_reserve(&pair.writer, 64), n, 64,
			n % 5 ? RECORD_CLOCK : RECORD_EVENT);
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	while ((r = ring_reader_next(&pair.reader, &record)) != 0)
		events += r == 1 && record->kind == RECORD_EVENT;
	assert_int_equal(events + pair.reader.lost_events, 1000);
	assert_int_equal(pair.reader.events, 1000);
	ring_pair_close(&pair);
}

/* A batch larger than the ring: what would be overwritten is published first, so that `oldest`
 * stays behind `published` and the consumer can tell what happened. */
static void a_batch_larger_than_the_ring(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t read = 0;
	int r;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, NEAR_TOP);
	for (uint64_t n = 0; n < 10000; n++) {
		assert_true(ring_pair_write(&pair, n, 128));
		assert_true(pair.writer.published - pair.cursor->consumed <= CAPACITY);
	}
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	while ((r = ring_reader_next(&pair.reader, &record)) != 0)
		read += r == 1;
	assert_int_equal(read + pair.reader.lost_events, 10000);
	ring_pair_close(&pair);
}

/* The writer comes round between the consumer's load of a size and its copy: here all at once, the
 * threads of ring_traffic do it in the midst. */
static void a_held_copy_survives_the_writer(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, 0);
	assert_true(ring_pair_write(&pair, 0, 1024));
	assert_true(ring_pair_write(&pair, 1, 1024));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	for (uint64_t n = 2; n < 1000; n++)
		assert_true(ring_pair_write(&pair, n, 1024));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(record->time, 0);
	assert_true(ring_pair_whole(record));
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EOVERFLOW);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(record->time, 1 + pair.reader.lost_events);
	ring_pair_close(&pair);
}

/* The cursor was moved, to where nobody can go on. */
static void a_hostile_place_to_go_on_ends_the_ring(void **state)
{
	static const struct ring_resume lies[] = {
		{ 12, 0 },               /* between two words */
		{ UINT64_MAX - 7, 0 },   /* behind */
		{ 4 * CAPACITY + 8, 0 }, /* past the end */
		{ 64, 2 },               /* more events than fit */
		{ 64, UINT64_MAX },      /* fewer than were read */
	};
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, 0);
		for (uint64_t n = 0; n < 4 * CAPACITY / 64; n++)
			assert_true(ring_pair_write(&pair, n, 64));
		assert_int_equal(ring_writer_publish(&pair.writer), 0);
		pair.head->resume[0] = pair.head->resume[1] = lies[i];
		pair.cursor->consumed = lies[i].position;
		assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
		assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
		ring_pair_close(&pair);
	}
}

static void used_is_bounded_when_overwriting(void **state)
{
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, NEAR_TOP);
	assert_int_equal(ring_writer_used(&pair.writer), 0);
	for (uint64_t n = 0; n < 5000; n++)
		assert_true(ring_pair_write(&pair, n, 128));
	assert_true(ring_writer_fill(&pair.writer) <= CAPACITY);
	assert_true(ring_writer_fill(&pair.writer) > CAPACITY / 2);
	assert_true(ring_writer_used(&pair.writer) <= CAPACITY);
	assert_true(ring_writer_used(&pair.writer) > CAPACITY / 2);
	ring_pair_close(&pair);
}

/* The cursor was moved to a place for which there is no pair. */
static void a_missing_place_to_go_on_ends_the_ring(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, 0);
	for (uint64_t n = 0; n < 4 * CAPACITY / 64; n++)
		assert_true(ring_pair_write(&pair, n, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	pair.cursor->consumed += 64;
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	ring_pair_close(&pair);
}

struct gone {
	uint64_t count, next;
	bool in_order, whole;
};

static void count_gone(void *context, const struct record_header *record)
{
	struct gone *gone = context;

	gone->in_order = gone->in_order && record->time >= gone->next;
	gone->whole = gone->whole && ring_pair_whole(record);
	gone->next = record->time + 1;
	gone->count++;
}

/* The writer is told of exactly the records that the reader did not get. */
static void what_is_gone_is_told_to_the_writer(void **state)
{
	struct gone gone = { .in_order = true, .whole = true };
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t read = 0;
	int r;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, NEAR_TOP);
	pair.writer.gone = count_gone;
	pair.writer.gone_context = &gone;
	for (uint64_t n = 0; n < 20000; n++) {
		assert_true(ring_pair_write(&pair, n, ring_pair_size(n, 256)));
		assert_int_equal(ring_writer_publish(&pair.writer), 0);
		/* Now slower than the writer, now faster, now not at all. */
		for (uint64_t k = 0; k < (n >> 11) % 3 && read + gone.count <= n; k++)
			read += ring_reader_next(&pair.reader, &record) == 1;
	}
	assert_true(read > 1000 && gone.count > 1000);
	while ((r = ring_reader_next(&pair.reader, &record)) != 0)
		read += r == 1;
	assert_true(gone.in_order && gone.whole);
	assert_int_equal(gone.count, pair.reader.lost_events);
	assert_int_equal(read + gone.count, 20000);
	ring_pair_close(&pair);
}

/* It may make itself lose more or fewer records, and that is all. */
static void a_hostile_cursor_gains_nothing_when_overwriting(void **state)
{
	static const uint64_t lies[] = { NEAR_TOP - 8, NEAR_TOP + 8, NEAR_TOP + 4, 0, NEAR_TOP + 3 * CAPACITY,
		UINT64_C(1) << 63, NEAR_TOP + 200 };
	struct gone gone = { .in_order = true, .whole = true };
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_OVERWRITE, NEAR_TOP);
	pair.writer.gone = count_gone;
	pair.writer.gone_context = &gone;
	for (uint64_t n = 0; n < 20000; n++) {
		pair.cursor->consumed = lies[n % ARRAY_SIZE(lies)] + n / 100 * 64;
		assert_true(ring_pair_write(&pair, n, ring_pair_size(n, 256)));
		assert_int_equal(ring_writer_publish(&pair.writer), 0);
		assert_true(ring_writer_used(&pair.writer) <= CAPACITY);
	}
	assert_true(gone.in_order && gone.whole && gone.count <= 20000);
	ring_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overwrite_loses_the_oldest_and_counts_them),
		cmocka_unit_test(behind_what_is_lost_there_is_more),
		cmocka_unit_test(only_events_are_counted_as_lost_events),
		cmocka_unit_test(a_batch_larger_than_the_ring),
		cmocka_unit_test(a_held_copy_survives_the_writer),
		cmocka_unit_test(a_hostile_place_to_go_on_ends_the_ring),
		cmocka_unit_test(used_is_bounded_when_overwriting),
		cmocka_unit_test(a_missing_place_to_go_on_ends_the_ring),
		cmocka_unit_test(what_is_gone_is_told_to_the_writer),
		cmocka_unit_test(a_hostile_cursor_gains_nothing_when_overwriting),
	};

	return cmocka_run_group_tests_name("ring_overwrite", tests, NULL, NULL);
}
