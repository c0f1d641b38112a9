#include "shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

struct pair {
	int wait, signal;
};

static short polled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_true(poll(&p, 1, 0) >= 0);
	return p.revents;
}

static void close_pair(const struct pair *pair)
{
	assert_int_equal(close(pair->wait) | close(pair->signal), 0);
}

static void one_signal_per_sleep(void **state)
{
	uint64_t sleeps = UINT64_MAX, signalled = UINT64_MAX;

	(void)state;
	assert_false(wake_needed(&sleeps, &signalled));
	wake_prepare_sleep(&sleeps);
	assert_int_equal(sleeps, 0);
	assert_true(wake_needed(&sleeps, &signalled));
	assert_false(wake_needed(&sleeps, &signalled));
	wake_prepare_sleep(&sleeps);
	wake_prepare_sleep(&sleeps);
	assert_true(wake_needed(&sleeps, &signalled));
	assert_false(wake_needed(&sleeps, &signalled));
}

static void check_signals(const struct pair *pair)
{
	assert_int_equal(fcntl(pair->wait, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(pair->signal, F_GETFD), FD_CLOEXEC);
	assert_int_equal(wake_clear(pair->wait), -EAGAIN);
	assert_int_equal(polled(pair->wait), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wake_signal(pair->signal), 0);
	assert_int_equal(polled(pair->wait), POLLIN);
	assert_int_equal(wake_clear(pair->wait), 0);
	assert_int_equal(wake_clear(pair->wait), -EAGAIN);
	assert_int_equal(polled(pair->wait), 0);
}

static void signals_are_taken_back_at_once(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(wake_create(&pair.wait, &pair.signal), 0);
	check_signals(&pair);
	close_pair(&pair);
	assert_int_equal(wake_create_lasting(&pair.wait, &pair.signal), 0);
	check_signals(&pair);
	close_pair(&pair);
}

/* What an eventfd could not promise: whatever the sleeper does to its descriptor, and however full
 * it is, the waker goes on. A waker that blocked would hang this test. */
static void check_never_blocks(const struct pair *pair)
{
	int flags = fcntl(pair->wait, F_GETFL);
	int times = 0;

	assert_int_equal(fcntl(pair->wait, F_SETFL, flags & ~O_NONBLOCK), 0);
	assert_true(fcntl(pair->signal, F_GETFL) & O_NONBLOCK);
	for (; times < 200000; times++)
		assert_int_equal(wake_signal(pair->signal), 0);
	assert_int_equal(polled(pair->wait), POLLIN);
	assert_int_equal(wake_clear(pair->wait), 0);
}

static void the_waker_never_blocks(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(wake_create(&pair.wait, &pair.signal), 0);
	check_never_blocks(&pair);
	close_pair(&pair);
	assert_int_equal(wake_create_lasting(&pair.wait, &pair.signal), 0);
	check_never_blocks(&pair);
	close_pair(&pair);
}

static void a_dead_waker_is_seen(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(wake_create(&pair.wait, &pair.signal), 0);
	assert_int_equal(wake_signal(pair.signal), 0);
	assert_int_equal(close(pair.signal), 0);
	assert_int_equal(wake_clear(pair.wait), 0);
	assert_int_equal(wake_clear(pair.wait), -EPIPE);
	assert_true(polled(pair.wait) & POLLHUP);
	assert_int_equal(close(pair.wait), 0);
}

/* SIGPIPE has its default here, which would end this program. */
static void a_dead_sleeper_does_no_harm(void **state)
{
	struct pair pair;
	int peer;

	(void)state;
	assert_int_equal(wake_create(&pair.wait, &pair.signal), 0);
	peer = dup(pair.wait);
	assert_int_equal(close(peer), 0);
	assert_int_equal(wake_signal(pair.signal), 0);
	close_pair(&pair);
}

static void lasting_ends_outlive_each_other(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(wake_create_lasting(&pair.wait, &pair.signal), 0);
	assert_int_equal(close(pair.wait), 0);
	assert_int_equal(wake_signal(pair.signal), 0);
	assert_int_equal(close(pair.signal), 0);
	assert_int_equal(wake_create_lasting(&pair.wait, &pair.signal), 0);
	assert_int_equal(close(pair.signal), 0);
	assert_int_equal(polled(pair.wait), 0);
	assert_int_equal(wake_clear(pair.wait), -EAGAIN);
	assert_int_equal(close(pair.wait), 0);
}

static void errors_are_told(void **state)
{
	(void)state;
	assert_int_equal(wake_signal(-1), -EBADF);
	assert_int_equal(wake_clear(-1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_signal_per_sleep),
		cmocka_unit_test(signals_are_taken_back_at_once),
		cmocka_unit_test(the_waker_never_blocks),
		cmocka_unit_test(a_dead_waker_is_seen),
		cmocka_unit_test(a_dead_sleeper_does_no_harm),
		cmocka_unit_test(lasting_ends_outlive_each_other),
		cmocka_unit_test(errors_are_told),
	};

	return cmocka_run_group_tests_name("wake", tests, NULL, NULL);
}
