/* What the ledger says of each event, also where rings overflow, and how rings are written to. */
#include "tests/router/fanout_fixture.h"

/* ---- the ledger ---- */

/* Reads the ids of a thread at that time; euid may differ. */
static void learn(struct fixture *f, int32_t tid, uint32_t uid, uint32_t euid, uint64_t time)
{
	const struct task_read read = {
		.time = time,
		.tid = tid,
		.pid = tid,
		.parent = 1,
		.comm = "task",
		.has_ids = true,
		.ids = { .uid = uid, .euid = euid, .suid = uid, .gid = uid, .egid = uid },
	};

	assert_int_equal(tasks_learn(&f->fanout.tasks, &read), 0);
}

static struct trace *own_trace(struct fixture *f, uint64_t id, int consumer, uint32_t owner, const char *filter)
{
	struct trace *trace = add_trace(f, id, consumer, filter);

	trace->own = true;
	trace->owner = owner;
	assert_int_equal(fanout_trace_start(trace, 0, 0), 0);
	return trace;
}

static void emit_flags(struct fixture *f, uint64_t time, int32_t n, uint8_t flags)
{
	const struct payload payload = { .type = NUMBER, .pid = 1000 + n, .n = n, .flags = flags };

	emit_payload(f, time, 0, &payload, sizeof(payload));
}

/* Threads 1001 and 1002 are user 7's, 1003 is user 8's, 1004 runs a program of another user's for 7, and of 1005
 * nothing is known. */
static void only_events_of_the_owners_processes(void **state)
{
	struct fixture *f = *state;
	struct trace *own = own_trace(f, 1, 0, 7, NULL), *filtered = own_trace(f, 2, 1, 7, "n != 1"), *all;

	learn(f, 1001, 7, 7, 5);
	learn(f, 1002, 7, 7, 5);
	learn(f, 1003, 8, 8, 5);
	learn(f, 1004, 7, 0, 5);
	for (int32_t n = 1; n <= 5; n++)
		emit(f, 10 + (uint64_t)n, 0, n);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 1, 2, 2);
	expect_nothing(f);
	assert_ledger(own, 2, 3, 0);
	assert_ledger(filtered, 1, 4, 0);

	/* A filter that asks for the others gets none of them. */
	filtered->next_filter = NULL;
	assert_int_equal(fanout_trace_filter(filtered, compile(f->number, "uid == 8 || gid == 7"), NULL), 0);
	for (int32_t n = 2; n <= 5; n++)
		emit(f, 20 + (uint64_t)n, 0, n);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 1, 2, 2);
	expect_nothing(f);

	/* What interrupts its thread isn't its own. */
	emit_flags(f, 31, 1, 0x08);
	emit_flags(f, 32, 1, 0x10);
	emit_flags(f, 33, 1, 0x40);
	expect_nothing(f);
	emit_flags(f, 34, 1, 0x01 | 0x04 | 0x20 | 0x80);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 1, 2, 1);

	/* Its ids were changed, and then read; another that isn't the owner's. */
	tasks_ids_changed(&f->fanout.tasks, 40, 1001);
	emit(f, 41, 0, 1);
	expect_nothing(f);
	learn(f, 1001, 7, 7, 42);
	emit(f, 43, 0, 1);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 1, 2, 1);
	/* After a loss nothing is proven. */
	tasks_doubt(&f->fanout.tasks, 50);
	emit(f, 51, 0, 2);
	expect_nothing(f);

	/* Beside it one that sees all; and gone again. */
	all = live_trace(f, 3, 0, NULL);
	emit(f, 60, 0, 3);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
	fanout_trace_remove(own);
	fanout_trace_stop(filtered, 70);
	emit(f, 71, 0, 3);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
	assert_ledger(all, 2, 0, 0);
	assert_int_equal(f->number->owned_count, 0);
}

/* The session's own use of an event: its thread executes a program. */
static void execute(void *context, const struct own_event *own)
{
	struct fixture *f = context;

	assert_int_equal(tasks_exec(&f->fanout.tasks, own->time, own->tid, own->tid, "/new", sizeof("/new") - 1), 0);
}

/* The event that says so is told of the process as it is then; whose it is was proven before. */
static void executing_has_the_new_program(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, "exe == \"/new\"");
	(void)own_trace(f, 2, 1, 7, "exe == \"/new\"");
	(void)own_trace(f, 3, 1, 8, NULL);
	learn(f, 1001, 7, 7, 5);
	learn(f, 1002, 8, 8, 5);
	fanout_route_use(f->number, true, execute, f);
	emit(f, 10, 0, 1);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 1, 2, 1);
	/* The next is that of a program which may have changed its ids. */
	fanout_route_use(f->number, false, NULL, NULL);
	emit(f, 11, 0, 1);
	(void)expect(f, 0, 1, 1);
	expect_nothing(f);
	emit(f, 12, 0, 2);
	(void)expect(f, 1, 3, 2);
	expect_nothing(f);
}

/* A consumer that does not read loses its own events, told and counted; the other one loses nothing. */
static void a_full_ring_is_its_own_loss(void **state)
{
	struct fixture *f = *state;
	struct trace *slow = live_trace(f, 1, 0, "n != 3"), *quick = live_trace(f, 2, 1, NULL);
	const struct record_header *record;
	uint64_t made = 0, delivered = 0, lost = 0;
	struct ledger_trace ledger;

	while (fanout_trace_ledger(slow).lost_ring < 10) {
		emit(f, 10 + made, 0, (int32_t)(made % 5));
		(void)expect(f, 1, 2, (int32_t)(made % 5));
		made++;
	}
	ledger = fanout_trace_ledger(slow);
	assert_int_equal(ledger.decoded, made);
	/* Every fifth, beginning with the fourth. */
	assert_int_equal(ledger.filtered, (made + 1) / 5);
	assert_int_equal(ledger.decoded, ledger.delivered + ledger.filtered + ledger.lost_ring);
	assert_ledger(quick, made, 0, 0);
	while ((record = take(f, 0)) != NULL) {
		struct record_lost told;

		if (record->kind == RECORD_EVENT) {
			delivered++;
			continue;
		}
		assert_int_equal(record->kind, RECORD_LOST);
		memcpy(&told, record + 1, sizeof(told));
		assert_int_equal(told.source, LOST_RING);
		lost += told.count;
	}
	assert_int_equal(delivered, ledger.delivered);
	assert_int_equal(lost, ledger.lost_ring);
}

static void misses_of_a_probe_count_from_the_trace_on(void **state)
{
	struct fixture *f = *state;
	struct trace *trace;

	f->number->missed = 5;
	trace = live_trace(f, 1, 0, NULL);
	assert_int_equal(fanout_trace_ledger(trace).missed, 0);
	f->number->missed = 12;
	assert_int_equal(fanout_trace_ledger(trace).missed, 7);
	/* Names that begin alike are others'. */
	assert_ptr_equal(fanout_route_named(&f->fanout, "number", 6), f->number);
	assert_null(fanout_route_named(&f->fanout, "numbers", 7));
	assert_null(fanout_route_named(&f->fanout, "numb", 4));
}

static void settle(struct route *route, uint64_t hits, uint64_t lost)
{
	struct kept kept = { .lost = lost };

	/* More than there is room for at first; the last of them counts. */
	for (uint64_t more = 20; more--;)
		assert_int_equal(kept_add(&kept, route, hits + more), 0);
	kept_settle(&kept);
	kept_release(&kept);
}

/* What the kernel counted and did not record. */
static void hits_are_recorded_or_kept_away(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n != 3");
	struct ledger_kept all;

	/* Nothing has been counted yet. */
	assert_int_equal(fanout_trace_ledger(trace).kept_away, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_UPROBE, 2);
	emit(f, 10, 0, 3);
	emit(f, 11, 0, 4);
	settle(f->number, 12, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 10);
	kept_sum(&f->fanout, &all);
	assert_int_equal(all.hits, 10);
	assert_int_equal(all.probes, 1);
	assert_int_equal(all.others, 0);
	/* The counts are older than the events. */
	settle(f->number, 1, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 0);
	/* What came while nobody had a trace was recorded, too. */
	fanout_trace_remove(trace);
	emit(f, 12, 0, 5);
	trace = live_trace(f, 2, 0, NULL);
	settle(f->number, 12, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 9);
	/* An event that was lost may have been one of these. */
	settle(f->number, 12, 3);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, LEDGER_UNKNOWN);
	kept_sum(&f->fanout, &all);
	assert_int_equal(all.hits + all.probes, 0);
	assert_int_equal(all.others, 1);
	/* Counted at the entry, recorded at the return; not counted at all. */
	kept_begin(f->number, PROBE_URETPROBE, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_TRACEPOINT, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_KRETPROBE, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, 9);
}

/* ---- rings that are written to ---- */

/* Each is published once, and one that goes away is forgotten. */
static void dirty_rings(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	(void)live_trace(f, 2, 1, NULL);
	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	assert_ptr_equal(f->fanout.dirty, &f->outlets[0]);
	assert_ptr_equal(f->outlets[0].next_dirty, &f->outlets[1]);
	assert_null(f->outlets[1].next_dirty);
	fanout_forget(&f->fanout, &f->outlets[1]);
	assert_ptr_equal(f->fanout.dirty, &f->outlets[0]);
	assert_null(f->outlets[0].next_dirty);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
	assert_null(f->fanout.dirty);
	emit(f, 20, 0, 3);
	assert_true(f->outlets[0].dirty);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
}

/* The last before the process sleeps, behind which nothing may come for long: that a trace is disabled, as here. */
static void due_before_sleep(void **state)
{
	struct fixture *f = *state;
	const struct record_throttled why = { .rate = 1000, .count = 1001 };
	const struct record_header *record = NULL;
	struct record_throttled told;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 10, 0, 1);
	fanout_publish(&f->fanout);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(record->kind, RECORD_EVENT);
	assert_true(ring_reader_prepare_sleep(&f->readers[0]));
	outlet_throttled(&f->outlets[0], 1, 10, &why);
	fanout_touch(&f->fanout, &f->outlets[0]);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
	assert_int_equal(wake_clear(f->readers[0].wake_fd), 0);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(record->kind, RECORD_THROTTLED);
	memcpy(&told, record + 1, sizeof(told));
	assert_int_equal(told.count, 1001);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 0);
}

/* Consumers that sleep again and again are woken in turn, and no more often than is good for all. */
static void woken_in_turn(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;
	const uint64_t now = 1000000000;
	uint64_t due = UINT64_MAX;
	unsigned int woken = 0;

	(void)live_trace(f, 1, 0, NULL);
	(void)live_trace(f, 2, 1, NULL);
	while (due == UINT64_MAX) {
		for (int i = 0; i < CONSUMERS; i++) {
			while (ring_reader_next(&f->readers[i], &record) == 1)
				;
			assert_true(ring_reader_prepare_sleep(&f->readers[i]));
		}
		emit(f, 10 + woken, 0, 1);
		fanout_publish(&f->fanout);
		due = fanout_wake(&f->fanout, now);
		for (int i = 0; i < CONSUMERS; i++)
			woken += wake_clear(f->readers[i].wake_fd) == 0;
		assert_in_range(woken, 1, 1000);
	}
	/* Who is left has its turn before who comes now. */
	assert_in_range(due, now + 1, now + 1000000);
	assert_true(fanout_wake(&f->fanout, due - 1) == due);
	assert_non_null(f->fanout.dirty);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 0);
	assert_true(ring_reader_prepare_sleep(&f->readers[0]));
	emit(f, 1000, 0, 1);
	fanout_publish(&f->fanout);
	assert_true(fanout_wake(&f->fanout, due) > due);
	assert_int_equal(wake_clear(f->readers[1].wake_fd), woken % 2 ? 0 : -EAGAIN);
	assert_int_equal(wake_clear(f->readers[0].wake_fd), woken % 2 ? -EAGAIN : 0);
	/* Nobody waits for long, whatever went before. */
	f->fanout.woken_until += 1000000000;
	due = fanout_wake(&f->fanout, due);
	assert_in_range(due, now + 1, now + 17000000);
	assert_true(fanout_wake(&f->fanout, due) == UINT64_MAX);
	assert_null(f->fanout.dirty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_events_of_the_owners_processes),
		TEST(executing_has_the_new_program),
		TEST(a_full_ring_is_its_own_loss),
		TEST(misses_of_a_probe_count_from_the_trace_on),
		TEST(hits_are_recorded_or_kept_away),
		TEST(dirty_rings),
		TEST(due_before_sleep),
		TEST(woken_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
