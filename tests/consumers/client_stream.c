/* Attaching to a session and reading records, against a router of this test's own. */
#include "tests/consumers/client_fixture.h"

static void attach_says_what_was_asked(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	f->router.welcome_flags = SESSION_RECORDED;
	f->router.source = SOURCE_TEXT;
	options.ring_size = 100000;
	options.overflow = TFAN_OVERWRITE;
	options.all_events = true;
	options.include_self = true;
	open_with(f, &options);
	assert_int_equal(f->router.attach.ring_capacity, 100000);
	assert_int_equal(f->router.attach.overflow, RING_OVERWRITE);
	assert_int_equal(f->router.attach.flags, ATTACH_ALL_EVENTS | ATTACH_INCLUDE_SELF);
	assert_string_equal(tfan_session(f->tfan)->name, FAKE_SESSION);
	assert_int_equal(tfan_session(f->tfan)->ring_size, 131072);
	assert_true(tfan_session(f->tfan)->is_recorded);
	assert_true(tfan_session(f->tfan)->is_text);
	assert_false(tfan_session(f->tfan)->is_fallback);
}

static void events_come_with_their_fields(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	const void *bytes;
	uint64_t u;
	int64_t i;
	size_t size;

	assert_none(f);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 12345, -7);
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_ptr_equal(tfan_event_trace(event), f->trace);
	assert_int_equal(tfan_event_time(event), 12345);
	assert_int_equal(tfan_event_cpu(event), 1);
	assert_int_equal(tfan_event_pid(event), 42);
	assert_string_equal(tfan_event_comm(event), "fake");
	assert_int_equal(tfan_event_i64(event, (size_t)tfan_field_find(f->trace, "n"), &i), 0);
	assert_int_equal(i, -7);
	assert_int_equal(tfan_event_i64(event, (size_t)tfan_field_find(f->trace, "small"), &i), 0);
	assert_int_equal(i, -3);
	assert_int_equal(tfan_event_u64(event, (size_t)tfan_field_find(f->trace, "address"), &u), 0);
	assert_true(u == 0xffff888012345678U);
	assert_int_equal(tfan_event_bytes(event, (size_t)tfan_field_find(f->trace, "path"), &bytes, &size), 0);
	assert_int_equal(size, strlen("/etc/hosts"));
	assert_memory_equal(bytes, "/etc/hosts", size);
	assert_int_equal(tfan_event_element(event, (size_t)tfan_field_find(f->trace, "bytes"), 6, &u), 0);
	assert_int_equal(u, 250);
	assert_int_equal(tfan_event_element(event, (size_t)tfan_field_find(f->trace, "bytes"), 7, &u), -ERANGE);
	assert_int_equal(tfan_event_u64(event, 6, &u), -EINVAL);
	assert_none(f);
}

struct fake_stack {
	struct record_stack head;
	uint64_t frames[4];
};

static void stacks_come_with_their_event(void **state)
{
	struct fake_stack stack = {
		.head = { .found = STACK_KERNEL | STACK_USER, .process = 1, .kernel_count = 1, .user_count = 2 },
		.frames = { 0xffffffff81000000, 0x1000, 0x2000 },
	};
	struct fixture *f = *state;
	const struct tfan_event *event;
	struct tfan_frame frame;
	size_t count;
	int64_t i;

	fake_router_stacked(&f->router, tfan_trace_id(f->trace), 10, 1, &stack, sizeof(stack) - sizeof(uint64_t));
	fake_router_event(&f->router, tfan_trace_id(f->trace), 20, 2);
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_int_equal(tfan_event_time(event), 10);
	assert_string_equal(tfan_event_comm(event), "fake");
	/* Its own fields are there as well. */
	assert_int_equal(tfan_event_i64(event, (size_t)tfan_field_find(f->trace, "n"), &i), 0);
	assert_int_equal(i, 1);
	assert_int_equal(tfan_event_stack(event, TFAN_KERNEL_STACK, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(tfan_event_stack(event, TFAN_USER_STACK, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(tfan_event_frame(event, TFAN_USER_STACK, 1, &frame), 0);
	assert_true(frame.address == 0x2000);
	assert_null(frame.symbol);
	assert_int_equal(tfan_event_frame(event, TFAN_USER_STACK, 2, &frame), -ERANGE);
	assert_int_equal(tfan_event_frame(event, TFAN_KERNEL_STACK, 0, &frame), 0);
	assert_true(frame.address == 0xffffffff81000000);
	/* The next one has none, and not this one's. */
	event = next(f, TFAN_EVENT);
	assert_int_equal(tfan_event_time(event), 20);
	assert_int_equal(tfan_event_stack(event, TFAN_USER_STACK, &count), -ENODATA);
	assert_int_equal(tfan_event_frame(event, TFAN_USER_STACK, 0, &frame), -ENODATA);
	assert_none(f);
}

/* Its process stands behind its payload, however long the record of its stacks is. */
static void a_process_comes_with_stacks(void **state)
{
	const struct record_process process = { .flags = PROCESS_KNOWN, .pid = 4711, .parent = -1 };
	const struct fake_stack stack = { .head = { .found = STACK_USER, .process = 1 } };
	const struct fake_payload payload = fake_payload(1, "/etc/hosts");
	struct tfan_options options = TFAN_OPTIONS;
	uint8_t both[sizeof(payload) + sizeof(process)];
	struct fixture *f = *state;
	struct record_header *header;
	struct tfan_process found;
	const struct tfan_event *event;

	_Static_assert(sizeof(payload) % RECORD_ALIGN == 0, "nothing lies between the two");
	options.processes = true;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:a:b ustack", &f->trace), 0);
	memcpy(both, &payload, sizeof(payload));
	memcpy(both + sizeof(payload), &process, sizeof(process));
	f->router.flags = RECORD_PROCESS | RECORD_STACKED;
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 10, both, sizeof(both));
	header = (void *)(f->router.ring.at - sizeof(*header) - sizeof(both));
	header->payload_size = sizeof(payload);
	f->router.flags = 0;
	fake_router_record(&f->router, RECORD_STACK, tfan_trace_id(f->trace), 10, &stack, sizeof(stack.head));
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_int_equal(tfan_event_process(event, &found), 0);
	assert_int_equal(found.pid, 4711);
}

/* What a router may get wrong. */
static void stacks_that_are_not_there(void **state)
{
	struct fake_stack stack = { .head = { .found = STACK_USER, .user_count = UINT32_MAX, .kernel_count = 2 } };
	struct fixture *f = *state;
	uint64_t id = tfan_trace_id(f->trace);
	const struct tfan_event *event;
	size_t count = 99;

	fake_router_stacked(&f->router, id, 10, 1, &stack, sizeof(stack));
	fake_router_stacked(&f->router, id, 20, 1, &stack, 8);
	fake_router_stacked(&f->router, id, 30, 1, NULL, 0);
	fake_router_event(&f->router, id, 40, 2);
	fake_router_record(&f->router, RECORD_STACK, id, 50, &stack, sizeof(stack));
	fake_router_stacked(&f->router, id, 60, 1, NULL, 0);
	fake_router_publish(&f->router);
	for (uint64_t time = 10; time <= 60; time += 10) {
		if (time == 50)
			continue;
		event = next(f, TFAN_EVENT);
		assert_int_equal(tfan_event_time(event), time);
		assert_int_equal(tfan_event_stack(event, TFAN_USER_STACK, &count), -ENODATA);
	}
	assert_none(f);
}

/* The head says what the calls say, of an event and of what is none. */
static void the_head_holds_what_all_records_have(void **state)
{
	struct fixture *f = *state;
	struct fake_payload payload = fake_payload(5, "/etc/hosts");
	const struct record_lost lost = { .source = LOST_KERNEL, .cpu = 1, .count = 3, .at_least = 3 };

	fake_router_event(&f->router, tfan_trace_id(f->trace), 12345, -7);
	fake_router_record(&f->router, RECORD_LOST, 0, 2, &lost, sizeof(lost));
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 1, &payload, 12);
	fake_router_publish(&f->router);
	for (int i = 0; i < 3; i++) {
		const struct tfan_event *event = next(f, i == 1 ? TFAN_LOST : TFAN_EVENT);
		const struct tfan_head *head = tfan_event_head(event);

		assert_int_equal(head->kind, i == 1 ? TFAN_LOST : TFAN_EVENT);
		assert_ptr_equal(head->trace, i == 1 ? NULL : f->trace);
		assert_true(head->time == tfan_event_time(event) && head->time != 0);
		assert_int_equal(head->pid, tfan_event_pid(event));
		assert_int_equal(head->cpu, tfan_event_cpu(event));
		assert_ptr_equal(head->trace, tfan_event_trace(event));
	}
	assert_none(f);
}

static void integers_come_at_once(void **state)
{
	struct fixture *f = *state;
	struct fake_payload payload = fake_payload(5, "/etc/hosts");
	size_t count = tfan_field_count(f->trace);
	uint64_t values[16], one;
	const struct tfan_event *event;

	assert_in_range(count, 3, 15);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 12345, -7);
	/* Cut: some fields lie outside. */
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 1, &payload, 12);
	fake_router_publish(&f->router);
	for (int i = 0; i < 2; i++) {
		event = next(f, TFAN_EVENT);
		memset(values, 0xff, sizeof(values));
		assert_int_equal(tfan_event_integers(event, values, count), 0);
		for (size_t k = 0; k < count; k++) {
			if (tfan_event_u64(event, k, &one) < 0)
				one = 0;
			assert_true(values[k] == one);
		}
		assert_true(values[count] == UINT64_MAX);
		assert_int_equal(tfan_event_integers(event, values, count + 1), -EINVAL);
	}
	assert_none(f);
}

static void the_descriptor_tells_when_there_is_more(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 3; round++) {
		assert_none(f);
		assert_false(readable(f));
		assert_int_equal(tfan_wait(f->tfan, 0), 0);
		fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
		fake_router_publish(&f->router);
		assert_true(readable(f));
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
		(void)next(f, TFAN_EVENT);
	}
	assert_none(f);
	assert_false(readable(f));
}

/* One event wakes the caller at once; what follows within the interval does not. */
static void an_interval_keeps_the_descriptor_quiet(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	options.interval = 3600 * 1000;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:sched:sched_fake", &f->trace), 0);
	assert_int_equal(tfan_wait(f->tfan, 0), 0);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	fake_router_publish(&f->router);
	assert_true(readable(f));
	(void)next(f, TFAN_EVENT);
	assert_none(f);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 2, 1);
	fake_router_publish(&f->router);
	assert_false(readable(f));
	assert_int_equal(tfan_wait(f->tfan, 0), 0);
	/* It is there for who asks, and the interval begins anew. */
	assert_int_equal(tfan_event_time(next(f, TFAN_EVENT)), 2);
	assert_none(f);
	assert_false(readable(f));
	/* The router's end is told at once. */
	fake_router_hang_up(&f->router);
	assert_true(readable(f));
}

static void an_interval_ends(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	options.interval = 1;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:sched:sched_fake", &f->trace), 0);
	for (uint64_t i = 1; i <= 20; i++) {
		const struct tfan_event *event;
		int n;

		fake_router_event(&f->router, tfan_trace_id(f->trace), i, 1);
		fake_router_publish(&f->router);
		while ((n = tfan_next(f->tfan, &event)) == 0)
			assert_int_equal(tfan_wait(f->tfan, -1), 1);
		assert_int_equal(n, 1);
		assert_int_equal(tfan_event_time(event), i);
		assert_none(f);
	}
	/* With nothing more to come it falls asleep, and stays quiet. */
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
	assert_none(f);
	assert_false(readable(f));
}

/* ---- records ---- */

static void kinds_of_a_newer_router_are_passed_over(void **state)
{
	struct fixture *f = *state;
	uint64_t anything[4] = { 0 };

	fake_router_record(&f->router, 200, 0, 1, anything, sizeof(anything));
	fake_router_record(&f->router, 0, 0, 1, NULL, 0);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 2, 1);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_event_time(next(f, TFAN_EVENT)), 2);
	assert_none(f);
}

static void a_new_filter_is_marked(void **state)
{
	struct fixture *f = *state;
	struct record_filter filter = { .cookie = 4 };
	uint64_t id = tfan_trace_id(f->trace), number;
	const struct tfan_event *event;

	fake_router_event(&f->router, id, 1, 1);
	fake_router_record(&f->router, RECORD_FILTER, id, 2, &filter, sizeof(filter));
	fake_router_record(&f->router, RECORD_FILTER, 999999, 3, &filter, sizeof(filter));
	fake_router_event(&f->router, id, 4, 2);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_event_time(next(f, TFAN_EVENT)), 1);
	event = next(f, TFAN_FILTER);
	assert_int_equal(tfan_event_time(event), 2);
	assert_ptr_equal(tfan_event_trace(event), f->trace);
	assert_int_equal(tfan_event_u64(event, 0, &number), -EINVAL);
	/* That of a trace that is closed, or not this consumer's, is passed over. */
	assert_int_equal(tfan_event_time(next(f, TFAN_EVENT)), 4);
	assert_none(f);
}

static void a_trace_that_nobody_knows(void **state)
{
	struct fixture *f = *state;

	fake_router_event(&f->router, 999999, 1, 1);
	fake_router_publish(&f->router);
	assert_none(f);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SCHEMA), 1);
}

static void a_closed_traces_events_are_passed_over(void **state)
{
	struct fixture *f = *state;
	uint64_t id = tfan_trace_id(f->trace);
	const struct tfan_event *event;
	struct tfan_trace *other;
	int64_t n;

	assert_int_equal(tfan_trace_create(f->tfan, "other=tracepoint:a:b", &other), 0);
	assert_ptr_equal(tfan_trace_at(f->tfan, 0), f->trace);
	assert_ptr_equal(tfan_trace_at(f->tfan, 1), other);
	fake_router_event(&f->router, id, 1, 1);
	fake_router_event(&f->router, id, 2, 2);
	fake_router_event(&f->router, tfan_trace_id(other), 3, 3);
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	tfan_trace_close(f->trace);
	/* The event at hand stays whole until the next one is taken. */
	assert_int_equal(tfan_event_i64(event, 1, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(tfan_trace_name(tfan_event_trace(event)), "sched:sched_fake");
	assert_int_equal(tfan_event_time(next(f, TFAN_EVENT)), 3);
	assert_ptr_equal(tfan_trace_at(f->tfan, 0), other);
	assert_null(tfan_trace_at(f->tfan, 1));
}

static void losses(void **state)
{
	struct fixture *f = *state;
	struct record_lost known = { .source = LOST_KERNEL, .cpu = 3, .count = 120, .at_least = 120, .from = 5, .to = 9 };
	struct record_lost unknown = { .source = 4711, .cpu = RECORD_CPU_NONE, .count = LOST_COUNT_UNKNOWN, .at_least = 1 };
	const struct tfan_event *event;
	struct tfan_lost lost;
	uint64_t u;

	fake_router_record(&f->router, RECORD_LOST, 0, 9, &known, sizeof(known));
	fake_router_record(&f->router, RECORD_GAP, 0, 10, &unknown, sizeof(unknown));
	fake_router_publish(&f->router);
	event = next(f, TFAN_LOST);
	assert_null(tfan_event_trace(event));
	assert_int_equal(tfan_event_u64(event, 0, &u), -EINVAL);
	assert_int_equal(tfan_event_lost(event, &lost), 0);
	assert_int_equal(lost.source, TFAN_LOST_KERNEL);
	assert_int_equal(lost.cpu, 3);
	assert_true(lost.counted);
	assert_int_equal(lost.count, 120);
	assert_int_equal(lost.from, 5);
	assert_int_equal(lost.to, 9);
	assert_int_equal(tfan_event_lost(next(f, TFAN_GAP), &lost), 0);
	assert_int_equal(lost.cpu, -1);
	assert_false(lost.counted);
	assert_int_equal(lost.count, 1);
}

static void wall_time_follows_the_clock_records(void **state)
{
	struct fixture *f = *state;
	struct record_clock before = { .mono = 1000, .real = 5001000, .error = 10 };
	struct record_clock after = { .mono = 3000, .real = 60000003000, .error = 10 };

	fake_router_event(&f->router, tfan_trace_id(f->trace), 500, 1);
	fake_router_record(&f->router, RECORD_CLOCK, 0, 1000, &before, sizeof(before));
	fake_router_event(&f->router, tfan_trace_id(f->trace), 2000, 2);
	fake_router_record(&f->router, RECORD_CLOCK, 0, 3000, &after, sizeof(after));
	fake_router_event(&f->router, tfan_trace_id(f->trace), 3001, 3);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 2999, 4);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_event_wall(next(f, TFAN_EVENT)), 0);
	assert_int_equal(tfan_event_wall(next(f, TFAN_EVENT)), 5002000);
	assert_int_equal(tfan_event_wall(next(f, TFAN_EVENT)), 60000003001);
	/* Late: told by the reading that held then. */
	assert_int_equal(tfan_event_wall(next(f, TFAN_EVENT)), 5002999);
}

static void a_flush_comes_back_in_the_stream(void **state)
{
	struct fixture *f = *state;

	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	assert_int_equal(tfan_flush(f->tfan), 0);
	(void)next(f, TFAN_EVENT);
	(void)next(f, TFAN_FLUSHED);
	assert_none(f);
}

static void a_comm_without_its_nul(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	struct record_header *record;

	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	record = (struct record_header *)(void *)f->router.ring.data;
	memset(record->comm, 'x', sizeof(record->comm));
	fake_router_event(&f->router, tfan_trace_id(f->trace), 2, 1);
	((struct record_header *)(void *)(f->router.ring.data + record->size))->flags = RECORD_LATE | RECORD_SUSPECT;
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_string_equal(tfan_event_comm(event), "xxxxxxxxxxxxxxxx");
	assert_false(tfan_event_late(event));
	event = next(f, TFAN_EVENT);
	assert_string_equal(tfan_event_comm(event), "");
	assert_true(tfan_event_late(event));
	assert_true(tfan_event_suspect(event));
	assert_false(tfan_event_partial(event));
}

/* ---- damage ---- */

static void an_event_that_is_cut_short(void **state)
{
	struct fixture *f = *state;
	struct fake_payload payload = fake_payload(5, "/etc/hosts");
	const struct tfan_event *event;
	const void *bytes;
	size_t size;
	int64_t i;

	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 1, &payload, 12);
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_int_equal(tfan_event_i64(event, 1, &i), 0);
	assert_int_equal(i, 5);
	assert_int_equal(tfan_event_i64(event, 3, &i), -EBADMSG);
	assert_int_equal(tfan_event_bytes(event, 2, &bytes, &size), -EBADMSG);
}

static void a_ring_that_is_damaged(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;

	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	((struct record_header *)(void *)f->router.ring.data)->size = 7;
	fake_router_publish(&f->router);
	assert_int_equal(tfan_next(f->tfan, &event), -EBADMSG);
	assert_int_equal(tfan_failure(f->tfan)->error, EBADMSG);
	assert_int_equal(tfan_next(f->tfan, &event), -EBADMSG);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
}

static void a_record_smaller_than_its_kind(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	uint64_t half = 0;

	fake_router_record(&f->router, RECORD_LOST, 0, 1, &half, sizeof(half));
	fake_router_publish(&f->router);
	assert_int_equal(tfan_next(f->tfan, &event), -EBADMSG);
	assert_int_equal(tfan_next(f->tfan, &event), -EBADMSG);
}

/* ---- overwriting ---- */

static void what_was_overwritten_is_told_with_its_count(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;
	const struct tfan_event *event;
	struct tfan_lost lost;
	uint64_t told = 0, seen = 0, last = 0;
	bool first = true;
	int n;

	options.ring_size = RING_CAPACITY_MIN;
	options.overflow = TFAN_OVERWRITE;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:sched:sched_fake", &f->trace), 0);
	for (uint64_t i = 1; i <= 5000; i++)
		fake_router_event(&f->router, tfan_trace_id(f->trace), i, (int32_t)i);
	fake_router_publish(&f->router);
	while ((n = tfan_next(f->tfan, &event)) == 1) {
		if (tfan_event_kind(event) == TFAN_LOST) {
			assert_true(first);
			assert_int_equal(tfan_event_lost(event, &lost), 0);
			assert_int_equal(lost.source, TFAN_LOST_RING);
			assert_true(lost.counted);
			told += lost.count;
		} else {
			assert_true(tfan_event_time(event) == last + 1 || first || seen == 0);
			last = tfan_event_time(event);
			seen++;
		}
		first = false;
	}
	assert_int_equal(n, 0);
	assert_true(told > 0);
	assert_int_equal(told + seen, 5000);
	assert_int_equal(last, 5000);
	assert_int_equal(lost.to, 5000 - seen + 1);
}

/* ---- all events ---- */

static int setup_all(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;

	(void)setup(state);
	options.all_events = true;
	open_with(*state, &options);
	return 0;
}

static void schemas_are_fetched_when_they_are_needed(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	int64_t n;

	for (uint64_t i = 0; i < 300; i++)
		fake_router_event(&f->router, 7000 + i % 100, i + 1, (int32_t)i);
	fake_router_publish(&f->router);
	for (uint64_t i = 0; i < 300; i++) {
		event = next(f, TFAN_EVENT);
		assert_int_equal(tfan_trace_id(tfan_event_trace(event)), 7000 + i % 100);
		assert_string_equal(tfan_trace_name(tfan_event_trace(event)), "sched:sched_fake");
		assert_int_equal(tfan_event_i64(event, 1, &n), 0);
		assert_int_equal(n, i);
	}
	/* The log of requests is shorter than the traces are many. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SCHEMA), FAKE_LOG_MAX - 2);
	assert_int_equal(tfan_trace_id(tfan_trace_at(f->tfan, 99)), 7099);
	assert_null(tfan_trace_at(f->tfan, 100));
}

static void a_trace_that_the_router_will_not_tell(void **state)
{
	struct fixture *f = *state;

	f->router.refuse_type = CONTROL_SCHEMA;
	f->router.refuse_status = TFAN_LOCATION;
	for (uint64_t i = 0; i < 5; i++)
		fake_router_event(&f->router, 7000, i, 1);
	fake_router_publish(&f->router);
	assert_none(f);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SCHEMA), 1);
	assert_null(tfan_trace_at(f->tfan, 0));
}

static void a_schema_that_is_damaged(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;

	memset(f->router.schema, 0xff, f->router.schema_size);
	fake_router_event(&f->router, 7000, 1, 1);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_next(f->tfan, &event), -EBADMSG);
	assert_non_null(strstr(tfan_failure(f->tfan)->message, "schema"));
}

static void numbers_of_a_big_endian_machine(void **state)
{
	struct fixture *f = *state;
	struct fake_payload payload = fake_payload(0, "x");
	const struct tfan_event *event;
	int64_t n;

	free(f->router.schema);
	fake_schema(true, &f->router.schema, &f->router.schema_size);
	payload.n = (int32_t)__builtin_bswap32((uint32_t)-5);
	fake_router_record(&f->router, RECORD_EVENT, 1, 1, &payload, sizeof(payload));
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_int_equal(tfan_event_i64(event, 1, &n), 0);
	assert_int_equal(n, -5);
	assert_int_equal(tfan_event_i64(event, 4, &n), 0);
	assert_int_equal(n, -3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(attach_says_what_was_asked, setup),
		TEST(events_come_with_their_fields, setup_trace),
		TEST(stacks_come_with_their_event, setup_trace),
		TEST(a_process_comes_with_stacks, setup),
		TEST(stacks_that_are_not_there, setup_trace),
		TEST(the_head_holds_what_all_records_have, setup_trace),
		TEST(integers_come_at_once, setup_trace),
		TEST(the_descriptor_tells_when_there_is_more, setup_trace),
		TEST(an_interval_keeps_the_descriptor_quiet, setup),
		TEST(an_interval_ends, setup),
		TEST(kinds_of_a_newer_router_are_passed_over, setup_trace),
		TEST(a_new_filter_is_marked, setup_trace),
		TEST(a_trace_that_nobody_knows, setup_trace),
		TEST(a_closed_traces_events_are_passed_over, setup_trace),
		TEST(losses, setup_trace),
		TEST(wall_time_follows_the_clock_records, setup_trace),
		TEST(a_flush_comes_back_in_the_stream, setup_trace),
		TEST(a_comm_without_its_nul, setup_trace),
		TEST(an_event_that_is_cut_short, setup_trace),
		TEST(a_ring_that_is_damaged, setup_trace),
		TEST(a_record_smaller_than_its_kind, setup_trace),
		TEST(what_was_overwritten_is_told_with_its_count, setup),
		TEST(schemas_are_fetched_when_they_are_needed, setup_all),
		TEST(a_trace_that_the_router_will_not_tell, setup_all),
		TEST(a_schema_that_is_damaged, setup_all),
		TEST(numbers_of_a_big_endian_machine, setup_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
