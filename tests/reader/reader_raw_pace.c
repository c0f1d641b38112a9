/* When the raw source looks next, by a clock of the test's own: FIFOs stand for the CPUs' files. */
#include "reader/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CPUS     2
#define SUBBUF   UINT64_C(4096)
#define SLOTS    64
#define MS       UINT64_C(1000000)
#define INTERVAL (4 * MS)

struct bench {
	char folder[sizeof("/tmp/tracefan-pace-XXXXXX")];
	struct instance instance;
	struct loop loop;
	struct pool_writer pool;
	struct source *source;
	int ends[CPUS];
};

static uint64_t now; /* what the clock says */
static int absent = -1; /* the file of a CPU that has never been online */

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size)
{
	if (fd != absent)
		return __real_read(fd, data, size);
	errno = ENODEV;
	return -1;
}

uint64_t __wrap_loop_now(void);
uint64_t __wrap_loop_now(void)
{
	return now;
}

/* Of a ring that takes nothing. */
int __wrap_loop_read_queue(struct loop *loop, const struct loop_read *read);
int __wrap_loop_read_queue(struct loop *loop, const struct loop_read *read)
{
	(void)loop;
	(void)read;
	return -EAGAIN;
}

/* The path of a CPU's file; `file` is empty for its folder. */
static const char *path_of(const struct bench *bench, unsigned int cpu, const char *file)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/per_cpu/cpu%u%s", bench->folder, cpu, file);
	return path;
}

static void make_files(struct bench *bench)
{
	assert_non_null(mkdtemp(strcpy(bench->folder, "/tmp/tracefan-pace-XXXXXX")));
	bench->instance = (struct instance){ .cpu_count = CPUS, .subbuf_size = SUBBUF, .buffer_size = 1024 * SUBBUF };
	bench->instance.dir = open(bench->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(bench->instance.dir >= 0);
	assert_int_equal(mkdirat(bench->instance.dir, "per_cpu", 0700), 0);
	for (unsigned int i = 0; i < CPUS; i++) {
		assert_int_equal(mkdir(path_of(bench, i, ""), 0700), 0);
		assert_int_equal(mkfifo(path_of(bench, i, "/trace_pipe_raw"), 0600), 0);
	}
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	now = 1000 * MS;
	make_files(bench);
	assert_int_equal(pool_writer_create(SLOTS, SUBBUF, &bench->pool), 0);
	assert_int_equal(loop_open(false, CPUS + 2, &bench->loop), 0);
	assert_int_equal(source_raw_open(&bench->instance, &bench->loop, &bench->pool, INTERVAL, true, &bench->source), 0);
	for (unsigned int i = 0; i < CPUS; i++) {
		bench->ends[i] = open(path_of(bench, i, "/trace_pipe_raw"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		assert_true(bench->ends[i] >= 0);
		assert_true(fcntl(bench->ends[i], F_SETPIPE_SZ, SLOTS * SUBBUF) >= 0);
	}
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	source_close(bench->source);
	loop_close(&bench->loop);
	pool_writer_release(&bench->pool);
	for (unsigned int i = 0; i < CPUS; i++) {
		(void)close(bench->ends[i]);
		(void)unlink(path_of(bench, i, "/trace_pipe_raw"));
		(void)rmdir(path_of(bench, i, ""));
	}
	(void)unlinkat(bench->instance.dir, "per_cpu", AT_REMOVEDIR);
	(void)close(bench->instance.dir);
	(void)rmdir(bench->folder);
	free(bench);
	return 0;
}

/* Twenty sub-buffers of the CPUs below `cpus`, more than a sweep moves that is no load. */
static void put_much_of(const struct bench *bench, unsigned int cpus)
{
	uint8_t bytes[SUBBUF] = { 0 };

	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(write(bench->ends[i % cpus], bytes, sizeof(bytes)), SUBBUF);
}

static void put_much(const struct bench *bench)
{
	put_much_of(bench, CPUS);
}

/* As if a CPU's file had woken the reader, or its deadline had. Returns how long it sleeps at the most. */
static uint64_t look(const struct bench *bench)
{
	assert_int_equal(source_flush(bench->source, NULL), 0);
	assert_int_equal(bench->source->ops->step(bench->source, now), 0);
	return bench->source->deadline == LOOP_NEVER ? LOOP_NEVER : bench->source->deadline - now;
}

/* How long it slept before says nothing of what comes now, and what comes after a burst must not wait for that. */
static void test_the_first_loaded_sweep_waits_for_one_interval(void **state)
{
	struct bench *bench = *state;

	assert_true(look(bench) == LOOP_NEVER);
	now += 10000 * MS;
	put_much(bench);
	assert_int_equal(look(bench), INTERVAL);
	assert_true(((struct raw *)bench->source)->loaded);
}

/* What came in the interval since does. */
static void test_the_next_one_waits_by_what_came(void **state)
{
	struct bench *bench = *state;

	test_the_first_loaded_sweep_waits_for_one_interval(state);
	now += INTERVAL;
	put_much(bench);
	assert_int_equal(look(bench), 2 * INTERVAL);
}

/* And after an interval without anything it waits for the kernel again. */
static void test_nothing_for_an_interval_ends_the_load(void **state)
{
	struct bench *bench = *state;

	test_the_first_loaded_sweep_waits_for_one_interval(state);
	now += INTERVAL;
	assert_true(look(bench) == LOOP_NEVER);
	assert_false(((struct raw *)bench->source)->loaded);
}

/* One that isn't there has nothing, so neither the sleep nor the end waits for it. */
static void test_a_cpu_that_is_absent_keeps_nobody_awake(void **state)
{
	struct bench *bench = *state;

	absent = ((struct raw *)bench->source)->cpus[1].fd;
	assert_true(look(bench) == LOOP_NEVER);
	put_much_of(bench, 1);
	assert_int_equal(look(bench), INTERVAL);
	now += INTERVAL;
	assert_true(look(bench) == LOOP_NEVER);
	bench->source->ops->stop(bench->source);
	for (int i = 0; i < 4; i++) {
		now += INTERVAL;
		assert_int_equal(bench->source->ops->step(bench->source, now), 0);
	}
	assert_true(bench->source->drained);
}

/* Whoever goes to sleep looks at the deadline alone, wherever the wake-up was taken: amid a control write, say, that another
 * part of the reader makes after its step. */
static void test_a_wake_up_is_due_at_once(void **state)
{
	struct bench *bench = *state;
	const uint8_t bytes[SUBBUF] = { 0 };

	assert_true(look(bench) == LOOP_NEVER);
	assert_int_equal(write(bench->ends[0], bytes, sizeof(bytes)), SUBBUF);
	assert_int_equal(loop_wait(&bench->loop, LOOP_NEVER), 0);
	assert_int_equal(bench->source->deadline, 0);
	assert_int_equal(bench->source->ops->step(bench->source, now), 0);
	assert_true(bench->source->deadline == LOOP_NEVER);
	assert_int_equal(((struct raw *)bench->source)->moved, 1);
}

static void ignore(void *context, short revents)
{
	(void)context;
	(void)revents;
}

/* Its files are not open yet, and what is must not be closed for them. */
static void test_a_start_that_fails_closes_nobodys_file(void **state)
{
	struct bench *bench = *state;
	struct loop_watch other = { .fd = STDERR_FILENO, .events = POLLIN, .ready = ignore };
	struct source *source = NULL;
	struct loop full;

	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_int_equal(loop_open(false, 1, &full), 0);
	assert_int_equal(loop_add(&full, &other), 0);
	assert_int_equal(source_raw_open(&bench->instance, &full, &bench->pool, INTERVAL, true, &source), -ENOSPC);
	loop_close(&full);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

/* The step that failed may have been one amid a control write, and nobody knows what became of its reads. */
static void test_who_failed_says_so_again(void **state)
{
	struct bench *bench = *state;
	const uint8_t bytes[SUBBUF] = { 0 };

	assert_int_equal(write(bench->ends[0], bytes, sizeof(bytes)), SUBBUF);
	bench->loop.uring = true;
	assert_int_equal(bench->source->ops->step(bench->source, now), -EAGAIN);
	bench->loop.uring = false;
	assert_int_equal(bench->source->ops->step(bench->source, now), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_first_loaded_sweep_waits_for_one_interval, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_next_one_waits_by_what_came, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_for_an_interval_ends_the_load, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_cpu_that_is_absent_keeps_nobody_awake, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_failed_says_so_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_wake_up_is_due_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_start_that_fails_closes_nobodys_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
