/* What stands before the next event in a consumer's ring, and where it waits when there is no room. */
#include "router/outlet.h"

#include "tests/shm/ring_pair.h"

#include <stdlib.h>

#define EVENT_SIZE 64
#define TRACE      7

struct fixture {
	struct outlet outlet;
	struct ring_reader reader;
	uint64_t time;
	uint64_t lost;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[3];

	assert_non_null(f);
	assert_int_equal(outlet_init(&f->outlet, RING_CAPACITY_MIN, RING_DROP), 0);
	assert_int_equal(ring_writer_share(&f->outlet.ring, fds), 0);
	assert_int_equal(ring_reader_attach(fds, &f->reader), 0);
	*state = f;
	return 0;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_mark_stands_between_two_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_mark_needs_no_event_behind_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(marks_wait_for_room, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
