/* The definition's line and the probe's name: what a consumer's texts can and can't do to a command
 * for the kernel. */
#include "reader/probe_line.h"
#include "reader/probe_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct control_create uprobe(void)
{
	return (struct control_create){
		.kind = PROBE_UPROBE, .offset = 0x1234, .name = "calls", .symbol = "f"
	};
}

static struct control_create kprobe(const char *symbol)
{
	struct control_create create = { .kind = PROBE_KPROBE, .name = "calls" };

	snprintf(create.symbol, sizeof(create.symbol), "%s", symbol);
	return create;
}

static void add_fetch(struct control_create *create, const char *text)
{
	char *at = create->fetch;

	for (uint32_t i = 0; i < create->fetch_count; i++)
		at += strlen(at) + 1;
	memcpy(at, text, strlen(text) + 1);
	create->fetch_count++;
}

static void check(const struct control_create *create, const char *expected)
{
	struct probe_line_error error = { 0 };
	struct probe_line line;

	assert_int_equal(probe_line_build(create, "grp", "ev", 7, NULL, &line, &error), 0);
	assert_string_equal(line.text, expected);
}

static void test_places(void **state)
{
	struct control_create create = uprobe();

	(void)state;
	check(&create, "p:grp/ev /proc/self/fd/7:0x1234");
	create.kind = PROBE_URETPROBE;
	check(&create, "r:grp/ev /proc/self/fd/7:0x1234");
	create.kind = PROBE_USDT;
	create.ref_offset = 0x20;
	check(&create, "p:grp/ev /proc/self/fd/7:0x1234(0x20)");
	create = kprobe("do_sys_openat2");
	check(&create, "p:grp/ev do_sys_openat2");
	create.offset = 12;
	check(&create, "p:grp/ev do_sys_openat2+12");
	create = kprobe("ext4:ext4_read");
	create.kind = PROBE_KRETPROBE;
	check(&create, "r:grp/ev ext4:ext4_read");
	create.maxactive = 25;
	check(&create, "r25:grp/ev ext4:ext4_read");
	create = (struct control_create){ .kind = PROBE_EVENT, .system = "sched", .event = "sched_switch" };
	add_fetch(&create, "prev=$prev_pid");
	check(&create, "e:grp/ev sched.sched_switch prev=$prev_pid");
}

/* A dot or blank in a name would be read as something else. */
static void test_names_of_events(void **state)
{
	static const char *const bad[] = { "", "a.b", "a b", "a/b", "a;b" };
	struct probe_line_error error;
	struct probe_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct control_create create = { .kind = PROBE_EVENT, .system = "sched", .event = "x" };

		memcpy(i % 2 ? create.system : create.event, bad[i], strlen(bad[i]) + 1);
		assert_int_equal(probe_line_build(&create, "grp", "ev", -1, NULL, &line, &error), -EINVAL);
		assert_int_equal(error.part, PROBE_LINE_LOCATION);
	}
}

static void test_arguments(void **state)
{
	struct control_create create = uprobe();
	struct probe_line_error error;
	struct probe_line line;

	(void)state;
	add_fetch(&create, "n=%di:u64");
	add_fetch(&create, "s=+0(+8(%si)):string[4]");
	check(&create, "p:grp/ev /proc/self/fd/7:0x1234 n=%di:u64 s=+0(+8(%si)):string[4]");
	assert_int_equal(probe_line_build(&create, "grp", "ev", 7, NULL, &line, &error), 0);
	assert_int_equal(line.bare, strlen("p:grp/ev /proc/self/fd/7:0x1234"));
}

static void refused(const struct control_create *create, enum probe_line_part part, int position)
{
	struct probe_line_error error = { 0 };
	struct probe_line line;

	assert_int_equal(probe_line_build(create, "grp", "ev", 7, NULL, &line, &error), -EINVAL);
	assert_int_equal(error.part, part);
	assert_int_equal(error.position, position);
	assert_non_null(error.message);
}

static void test_no_second_command(void **state)
{
	static const char *const symbols[] = { "", "a b", "a\nb", "a;b", "a#b", "a/b", "a+0 x=%ax",
		"\xc3\xa4" };

	(void)state;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		struct control_create create = kprobe(symbols[i]);

		refused(&create, PROBE_LINE_LOCATION, -1);
	}
	/* Every byte that isn't a plain one, in the middle of an argument. */
	for (int c = 1; c < 256; c++) {
		struct control_create create = uprobe();
		char text[] = "n=%di?x";

		if (c > ' ' && c < 0x7f && c != '#' && c != ';')
			continue;
		text[5] = (char)c;
		add_fetch(&create, "first=%di");
		add_fetch(&create, text);
		refused(&create, PROBE_LINE_FETCH, 10 + 5);
	}
}

static void test_limits(void **state)
{
	struct control_create create = uprobe();

	(void)state;
	for (int i = 0; i < 129; i++)
		add_fetch(&create, "n=%di");
	refused(&create, PROBE_LINE_FETCH, -1);
	create = uprobe();
	add_fetch(&create, "n=%di");
	add_fetch(&create, "%si");
	refused(&create, PROBE_LINE_FETCH, 6);
}

#define TAG       "00c0ffee00c0ffee"
#define CANARY(n) " tfc_" #n "_" TAG "=\\0:u8"

static void build_guarded(const struct control_create *create, struct probe_line *line)
{
	struct probe_line_error error;

	assert_int_equal(probe_line_build(create, "grp", "ev", 7, TAG, line, &error), 0);
}

static void test_canaries(void **state)
{
	static const struct {
		const char *argument;
		bool guarded;
	} arguments[] = {
		{ "s=+0(%di):string", true },
		{ "s=+0(%di):ustring", true },
		{ "s=+0(%di):string[4]", true },
		{ "s=+u0(+8(%di)):ustring[64]", true },
		{ "s=$comm", true },
		{ "s=$comm:string", true },
		{ "s=\\\"a:string\"", false },
		{ "s=\\\"abc\"", true },
		{ "s=@sysctl_sched_debug:symstr", true },
		{ "s=%di:symbol", false },
		{ "string=%di:u64", false },
		{ "s=+0(%di)", false },
		{ "s=+0(%di):x8[16]", false },
		{ "s=+0(%di):stringy", false },
		{ "s=%di:b4@0/64", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct control_create create = uprobe();
		struct probe_line line;
		char expected[200];

		add_fetch(&create, arguments[i].argument);
		add_fetch(&create, "n=%si");
		build_guarded(&create, &line);
		snprintf(expected, sizeof(expected), "p:grp/ev /proc/self/fd/7:0x1234 %s%s n=%%si",
			arguments[i].argument, arguments[i].guarded ? CANARY(0) : "");
		assert_string_equal(line.text, expected);
	}
}

/* The kernel's column in the line with the canaries, against the column in what the user wrote. */
static void test_positions(void **state)
{
	static const char *const arguments[] = { "a=%di:string", "b=%si", "c=+0(%dx):ustring[2]",
		"d=%cx:string" };
	struct control_create create = uprobe();
	struct probe_line guarded, plain;
	struct probe_line_error error;

	(void)state;
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		add_fetch(&create, arguments[i]);
	build_guarded(&create, &guarded);
	assert_int_equal(probe_line_build(&create, "grp", "ev", 7, NULL, &plain, &error), 0);
	assert_string_equal(guarded.text + guarded.bare,
		" a=%di:string" CANARY(0) " b=%si c=+0(%dx):ustring[2]" CANARY(
			1) " d=%cx:string" CANARY(2));
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		const char *in_guarded = strstr(guarded.text, arguments[i]),
			   *in_plain = strstr(plain.text, arguments[i]);

		for (size_t k = 0; k <= strlen(arguments[i]); k++) {
			int expected = (int)(in_plain - plain.text + k - plain.bare - 1);

			assert_int_equal(
				probe_line_position(&plain, (int)(in_plain - plain.text + k)),
				expected);
			assert_int_equal(
				probe_line_position(&guarded, (int)(in_guarded - guarded.text + k)),
				expected);
		}
	}
	/* Inside of a canary: the end of its argument. */
	assert_int_equal(probe_line_position(
				 &guarded, (int)(strstr(guarded.text, "tfc_0") - guarded.text) + 5),
		12);
	assert_int_equal(probe_line_position(&guarded, (int)guarded.bare), -1);
	assert_int_equal(probe_line_position(&guarded, -1), -1);
}

static void test_canaries_count(void **state)
{
	struct control_create create = uprobe();
	struct probe_line_error error;
	struct probe_line line;

	(void)state;
	for (int i = 0; i < 65; i++)
		add_fetch(&create, "s=$comm");
	assert_int_equal(probe_line_build(&create, "grp", "ev", 7, NULL, &line, &error), 0);
	assert_int_equal(probe_line_build(&create, "grp", "ev", 7, TAG, &line, &error), -EINVAL);
	assert_int_equal(error.part, PROBE_LINE_FETCH);
	create = uprobe();
	add_fetch(&create, "n=%di");
	add_fetch(&create, "tfc_0_guess=%di");
	refused(&create, PROBE_LINE_FETCH, 6);
}

static const char log_text[] = "[ 2184.424594] trace_uprobe: error: Failed to find the given file\n"
			       "  Command: p:g/a /bin/nonexist:0x100\n"
			       "                 ^\n"
			       "[ 2184.424797] trace_uprobe: error: Invalid register name\n"
			       "  Command: p:g/a /bin/ls:0x4000 x=%foo\n"
			       "                                  ^\n"
			       "[ 2184.424797] event filter parse error: error: Field not found\n"
			       "  Command: a == 1\n"
			       "           ^\n";

static void test_words(void **state)
{
	struct probe_line_words words;

	(void)state;
	assert_true(probe_line_words(log_text, "p:g/a /bin/ls:0x4000 x=%foo", &words));
	assert_string_equal(words.message, "Invalid register name");
	assert_int_equal(words.column, 23);
	assert_true(probe_line_words(log_text, "p:g/a /bin/nonexist:0x100", &words));
	assert_string_equal(words.message, "Failed to find the given file");
	assert_int_equal(words.column, 6);
	assert_true(probe_line_words(log_text, "a == 1", &words));
	assert_int_equal(words.column, 0);
	/* Another's command, also one that only begins like ours, isn't ours. */
	assert_false(probe_line_words(log_text, "p:g/a /bin/ls:0x4000", &words));
	assert_false(probe_line_words(log_text, "p:g/a /bin/ls:0x4000 x=%foo y", &words));
	assert_false(probe_line_words("", "p:g/a", &words));
	assert_true(probe_line_words("\n  Command: x\n", "x", &words));
	assert_int_equal(words.column, -1);
}

static void test_names(void **state)
{
	char group[CONTROL_NAME_MAX], other[CONTROL_NAME_MAX], event[CONTROL_NAME_MAX];
	char symbol[200];

	(void)state;
	probe_name_group("a-b", group, sizeof(group));
	probe_name_group("a_b", other, sizeof(other));
	assert_string_not_equal(group, other);
	assert_memory_equal(group, "tracefan_a_b_", 13);
	probe_name_group("abcdefghijklmnopqrstuvwxyz012345", group, sizeof(group));
	assert_true(strlen(group) < CONTROL_NAME_MAX - 1);

	probe_name_event("open", 0x1234, "0badcafe", event, sizeof(event));
	assert_string_equal(event, "open_0000000000001234_0badcafe");
	assert_true(probe_name_is_ours(event));
	probe_name_event(
		"std::vector<int>::push_back", UINT64_MAX, "0badcafe", event, sizeof(event));
	assert_true(probe_name_is_ours(event));
	assert_true(strspn(event, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(event));
	memset(symbol, 'x', sizeof(symbol) - 1);
	symbol[sizeof(symbol) - 1] = '\0';
	probe_name_event(symbol, 1, "0badcafe", event, sizeof(event));
	assert_true(strlen(event) < CONTROL_NAME_MAX && probe_name_is_ours(event));
	symbol[0] = '7';
	probe_name_event(symbol, 1, "0badcafe", event, sizeof(event));
	assert_true(
		event[0] == '_' && strlen(event) < CONTROL_NAME_MAX && probe_name_is_ours(event));
	probe_name_event("", 1, "0badcafe", event, sizeof(event));
	assert_true(event[0] == '_' && probe_name_is_ours(event));

	assert_false(probe_name_is_ours("open"));
	assert_false(probe_name_is_ours("open_0000000000001234_0badcaf"));
	assert_false(probe_name_is_ours("open_000000000000123g_0badcafe"));
	assert_false(probe_name_is_ours("open_0000000000001234_0BADCAFE"));
	assert_false(probe_name_is_ours("_0000000000001234_0badcafe"));
	assert_false(probe_name_is_ours(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names_of_events),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_no_second_command),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_canaries),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_canaries_count),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
