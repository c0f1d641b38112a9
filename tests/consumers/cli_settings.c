/* The file of `session start -c FILE`, line by line. */
#include "consumers/cli/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void lines_become_options(void **state)
{
	static const char *const lines[] = { "", "  # comment", "source=text", " buffer-size\t=  16M  # per CPU", "group = a b\r" };
	struct settings settings = { 0 };
	struct settings_error error;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(settings_line(&settings, lines[i], &error), 0);
	assert_int_equal(settings.count, 3);
	assert_string_equal(settings.words[0], "--source=text");
	assert_string_equal(settings.words[1], "--buffer-size=16M");
	assert_string_equal(settings.words[2], "--group=a b");
	assert_null(settings.words[3]);
	settings_release(&settings);
}

static void check_wrong(const char *line, const char *words)
{
	struct settings settings = { 0 };
	struct settings_error error;
	char longest[600];

	if (!line) {
		memset(longest, 'x', sizeof(longest) - 1);
		longest[sizeof(longest) - 1] = '\0';
		line = longest;
	}
	assert_int_equal(settings_line(&settings, "source = raw", &error), 0);
	assert_int_equal(settings_line(&settings, line, &error), -EINVAL);
	if (!strstr(error.message, words))
		fail_msg("'%s' is told as '%s'", line, error.message);
	assert_int_equal(settings.count, 1);
	settings_release(&settings);
}

static void mistakes_are_told(void **state)
{
	(void)state;
	check_wrong("source", "not KEY = VALUE");
	check_wrong("= raw", "no setting");
	check_wrong("sorce = raw", "did you mean source?");
	check_wrong("directory = /tmp", "no setting is called 'directory'");
	check_wrong("owner-fd = 3", "no setting is called 'owner-fd'");
	check_wrong("source = text", "twice");
	check_wrong(NULL, "too long");
}

static void a_file_is_read_to_its_end(void **state)
{
	char path[] = "/tmp/test-cli-settings-XXXXXX";
	static const char text[] = "interval = 5\n\npool=1M";
	struct settings settings = { 0 };
	struct settings_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(settings_read(path, &settings, &error), 0);
	assert_int_equal(settings.count, 2);
	assert_string_equal(settings.words[1], "--pool=1M");
	settings_release(&settings);
	assert_int_equal(write(fd, "\n\nnonsense\n", 11), 11);
	assert_int_equal(settings_read(path, &settings, &error), -EINVAL);
	assert_int_equal(error.line, 5);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(settings_read(path, &settings, &error), -ENOENT);
	assert_int_equal(error.line, 0);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_options),
		cmocka_unit_test(mistakes_are_told),
		cmocka_unit_test(a_file_is_read_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
