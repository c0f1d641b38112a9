/* Switching a probe that the kernel does not let be switched: files in a folder stand for tracefs's. */
#include "reader/probe.h"

#include "base/exit_status.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct bench {
	char folder[sizeof("/tmp/tracefan-switch-XXXXXX")];
	struct instance instance;
	struct probes probes;
	struct probe probe; /* whose event's files are missing */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int dir, fd;

	assert_non_null(bench);
	assert_non_null(mkdtemp(strcpy(bench->folder, "/tmp/tracefan-switch-XXXXXX")));
	dir = open(bench->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(mkdirat(dir, "options", 0700), 0);
	fd = openat(dir, "options/stacktrace", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, "0", 1) == 1);
	(void)close(fd);
	bench->instance.dir = dir;
	bench->probes = (struct probes){ .instance = &bench->instance, .first = &bench->probe };
	bench->probe = (struct probe){ .kind = PROBE_TRACEPOINT, .system = "no", .event = "such" };
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	(void)unlinkat(bench->instance.dir, "options/stacktrace", 0);
	(void)unlinkat(bench->instance.dir, "options", AT_REMOVEDIR);
	(void)close(bench->instance.dir);
	(void)rmdir(bench->folder);
	free(bench);
	return 0;
}

/* Or all other events had stacks behind them that nobody asked for. */
static void test_no_stacks_without_the_event(void **state)
{
	struct bench *bench = *state;
	struct control_failure failure;
	char *text = NULL;

	bench->probe.references = 1;
	bench->probe.stacks = CREATE_KERNEL_STACK;
	assert_int_equal(probe_set_enabled(&bench->probes, &bench->probe, true, &failure), EXIT_FAILED);
	assert_int_equal(tracedir_read(bench->instance.dir, "options/stacktrace", &text, NULL), 0);
	assert_string_equal(text, "0");
	assert_int_equal(bench->probes.stacks, 0);
	assert_int_equal(bench->probe.enables, 0);
	free(text);
}

/* Or the probe had an owner whom nobody knows. */
static void test_what_is_not_kept_is_not_referred_to(void **state)
{
	struct bench *bench = *state;
	struct control_failure failure;

	assert_int_equal(probe_keep(&bench->probes, &bench->probe, true, &failure), EXIT_FAILED);
	assert_int_equal(bench->probe.references, 0);
	assert_int_equal(probe_keep(&bench->probes, &bench->probe, false, &failure), EXIT_DONE);
	assert_int_equal(bench->probe.references, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_stacks_without_the_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_kept_is_not_referred_to, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
