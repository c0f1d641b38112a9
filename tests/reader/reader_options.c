#include "reader/setting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int parse(
	const char *const *args, struct reader_options *options, struct options_error *error)
{
	const char *argv[32] = { "tracefan-reader" };
	int argc = 1;

	while (*args)
		argv[argc++] = *args++;
	return options_parse(argc, (char *const *)argv, options, error);
}

#define PARSE(options, error, ...) parse((const char *const[]){ __VA_ARGS__, NULL }, options, error)

static void test_defaults(void **state)
{
	struct reader_options options;
	struct options_error error;

	(void)state;
	assert_int_equal(PARSE(&options, &error, "--session", "web-1"), 0);
	assert_int_equal(options.action, OPTIONS_RUN);
	assert_int_equal(options.source, OPTIONS_RAW);
	assert_string_equal(options.session, "web-1");
	assert_string_equal(options.directory, "/run/tracefan");
	assert_true(options.buffer_size == 8 << 20);
	assert_true(options.pool_size == 1 << 20);
	assert_true(options.interval == 4000000);
	assert_true(options.subbuf_size == 0);
	assert_int_equal(options.owner_fd, -1);
	assert_null(options.group);
	assert_null(options.router_user);
	assert_false(options.verbose);
}

static void test_every_option(void **state)
{
	struct reader_options options;
	struct options_error error;

	(void)state;
	assert_int_equal(PARSE(&options, &error, "--session=s", "--directory=/tmp/d", "--source",
				 "text", "--buffer-size", "256K", "--subbuf-size", "64k",
				 "--interval", "20", "--pool", "2M", "--group", "wheel",
				 "--router-user", "33", "--tracefs", "/t", "--owner-fd", "9", "-v"),
		0);
	assert_string_equal(options.directory, "/tmp/d");
	assert_int_equal(options.source, OPTIONS_TEXT);
	assert_true(options.buffer_size == 256 << 10);
	assert_true(options.subbuf_size == 64 << 10);
	assert_true(options.interval == 20000000);
	assert_true(options.pool_size == 2 << 20);
	assert_string_equal(options.group, "wheel");
	assert_string_equal(options.router_user, "33");
	assert_string_equal(options.tracefs, "/t");
	assert_int_equal(options.owner_fd, 9);
	assert_true(options.verbose);
	assert_int_equal(PARSE(&options, &error, "--session", "s", "--pages", "/p"), 0);
	assert_int_equal(options.source, OPTIONS_PAGES);
	assert_string_equal(options.input, "/p");
	assert_int_equal(PARSE(&options, &error, "--session", "s", "--remove"), 0);
	assert_int_equal(options.action, OPTIONS_REMOVE);
	assert_int_equal(PARSE(&options, &error, "--help"), 0);
	assert_int_equal(options.action, OPTIONS_HELP);
	assert_int_equal(PARSE(&options, &error, "--version", "--session", "!"), 0);
	assert_int_equal(options.action, OPTIONS_VERSION);
}

/* The message says what was wrong: it holds this word. */
static void refused(const char *word, const char *const *args)
{
	struct reader_options options;
	struct options_error error = { "" };

	if (parse(args, &options, &error) != -EINVAL)
		fail_msg("taken: %s ...", args[0]);
	if (!strstr(error.message, word))
		fail_msg("\"%s\" lacks \"%s\"", error.message, word);
}

#define REFUSED(word, ...) refused(word, (const char *const[]){ __VA_ARGS__, NULL })

static void test_refused(void **state)
{
	(void)state;
	REFUSED("--session is missing", "-v");
	REFUSED("needs a value", "--session");
	REFUSED("--bogus", "--session", "s", "--bogus");
	REFUSED("surplus", "--session", "s", "surplus");
	REFUSED("digits", "--session", "");
	REFUSED("digits", "--session", "1st");
	REFUSED("digits", "--session", "a/b");
	REFUSED("digits", "--session", "a b");
	REFUSED("digits", "--session", "abcdefghijklmnopqrstuvwxyz-0123456");
	REFUSED("raw or text", "--session", "s", "--source", "binary");
	REFUSED("--replay and --text exclude each other", "--session", "s", "--replay", "f", "--text", "g");
	REFUSED("--source and --pages exclude each other", "--session", "s", "--source", "raw", "--pages", "g");
	REFUSED("K, M or G", "--session", "s", "--buffer-size", "lots");
	REFUSED("K, M or G", "--session", "s", "--buffer-size", "-1");
	REFUSED("K, M or G", "--session", "s", "--buffer-size", "1KB");
	REFUSED("between", "--session", "s", "--buffer-size", "99999999999999999999");
	REFUSED("between", "--session", "s", "--buffer-size", "1");
	REFUSED("between", "--session", "s", "--pool", "5G");
	REFUSED("power of two", "--session", "s", "--subbuf-size", "12K");
	REFUSED("between", "--session", "s", "--subbuf-size", "2K");
	REFUSED("from 1 to 10000", "--session", "s", "--interval", "0");
	REFUSED("from 1 to 10000", "--session", "s", "--interval", "1.5");
	REFUSED("from 0", "--session", "s", "--owner-fd", "-1");
}

static void test_sizes(void **state)
{
	uint64_t size;

	(void)state;
	assert_int_equal(setting_size("0", &size), 0);
	assert_true(size == 0);
	assert_int_equal(setting_size("3G", &size), 0);
	assert_true(size == UINT64_C(3) << 30);
	assert_int_equal(setting_size("18446744073709551615", &size), 0);
	assert_true(size == UINT64_MAX);
	assert_int_equal(setting_size("18446744073709551616", &size), -ERANGE);
	assert_int_equal(setting_size("18014398509481984K", &size), -ERANGE);
	assert_int_equal(setting_size("", &size), -EINVAL);
	assert_int_equal(setting_size("K", &size), -EINVAL);
	assert_int_equal(setting_size(" 1", &size), -EINVAL);
	assert_int_equal(setting_size("+1", &size), -EINVAL);
}

static void test_session_names(void **state)
{
	(void)state;
	assert_true(options_session_valid("a"));
	assert_true(options_session_valid("A_b-9"));
	assert_true(options_session_valid("abcdefghijklmnopqrstuvwxyz012345"));
	assert_false(options_session_valid("abcdefghijklmnopqrstuvwxyz0123456"));
	assert_false(options_session_valid("-a"));
	assert_false(options_session_valid("_a"));
	assert_false(options_session_valid(".."));
	assert_false(options_session_valid("a\n"));
	assert_false(options_session_valid("\xc3\xa4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_session_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
