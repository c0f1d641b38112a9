/* Coming back to a session whose router died, against routers of this test's own. */
#include "consumers/client/tracefan.h"
#include "tests/consumers/fake_router.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct fake_router router;
	struct tfan *tfan;
	struct tfan_trace *kernel, *user;
	char self[256];
	uint64_t before; /* CLOCK_MONOTONIC before anything was enabled */
};

/* The linker sends the library's calls here (--wrap): a signal may come in the midst of one. */
static bool interrupted;

int __real_poll(struct pollfd *fds, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *fds, nfds_t count, int milliseconds);

int __wrap_poll(struct pollfd *fds, nfds_t count, int milliseconds)
{
	if (!interrupted)
		return __real_poll(fds, count, milliseconds);
	interrupted = false;
	errno = EINTR;
	return -1;
}

static uint64_t now(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tfan_options options = TFAN_OPTIONS;
	char probe[512];

	fake_router_start(&f->router);
	options.session = FAKE_SESSION;
	options.directory = f->router.directory;
	options.program = "returner";
	options.include_self = true;
	options.interval = 3600 * 1000;
	assert_int_equal(tfan_open(&options, &f->tfan), 0);
	assert_true(readlink("/proc/self/exe", f->self, sizeof(f->self) - 1) > 0);
	(void)snprintf(probe, sizeof(probe), "user=uprobe:%s:main n=%%di", f->self);
	assert_int_equal(tfan_trace_create(f->tfan, "kernel=tracepoint:a:b if n == 1", &f->kernel), 0);
	assert_int_equal(tfan_trace_create(f->tfan, probe, &f->user), 0);
	f->before = now();
	assert_int_equal(tfan_trace_set_enabled(f->user, true), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tfan_close(f->tfan);
	fake_router_stop(&f->router);
	free(f);
	return 0;
}

static const struct tfan_event *next(struct fixture *f, enum tfan_kind kind)
{
	const struct tfan_event *event = NULL;
	int n;

	while ((n = tfan_next(f->tfan, &event)) == 0)
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
	if (n < 0)
		print_error("%s\n", tfan_failure(f->tfan)->message);
	assert_int_equal(n, 1);
	assert_int_equal(tfan_event_kind(event), kind);
	return event;
}

/* Notices that the router is gone, and greets the next one. */
static void lose(struct fixture *f)
{
	const struct tfan_event *event;
	struct pollfd fd = { .fd = tfan_fd(f->tfan), .events = POLLIN };

	fake_router_hang_up(&f->router);
	/* The first looks may still find something to take back; then there is nothing to be woken by. */
	do {
		int n = tfan_next(f->tfan, &event);

		if (n)
			print_error("%s\n", tfan_failure(f->tfan)->message);
		assert_int_equal(n, 0);
	} while (poll(&fd, 1, 0) == 1);
	assert_int_equal(tfan_next(f->tfan, &event), 0);
}

static void find(struct fixture *f)
{
	fake_router_succeed(&f->router);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
}

static uint16_t request(struct fixture *f, size_t i, uint64_t *ret_id)
{
	uint16_t type;

	pthread_mutex_lock(&f->router.lock);
	assert_true(i < f->router.log_count);
	type = f->router.log[i];
	*ret_id = f->router.log_ids[i];
	pthread_mutex_unlock(&f->router.lock);
	return type;
}

static void everything_is_made_again(void **state)
{
	static const uint16_t types[] = { CONTROL_HELLO, CONTROL_ATTACH, CONTROL_CREATE, CONTROL_SCHEMA, CONTROL_CREATE,
		CONTROL_SCHEMA, CONTROL_SET_ENABLED, CONTROL_RESUMED };
	struct fixture *f = *state;
	uint64_t kernel = tfan_trace_id(f->kernel), user = tfan_trace_id(f->user), id;
	const struct tfan_event *event;

	assert_int_equal(tfan_trace_set_filter(f->kernel, "n == 2"), 0);
	assert_int_equal(tfan_set_filter(f->tfan, "n < 9"), 0);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &event), 0);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(request(f, i, &id), types[i]);
	assert_int_equal(f->router.attach.flags, ATTACH_RESUME | ATTACH_INCLUDE_SELF);
	/* Nothing was seen, so the place is that of the enabling. */
	assert_true(f->router.attach.seen_time >= f->before && f->router.attach.seen_time <= now());
	/* The last that was made: the probe in this program, by its open file. */
	assert_int_equal(f->router.create.trace_id, user);
	assert_string_equal(f->router.create.name, "user");
	assert_string_equal(f->router.create.fetch, "n=%di");
	assert_string_equal(f->router.create.filter, "n < 9");
	assert_int_equal(f->router.create.flags, CREATE_LENIENT);
	assert_string_equal(f->router.target, f->self);
	assert_int_equal(request(f, 6, &id), CONTROL_SET_ENABLED);
	assert_int_equal(id, user);
	assert_int_equal(tfan_trace_id(f->kernel), kernel);
	/* It is an ordinary connection again. */
	assert_int_equal(tfan_trace_set_enabled(f->kernel, true), 0);
	fake_router_event(&f->router, user, now(), 5);
	fake_router_publish(&f->router);
	assert_ptr_equal(tfan_event_trace(next(f, TFAN_EVENT)), f->user);
}

static void what_is_known_is_passed_over(void **state)
{
	struct fixture *f = *state;
	uint64_t user = tfan_trace_id(f->user), kernel = tfan_trace_id(f->kernel), t = now(), later;
	struct record_lost gap = { .source = LOST_READER, .cpu = RECORD_CPU_NONE, .count = 0 };
	struct tfan_ledger ledger;
	struct tfan_lost lost;
	int64_t n;

	fake_router_event(&f->router, user, t, 1);
	fake_router_event(&f->router, user, t + 1, 2);
	fake_router_event(&f->router, user, t + 1, 3);
	fake_router_publish(&f->router);
	for (int i = 0; i < 2; i++)
		(void)next(f, TFAN_EVENT);
	/* What its router published before it died is read before it is left. */
	fake_router_hang_up(&f->router);
	assert_int_equal(tfan_event_i64(next(f, TFAN_EVENT), 1, &n), 0);
	assert_int_equal(n, 3);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	assert_int_equal(f->router.attach.seen_time, t + 1);
	assert_int_equal(f->router.attach.seen_cpu, 1);
	assert_int_equal(tfan_trace_set_enabled(f->kernel, true), 0);
	later = now();
	fake_router_record(&f->router, RECORD_GAP, 0, t + 1, &gap, sizeof(gap));
	/* Two of three at the place are known. */
	fake_router_event(&f->router, user, t + 1, 2);
	fake_router_event(&f->router, user, t + 1, 3);
	fake_router_event(&f->router, user, t + 1, 4);
	fake_router_event(&f->router, user, later, 5);
	fake_router_event(&f->router, kernel, later + 1, 6);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_event_lost(next(f, TFAN_GAP), &lost), 0);
	assert_int_equal(lost.count, 0);
	assert_true(lost.counted);
	for (int i = 4; i <= 6; i++) {
		assert_int_equal(tfan_event_i64(next(f, TFAN_EVENT), 1, &n), 0);
		assert_int_equal(n, i);
	}
	/* The new router goes on from what was returned, and counts those once more that were passed over. */
	assert_int_equal(f->router.create.carried.delivered, 3);
	f->router.stats = (struct ledger_trace){ .decoded = 9, .delivered = 7, .filtered = 1, .lost_ring = 1 };
	assert_int_equal(tfan_trace_ledger(f->user, &ledger), 0);
	assert_int_equal(ledger.decoded, 7);
	assert_int_equal(ledger.delivered, 5);
	assert_int_equal(ledger.filtered, 1);
	assert_int_equal(ledger.lost_ring, 1);
}

static void expect_number(struct fixture *f, int64_t expected)
{
	int64_t n;

	assert_int_equal(tfan_event_i64(next(f, TFAN_EVENT), 1, &n), 0);
	assert_int_equal(n, expected);
}

/* A single event is a place, too, and one of another CPU at its time is another event. */
static void a_place_is_of_a_cpu(void **state)
{
	struct fixture *f = *state;
	uint64_t user = tfan_trace_id(f->user), t = now();

	fake_router_event(&f->router, user, t, 1);
	fake_router_publish(&f->router);
	expect_number(f, 1);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	assert_int_equal(f->router.attach.seen_time, t);
	f->router.cpu = 2;
	fake_router_event(&f->router, user, t, 2);
	f->router.cpu = 1;
	fake_router_event(&f->router, user, t, 1);
	fake_router_event(&f->router, user, t, 3);
	fake_router_publish(&f->router);
	expect_number(f, 2);
	expect_number(f, 3);
}

/* What is known goes by until an event in order lies behind all of it: behind the place that was seen, and behind the
 * last enabling. A late event says nothing of the order. */
static void the_passing_over_ends_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t user = tfan_trace_id(f->user), kernel = tfan_trace_id(f->kernel), t = now(), later;

	fake_router_event(&f->router, user, t, 1);
	fake_router_publish(&f->router);
	expect_number(f, 1);
	assert_int_equal(tfan_trace_set_enabled(f->kernel, true), 0);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	later = now();
	fake_router_event(&f->router, user, t + 1, 2);
	/* Of before it was enabled. */
	fake_router_event(&f->router, kernel, t + 2, 90);
	f->router.flags = RECORD_LATE;
	fake_router_event(&f->router, user, later, 3);
	f->router.flags = 0;
	fake_router_event(&f->router, kernel, t + 3, 91);
	fake_router_event(&f->router, kernel, later, 4);
	fake_router_publish(&f->router);
	for (int64_t n = 2; n <= 4; n++)
		expect_number(f, n);
}

/* A trace that was enabled after the place that was seen gets nothing of before. */
static void a_trace_begins_where_it_was_enabled(void **state)
{
	struct fixture *f = *state;
	uint64_t user = tfan_trace_id(f->user), kernel = tfan_trace_id(f->kernel), t = now();
	int64_t n;

	fake_router_event(&f->router, user, t, 1);
	fake_router_publish(&f->router);
	(void)next(f, TFAN_EVENT);
	assert_int_equal(tfan_trace_set_enabled(f->kernel, true), 0);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	fake_router_event(&f->router, kernel, t + 1, 2);
	fake_router_event(&f->router, user, t + 1, 3);
	fake_router_event(&f->router, kernel, now(), 4);
	fake_router_publish(&f->router);
	for (int i = 3; i <= 4; i++) {
		assert_int_equal(tfan_event_i64(next(f, TFAN_EVENT), 1, &n), 0);
		assert_int_equal(n, i);
	}
}

/* What the policy has disabled only its owner enables again. */
static void a_throttled_trace_stays_disabled(void **state)
{
	const struct record_throttled throttled = { .rate = 10, .count = 20 };
	struct fixture *f = *state;

	fake_router_record(&f->router, RECORD_THROTTLED, tfan_trace_id(f->user), now(), &throttled, sizeof(throttled));
	fake_router_publish(&f->router);
	(void)next(f, TFAN_THROTTLED);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CREATE), 2);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 0);
	assert_int_equal(tfan_trace_set_enabled(f->user, true), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 1);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 1);
}

/* Traces that wait for the state do so at the next router, too, and those that have had it don't. */
static void what_is_held_back_stays_so(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;
	struct fixture *f = *state;
	const struct tfan_event *event;

	tfan_close(f->tfan);
	options.session = FAKE_SESSION;
	options.directory = f->router.directory;
	options.await_state = true;
	assert_int_equal(tfan_open(&options, &f->tfan), 0);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:a:b", &f->user), 0);
	assert_int_equal(tfan_trace_set_enabled(f->user, true), 0);
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &event), 0);
	assert_int_equal(f->router.attach.flags, ATTACH_RESUME | ATTACH_HOLD);
	/* It can't be had, and is not awaited any more. */
	f->router.refuse_status = TFAN_FAILED;
	f->router.refuse_type = CONTROL_CAPTURE;
	assert_int_equal(tfan_capture_state(f->tfan, TFAN_WANT_PROCESSES), 0);
	while (tfan_next(f->tfan, &event) == 0)
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
	/* A later one is: what lies in the ring of a router that dies over it is read. */
	fake_router_event(&f->router, tfan_trace_id(f->user), now(), 1);
	fake_router_publish(&f->router);
	f->router.refuse_type = 0;
	f->router.die_at = CONTROL_CAPTURE;
	assert_int_equal(tfan_capture_state(f->tfan, TFAN_WANT_PROCESSES), 0);
	expect_number(f, 1);
	f->router.die_at = 0;
	lose(f);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &event), 0);
	assert_int_equal(f->router.attach.flags, ATTACH_RESUME);
}

/* Who only looks whether an answer has come does not wait for it, whatever the look is told. */
static void a_look_that_is_interrupted_waits_for_nothing(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;

	pthread_mutex_lock(&f->router.lock);
	f->router.refuse_status = TFAN_FAILED;
	f->router.refuse_type = CONTROL_CAPTURE;
	assert_int_equal(tfan_capture_state(f->tfan, TFAN_WANT_PROCESSES), 0);
	interrupted = true;
	assert_int_equal(tfan_next(f->tfan, &event), 0);
	assert_false(interrupted);
	pthread_mutex_unlock(&f->router.lock);
	while (tfan_next(f->tfan, &event) == 0)
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
	lose(f);
	interrupted = true;
	assert_int_equal(tfan_next(f->tfan, &event), 0);
	assert_false(interrupted);
}

static void requests_wait_for_nobody(void **state)
{
	struct fixture *f = *state;
	struct tfan_ledger ledger;
	struct tfan_trace *trace;
	uint64_t id;

	lose(f);
	assert_int_equal(tfan_trace_ledger(f->user, &ledger), -EAGAIN);
	assert_int_equal(tfan_failure(f->tfan)->category, TFAN_BUSY);
	assert_int_equal(tfan_trace_create(f->tfan, "kprobe:x", &trace), -EAGAIN);
	/* What is closed meanwhile is not made again. */
	tfan_trace_close(f->kernel);
	find(f);
	(void)tfan_next(f->tfan, &(const struct tfan_event *){ NULL });
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CREATE), 1);
	assert_int_equal(request(f, 2, &id), CONTROL_CREATE);
	assert_int_equal(tfan_trace_ledger(f->user, &ledger), 0);
	assert_ptr_equal(tfan_trace_at(f->tfan, 0), f->user);
}

static void a_flush_that_was_not_answered_is_asked_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tfan_flush(f->tfan), 0);
	(void)next(f, TFAN_FLUSHED);
	/* The record that marks this one's place is lost with its router's ring. */
	f->router.swallow_flush = true;
	assert_int_equal(tfan_flush(f->tfan), 0);
	f->router.swallow_flush = false;
	lose(f);
	find(f);
	(void)next(f, TFAN_FLUSHED);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_FLUSH), 1);
}

static void a_successor_that_dies_too(void **state)
{
	struct fixture *f = *state;
	uint64_t user = tfan_trace_id(f->user);

	lose(f);
	f->router.die_at = CONTROL_CREATE;
	find(f);
	/* It hung up half way; the one after it serves. */
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	pthread_mutex_lock(&f->router.lock);
	f->router.die_at = 0;
	pthread_mutex_unlock(&f->router.lock);
	find(f);
	assert_int_equal(tfan_next(f->tfan, &(const struct tfan_event *){ NULL }), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_RESUMED), 1);
	fake_router_event(&f->router, user, now(), 1);
	fake_router_publish(&f->router);
	(void)next(f, TFAN_EVENT);
}

static void assert_gone(struct fixture *f, int error, const char *words)
{
	const struct tfan_event *event;
	int n;

	while ((n = tfan_next(f->tfan, &event)) == 0)
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
	assert_int_equal(n, -error);
	if (!strstr(tfan_failure(f->tfan)->message, words))
		print_error("%s\n", tfan_failure(f->tfan)->message);
	assert_non_null(strstr(tfan_failure(f->tfan)->message, words));
	assert_int_equal(tfan_next(f->tfan, &event), -error);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
}

static void a_successor_that_refuses(void **state)
{
	struct fixture *f = *state;

	lose(f);
	f->router.refuse_type = CONTROL_CREATE;
	f->router.refuse_status = TFAN_NOT_PERMITTED;
	f->router.refuse.error = EPERM;
	(void)control_text(f->router.refuse.message, sizeof(f->router.refuse.message), "the policy has changed");
	find(f);
	assert_gone(f, EPERM, "the policy has changed");
}

static void other_fields_than_before(void **state)
{
	struct fixture *f = *state;

	lose(f);
	free(f->router.schema);
	fake_schema(true, &f->router.schema, &f->router.schema_size);
	find(f);
	assert_gone(f, EPROTO, "other fields");
}

static void nobody_holds_the_place(void **state)
{
	struct fixture *f = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s/consumers.sock", f->router.directory, FAKE_SESSION);
	assert_int_equal(unlink(path), 0);
	fake_router_hang_up(&f->router);
	assert_gone(f, ECONNRESET, "is gone");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_is_made_again),
		TEST(what_is_known_is_passed_over),
		TEST(a_place_is_of_a_cpu),
		TEST(the_passing_over_ends_in_order),
		TEST(a_trace_begins_where_it_was_enabled),
		TEST(a_throttled_trace_stays_disabled),
		TEST(what_is_held_back_stays_so),
		TEST(a_look_that_is_interrupted_waits_for_nothing),
		TEST(requests_wait_for_nobody),
		TEST(a_flush_that_was_not_answered_is_asked_again),
		TEST(a_successor_that_dies_too),
		TEST(a_successor_that_refuses),
		TEST(other_fields_than_before),
		TEST(nobody_holds_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
