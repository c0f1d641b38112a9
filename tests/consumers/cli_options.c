/* The options of trace, record and replay; names that are nearly right; the probe's notation. */
#include "consumers/cli/options.h"

#include "consumers/cli/near_name.h"
#include "consumers/cli/probe_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 64

static const struct verb trace = { "trace", VERB_TRACE, "", "", "show", NULL };
static const struct verb record = { "record", VERB_RECORD, "", "", "record", NULL };
static const struct verb replay = { "replay", VERB_REPLAY, "", "", "replay", NULL };
static const struct verb status_verb = { "status", VERB_STATUS, "", "", "tell", NULL };
static const struct verb watch_verb = { "watch", VERB_WATCH, "", "", "watch", NULL };
static const struct verb session_verb = { "session", VERB_SESSION, "", "", "start", NULL };

/* Parses blank-separated words after the verb's name. Returns 0 or the exit status. */
static int parse(const struct verb *verb, const char *line, struct options *ret)
{
	static char copy[512];
	static char *argv[WORDS + 1];
	int argc = 1, status = -1;

	memset(argv, 0, sizeof(argv));
	argv[0] = (char *)verb->name;
	(void)strncpy(copy, line, sizeof(copy) - 1);
	for (char *word = strtok(copy, " "); word && argc < WORDS; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(verb, argc, argv, ret, &status) ? 0 : status;
}

static void every_option_arrives(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&trace, "-e a:b --event=c:d -ef:g -f x==1 -s text -o json -n 5 -d 2.5 --ring 64K "
				       "--overflow overwrite --interval 20 --on-loss exit -w out -q --include-self --force -- ls -l",
				 &options), 0);
	assert_int_equal(options.event_count, 3);
	assert_string_equal(options.events[0], "a:b");
	assert_string_equal(options.events[1], "c:d");
	assert_string_equal(options.events[2], "f:g");
	assert_string_equal(options.filter, "x==1");
	assert_string_equal(options.source, "text");
	assert_int_equal(options.format, OPTIONS_JSON);
	assert_int_equal(options.count, 5);
	assert_int_equal(options.duration, 2500000000ULL);
	assert_int_equal(options.ring_size, 65536);
	assert_int_equal(options.overflow, TFAN_OVERWRITE);
	assert_string_equal(options.interval, "20");
	assert_true(options.exit_on_loss);
	assert_string_equal(options.write_path, "out");
	assert_true(options.quiet);
	assert_true(options.include_self);
	assert_true(options.force);
	assert_string_equal(options.command[0], "ls");
	assert_string_equal(options.command[1], "-l");
	assert_null(options.command[2]);
	options_release(&options);
}

static void nothing_given_means_the_usual(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&trace, "-e a:b", &options), 0);
	assert_null(options.session);
	assert_null(options.filter);
	assert_null(options.command);
	assert_int_equal(options.format, OPTIONS_TEXT);
	assert_int_equal(options.count, 0);
	assert_int_equal(options.duration, 0);
	assert_int_equal(options.ring_size, 0);
	assert_int_equal(options.overflow, TFAN_DROP);
	assert_false(options.exit_on_loss);
	options_release(&options);
}

static void verbs_differ(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&record, "-e a:b -o file", &options), 0);
	assert_string_equal(options.file, "file");
	options_release(&options);
	assert_int_equal(parse(&record, "-e a:b -o file -n 5 -q", &options), 0);
	assert_int_equal(options.count, 5);
	assert_true(options.quiet);
	options_release(&options);
	assert_int_equal(parse(&replay, "-o json file", &options), 0);
	assert_string_equal(options.file, "file");
	assert_int_equal(options.format, OPTIONS_JSON);
	options_release(&options);
	assert_int_equal(parse(&replay, "--text log", &options), 0);
	assert_string_equal(options.text, "log");
	options_release(&options);
	assert_int_equal(parse(&replay, "--pages dir -e a:b", &options), 0);
	assert_string_equal(options.pages, "dir");
	options_release(&options);
	assert_int_equal(parse(&trace, "--session s --directory /d -e a:b", &options), 0);
	assert_string_equal(options.session, "s");
	assert_string_equal(options.directory, "/d");
	options_release(&options);
}

static void mistakes_are_refused(void **state)
{
	static const struct {
		const struct verb *verb;
		const char *line;
	} wrong[] = {
		{ &trace, "" },
		{ &trace, "-e" },
		{ &trace, "-e a:b stray" },
		{ &trace, "-e a:b --" },
		{ &trace, "-e a:b -x" },
		{ &trace, "-e a:b --sesion s" },
		{ &trace, "-e a:b --quiet=1" },
		{ &trace, "-e a:b -o xml" },
		{ &trace, "-e a:b -s pipe" },
		{ &trace, "-e a:b -n 0" },
		{ &trace, "-e a:b -n -1" },
		{ &trace, "-e a:b -n 1x" },
		{ &trace, "-e a:b -n 18446744073709551616" },
		{ &trace, "-e a:b -d 0" },
		{ &trace, "-e a:b -d nan" },
		{ &trace, "-e a:b -d 1000000001" },
		{ &trace, "-e a:b -d 18446744074" },
		{ &trace, "-e a:b --ring 5T" },
		{ &trace, "-e a:b --ring 0" },
		{ &trace, "-e a:b --overflow block" },
		{ &trace, "-e a:b --interval 1.5" },
		{ &trace, "-e a:b --on-loss panic" },
		{ &trace, "-e a:b -f x -f y" },
		{ &trace, "-e a:b --session s --source raw" },
		{ &trace, "-e a:b --text log" },
		{ &record, "-e a:b" },
		{ &record, "-o file" },
		{ &record, "-e a:b -o file --session s" },
		{ &replay, "" },
		{ &replay, "a b" },
		{ &replay, "a -f x" },
		{ &replay, "a --text b" },
		{ &replay, "a -- ls" },
		{ &replay, "a --interval 5" },
		{ &status_verb, "plain" },
		{ &watch_verb, "exec /etc" },
		{ &watch_verb, "files /etc /var" },
		{ &session_verb, "list name" },
		{ &session_verb, "stop a b" },
	};
	struct options options;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		print_message("%s %s\n", wrong[i].verb->name, wrong[i].line);
		assert_int_equal(parse(wrong[i].verb, wrong[i].line, &options), 2);
	}
}

static void help_wins(void **state)
{
	struct options options;
	char *argv[] = { "trace", "--nonsense", "--help", NULL };
	int status = -1;

	(void)state;
	assert_false(options_parse(&trace, 3, argv, &options, &status));
	assert_int_equal(status, 0);
	/* After -- it is the command's. */
	assert_int_equal(parse(&trace, "-e a:b -- ls --help", &options), 0);
	options_release(&options);
}

static void sizes(void **state)
{
	uint64_t value;

	(void)state;
	assert_int_equal(options_size("4096", &value), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(options_size("2k", &value), 0);
	assert_int_equal(value, 2048);
	assert_int_equal(options_size("3M", &value), 0);
	assert_int_equal(value, 3U << 20);
	assert_int_equal(options_size("1G", &value), 0);
	assert_int_equal(value, 1U << 30);
	assert_int_equal(options_size("18446744073709551615", &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(options_size("18446744073709551616", &value), -ERANGE);
	assert_int_equal(options_size("18014398509481984K", &value), -ERANGE);
	assert_int_equal(options_size("K", &value), -EINVAL);
	assert_int_equal(options_size("1KB", &value), -EINVAL);
	assert_int_equal(options_size("-1", &value), -EINVAL);
	assert_int_equal(options_size("", &value), -EINVAL);
}

static void seconds(void **state)
{
	uint64_t value;

	(void)state;
	assert_int_equal(options_seconds("10", &value), 0);
	assert_int_equal(value, 10000000000ULL);
	assert_int_equal(options_seconds("0.25", &value), 0);
	assert_int_equal(value, 250000000);
	assert_int_equal(options_seconds("1.0000000019", &value), 0);
	assert_int_equal(value, 1000000001);
	assert_int_equal(options_seconds(".5", &value), 0);
	assert_int_equal(value, 500000000);
	assert_int_equal(options_seconds("1.", &value), 0);
	assert_int_equal(value, 1000000000);
	assert_int_equal(options_seconds(".", &value), -EINVAL);
	assert_int_equal(options_seconds("", &value), -EINVAL);
	assert_int_equal(options_seconds("1.5.", &value), -EINVAL);
	assert_int_equal(options_seconds("-.5", &value), -EINVAL);
	assert_int_equal(options_seconds("+1", &value), -EINVAL);
	assert_int_equal(options_seconds("1 ", &value), -EINVAL);
	assert_int_equal(options_seconds("1e3", &value), -EINVAL);
	assert_int_equal(options_seconds("18446744074", &value), -ERANGE);
}

static void near_names(void **state)
{
	struct near_name near;

	(void)state;
	assert_int_equal(near_name_distance("trace", "trace", 9), 0);
	assert_int_equal(near_name_distance("tarce", "trace", 9), 1);
	assert_int_equal(near_name_distance("race", "trace", 9), 1);
	assert_int_equal(near_name_distance("replay", "trace", 3), 3);
	assert_int_equal(near_name_distance("", "abc", 9), 3);
	near_name_init(&near, "recrod");
	near_name_offer(&near, "trace");
	near_name_offer(&near, "record");
	near_name_offer(&near, "replay");
	assert_string_equal(near.best, "record");
	near_name_init(&near, "xyz");
	near_name_offer(&near, "trace");
	assert_null(near.best);
}

static void check_recorded(const char *probe, const char *expected)
{
	char *text = probe_text_recorded(probe);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void a_recorded_probe_is_known_by_its_name(void **state)
{
	(void)state;
	check_recorded("sched:sched_switch", "tracepoint:sched:sched_switch");
	check_recorded("tracepoint:sched:sched_switch", "tracepoint:sched:sched_switch");
	check_recorded("x=sched:sched_switch", "x=tracepoint:sched:sched_switch");
	check_recorded("sched:sched_switch  if a=b", "tracepoint:sched:sched_switch if a=b");
	check_recorded("opened", "kprobe:opened");
	check_recorded("sched:sched_switch ustack stack if a", "tracepoint:sched:sched_switch stack ustack if a");
	check_recorded("opened stack", "kprobe:opened stack");
	check_recorded("o=uprobe:/bin/x:main stack=$arg1 ustack", "o=kprobe:recorded ustack");
	check_recorded("opened if n > 1", "kprobe:opened if n > 1");
	check_recorded("opened=uprobe:/bin/x:main+4 a=$arg1 if a", "opened=kprobe:recorded if a");
	check_recorded("uprobe:/a:b/c=d:main+4 a=$arg1", "kprobe:main");
	check_recorded("uprobe:/bin/x:0x1234", "kprobe:0x1234");
	check_recorded("uretprobe:/bin/x:main", "kprobe:main");
	check_recorded("usdt:/bin/x:python:line", "kprobe:python:line");
	check_recorded("kprobe:do_sys_open+8 p=$arg1", "kprobe:do_sys_open");
	check_recorded("kretprobe:vfs_read+maxactive=9", "kprobe:vfs_read");
}

static void arguments_of_a_probe(void **state)
{
	static const char probe[] = "o=uprobe:/bin/x:main stack  n=$arg1 s=+0($arg2):string ustack  if n = 1";
	size_t size;
	const char *argument = probe_text_argument(probe, 0, &size);

	(void)state;
	assert_int_equal(size, 7);
	assert_memory_equal(argument, "n=$arg1", size);
	argument = probe_text_argument(probe, 1, &size);
	assert_int_equal(size, 18);
	assert_memory_equal(argument, "s=+0($arg2):string", size);
	assert_null(probe_text_argument(probe, 2, &size));
	assert_null(probe_text_argument("sched:sched_switch", 0, &size));
	assert_null(probe_text_argument("opened if n=1", 0, &size));
	argument = probe_text_argument("opened\tn", 0, &size);
	assert_string_equal(argument, "n");
	assert_int_equal(size, 1);
}

static void check_position(const char *probe, int position, const char *expected)
{
	char *text = probe_text_recorded(probe);

	assert_non_null(text);
	assert_string_equal(probe + probe_text_position(probe, text, position), expected);
	free(text);
}

static void marks_stand_in_what_was_written(void **state)
{
	const char *filtered = "uprobe:/bin/x:main n=$arg1 if n = 1";
	char *text = probe_text_recorded(filtered);

	(void)state;
	check_position("uprobe:/bin/x:main", 7, "main");
	check_position("opened", 7, "opened");
	check_position("o=kprobe:x", 9, "o=kprobe:x");
	check_position("sched:sched_switch if a", 11, "sched:sched_switch if a");
	check_position("x=tracepoint:sched:sched_switch", 13, "sched:sched_switch");
	/* "kprobe:main if n = 1": in the filter, and at its end. */
	assert_string_equal(text, "kprobe:main if n = 1");
	check_position(filtered, 15, "n = 1");
	check_position(filtered, 20, "");
	assert_int_equal(probe_text_position(filtered, text, -1), -1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_arrives),
		cmocka_unit_test(nothing_given_means_the_usual),
		cmocka_unit_test(verbs_differ),
		cmocka_unit_test(mistakes_are_refused),
		cmocka_unit_test(help_wins),
		cmocka_unit_test(sizes),
		cmocka_unit_test(seconds),
		cmocka_unit_test(near_names),
		cmocka_unit_test(a_recorded_probe_is_known_by_its_name),
		cmocka_unit_test(arguments_of_a_probe),
		cmocka_unit_test(marks_stand_in_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
