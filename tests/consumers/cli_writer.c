/* Whole lines, and what happens when nobody takes them. */
#include "consumers/cli/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void write_line(struct writer *writer, char letter, size_t length)
{
	for (size_t i = 0; i < length; i++)
		writer_char(writer, letter);
	writer_end_line(writer);
}

static void only_whole_lines_go_out(void **state)
{
	char got[64];
	int ends[2];
	struct writer writer;

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(writer_open(&writer, ends[1]), 0);
	write_line(&writer, 'a', 3);
	writer_text(&writer, "unfinished");
	assert_int_equal(writer_flush(&writer), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 4);
	assert_memory_equal(got, "aaa\n", 4);
	writer_end_line(&writer);
	assert_int_equal(writer_flush(&writer), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 11);
	assert_memory_equal(got, "unfinished\n", 11);
	writer_close(&writer);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* Each write to a pipe ends at a line's end, so that another writer's lines can't come in between. */
static void writes_to_a_pipe_end_at_lines(void **state)
{
	char got[PIPE_BUF];
	int ends[2];
	struct writer writer;
	ssize_t n;

	(void)state;
	/* In packet mode a read returns one write. */
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_DIRECT), 0);
	assert_int_equal(writer_open(&writer, ends[1]), 0);
	for (int i = 0; i < 100; i++)
		write_line(&writer, 'b', 70);
	assert_int_equal(writer_flush(&writer), 0);
	for (size_t left = 7100; left > 0; left -= (size_t)n) {
		n = read(ends[0], got, sizeof(got));
		assert_true(n > 0);
		assert_int_equal(got[n - 1], '\n');
	}
	writer_close(&writer);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void a_long_line_is_whole(void **state)
{
	char path[] = "/tmp/test-cli-writer-XXXXXX";
	int fd = mkstemp(path);
	struct writer writer;
	char *got = malloc(300001);

	(void)state;
	assert_non_null(got);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(writer_open(&writer, fd), 0);
	write_line(&writer, 'c', 300000);
	assert_int_equal(writer_flush(&writer), 0);
	assert_int_equal(pread(fd, got, 300001, 0), 300001);
	for (size_t i = 0; i < 300000; i++)
		assert_int_equal(got[i], 'c');
	assert_int_equal(got[300000], '\n');
	writer_close(&writer);
	(void)close(fd);
	free(got);
}

static void a_full_disk_is_told_once_and_nothing_breaks(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	struct writer writer;

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(writer_open(&writer, fd), 0);
	write_line(&writer, 'd', 10);
	assert_int_equal(writer_flush(&writer), -ENOSPC);
	/* Far more than the buffer holds. */
	for (int i = 0; i < 10; i++)
		write_line(&writer, 'd', 1000000);
	assert_int_equal(writer_error(&writer), -ENOSPC);
	assert_true(writer.size < 1000000);
	writer_close(&writer);
	(void)close(fd);
}

static int give_up(void *context, int fd)
{
	(void)fd;
	(*(int *)context)++;
	return -ECANCELED;
}

static void the_wait_can_give_up(void **state)
{
	struct writer writer;
	int ends[2], calls = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(writer_open(&writer, ends[1]), 0);
	writer.wait = give_up;
	writer.wait_context = &calls;
	write_line(&writer, 'e', 10);
	assert_int_equal(writer_flush(&writer), -ECANCELED);
	assert_int_equal(writer_flush(&writer), -ECANCELED);
	assert_int_equal(calls, 1);
	writer_close(&writer);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* A reader that takes its time, and a pipe that is full again and again. */
static void a_slow_reader_gets_everything(void **state)
{
	struct writer writer;
	int ends[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		size_t total = 0;
		char got[1000];
		ssize_t n;

		(void)close(ends[1]);
		while ((n = read(ends[0], got, sizeof(got))) > 0)
			total += (size_t)n;
		_exit(total == 1010000 ? 0 : 1);
	}
	(void)close(ends[0]);
	assert_int_equal(writer_open(&writer, ends[1]), 0);
	for (int i = 0; i < 10000; i++)
		write_line(&writer, 'f', 100);
	assert_int_equal(writer_flush(&writer), 0);
	writer_close(&writer);
	(void)close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_whole_lines_go_out),
		cmocka_unit_test(writes_to_a_pipe_end_at_lines),
		cmocka_unit_test(a_long_line_is_whole),
		cmocka_unit_test(a_full_disk_is_told_once_and_nothing_breaks),
		cmocka_unit_test(the_wait_can_give_up),
		cmocka_unit_test(a_slow_reader_gets_everything),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
