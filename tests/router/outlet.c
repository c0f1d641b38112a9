/* What stands before the next event in a consumer's ring, and where it waits when there is no room. */
#include "router/outlet.h"

#include "tests/shm/ring_pair.h"

#include <errno.h>
#include <stdlib.h>

#define EVENT_SIZE 64
#define TRACE      7
#define END_TIME   100000000

struct fixture {
	struct outlet outlet;
	struct ring_reader reader;
	uint64_t time;
	uint64_t lost;
	uint64_t gone; /* events that were overwritten unread */
};

static int set_up_ring(void **state, enum ring_overflow overflow)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[3];

	assert_non_null(f);
	assert_int_equal(outlet_init(&f->outlet, RING_CAPACITY_MIN, overflow), 0);
	assert_int_equal(ring_writer_share(&f->outlet.ring, fds), 0);
	assert_int_equal(ring_reader_attach(fds, &f->reader), 0);
	*state = f;
	return 0;
}

static int set_up(void **state)
{
	return set_up_ring(state, RING_DROP);
}

static int set_up_overwriting(void **state)
{
	return set_up_ring(state, RING_OVERWRITE);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	ring_reader_release(&f->reader);
	outlet_release(&f->outlet);
	free(f);
	return 0;
}

/* Each event is a nanosecond after the last; the number of those that found no room is kept. */
static void tell(struct fixture *f)
{
	struct record_header *record = outlet_reserve(&f->outlet, EVENT_SIZE, ++f->time);

	if (!record) {
		f->lost++;
		return;
	}
	memset(record, 0, EVENT_SIZE);
	record->size = EVENT_SIZE;
	record->kind = RECORD_EVENT;
	record->time = f->time;
	record->trace_id = TRACE;
}

static const struct record_header *take(struct fixture *f, enum record_kind kind)
{
	const struct record_header *record = NULL;

	assert_int_equal(ring_reader_next(&f->reader, &record), 1);
	assert_int_equal(record->kind, kind);
	return record;
}

static void assert_mark(const struct record_header *record, uint64_t cookie, uint64_t time)
{
	struct record_filter filter;

	assert_int_equal(record->trace_id, TRACE);
	assert_int_equal(record->time, time);
	assert_int_equal(record->payload_size, sizeof(filter));
	memcpy(&filter, record + 1, sizeof(filter));
	assert_int_equal(filter.cookie, cookie);
}

static void a_mark_stands_between_two_events(void **state)
{
	struct fixture *f = *state;

	tell(f);
	outlet_filter(&f->outlet, TRACE, 3, 1);
	tell(f);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	assert_int_equal(take(f, RECORD_EVENT)->time, 1);
	assert_mark(take(f, RECORD_FILTER), 3, 1);
	assert_int_equal(take(f, RECORD_EVENT)->time, 2);
}

static void a_mark_needs_no_event_behind_it(void **state)
{
	struct fixture *f = *state;

	outlet_filter(&f->outlet, TRACE, 3, 5);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	assert_mark(take(f, RECORD_FILTER), 3, 5);
}

/* Events lost before the marks and behind them are told before the marks, as long as nothing else came between. */
/* As many traces as a consumer has may be throttled at once. */
static void each_throttled_trace_is_told(void **state)
{
	const struct record_throttled why = { .rate = 1, .count = 2 };
	const uint64_t traces = 2 * OUTLET_THROTTLED_MAX + 1;
	struct fixture *f = *state;

	tell(f);
	for (uint64_t i = 0; i < traces; i++)
		outlet_throttled(&f->outlet, TRACE + i, 1, &why);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	(void)take(f, RECORD_EVENT);
	for (uint64_t i = 0; i < traces; i++)
		assert_int_equal(take(f, RECORD_THROTTLED)->trace_id, TRACE + i);
}

static void marks_wait_for_room(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record = NULL;
	struct record_lost lost;
	uint64_t events = 0;

	while (!f->lost)
		tell(f);
	/* All the room that is left but what flushes and the end need. */
	for (uint32_t cookie = 1; f->outlet.filter_count == 0; cookie++) {
		outlet_filter(&f->outlet, TRACE, cookie, f->time);
		assert_int_equal(outlet_publish(&f->outlet), 0);
	}
	assert_int_equal(f->outlet.filter_count, 1);
	outlet_filter(&f->outlet, TRACE, 1001, f->time);
	tell(f);
	assert_int_equal(f->lost, 2);
	assert_int_equal(f->outlet.filter_count, 2);
	while (ring_reader_next(&f->reader, &record) == 1)
		events += record->kind == RECORD_EVENT;
	assert_int_equal(events, f->time - f->lost);
	tell(f);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	memcpy(&lost, take(f, RECORD_LOST) + 1, sizeof(lost));
	assert_int_equal(lost.count, 1);
	assert_int_equal(take(f, RECORD_FILTER)->trace_id, TRACE);
	assert_mark(take(f, RECORD_FILTER), 1001, f->time - 2);
	assert_int_equal(take(f, RECORD_EVENT)->time, f->time);
}

static void fill_with_events(struct fixture *f)
{
	while (!f->lost)
		tell(f);
}

static void end(struct fixture *f)
{
	outlet_end(&f->outlet, END_TIME, &(struct record_end){ .reason = 9 });
	assert_int_equal(outlet_publish(&f->outlet), 0);
}

/* What the consumer finds last is the end, and there is nothing behind it. Returns the records before it. */
static uint64_t read_to_the_end(struct fixture *f, enum record_kind kind)
{
	const struct record_header *record = NULL;
	uint64_t count = 0;

	while (ring_reader_next(&f->reader, &record) == 1 && record->kind != RECORD_END)
		count += record->kind == kind;
	assert_int_equal(record->kind, RECORD_END);
	assert_int_equal(record->time, END_TIME);
	assert_int_equal(((const struct record_end *)(record + 1))->reason, 9);
	assert_int_equal(ring_reader_next(&f->reader, &record), 0);
	return count;
}

/* With nothing behind it that would be told: the consumer sees that there is more when it has read all. */
static void what_is_due_is_awaited(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record = NULL;
	struct record_lost lost;

	while (!f->lost)
		tell(f);
	/* Each is told by itself until there is room for no more. */
	for (assert_int_equal(outlet_publish(&f->outlet), 0); !f->outlet.due; assert_int_equal(outlet_publish(&f->outlet), 0)) {
		assert_false(ring_reader_is_awaited(&f->reader));
		tell(f);
	}
	outlet_flushed(&f->outlet, 5, f->time);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	while (ring_reader_next(&f->reader, &record) == 1)
		assert_int_not_equal(record->kind, RECORD_FLUSHED);
	assert_true(ring_reader_prepare_sleep(&f->reader));
	assert_true(ring_reader_is_awaited(&f->reader));
	assert_int_equal(outlet_publish(&f->outlet), 0);
	assert_false(ring_reader_is_awaited(&f->reader));
	assert_int_equal(outlet_wake(&f->outlet), 1);
	memcpy(&lost, take(f, RECORD_LOST) + 1, sizeof(lost));
	assert_int_equal(lost.count, 1);
	(void)take(f, RECORD_FLUSHED);
}

/* Events leave room for the losses, for as many flushes as there can be, and for the end. */
static void marks_fit_behind_a_consumer_that_does_not_read(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record = NULL;

	fill_with_events(f);
	for (enum lost_source source = LOST_KERNEL; source < LOST_SOURCES; source++)
		outlet_lost(&f->outlet, source, 1, 5, f->time, f->time);
	for (uint64_t i = 0; i < OUTLET_FLUSHES_MAX; i++)
		outlet_flushed(&f->outlet, 100 + i, f->time);
	end(f);
	assert_true(f->outlet.ended);
	for (uint64_t i = 1; i < f->time; i++)
		(void)take(f, RECORD_EVENT);
	for (enum lost_source source = LOST_KERNEL; source < LOST_SOURCES; source++) {
		struct record_lost lost;

		record = take(f, RECORD_LOST);
		memcpy(&lost, record + 1, sizeof(lost));
		assert_int_equal(lost.source, source);
		assert_int_equal(lost.count, source == LOST_RING ? 6 : 5);
	}
	for (uint64_t i = 0; i < OUTLET_FLUSHES_MAX; i++) {
		record = take(f, RECORD_FLUSHED);
		assert_int_equal(((const struct record_flushed *)(const void *)(record + 1))->cookie, 100 + i);
	}
	assert_int_equal(read_to_the_end(f, RECORD_EVENT), 0);
}

/* However often clocks are told to it, the flushes and the end still find room; and however many flushes come
 * after those, the end does. */
static void the_end_fits_behind_everything(void **state)
{
	const struct record_clock clock = { .mono = 1, .real = 2 };
	struct fixture *f = *state;
	uint64_t clocks = 0, flushes = 0;

	fill_with_events(f);
	/* One of the last is left to wait, so that it was the limit that ended it. */
	do {
		outlet_clock(&f->outlet, &clock);
		assert_int_equal(outlet_publish(&f->outlet), 0);
		clocks += !f->outlet.clock_known;
	} while (!f->outlet.clock_known);
	assert_true(clocks > 0);
	assert_true(ring_writer_room(&f->outlet.ring) >= OUTLET_MARGIN_LOST);
	f->outlet.clock_known = false;
	do {
		outlet_flushed(&f->outlet, flushes, f->time);
		assert_int_equal(outlet_publish(&f->outlet), 0);
		flushes += !f->outlet.flush_count;
	} while (!f->outlet.flush_count);
	assert_true(flushes >= OUTLET_FLUSHES_MAX);
	assert_true(ring_writer_room(&f->outlet.ring) >= OUTLET_MARGIN_FLUSH);
	end(f);
	assert_true(f->outlet.ended);
	assert_int_equal(read_to_the_end(f, RECORD_FLUSHED), flushes);
}

/* Nothing is written behind the end. */
static void nothing_behind_the_end(void **state)
{
	struct fixture *f = *state;

	tell(f);
	end(f);
	tell(f);
	assert_int_equal(f->lost, 1);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	assert_int_equal(read_to_the_end(f, RECORD_EVENT), 1);
}

/* Losses of one source before one record are told by one record: their sum, and from when to when. */
static void losses_are_merged(void **state)
{
	struct fixture *f = *state;
	struct record_lost lost;

	outlet_lost(&f->outlet, LOST_KERNEL, 1, 5, 20, 30);
	outlet_lost(&f->outlet, LOST_KERNEL, 1, 6, 10, 25);
	outlet_lost(&f->outlet, LOST_KERNEL, 1, 0, 1, 100);
	tell(f);
	outlet_lost(&f->outlet, LOST_KERNEL, 1, 2, 40, 50);
	outlet_lost(&f->outlet, LOST_KERNEL, 2, LOST_COUNT_UNKNOWN, 40, 60);
	outlet_lost(&f->outlet, LOST_KERNEL, 2, 3, 40, 60);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	memcpy(&lost, take(f, RECORD_LOST) + 1, sizeof(lost));
	assert_int_equal(lost.count, 11);
	assert_int_equal(lost.at_least, 11);
	assert_int_equal(lost.cpu, 1);
	assert_int_equal(lost.from, 10);
	assert_int_equal(lost.to, 30);
	(void)take(f, RECORD_EVENT);
	memcpy(&lost, take(f, RECORD_LOST) + 1, sizeof(lost));
	assert_true(lost.count == LOST_COUNT_UNKNOWN);
	assert_int_equal(lost.at_least, 6);
	assert_int_equal(lost.cpu, RECORD_CPU_NONE);
	assert_int_equal(lost.from, 40);
	assert_int_equal(lost.to, 60);
}

static void count_gone(struct outlet *outlet, uint64_t trace_id)
{
	assert_int_equal(trace_id, TRACE);
	((struct fixture *)(void *)outlet)->gone++;
}

/* What the consumer of an overwriting ring found in it. */
struct found {
	uint64_t events, kernel, undecodable, flushed, gaps, clocks, marks, ends;
	bool ended_last;
};

static void find(struct fixture *f, struct found *found)
{
	const struct record_header *record = NULL;
	struct record_flushed flushed;
	struct record_lost lost;
	int r;

	while ((r = ring_reader_next(&f->reader, &record)) != 0) {
		if (r == -EOVERFLOW)
			continue;
		assert_int_equal(r, 1);
		found->ended_last = record->kind == RECORD_END;
		found->events += record->kind == RECORD_EVENT;
		if (record->kind == RECORD_GAP) {
			memcpy(&lost, record + 1, sizeof(lost));
			assert_true(lost.count == LOST_COUNT_UNKNOWN);
			assert_int_equal(lost.to, 2);
			found->gaps++;
		}
		found->clocks += record->kind == RECORD_CLOCK;
		found->marks += record->kind == RECORD_FILTER;
		found->ends += record->kind == RECORD_END;
		if (record->kind == RECORD_FLUSHED) {
			memcpy(&flushed, record + 1, sizeof(flushed));
			found->flushed |= UINT64_C(1) << flushed.cookie;
		}
		if (record->kind != RECORD_LOST)
			continue;
		memcpy(&lost, record + 1, sizeof(lost));
		found->kernel += lost.source == LOST_KERNEL ? lost.count : 0;
		found->undecodable += lost.source == LOST_UNDECODABLE ? lost.count : 0;
	}
}

/* Losses, marks and the gap come to a consumer that has slept through several laps, and each event is one that it
 * got or one that is known to be gone. */
static void only_events_are_overwritten(void **state)
{
	const struct record_end end = { .reason = END_STOPPED };
	const struct record_clock clock = { .mono = 1 };
	struct fixture *f = *state;
	struct found found = { 0 };
	uint64_t kernel = 0;

	f->outlet.event_gone = count_gone;
	outlet_gap(&f->outlet, 1, 2);
	outlet_clock(&f->outlet, &clock);
	outlet_filter(&f->outlet, TRACE, 1, 1);
	for (uint64_t n = 0; n < 10000; n++) {
		if (n % 700 == 0)
			outlet_lost(&f->outlet, LOST_KERNEL, 1, n + 1, n, n);
		if (n % 700 == 0)
			kernel += n + 1;
		if (n == 2000)
			outlet_lost(&f->outlet, LOST_UNDECODABLE, 0, 5, n, n);
		if (n % 1000 == 0 && outlet_flushes(&f->outlet) < OUTLET_FLUSHES_MAX)
			outlet_flushed(&f->outlet, n / 1000, n);
		tell(f);
		if (n % 64 == 0)
			assert_int_equal(outlet_publish(&f->outlet), 0);
	}
	assert_int_equal(outlet_flushes(&f->outlet), OUTLET_FLUSHES_MAX);
	outlet_end(&f->outlet, END_TIME, &end);
	assert_int_equal(outlet_publish(&f->outlet), 0);
	find(f, &found);
	assert_int_equal(f->lost, 0);
	assert_int_equal(found.events + f->gone, 10000);
	assert_int_equal(f->reader.lost_events, f->gone);
	assert_true(found.events > 500 && found.events < 1024);
	assert_int_equal(found.kernel, kernel);
	assert_int_equal(found.undecodable, 5);
	assert_int_equal(found.flushed, (1U << OUTLET_FLUSHES_MAX) - 1);
	assert_true(found.gaps == 1 && found.clocks == 1 && found.marks == 1 && found.ends == 1 && found.ended_last);
	assert_int_equal(outlet_flushes(&f->outlet), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_mark_stands_between_two_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_mark_needs_no_event_behind_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_throttled_trace_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_throttled_trace_is_told, set_up_overwriting, tear_down),
		cmocka_unit_test_setup_teardown(marks_wait_for_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_due_is_awaited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(marks_fit_behind_a_consumer_that_does_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_fits_behind_everything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_behind_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(losses_are_merged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_events_are_overwritten, set_up_overwriting, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
