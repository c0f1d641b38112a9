/* The raw source on this kernel: what goes into the session's instance arrives, once, and costs
 * nothing while nothing happens. */
#include "session.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MARK "drain test mark"
/* ns, see test_pace */
#define FAST 250000

static const char *const plain_args[] = { "--router-user", "0", "--buffer-size", "1M", NULL };

struct marks {
	unsigned int seen, wanted;
	uint64_t sweep_after; /* wait until a sweep covers this time, too */
};

static void count_marks(void *context, const struct pool_entry *entry, const void *bytes)
{
	struct marks *marks = context;

	marks->seen += session_count(bytes, entry->length, MARK);
}

static bool marks_done(const struct session *session, void *context)
{
	const struct marks *marks = context;

	return marks->seen >= marks->wanted && session->sweep.time >= marks->sweep_after;
}

static uint64_t mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void write_marks(const struct session *session, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(session_write(session, "trace_marker", MARK "\n"), 0);
}

static void test_markers_arrive(void **state)
{
	struct marks marks = { .wanted = 3 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	assert_int_equal(session.welcome.source, SOURCE_RAW);
	assert_int_equal(session.welcome.flags, *state ? SESSION_FALLBACK : 0);
	/* The last one is older than the sweep that is published for it. */
	write_marks(&session, 2);
	marks.sweep_after = mono();
	write_marks(&session, 1);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	assert_int_equal(marks.seen, 3);
	assert_true(session.clocks >= 1);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 3);
	assert_int_equal(session.last_end, END_STOPPED);
	session_release(&session);
}

static void test_backlog_arrives(void **state)
{
	struct marks marks = { .wanted = 20000 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	/* More than the pool holds, before anybody reads it. */
	write_marks(&session, 20000);
	session_connect(&session);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	assert_int_equal(marks.seen, 20000);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 20000);
	session_release(&session);
}

static void test_stop_delivers_the_tail(void **state)
{
	struct marks marks = { .wanted = 0 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	write_marks(&session, 10000);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 10000);
	assert_null(session_read(&session, "trace_clock"));
	session_release(&session);
}

static unsigned long wakeups(pid_t pid)
{
	char path[64], line[256];
	unsigned long count = 0, total = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1 ||
			sscanf(line, "nonvoluntary_ctxt_switches: %lu", &count) == 1)
			total += count;
	}
	fclose(file);
	return total;
}

static void test_idle_costs_nothing(void **state)
{
	struct marks marks = { .wanted = 1 };
	struct session session;
	unsigned long before = 0;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	marks.sweep_after = mono();
	write_marks(&session, 1);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	/* It falls asleep some time, and then nothing wakes it. */
	for (int i = 0; i < 20; i++) {
		before = wakeups(session.reader);
		usleep(1000000);
		if (wakeups(session.reader) == before)
			break;
	}
	assert_int_equal(wakeups(session.reader), before);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* Everything that is there, without waiting: the first look at an empty stream ends it. */
static bool caught_up(const struct session *session, void *context)
{
	const struct free_head *head = session->pool.free.base;

	(void)context;
	return head->taken == ((const struct pool_head *)session->pool.pool.base)->filled;
}

/* However many events there are, the reader looks no more often than a few times in an interval: as long as they come
 * fast. Where a round takes longer than what counts as fast (LOAD_GAP of reader/source_raw.c), as on an emulated
 * machine, each may cause a look. */
static void test_pace(void **state)
{
	static const char *const args[] = { "--router-user", "0", "--buffer-size", "1M",
		"--interval", "20", NULL };
	struct session session;
	uint64_t begin, end, before, rounds = 0, pace = 5000000;

	(void)state;
	assert_true(session_start(&session, args));
	session_connect(&session);
	/* On a slow machine it has looked several times until here. */
	assert_true(session_read_until(&session, caught_up, NULL, NULL));
	before = session.sweeps;
	begin = mono();
	end = begin + 500000000;
	do {
		write_marks(&session, 10);
		assert_true(session_read_until(&session, caught_up, NULL, NULL));
		rounds++;
	} while (mono() < end);
	end = mono();
	if ((end - begin) / rounds > FAST / 2) {
		print_message("  a round took %" PRIu64 " us: too slow for the strict limit\n", (end - begin) / rounds / 1000);
		pace = FAST / 2;
	}
	assert_true(session.sweeps >= before + 2);
	/* Until it knows that they come fast, and at each try how it is to wait, it looks ten or twenty times more. */
	assert_true(session.sweeps - before <= (end - begin) / pace + 40);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

struct hoard {
	uint32_t slots[256];
	unsigned int count;
	unsigned int of_cpu[2];
	uint64_t busy_zero, sweeps_since;
};

/* Takes entries and returns no slot. False when there is none. */
static bool hoard_one(struct session *session, struct hoard *hoard)
{
	struct pool_entry entry;

	if (pool_reader_next(&session->pool, &entry) != 1)
		return false;
	if (entry.kind == POOL_DATA) {
		assert_true(hoard->count < 256 && entry.cpu < 2);
		hoard->slots[hoard->count++] = entry.slot;
		hoard->of_cpu[entry.cpu]++;
	}
	hoard->busy_zero += entry.kind == POOL_BUSY && entry.cpu == 0;
	hoard->sweeps_since += entry.kind == POOL_SWEEP;
	return true;
}

/* A router that waits for word of one CPU before it can let go of the other's slots always gets it.
 */
static void test_no_cpu_starves_another(void **state)
{
	static const char *const args[] = { "--router-user", "0", "--buffer-size", "1M", "--pool",
		"64K", NULL };
	struct marks marks = { .wanted = UINT_MAX };
	struct hoard hoard = { .count = 0 };
	struct session session;
	cpu_set_t before;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_true(session_start(&session, args));
	session_connect(&session);
	run_on(0);
	write_marks(&session, 5000);
	/* Until the first CPU's data has no slot left, and word of the second comes all the same.
	 */
	while (!hoard.busy_zero || hoard.sweeps_since < 3) {
		if (!hoard_one(&session, &hoard))
			usleep(1000);
	}
	assert_true(hoard.of_cpu[0] >= 1 && hoard.count < session.pool.slot_count);
	run_on(1);
	write_marks(&session, 1);
	while (!hoard.of_cpu[1]) {
		if (!hoard_one(&session, &hoard))
			usleep(1000);
	}
	for (unsigned int i = 0; i < hoard.count; i++)
		pool_reader_return(&session.pool, hoard.slots[i]);
	assert_int_equal(pool_reader_wake(&session.pool), 0);
	/* The rest comes, too: what was hoarded wasn't counted. */
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_true(marks.seen > 0 && marks.seen < 5001);
	session_release(&session);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markers_arrive),
		cmocka_unit_test(test_backlog_arrives),
		cmocka_unit_test(test_stop_delivers_the_tail),
		cmocka_unit_test(test_idle_costs_nothing),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_no_cpu_starves_another),
		cmocka_unit_test_setup_teardown(test_markers_arrive, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_backlog_arrives, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_stop_delivers_the_tail, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_idle_costs_nothing, session_without_uring, session_with_uring),
	};

	if (!session_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
