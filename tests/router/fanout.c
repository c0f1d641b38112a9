/* Who gets which event: from when to when, through which filter, of whose processes, with what in its record. */
#include "tests/router/fanout_fixture.h"

/* ---- from when to when ---- */

static void a_trace_that_was_not_started_takes_nothing(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	expect_nothing(f);
	assert_ledger(trace, 0, 0, 0);
	assert_int_equal(f->fanout.decoded, 1);
	assert_int_equal(f->fanout.unrouted, 0);
}

/* Places are ordered by time, then by CPU. */
static void a_trace_begins_at_its_place(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 2), 0);
	assert_int_equal(trace->stage, TRACE_WAITING);
	emit(f, 99, 3, 1);
	emit(f, 100, 0, 2);
	emit(f, 100, 1, 3);
	expect_nothing(f);
	emit(f, 100, 2, 4);
	assert_int_equal(trace->stage, TRACE_LIVE);
	emit(f, 100, 3, 5);
	emit(f, 101, 0, 6);
	for (int32_t n = 4; n <= 6; n++)
		(void)expect(f, 0, 1, n);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
}

static void a_later_time_on_a_lower_cpu_begins_it_too(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 2), 0);
	emit(f, 101, 0, 1);
	(void)expect(f, 0, 1, 1);
	assert_ledger(trace, 1, 0, 0);
}

static void a_trace_without_a_place_begins_at_once(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 5, 0, 1);
	(void)expect(f, 0, 1, 1);
}

/* What was committed before the disabling is the trace's, and nothing after it. */
static void the_tail_of_a_stopped_trace(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	fanout_trace_stop(trace, 200);
	assert_int_equal(trace->stage, TRACE_CLOSING);
	emit(f, 150, 1, 2);
	emit(f, 200, 0, 3);
	assert_int_equal(trace->stage, TRACE_CLOSING);
	emit(f, 201, 0, 4);
	assert_int_equal(trace->stage, TRACE_OFF);
	/* Late, and after the end. */
	emit(f, 199, 1, 5);
	for (int32_t n = 1; n <= 3; n++)
		(void)expect(f, 0, 1, n);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
	assert_int_equal(f->number->changing, 0);
}

static void a_stop_before_the_beginning(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 0), 0);
	fanout_trace_stop(trace, 150);
	emit(f, 99, 0, 1);
	emit(f, 120, 0, 2);
	emit(f, 151, 0, 3);
	(void)expect(f, 0, 1, 2);
	expect_nothing(f);
	assert_ledger(trace, 1, 0, 0);
	assert_int_equal(trace->stage, TRACE_OFF);
}

/* Its counts go on where they were, without what came in between. */
static void a_trace_that_is_started_again(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	fanout_trace_stop(trace, 20);
	emit(f, 30, 0, 2);
	emit(f, 40, 0, 3);
	trace->until = UINT64_MAX;
	assert_int_equal(fanout_trace_start(trace, 50, 0), 0);
	emit(f, 45, 0, 4);
	emit(f, 50, 0, 5);
	emit(f, 60, 0, 6);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 5);
	(void)expect(f, 0, 1, 6);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
}

/* However soon it is started again, what was committed before it was stopped is told, and nothing of in between. */
static void a_trace_that_is_started_again_before_its_tail_is_told(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	fanout_trace_stop(trace, 200);
	assert_int_equal(fanout_trace_start(trace, 300, 0), 0);
	emit(f, 150, 0, 2);
	emit(f, 250, 0, 90);
	emit(f, 300, 0, 3);
	fanout_trace_stop(trace, 400);
	assert_int_equal(fanout_trace_start(trace, 500, 0), 0);
	fanout_trace_stop(trace, 600);
	emit(f, 400, 0, 4);
	emit(f, 550, 0, 5);
	emit(f, 650, 0, 91);
	assert_int_equal(trace->stage, TRACE_OFF);
	for (int32_t n = 1; n <= 5; n++)
		(void)expect(f, 0, 1, n);
	expect_nothing(f);
	assert_ledger(trace, 5, 0, 0);
	assert_int_equal(f->number->changing, 0);
}

static void a_trace_that_is_stopped_and_started_before_it_began(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 0), 0);
	fanout_trace_stop(trace, 150);
	assert_int_equal(fanout_trace_start(trace, 200, 0), 0);
	emit(f, 120, 0, 1);
	emit(f, 170, 0, 90);
	emit(f, 210, 0, 2);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 2);
	expect_nothing(f);
	assert_int_equal(trace->stage, TRACE_LIVE);
	assert_ledger(trace, 2, 0, 0);
}

/* One that could not be started again has its tail all the same. */
static void a_start_that_is_taken_back(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	fanout_trace_stop(trace, 200);
	assert_int_equal(fanout_trace_start(trace, 300, 0), 0);
	fanout_trace_stop(trace, 0);
	emit(f, 150, 0, 1);
	emit(f, 350, 0, 90);
	(void)expect(f, 0, 1, 1);
	expect_nothing(f);
	assert_int_equal(trace->stage, TRACE_OFF);
}

static void a_removed_trace_is_gone(void **state)
{
	struct fixture *f = *state;
	struct trace *gone = live_trace(f, 1, 0, NULL), *filtered = live_trace(f, 2, 0, "n > 0");
	struct trace *stays = live_trace(f, 3, 1, NULL);

	assert_ptr_equal(fanout_trace_find(&f->fanout, 2), filtered);
	fanout_trace_remove(gone);
	fanout_trace_remove(filtered);
	assert_null(fanout_trace_find(&f->fanout, 1));
	assert_null(fanout_trace_find(&f->fanout, 2));
	assert_ptr_equal(fanout_trace_find(&f->fanout, 3), stays);
	emit(f, 10, 0, 1);
	(void)expect(f, 1, 3, 1);
	expect_nothing(f);
}

/* ---- what stands in the record ---- */

static void a_late_event_is_flagged(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 100, 0, 1);
	emit(f, 100, 1, 2);
	emit(f, 90, 1, 3);
	/* Late is what is older than the youngest, not than the last. */
	emit(f, 95, 0, 4);
	emit(f, 100, 0, 5);
	assert_int_equal(expect(f, 0, 1, 1)->flags & RECORD_LATE, 0);
	assert_int_equal(expect(f, 0, 1, 2)->flags & RECORD_LATE, 0);
	assert_int_equal(expect(f, 0, 1, 3)->flags & RECORD_LATE, RECORD_LATE);
	assert_int_equal(expect(f, 0, 1, 4)->flags & RECORD_LATE, RECORD_LATE);
	assert_int_equal(expect(f, 0, 1, 5)->flags & RECORD_LATE, 0);
}

/* The session's own use of an event: this one renames its thread. */
static void rename_thread(void *context, const struct own_event *own)
{
	struct fixture *f = context;
	struct payload event;

	assert_int_equal(own->size, sizeof(event));
	memcpy(&event, own->payload, sizeof(event));
	assert_int_equal(own->tid, event.pid);
	assert_int_equal(tasks_set(&f->fanout.tasks, event.pid, "after", sizeof("after"), false), 0);
}

/* Two copies of the tasks, of the times 15 and 16, are due before the same event. */
static void take_snapshot(void *context)
{
	struct fixture *f = context;

	assert_string_equal(tasks_find(&f->fanout.tasks, 1001, 15)->comm, "before");
	f->fanout.snapshot_due = f->fanout.snapshot_due == 15 ? 16 : UINT64_MAX;
}

static void snapshots_come_before_the_event_that_changes_the_tasks(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "before", sizeof("before"), false), 0);
	fanout_route_use(f->number, false, rename_thread, f);
	f->fanout.snapshot = take_snapshot;
	f->fanout.snapshot_due = 15;
	emit(f, 20, 3, 1);
	assert_int_equal(f->fanout.snapshot_due, UINT64_MAX);
	assert_string_equal(tasks_find(&f->fanout.tasks, 1001, 20)->comm, "after");
}

static void the_name_is_the_one_of_the_moment(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "before", sizeof("before"), false), 0);
	emit(f, 5, 3, 4);
	fanout_route_use(f->number, false, rename_thread, f);
	emit(f, 10, 3, 1);
	emit(f, 20, 3, 2);
	fanout_route_use(f->number, false, NULL, NULL);
	emit(f, 30, 3, 1);
	emit(f, 40, 3, 3);
	(void)expect(f, 0, 1, 4);
	/* The event that renames its thread still has the old name. */
	assert_comm(expect(f, 0, 1, 1), "before");
	assert_comm(expect(f, 0, 1, 2), NULL);
	assert_comm(expect(f, 0, 1, 1), "after");
	assert_comm(expect(f, 0, 1, 3), NULL);
}

static void time_cpu_and_thread(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, UINT64_C(1) << 60, 300, 7);
	record = expect(f, 0, 1, 7);
	assert_true(record->time == UINT64_C(1) << 60);
	assert_int_equal(record->cpu, 300);
	assert_int_equal(record->pid, 1007);
	assert_int_equal(record->size, align_up(sizeof(*record) + sizeof(struct payload), RECORD_ALIGN));
}

/* Every size of payload is copied whole: there are two ways to copy. */
static void every_size(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[160] = { NUMBER };

	(void)live_trace(f, 1, 0, NULL);
	for (uint32_t i = 8; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	for (uint32_t size = 8; size <= sizeof(payload); size++) {
		const struct record_header *record;

		emit_payload(f, size, 0, payload, size);
		record = take(f, 0);
		assert_non_null(record);
		assert_int_equal(record->payload_size, size);
		assert_memory_equal(record + 1, payload, size);
	}
}

/* An event too short for its thread's id has none, and nothing behind it is read. */
static void short_events(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;
	const struct payload payload = { .type = NUMBER, .pid = 77 };

	(void)live_trace(f, 1, 0, NULL);
	emit_payload(f, 10, 0, &payload, 7);
	record = take(f, 0);
	assert_non_null(record);
	assert_int_equal(record->pid, -1);
	assert_int_equal(record->payload_size, 7);
	/* Without its kind it is nobody's. */
	emit_payload(f, 11, 0, &payload, 1);
	assert_int_equal(f->fanout.unrouted, 1);
	assert_int_equal(f->fanout.decoded, 2);
	expect_nothing(f);
}

static void a_kernel_of_the_other_byte_order(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct payload payload = { .type = __builtin_bswap16(NUMBER), .pid = (int32_t)__builtin_bswap32(42), .n = 1 };
	const struct record_header *record;

	(void)state;
	assert_non_null(f);
	begin(f, false, !HOST_IS_BIG);
	(void)live_trace(f, 1, 0, "n == 0x01000000");
	emit_payload(f, 10, 0, &payload, sizeof(payload));
	record = take(f, 0);
	assert_non_null(record);
	assert_int_equal(record->pid, 42);
	/* The event itself stays as the kernel laid it out. */
	assert_memory_equal(record + 1, &payload, sizeof(payload));
	assert_int_equal(tear_down((void **)&f), 0);
}

/* ---- filters ---- */

static void a_lone_filter(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n == 2");

	assert_ptr_equal(f->number->lone, trace);
	for (int32_t n = 1; n <= 4; n++)
		emit(f, 10, 0, n);
	(void)expect(f, 0, 1, 2);
	expect_nothing(f);
	assert_ledger(trace, 1, 3, 0);
}

/* Several of them are asked by the index: each gets its own, those without a filter get all. */
static void filters_through_the_index(void **state)
{
	struct fixture *f = *state;
	struct trace *one = live_trace(f, 1, 0, "n == 1"), *two = live_trace(f, 2, 0, "n == 2");
	struct trace *more = live_trace(f, 3, 1, "n > 1"), *all = live_trace(f, 4, 1, NULL);

	assert_null(f->number->lone);
	for (int32_t n = 0; n < 4; n++)
		emit(f, 10, 0, n);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 2, 2);
	assert_null(take(f, 0));
	(void)expect(f, 1, 4, 0);
	(void)expect(f, 1, 4, 1);
	(void)expect(f, 1, 4, 2);
	(void)expect(f, 1, 3, 2);
	(void)expect(f, 1, 4, 3);
	(void)expect(f, 1, 3, 3);
	expect_nothing(f);
	assert_ledger(one, 1, 3, 0);
	assert_ledger(two, 1, 3, 0);
	assert_ledger(more, 2, 2, 0);
	assert_ledger(all, 4, 0, 0);
	/* When the others are gone, the last one is asked directly. */
	fanout_trace_remove(one);
	fanout_trace_remove(more);
	assert_ptr_equal(f->number->lone, two);
	emit(f, 20, 0, 1);
	emit(f, 20, 0, 2);
	(void)expect(f, 0, 2, 2);
	fanout_trace_remove(two);
	assert_null(f->number->lone);
	assert_null(f->number->index);
	emit(f, 30, 0, 2);
	for (int i = 0; i < 3; i++)
		(void)expect(f, 1, 4, (int[]){ 1, 2, 2 }[i]);
	expect_nothing(f);
}

/* A filtered trace waits and ends as the others do, and what came before and after it is not "filtered". */
static void a_filtered_trace_begins_and_ends(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, "n >= 2"), *other = live_trace(f, 2, 1, "n == 9");

	assert_int_equal(fanout_trace_start(trace, 20, 0), 0);
	emit(f, 10, 0, 5);
	emit(f, 20, 0, 1);
	emit(f, 30, 0, 2);
	fanout_trace_stop(trace, 40);
	emit(f, 40, 0, 3);
	emit(f, 41, 0, 4);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 0, 1, 3);
	expect_nothing(f);
	assert_ledger(trace, 2, 1, 0);
	assert_ledger(other, 0, 5, 0);
}

static void filters_see_thread_name_and_cpu(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "wanted", sizeof("wanted"), false), 0);
	(void)live_trace(f, 1, 0, "comm == wanted");
	(void)live_trace(f, 2, 0, "tid == 1002");
	(void)live_trace(f, 3, 0, "cpu == 5");
	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	emit(f, 10, 5, 3);
	emit(f, 10, 0, 4);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 2, 2);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
}

/* An expression that gives up is counted by each trace that asked it, alone or with others, and neither another filter nor a
 * trace's end takes the count away. */
static void expressions_that_give_up_are_counted(void **state)
{
	static const char slow[] = "comm =~ \"^(x|x|x)+[yz]\"", name[] = "xxxxxxxxxxxxxxx";
	struct fixture *f = *state;
	struct trace *first, *second;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, name, sizeof(name), false), 0);
	first = live_trace(f, 1, 0, slow);
	emit(f, 10, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 1);
	second = live_trace(f, 2, 1, slow);
	emit(f, 20, 0, 1);
	emit(f, 21, 0, 2);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 2);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 1);
	assert_int_equal(fanout_trace_filter(first, compile(f->number, "n == 7"), NULL), 0);
	emit(f, 30, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 2);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 2);
	fanout_trace_stop(second, 40);
	emit(f, 50, 0, 1);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 2);
	assert_int_equal(fanout_trace_filter(first, compile(f->number, slow), NULL), 0);
	emit(f, 60, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 3);
	expect_nothing(f);
}

static void another_filter_from_here_on(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n == 1"), *quiet = add_trace(f, 2, 1, NULL);

	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	assert_int_equal(fanout_trace_filter(trace, compile(f->number, "n == 2"), NULL), 0);
	emit(f, 20, 0, 1);
	emit(f, 20, 0, 2);
	assert_int_equal(fanout_trace_filter(trace, NULL, NULL), 0);
	emit(f, 30, 0, 3);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 0, 1, 3);
	assert_ledger(trace, 3, 2, 0);
	/* A trace that takes nothing takes nothing with another filter either. */
	assert_int_equal(fanout_trace_filter(quiet, compile(f->number, "n == 3"), NULL), 0);
	emit(f, 40, 0, 3);
	(void)expect(f, 0, 1, 3);
	expect_nothing(f);
}

/* ---- whose an event is ---- */

/* A thread of process 7. */
static void learn_process(struct fixture *f, int32_t tid, uint32_t uid)
{
	const struct task_read read = { .time = 5, .tid = tid, .pid = 7, .parent = 1, .has_ids = true,
		.ids = { uid, uid, uid, 100, 100 }, .exe = "/bin/x", .exe_size = 6, .cgroup_path = "/a/b", .cgroup_size = 4,
		.cgroup = 9 };

	assert_int_equal(tasks_learn(&f->fanout.tasks, &read), 0);
}

static void a_filter_knows_the_process_of_a_thread(void **state)
{
	static const char *const filters[] = { "pid == 7", "uid == 1000", "gid == 100 && pid != 8", "exe $= /x",
		"cgroup == /a/b && uid != 0", "!(pid == 8)" };
	struct fixture *f = *state;

	learn_process(f, 7, 1000);
	learn_process(f, 1001, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct trace *trace = live_trace(f, 10 + i, 0, filters[i]);

		emit(f, 10 + i, 0, 1);
		emit(f, 10 + i, 0, 3);
		(void)expect(f, 0, 10 + i, 1);
		expect_nothing(f);
		fanout_trace_remove(trace);
	}
	/* By itself, in the index. */
	(void)live_trace(f, 1, 0, "uid == 0");
	(void)live_trace(f, 2, 0, "uid == 1000");
	emit(f, 20, 0, 1);
	(void)expect(f, 0, 2, 1);
	expect_nothing(f);
}

/* While somebody asks for users, those in doubt are read again; the first one has all read that are. */
static void ids_in_doubt_are_read_again_for_filters(void **state)
{
	struct fixture *f = *state;
	struct tasks *tasks = &f->fanout.tasks;
	struct trace *first, *second;

	learn_process(f, 7, 1000);
	tasks_ids_changed(tasks, 6, 7);
	assert_int_equal(tasks->query_count, 0);
	first = live_trace(f, 1, 0, "uid == 0 || n == 3");
	assert_true(tasks->query_all);
	tasks->query_all = false;
	second = live_trace(f, 2, 0, "gid == 0");
	assert_false(tasks->query_all);
	tasks_ids_changed(tasks, 7, 7);
	assert_int_equal(tasks->query_count, 1);
	fanout_trace_remove(first);
	tasks_ids_changed(tasks, 8, 7);
	assert_int_equal(tasks->query_count, 2);
	fanout_trace_remove(second);
	tasks_ids_changed(tasks, 9, 7);
	assert_int_equal(tasks->query_count, 2);
	(void)live_trace(f, 3, 0, "n == 3 && pid == 7");
	assert_int_equal(tasks->asks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_trace_that_was_not_started_takes_nothing),
		TEST(a_trace_begins_at_its_place),
		TEST(a_later_time_on_a_lower_cpu_begins_it_too),
		TEST(a_trace_without_a_place_begins_at_once),
		TEST(the_tail_of_a_stopped_trace),
		TEST(a_stop_before_the_beginning),
		TEST(a_trace_that_is_started_again), TEST(a_trace_that_is_started_again_before_its_tail_is_told),
		TEST(a_trace_that_is_stopped_and_started_before_it_began),
		TEST(a_start_that_is_taken_back),
		TEST(a_removed_trace_is_gone),
		TEST(a_late_event_is_flagged),
		TEST(the_name_is_the_one_of_the_moment),
		TEST(snapshots_come_before_the_event_that_changes_the_tasks),
		TEST(time_cpu_and_thread),
		TEST(every_size),
		TEST(short_events),
		cmocka_unit_test(a_kernel_of_the_other_byte_order),
		TEST(a_lone_filter),
		TEST(filters_through_the_index),
		TEST(a_filtered_trace_begins_and_ends),
		TEST(filters_see_thread_name_and_cpu),
		TEST(expressions_that_give_up_are_counted),
		TEST(another_filter_from_here_on),
		TEST(a_filter_knows_the_process_of_a_thread),
		TEST(ids_in_doubt_are_read_again_for_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
