/* The notation of probes: what each form means, and where each error stands. */
#include "consumers/client/probe_spec.h"

#include "base/checked.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct probe_spec *parse(const char *text)
{
	struct probe_spec *spec = malloc(sizeof(*spec));
	struct probe_spec_error error = { .position = -1 };
	int rc = probe_spec_parse(text, spec, &error);

	if (rc)
		print_error("%s\n%*s^ %s\n", text, error.position, "", error.message);
	assert_int_equal(rc, 0);
	return spec;
}

static void kernel_places(void **state)
{
	struct probe_spec *s = parse("tracepoint:sched:sched_switch");

	(void)state;
	assert_int_equal(s->kind, PROBE_TRACEPOINT);
	assert_string_equal(s->system, "sched");
	assert_string_equal(s->event, "sched_switch");
	assert_string_equal(s->name, "sched:sched_switch");
	free(s);
	/* With arguments it is another probe, on the tracepoint. */
	s = parse("tracepoint:syscalls:sys_enter_openat f=+0($filename):ustring if f ~ x");
	assert_int_equal(s->kind, PROBE_EVENT);
	assert_string_equal(s->system, "syscalls");
	assert_string_equal(s->event, "sys_enter_openat");
	assert_string_equal(s->name, "syscalls:sys_enter_openat");
	assert_string_equal(probe_spec_fetch(s, 0), "+0($filename)");
	free(s);
	s = parse("  opens=kprobe:do_sys_openat2+0x10  ");
	assert_int_equal(s->kind, PROBE_KPROBE);
	assert_string_equal(s->name, "opens");
	assert_string_equal(s->symbol, "do_sys_openat2");
	assert_int_equal(s->offset, 16);
	free(s);
	s = parse("kprobe:a stack n=$arg1 ustack if n > 1");
	assert_true(s->stack && s->ustack);
	assert_int_equal(s->arg_count, 1);
	assert_string_equal(s->filter, "n > 1");
	free(s);
	/* What only begins so is something else. */
	s = parse("uprobe:/a:b stack=%sp ustack");
	assert_true(!s->stack && s->ustack);
	assert_string_equal(s->args[0].name, "stack");
	free(s);
	s = parse("kprobe:ext4:ext4_sync_fs");
	assert_string_equal(s->symbol, "ext4:ext4_sync_fs");
	assert_string_equal(s->name, "ext4:ext4_sync_fs");
	free(s);
	s = parse("kretprobe:inet_csk_accept+maxactive=4096");
	assert_int_equal(s->kind, PROBE_KRETPROBE);
	assert_int_equal(s->maxactive, 4096);
	free(s);
}

static void places_in_files(void **state)
{
	static const struct {
		const char *text, *path, *symbol;
		uint64_t offset;
		bool by_offset;
	} rows[] = {
		{ "uprobe:/bin/sh:main", "/bin/sh", "main", 0, false },
		{ "uprobe:/bin/sh:main+4", "/bin/sh", "main", 4, false },
		{ "uprobe:/bin/sh:0x1f40", "/bin/sh", "", 0x1f40, true },
		{ "uretprobe:/bin/sh:0x1f40", "/bin/sh", "", 0x1f40, true },
		{ "uprobe:/a:b/c:main", "/a:b/c", "main", 0, false },
		{ "uprobe:/opt/My\\ App/x:main", "/opt/My App/x", "main", 0, false },
		{ "uprobe:\"/opt/My App/x\":main", "/opt/My App/x", "main", 0, false },
		{ "uprobe:'/opt/a\\b \"c\"':main", "/opt/a\\b \"c\"", "main", 0, false },
		{ "uprobe:\"/opt/\\n\\t\\r\\x7f\\xFea\\q\":main", "/opt/\n\t\r\x7f\xfe" "aq", "main", 0, false },
		{ "uprobe:'/opt/a\nb\\n':main", "/opt/a\nb\\n", "main", 0, false },
		{ "uprobe:\"/opt/\\\"a\\\\\":main", "/opt/\"a\\", "main", 0, false },
		{ "uprobe:/bin/go:type\\:.eq.main", "/bin/go", "type:.eq.main", 0, false },
		{ "uprobe:/bin/go:main.(*T).Run", "/bin/go", "main.(*T).Run", 0, false },
		{ "uprobe:/lib/libc.so.6:memcpy@@GLIBC_2.14+8", "/lib/libc.so.6", "memcpy@@GLIBC_2.14", 8, false },
		{ "uprobe:/a=b:main", "/a=b", "main", 0, false },
		{ "uprobe:/a:operator\\+", "/a", "operator+", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct probe_spec *s = parse(rows[i].text);

		assert_string_equal(s->path, rows[i].path);
		assert_string_equal(s->symbol, rows[i].symbol);
		assert_int_equal(s->offset, rows[i].offset);
		assert_int_equal(s->by_offset, rows[i].by_offset);
		free(s);
	}
}

static void static_probes(void **state)
{
	struct probe_spec *s = parse("usdt:/usr/lib/a:b/libc.so.6:libc:memory_sbrk_more");

	(void)state;
	assert_int_equal(s->kind, PROBE_USDT);
	assert_string_equal(s->path, "/usr/lib/a:b/libc.so.6");
	assert_string_equal(s->system, "libc");
	assert_string_equal(s->event, "memory_sbrk_more");
	assert_string_equal(s->name, "libc:memory_sbrk_more");
	free(s);
}

static void names_by_default(void **state)
{
	struct probe_spec *s = parse("uprobe:/bin/sh:0xabc");

	(void)state;
	assert_string_equal(s->name, "0xabc");
	free(s);
	s = parse("uprobe:/bin/sh:main+1");
	assert_string_equal(s->name, "main");
	free(s);
	s = parse("my-name.1=uprobe:/bin/sh:main");
	assert_string_equal(s->name, "my-name.1");
	free(s);
}

static void arguments_and_filter(void **state)
{
	struct probe_spec *s = parse("uprobe:/b:f path=+0($arg1):string\tn=%si:s32 t=\\\"a : b\" if_=@0x10 "
				     "if n > 3 && path ~ \"*x y*\"  ");

	(void)state;
	assert_int_equal(s->arg_count, 4);
	assert_string_equal(s->args[0].name, "path");
	assert_string_equal(probe_spec_fetch(s, 0), "+0($arg1)");
	assert_string_equal(probe_spec_type(s, 0), "string");
	assert_string_equal(s->args[1].name, "n");
	assert_string_equal(probe_spec_fetch(s, 1), "%si");
	assert_string_equal(probe_spec_type(s, 1), "s32");
	assert_string_equal(probe_spec_fetch(s, 2), "\\\"a : b\"");
	assert_string_equal(probe_spec_type(s, 2), "");
	assert_string_equal(s->args[3].name, "if_");
	assert_string_equal(s->filter, "n > 3 && path ~ \"*x y*\"");
	assert_int_equal(s->args[0].position, 12);
	assert_int_equal(s->args[0].fetch_position, 17);
	assert_int_equal(s->filter_position, strlen("uprobe:/b:f path=+0($arg1):string\tn=%si:s32 t=\\\"a : b\" if_=@0x10 if "));
	free(s);
}

static const struct {
	const char *text;
	int position;
	const char *words;
} wrong_rows[] = {
	{ "", 0, "KIND:PLACE" },
	{ "   ", 3, "KIND:PLACE" },
	{ "kprob:x", 0, "did you mean kprobe" },
	{ "x=uprob:/a:b", 2, "did you mean uprobe" },
	{ "kprobe", 6, "needs a place" },
	{ "kprobe:", 7, "missing" },
	{ ":x", 0, "missing" },
	{ "=kprobe:x", 0, "missing" },
	{ "tracepoint:sched", 16, "event is missing" },
	{ "tracepoint:sched:", 17, "missing" },
	{ "tracepoint::x", 11, "missing" },
	{ "tracepoint:a:b:c", 14, "can't hold ':'" },
	{ "tracepoint:a:b*", 14, "can't hold '*': a probe is of one event; tracefan ls 'a:*'" },
	{ "sched:sched_switch", 0, "did you mean tracepoint:sched:sched_switch?" },
	{ "x=sched:sched_switch", 2, "did you mean tracepoint:sched:sched_switch?" },
	{ "sched", 0, "(kinds: tracepoint, " },
	{ "sched:", 0, "(kinds: tracepoint, " },
	{ "/bin/sh:main", 0, "(kinds: tracepoint, " },
	{ "python:/bin/sh:main", 0, "(kinds: tracepoint, " },
	{ "kprobe:a;b", 8, "can't hold ';'" },
	{ "kprobe:a+", 9, "missing" },
	{ "kprobe:a+1z", 10, "must be a number" },
	{ "kprobe:a+0x", 10, "must be a number" },
	{ "kprobe:a+99999999999999999999", 9, "64 bits" },
	{ "kretprobe:a+4", 11, "no offset" },
	{ "kretprobe:a+maxactive=0", 22, "between" },
	{ "kretprobe:a+maxactive=4097", 22, "between" },
	{ "uprobe:/bin/sh", 14, "symbol is missing" },
	{ "uprobe::main", 7, "missing" },
	{ "uprobe:/bin/sh:", 15, "missing" },
	{ "uprobe:/bin/sh:0x", 16, "must be a number" },
	{ "uretprobe:/bin/sh:main+4", 22, "no offset" },
	{ "usdt:/bin/sh:x", 14, "usdt:PATH:PROVIDER:NAME" },
	{ "usdt:/bin/sh::x", 13, "missing" },
	{ "uprobe:\"/bin/sh:main", 7, "not closed" },
	{ "uprobe:/bin/a\"b:main", 13, "behind a backslash" },
	{ "=", 0, "in front of '='" },
	{ "=tracepoint:a:b", 0, "in front of '='" },
	{ "uprobe:/bin/sh:main\\", 19, "escapes nothing" },
	{ "uprobe:/bin/\x01sh:main", 12, "control character in the file's path, which must be quoted" },
	{ "uprobe:/bin/sh:'a\nb'", 17, "control character" },
	{ "uprobe:\"/bin/\\x0\":main", 13, "two hexadecimal digits" },
	{ "uprobe:\"/bin/\\x00sh\":main", 13, "two hexadecimal digits" },
	{ "uprobe:\"/bin/\\xzzsh\":main", 13, "two hexadecimal digits" },
	{ "kprobe:a x", 10, "NAME=FETCH" },
	{ "kprobe:a =1", 9, "begins with a letter" },
	{ "kprobe:a 1=1", 9, "begins with a letter" },
	{ "kprobe:a x=", 11, "nothing to fetch" },
	{ "kprobe:a x=:u8", 11, "nothing to fetch" },
	{ "kprobe:a x=1:", 13, "type is missing" },
	{ "kprobe:a x=%ax x=%bx", 15, "two arguments" },
	{ "tracepoint:a:b iff x", 18, "NAME=" },
	{ "kprobe:a x=\\\"abc", 12, "not closed" },
	{ "kprobe:a abcdefghijklmnopqrstuvwxyz0123456=1", 9, "at most 31" },
	{ "kprobe:a if", 11, "filter is missing" },
	{ "kprobe:a if  ", 13, "filter is missing" },
	{ "kprobe:a filter==3", 16, NULL },
};

static void errors_with_their_place(void **state)
{
	struct probe_spec *spec = malloc(sizeof(*spec));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong_rows); i++) {
		struct probe_spec_error error = { .position = -1 };
		int rc = probe_spec_parse(wrong_rows[i].text, spec, &error);

		if (!wrong_rows[i].words) {
			assert_int_equal(rc, 0);
			continue;
		}
		if (rc != -EINVAL || error.position != wrong_rows[i].position || !strstr(error.message, wrong_rows[i].words))
			print_error("%s\n%*s^ %s (expected at %d: %s)\n", wrong_rows[i].text, error.position, "", error.message,
				wrong_rows[i].position, wrong_rows[i].words);
		assert_int_equal(rc, -EINVAL);
		assert_int_equal(error.position, wrong_rows[i].position);
		assert_non_null(strstr(error.message, wrong_rows[i].words));
	}
	free(spec);
}

/* One more than each limit is refused, and the limit itself is not. */
static void limits(void **state)
{
	struct probe_spec *spec = malloc(sizeof(*spec));
	char *text = malloc(2 * (size_t)PROBE_SPEC_TEXT_MAX);
	struct probe_spec_error error;
	int n;

	(void)state;
	for (size_t over = 0; over < 2; over++) {
		int expected = over ? -EINVAL : 0;

		(void)sprintf(text, "uprobe:/%0*d:main", (int)(PROBE_SPEC_PATH_MAX - 2 + over), 0);
		assert_int_equal(probe_spec_parse(text, spec, &error), expected);
		(void)sprintf(text, "uprobe:/a:%0*d", (int)(CONTROL_SYMBOL_MAX - 1 + over), 1);
		assert_int_equal(probe_spec_parse(text, spec, &error), expected);
		(void)sprintf(text, "kprobe:a if %0*d", (int)(CONTROL_FILTER_MAX - 1 + over), 1);
		assert_int_equal(probe_spec_parse(text, spec, &error), expected);
		/* The fetch text, its NUL, the empty type's NUL. */
		(void)sprintf(text, "kprobe:a x=%0*d", (int)(CONTROL_FETCH_MAX - 2 + over), 1);
		assert_int_equal(probe_spec_parse(text, spec, &error), expected);
		n = sprintf(text, "kprobe:a");
		for (size_t i = 0; i < PROBE_SPEC_ARGS_MAX + over; i++)
			n += sprintf(text + n, " a%zu=1", i);
		assert_int_equal(probe_spec_parse(text, spec, &error), expected);
	}
	memset(text, ' ', PROBE_SPEC_TEXT_MAX + 1);
	text[PROBE_SPEC_TEXT_MAX + 1] = '\0';
	assert_int_equal(probe_spec_parse(text, spec, &error), -EINVAL);
	assert_int_equal(error.position, PROBE_SPEC_TEXT_MAX);
	free(text);
	free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_places), cmocka_unit_test(places_in_files), cmocka_unit_test(static_probes),
		cmocka_unit_test(names_by_default), cmocka_unit_test(arguments_and_filter),
		cmocka_unit_test(errors_with_their_place), cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
