/* Which daemons are killed at the end, and which are waited for. This program is the daemon, too. */
#include "consumers/cli/daemon.h"

#include "consumers/cli/monotonic.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* For something that takes no time of its own. */
#define PATIENCE  (60 * MONOTONIC_SECOND)
#define PAUSE_US  10000
#define HELD_US   300000

/* As one that waits for a lock in the kernel, until its kept descriptor is at its end: a parent that waits like this for its
 * child is in state D. */
static void be_held(void)
{
	char byte;

	if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0)
		(void)!read(DAEMON_KEPT_FD, &byte, 1);
	_exit(0);
}

static void be_still(void)
{
	for (;;)
		(void)pause();
}

static char state_of(pid_t pid)
{
	char path[32], text[512] = "";
	const char *name;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	name = strrchr(text, ')');
	assert_non_null(name);
	return name[2];
}

static void await_state(pid_t pid, char state)
{
	const uint64_t deadline = monotonic_now() + PATIENCE;

	while (state_of(pid) != state) {
		assert_true(monotonic_now() < deadline);
		(void)usleep(PAUSE_US);
	}
}

static void start(struct daemon *daemon, const char *what, int keep)
{
	char path[] = "/proc/self/exe", *argv[] = { path, (char *)what, NULL };

	assert_int_equal(daemon_spawn(daemon, "a daemon", argv, (struct daemon_fds){ .keep = keep, .errors = -1 }), 0);
}

static void test_one_that_the_kernel_holds_ends_by_itself(void **state)
{
	struct daemon daemon;
	int gate[2];
	pid_t opener;

	(void)state;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	start(&daemon, "held", gate[0]);
	await_state(daemon.pid, 'D');
	opener = fork();
	assert_true(opener >= 0);
	if (opener == 0) {
		(void)usleep(HELD_US);
		_exit(0);
	}
	(void)close(gate[1]);
	assert_int_equal(daemon_finish(&daemon, monotonic_now()), 0);
	(void)close(gate[0]);
}

static void test_one_that_stands_still_is_killed(void **state)
{
	struct daemon daemon;

	(void)state;
	start(&daemon, "still", -1);
	await_state(daemon.pid, 'S');
	assert_int_equal(daemon_finish(&daemon, monotonic_now()), 128 + SIGKILL);
	start(&daemon, "still", -1);
	assert_int_equal(kill(daemon.pid, SIGSTOP), 0);
	await_state(daemon.pid, 'T');
	assert_int_equal(daemon_finish(&daemon, monotonic_now()), 128 + SIGKILL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_the_kernel_holds_ends_by_itself),
		cmocka_unit_test(test_one_that_stands_still_is_killed),
	};

	if (argc > 1 && !strcmp(argv[1], "held"))
		be_held();
	if (argc > 1)
		be_still();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
