#include "base/log.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* Standard error becomes a socket that keeps packets apart, so that each write(2) is seen as one. */
struct capture {
	int here, old;
};

static void capture_begin(struct capture *capture)
{
	int pair[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), errno);
	capture->old = dup(STDERR_FILENO);
	assert_true(capture->old >= 0);
	assert_int_equal(dup2(pair[1], STDERR_FILENO), STDERR_FILENO);
	(void)close(pair[1]);
	capture->here = pair[0];
}

static void capture_end(struct capture *capture)
{
	(void)dup2(capture->old, STDERR_FILENO);
	(void)close(capture->old);
	(void)close(capture->here);
}

/* The next write, as a string; "" when there was none. */
static const char *capture_next(struct capture *capture, char *text, size_t size)
{
	ssize_t n = recv(capture->here, text, size - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* Logs `given` as a note and compares the one line that is written. */
static void check_text(const char *given, const char *expected)
{
	struct capture capture;
	char line[8192], next[64];

	capture_begin(&capture);
	log_write(LOG_NOTE, "%s", given);
	(void)capture_next(&capture, line, sizeof(line));
	(void)capture_next(&capture, next, sizeof(next));
	capture_end(&capture);
	assert_string_equal(line, expected);
	assert_string_equal(next, "");
}

static void escapes_control_characters(void **state)
{
	(void)state;
	log_open("prog", LOG_NOTE);
	check_text("plain", "prog: plain\n");
	check_text("", "prog: \n");
	check_text("a\nprog: error: forged", "prog: a\\x0aprog: error: forged\n");
	check_text("\x1b[2J\x7f\t", "prog: \\x1b[2J\\x7f\\x09\n");
	check_text("caf\xc3\xa9 \xe2\x82\xac", "prog: caf\xc3\xa9 \xe2\x82\xac\n");
	/* CSI in its C1 form, which a UTF-8 terminal obeys. */
	check_text("\xc2\x9b" "2J", "prog: \\xc2\\x9b2J\n");
	check_text("\xc2", "prog: \xc2\n");
}

static off_t log_size(int fd)
{
	struct stat st;

	assert_return_code(fstat(fd, &st), errno);
	return st.st_size;
}

/* A file that nobody looks after: it is emptied, and that is told; without a limit it grows. */
static void a_full_file_begins_anew(void **state)
{
	int file = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600), old = dup(STDERR_FILENO);
	char text[4096] = "";

	(void)state;
	assert_true(file >= 0 && old >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	(void)setenv(LOG_LIMIT, "1000", 1);
	log_open("prog", LOG_NOTE);
	for (int i = 0; i < 100; i++) {
		log_note("line %d", i);
		assert_in_range(log_size(file), 1, 1000);
	}
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	(void)unsetenv(LOG_LIMIT);
	log_open("prog", LOG_NOTE);
	for (int i = 0; i < 200; i++)
		log_note("line %d", i);
	(void)dup2(old, STDERR_FILENO);
	(void)close(old);
	assert_true(log_size(file) > 2000);
	(void)close(file);
	assert_int_equal(strncmp(text, "prog: the log was full, at ", 27), 0);
	assert_non_null(strstr(text, " bytes, and begins anew\nprog: line "));
	assert_string_equal(text + strlen(text) - 14, "prog: line 99\n");
}

static void names_levels_and_obeys_the_limit(void **state)
{
	struct capture capture;
	char line[256];

	(void)state;
	log_open("prog", LOG_WARNING);
	capture_begin(&capture);
	log_error("no %s", "room");
	log_warning("%d left", 3);
	log_note("not shown");
	log_debug("not shown");
	assert_string_equal(capture_next(&capture, line, sizeof(line)), "prog: error: no room\n");
	assert_string_equal(capture_next(&capture, line, sizeof(line)), "prog: warning: 3 left\n");
	assert_string_equal(capture_next(&capture, line, sizeof(line)), "");
	log_open("prog", LOG_DEBUG);
	log_note("shown");
	log_debug("shown");
	assert_string_equal(capture_next(&capture, line, sizeof(line)), "prog: shown\n");
	assert_string_equal(capture_next(&capture, line, sizeof(line)), "prog: debug: shown\n");
	capture_end(&capture);
}

/* Whatever its length, a line is one write of at most PIPE_BUF bytes, and a cut one says so. */
static void marks_what_it_cuts(void **state)
{
	static const char fill[] = { 'x', '\n' };
	struct capture capture;
	char text[6000], line[8192];

	(void)state;
	log_open("prog", LOG_NOTE);
	capture_begin(&capture);
	for (size_t i = 0; i < sizeof(fill); i++) {
		for (size_t length = 900; length < sizeof(text); length += 850) {
			size_t n, escaped = length * (fill[i] == '\n' ? 4 : 1);

			memset(text, fill[i], length);
			text[length] = '\0';
			log_write(LOG_NOTE, "%s", text);
			n = strlen(capture_next(&capture, line, sizeof(line)));
			assert_in_range(n, 1, 4096);
			assert_int_equal(line[n - 1], '\n');
			if (length < 2048 && escaped < 4000)
				assert_int_equal(n, strlen("prog: ") + escaped + 1);
			else
				assert_string_equal(line + n - 7, " [cut]\n");
		}
	}
	capture_end(&capture);
}

static void keeps_errno(void **state)
{
	int old = dup(STDERR_FILENO);

	(void)state;
	log_open("prog", LOG_NOTE);
	(void)close(STDERR_FILENO);
	errno = ENOENT;
	log_note("nobody reads this");
	assert_int_equal(errno, ENOENT);
	(void)dup2(old, STDERR_FILENO);
	(void)close(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_control_characters),
		cmocka_unit_test(a_full_file_begins_anew),
		cmocka_unit_test(names_levels_and_obeys_the_limit),
		cmocka_unit_test(marks_what_it_cuts),
		cmocka_unit_test(keeps_errno),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
