/* The filter language, row by row: which of the events a to f (tests/router/filter_events.h) each expression
 * accepts, and what is said of wrong ones, where. */
#include "router/text_fields.h"
#include "tests/router/filter_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/checked.h"

struct row {
	const char *text;
	const char *accepts; /* letters of events */
};

/* What the kernel's own filters have, and means the same there. */
static const struct row kernel_rows[] = {
	/* numbers: every operator */
	{ "u8 == 0", "a" },
	{ "u8 != 0", "bcdef" },
	{ "u8 < 7", "ab" },
	{ "u8 <= 7", "abe" },
	{ "u8 > 64", "cd" },
	{ "u8 >= 64", "cdf" },
	{ "u8 & 1", "bce" },
	{ "u8 & 0x80", "cd" },
	{ "u8 & 0", "" },
	{ "u8 == 255", "c" },
	{ "u8 == 0xff", "c" },
	{ "u8 == 0377", "c" },
	{ "u8 == 0XFF", "c" },
	{ "u8 < 0", "" },
	{ "u8 >= 0", "abcdef" },
	{ "u8 > 255", "" },
	{ "u8 <= 255", "abcdef" },
	/* widths and signs */
	{ "s8 == -1", "b" },
	{ "s8 == 0xff", "b" },
	{ "s8 == 255", "b" },
	{ "s8 < 0", "bc" },
	{ "s8 <= -128", "c" },
	{ "s8 >= -128", "abcdef" },
	{ "s8 > -1", "adef" },
	{ "s8 >= 127", "d" },
	{ "s8 > 127", "" },
	{ "s8 & 0x80", "bc" },
	{ "s8 & -1", "bcdef" },
	{ "s8 == -0x80", "c" },
	{ "s8 == -0200", "c" },
	{ "u16 == 65535", "c" },
	{ "u16 > 32767", "cd" },
	{ "u16 >= 32768", "cd" },
	{ "u16 < 1001", "abe" },
	{ "s16 == -32768", "c" },
	{ "s16 == 0x8000", "c" },
	{ "s16 < -1", "c" },
	{ "s16 <= -1", "bc" },
	{ "s16 > 1000", "df" },
	{ "s16 != -1", "acdef" },
	{ "u32 == 4294967295", "c" },
	{ "u32 == 0xffffffff", "c" },
	{ "u32 > 0x7fffffff", "cd" },
	{ "u32 & 0x80000000", "cd" },
	{ "u32 < 2", "ab" },
	{ "s32 == -1", "b" },
	{ "s32 == 0xffffffff", "b" },
	{ "s32 == 4294967295", "b" },
	{ "s32 != -1", "acdef" },
	{ "s32 < 0", "bce" },
	{ "s32 < -100", "c" },
	{ "s32 <= -100", "ce" },
	{ "s32 > -100", "abdf" },
	{ "s32 >= -1", "abdf" },
	{ "s32 == -2147483648", "c" },
	{ "s32 == 2147483647", "d" },
	{ "s32 > 2147483646", "d" },
	{ "s32 == 0x80000000", "c" },
	{ "s32 & 0x80000000", "bce" },
	{ "s32 == 0xffffff9c", "e" },
	{ "u64 == 18446744073709551615", "c" },
	{ "u64 == 0xffffffffffffffff", "c" },
	{ "u64 == 9223372036854775808", "d" },
	{ "u64 > 9223372036854775807", "cde" },
	{ "u64 > 9223372036854775808", "ce" },
	{ "u64 >= 0x8000000000000001", "ce" },
	{ "u64 < 9223372036854775808", "abf" },
	{ "u64 <= 0x8000000000000000", "abdf" },
	{ "u64 & 0x8000000000000000", "cde" },
	{ "u64 & 0x100000000", "cf" },
	{ "u64 == 4294967296", "f" },
	{ "u64 != 4294967296", "abcde" },
	{ "s64 == -1", "b" },
	{ "s64 == -9223372036854775808", "c" },
	{ "s64 == 9223372036854775807", "d" },
	{ "s64 < 0", "bce" },
	{ "s64 > -4096", "abdf" },
	{ "s64 >= 4294967296", "df" },
	{ "s64 & 0x100000000", "bdef" },
	{ "s64 == -4096", "e" },
	{ "flag == 1", "bdf" },
	{ "flag == 0", "ace" },
	{ "saddr == 0x0100007f", "a" },
	{ "saddr == 0", "b" },
	{ "saddr > 0x04030201", "cef" },
	{ "ptr == 0xffff800012345678", "abcdef" },
	{ "ptr >= 0xffff800000000000", "abcdef" },
	/* strings */
	{ "name == \"bash\"", "a" },
	{ "name == 'bash'", "a" },
	{ "name != \"bash\"", "bcdef" },
	{ "name == \"sh\"", "bf" },
	{ "name == \"fifteen_letters\"", "c" },
	{ "name == \"sixteen_letters!\"", "e" },
	{ "name == \"sixteen_letters!!\"", "" },
	{ "name != \"sixteen_letters!!\"", "abcdef" },
	{ "name == \"b*\"", "" },
	{ "name == \"a*b?c[d]\"", "d" },
	{ "name == \"\"", "" },
	{ "name != \"\"", "abcdef" },
	{ "name == \"BASH\"", "" },
	{ "name == \"bas\"", "" },
	{ "name == \"bashx\"", "" },
	{ "name.ustring == \"bash\"", "a" },
	{ "path == \"/etc/passwd\"", "a" },
	{ "path != \"/etc/passwd\"", "bcdf" },
	{ "path == \"\"", "cf" },
	{ "path != \"\"", "abd" },
	{ "path == \"/etc\"", "" },
	{ "rel == \"abc\"", "a" },
	{ "rel == \"x y\"", "b" },
	{ "rel == \"it's\"", "c" },
	{ "rel == 'say \"hi\"'", "d" },
	{ "rel != 'say \"hi\"'", "abcef" },
	{ "rel == \"\xc3\xa9t\xc3\xa9\"", "f" },
	/* globs */
	{ "name ~ \"b*\"", "a" },
	{ "name ~ \"*\"", "abcdef" },
	{ "name ~ \"**\"", "abcdef" },
	{ "name ~ \"sh\"", "bf" },
	{ "name ~ \"ba?h\"", "a" },
	{ "name ~ \"?h\"", "bf" },
	{ "name ~ \"??\"", "bf" },
	{ "name ~ \"?\"", "" },
	{ "name ~ \"s*h\"", "bf" },
	{ "name ~ \"*t*t*\"", "ce" },
	{ "name ~ \"*_letters?\"", "e" },
	{ "name ~ \"[bs]*\"", "abef" },
	{ "name ~ \"[!bs]*\"", "cd" },
	{ "name ~ \"[a-f]*\"", "acd" },
	{ "name ~ \"[^b]*\"", "a" },
	{ "name ~ \"a\\*b\\?c\\[d]\"", "d" },
	{ "name ~ \"a[*]b[?]c[[]d]\"", "d" },
	{ "name ~ \"*[]]\"", "d" },
	{ "name ~ \"!b*\"", "bcdef" },
	{ "name ~ \"!*\"", "" },
	{ "name ~ \"[a-\"", "" },
	{ "name ~ \"*c[d\"", "" },
	{ "name ~ \"*c[[]d]\"", "d" },
	{ "name ~ \"\"", "" },
	{ "name ~ \"ba\\sh\"", "a" },
	{ "name ~ \"bash\\\"", "a" },
	{ "path ~ \"/etc/*\"", "ab" },
	{ "path ~ \"/etc/s*\"", "b" },
	{ "path ~ \"*.so\"", "d" },
	{ "path ~ \"*s*\"", "abd" },
	{ "path ~ \"*\"", "abcdf" },
	{ "path ~ \"!/etc/*\"", "cdf" },
	{ "rel ~ \"*'*\"", "c" },
	{ "rel ~ '*\"*'", "d" },
	{ "rel ~ \"[A-Z]*\"", "e" },
	/* where the kernel's short cuts go wrong and its glob matcher doesn't */
	{ "name ~ \"*sh\"", "abf" },
	{ "name ~ \"*as*\"", "a" },
	{ "name ~ \"*left*\"", "" },
	{ "name ~ \"!*as*\"", "bcdef" },
	/* CPU, COMM */
	{ "CPU == 0", "a" },
	{ "CPU != 0", "bcdf" },
	{ "CPU < 2", "ab" },
	{ "CPU >= 2", "cdf" },
	{ "CPU <= 2", "abc" },
	{ "CPU > 2", "df" },
	{ "cpu == 5", "f" },
	{ "CPU == -1", "" },
	{ "COMM == \"bash\"", "a" },
	{ "COMM != \"bash\"", "bcdf" },
	{ "COMM ~ \"*.sh\"", "c" },
	{ "comm ~ \"kworker/*\"", "d" },
	{ "comm == \"a b\"", "f" },
	{ "COMM ~ \"b?sh\"", "a" },
	{ "common_pid == 200", "b" },
	{ "common_pid != 200", "acdef" },
	{ "common_pid > 300 && common_pid < 600", "de" },
	{ "common_type == 1000", "abcdef" },
	{ "common_flags == 0", "abcdef" },
	{ "common_preempt_count != 0", "" },
	/* cpumasks */
	{ "CPU & CPUS{0-2}", "abc" },
	{ "CPU & CPUS{0,3}", "ad" },
	{ "CPU & CPUS{5}", "f" },
	{ "CPU & CPUS{0-4:1/2}", "ac" },
	{ "CPU & CPUS{all}", "abcdf" },
	{ "CPU == CPUS{1}", "b" },
	{ "CPU != CPUS{1}", "acdf" },
	{ "CPU == CPUS{1-2}", "" },
	{ "CPU & CPUS{ 1 , 2 }", "bc" },
	{ "u8 & CPUS{0-9}", "abe" },
	{ "u8 == CPUS{7}", "e" },
	{ "u8 != CPUS{7}", "abcdf" },
	{ "s32 & CPUS{0-9}", "a" },
	{ "mask & CPUS{0}", "acf" },
	{ "mask & CPUS{1-2}", "bcf" },
	{ "mask & CPUS{63}", "e" },
	{ "mask & CPUS{64-99}", "" },
	{ "mask == CPUS{0}", "a" },
	{ "mask == CPUS{0-2}", "c" },
	{ "mask == CPUS{0,2}", "f" },
	{ "mask == CPUS{0,64}", "" },
	{ "mask != CPUS{0}", "bcdef" },
	{ "mask != CPUS{0,2}", "abcde" },
	/* logic */
	{ "u8 == 0 || u8 == 1", "ab" },
	{ "u8 == 0 && u8 == 1", "" },
	{ "u8 >= 1 && u8 <= 128", "bdef" },
	{ "u8 == 0 || u8 == 1 && s8 == 5", "a" },
	{ "(u8 == 0 || u8 == 1) && s8 == -1", "b" },
	{ "u8 == 7 && name ~ \"six*\" || flag == 1 && s8 < 0", "be" },
	{ "!(u8 == 0)", "bcdef" },
	{ "!u8 == 0", "bcdef" },
	{ "! u8 == 0", "bcdef" },
	{ "!!(u8 == 0)", "a" },
	{ "!(!(u8 == 0))", "a" },
	{ "!(u8 == 0 || u8 == 1)", "cdef" },
	{ "!(flag == 1 && u8 > 100)", "abcef" },
	{ "!(u8 & 1)", "adf" },
	{ "!(name ~ \"*sh\")", "cde" },
	{ "((((u8 == 0))))", "a" },
	{ "u8==0||u8==1", "ab" },
	{ "u8==0&&s8==0", "a" },
	{ "  u8   ==   0  ", "a" },
	{ "u8\t==\n0", "a" },
	{ "name~\"b*\"&&name!=\"bx\"", "a" },
	{ "!(CPU == 0) && !(COMM == \"sh\")", "cdf" },
	{ "(u8 == 0) || (u8 == 1) || (u8 == 255)", "abc" },
	{ "u8 & 1 && flag == 1", "b" },
	{ "u8 & 1 || u8 & 0x40", "bcef" },
	{ "u8 < 10 && u8 < 5 && u8 < 2", "ab" },
};

/* What the kernel's filters lack. */
static const struct row own_rows[] = {
	/* the empty filter */
	{ "", "abcdef" },
	{ " \t\n ", "abcdef" },
	/* sets */
	{ "u8 in {0, 1, 255}", "abc" },
	{ "u8 in {0}", "a" },
	{ "u8 in {3}", "" },
	{ "u8 in{0,1}", "ab" },
	{ "u8 in { 0x40 , 0200 }", "df" },
	{ "s32 in {-1, -100}", "be" },
	{ "s32 in {0xffffffff, 0}", "ab" },
	{ "!(u8 in {0, 1})", "cdef" },
	{ "!u8 in {0, 1}", "cdef" },
	{ "u8 in {1..64}", "bef" },
	{ "u8 in {0..1, 128..255}", "abcd" },
	{ "s8 in {-128..-1}", "bc" },
	{ "s64 in {-9223372036854775808..0}", "abce" },
	{ "u64 in {9223372036854775808..18446744073709551615}", "cde" },
	{ "!(u8 in {1..64})", "acd" },
	{ "name in {\"bash\", \"sh\"}", "abf" },
	{ "name in {bash, sh}", "abf" },
	{ "name in {'bash'}", "a" },
	{ "!(name in {bash, sh})", "cde" },
	{ "path in {\"/etc/passwd\", \"\"}", "acf" },
	{ "!(path in {\"/etc/passwd\", \"\"})", "bd" },
	{ "CPU in {0, 5}", "af" },
	{ "CPU in {1..3}", "bcd" },
	{ "tid in {100, 300}", "ac" },
	/* prefix, suffix, substring */
	{ "path ^= \"/etc/\"", "ab" },
	{ "path ^= /etc/p", "a" },
	{ "path ^= \"\"", "abcdf" },
	{ "path $= \".so\"", "d" },
	{ "path $= wd", "a" },
	{ "path *= \"sha\"", "b" },
	{ "path *= \"\"", "abcdf" },
	{ "path *= \"s\"", "abd" },
	{ "!(path ^= \"/etc/\")", "cdf" },
	{ "!path *= sha", "acdf" },
	{ "name ^= \"a*b\"", "d" },
	{ "name *= \"[d]\"", "d" },
	{ "name $= \"letters!\"", "e" },
	{ "name ^= \"sh\"", "bf" },
	{ "name *= left", "" },
	{ "name ^= \"a much longer text than there is room for\"", "" },
	/* not like */
	{ "name !~ \"b*\"", "bcdef" },
	{ "name !~ \"!b*\"", "a" },
	{ "path !~ \"/etc/*\"", "cdf" },
	{ "!(name !~ \"b*\")", "a" },
	/* regular expressions */
	{ "name =~ \"^ba\"", "a" },
	{ "name =~ \"sh$\"", "abf" },
	{ "name =~ \"as\"", "a" },
	{ "name =~ \"^.{2}$\"", "bf" },
	{ "name =~ \"^(bash|sh)$\"", "abf" },
	{ "name =~ \"bash|fif\"", "ac" },
	{ "name =~ \"(?i)BASH\"", "a" },
	{ "name =~ \"\\d\"", "" },
	{ "name =~ \"[*?]\"", "d" },
	{ "name =~ \"^[^_]+$\"", "abdf" },
	{ "name =~ \"\"", "abcdef" },
	{ "!(name =~ \"sh\")", "cde" },
	{ "path =~ \"^/etc/(passwd|group)$\"", "a" },
	{ "path =~ '\\.so(\\.\\d+)*$'", "d" },
	{ "path =~ \"^$\"", "cf" },
	{ "!(path =~ \"^/\")", "cf" },
	{ "rel =~ \"\\x22\"", "d" },
	{ "rel =~ \"\\xc3\\xa9\"", "f" },
	{ "rel =~ \"^.....$\"", "f" },
	{ "rel =~ \"(?<=x) y\"", "b" },
	{ "rel =~ \"(.)b\\1|A(?=BC)\"", "e" },
	{ "name =~ \"\\Qa*b?\"", "d" },
	/* words without quotes, = */
	{ "name == bash", "a" },
	{ "name != 1st && name != 1..x && name != 08 && name != \"1\"", "abcdef" },
	{ "name ^= 1 || name $= 1 || path *= 1", "" },
	{ "name != bash", "bcdef" },
	{ "name = bash", "a" },
	{ "name=bash", "a" },
	{ "name = b*", "a" },
	{ "name = *sh", "abf" },
	{ "name = ?h", "bf" },
	{ "name = !b*", "bcdef" },
	{ "name ~ b*", "a" },
	{ "path = /etc/*", "ab" },
	{ "path=/tmp/x.so", "d" },
	{ "path == /tmp/x.so", "d" },
	{ "comm=x.sh", "c" },
	{ "comm=\"x.sh\"", "c" },
	{ "comm=x*", "c" },
	{ "comm == kworker/0:1", "d" },
	{ "comm=kworker/0:1&&u8=128", "d" },
	{ "u8 = 255", "c" },
	{ "u8=255||u8=0", "ac" },
	{ "s32 = -1", "b" },
	{ "(comm=bash)", "a" },
	{ "(comm=bash||comm=sh)&&u8=1", "b" },
	/* symbols */
	{ "vec == TIMER", "b" },
	{ "vec == \"TIMER\"", "b" },
	{ "vec = NET_RX", "d" },
	{ "vec != HI", "bcdef" },
	{ "vec in {HI, RCU}", "ae" },
	{ "vec in {HI, 10}", "af" },
	{ "!(vec in {HI, TIMER, 10})", "cde" },
	{ "gfp & GFP_A", "bce" },
	{ "gfp & GFP_B", "c" },
	{ "gfp & GFP_A|GFP_B", "bce" },
	{ "gfp & \"GFP_A | GFP_B\"", "bce" },
	{ "gfp == GFP_A|GFP_B", "c" },
	{ "gfp == \"GFP_A|GFP_B\"", "c" },
	{ "gfp & GFP_HIGH", "def" },
	{ "!(gfp & GFP_HIGH)", "abc" },
	{ "gfp == GFP_A || gfp == 0", "ab" },
	{ "state == S", "be" },
	{ "state == \"D\"", "c" },
	{ "state == S|D", "f" },
	{ "state != S", "acdf" },
	{ "state in {S, D}", "bce" },
	{ "state in {S, 256}", "bde" },
	{ "!(state in {S, 256})", "acf" },
	{ "state & S|D", "bcef" },
	{ "flag == true", "bdf" },
	{ "flag == false", "ace" },
	{ "flag != true", "ace" },
	/* who and where */
	{ "tid == 200", "b" },
	{ "tid != 200", "acdef" },
	{ "tid == 500", "e" },
	{ "pid == 100", "ab" },
	{ "pid != 100", "cdf" },
	{ "!(pid == 100)", "cdf" },
	{ "pid in {300, 600}", "cf" },
	{ "uid == 1000", "bf" },
	{ "uid == 0", "a" },
	{ "uid != 0", "bcdf" },
	{ "uid == 4294967295", "c" },
	{ "uid >= 1000", "bcf" },
	{ "tgid == 100", "ab" },
	{ "tgid == 100 && pid != 100", "" },
	{ "gid == 100", "b" },
	{ "gid != 100", "acdf" },
	{ "gid == 0xffffffff", "c" },
	{ "exe == \"/usr/bin/bash\"", "a" },
	{ "exe ^= /usr/bin/d", "bc" },
	{ "!(exe ~ \"*bash\")", "bc" },
	{ "exe != \"\"", "abc" },
	{ "cgroup == \"/\"", "a" },
	{ "cgroup ^= /system.slice/", "b" },
	{ "cgroup ~ \"*.slice*\"", "bc" },
	{ "cgroup != \"/\"", "bc" },
	{ "!(cgroup == \"/\")", "bc" },
	{ "probe == \"open:file\"", "abcdef" },
	{ "probe != \"open:file\"", "" },
	{ "probe = open:*", "abcdef" },
	{ "probe = close:* && u8 == 0", "" },
	{ "probe = close:* || u8 == 0", "a" },
	{ "probe in {\"a\", \"open:file\"}", "abcdef" },
	{ "probe =~ \"^open\"", "abcdef" },
	{ "!(probe ~ \"open*\")", "" },
	/* functions */
	{ "call_site.function == first where first = 0x1000..0x101f", "ab" },
	{ "call_site.function==first\nwhere first=4096..0x101f", "ab" },
	{ "call_site.function != first where first = 0x1000..0x101f", "cdef" },
	{ "!(call_site.function == first) where first = 0x1000..0x101f", "cdef" },
	{ "call_site.function = second.isra.0 where first = 1..2, second.isra.0 = 0x1f00..0x1fff", "c" },
	{ "call_site.function == 0x1018 where 0x1018 = 0x1000..0x101f", "ab" },
	{ "call_site.function == mod:f || u8 == 1 where mod:f = 0xffffffff80000000..0xffffffffffffffff , x = 1..1", "be" },
	{ "call_site in {0x1000..0x101f}", "ab" },
	/* missing things: false, negated or not */
	{ "path == \"x\"", "" },
	{ "path != \"x\"", "abcdf" },
	{ "!(path == \"x\")", "abcdf" },
	{ "!(path != \"x\")", "" },
	{ "CPU >= 0", "abcdf" },
	{ "CPU < 0 || CPU >= 0", "abcdf" },
	{ "!(CPU < 0)", "abcdf" },
	{ "comm ~ \"*\"", "abcdf" },
	{ "comm == \"none\" || u8 == 7", "e" },
	{ "!(comm == \"bash\" && u8 == 0)", "bcdef" },
	/* long ones */
	{ "u8 == 0 || u8 == 2 || u8 == 3 || u8 == 4 || u8 == 5 || u8 == 6 || u8 == 7", "ae" },
	{ "(u8 == 0 && name == bash) || (u8 == 1 && name == bash) || (u8 == 1 && name == sh)", "ab" },
	{ "(path ^= /etc && !(path $= wd)) || (gfp & 0x20 && state & 2)", "bf" },
};

static const struct filter_environment environment = { .probe = "open:file" };

static int compile(const struct schema *schema, const char *text, struct filter_program **ret,
	struct filter_failure *failure)
{
	struct filter_ast *ast;
	int error = filter_parse(text, strlen(text), &ast, failure);

	if (error)
		return error;
	error = filter_compile(ast, schema, &environment, ret, failure);
	filter_ast_release(ast);
	return error;
}

static struct filter_program *compile_good(const struct schema *schema, const char *text)
{
	struct filter_failure failure;
	struct filter_program *program = NULL;
	char shown[1024];

	if (compile(schema, text, &program, &failure)) {
		(void)filter_failure_show(&failure, text, shown, sizeof(shown));
		fail_msg("%s", shown);
	}
	return program;
}

static void accepted(struct filter_program *program, const struct samples *samples, char *ret)
{
	for (size_t i = 0; i < SAMPLE_EVENTS; i++)
		if (filter_match(program, &samples->at[i].event))
			*ret++ = (char)('a' + i);
	*ret = '\0';
}

static void check_rows(const struct samples *samples, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct filter_program *program = compile_good(samples->schema, rows[i].text),
				      *again;
		char got[SAMPLE_EVENTS + 1], *shown;

		accepted(program, samples, got);
		if (strcmp(got, rows[i].accepts) != 0)
			fail_msg("'%s' accepts '%s', not '%s'", rows[i].text, got, rows[i].accepts);
		/* What is shown of a program is the same filter in the same language. */
		assert_int_equal(filter_program_show(program, &shown), 0);
		again = compile_good(samples->schema, shown);
		accepted(again, samples, got);
		if (strcmp(got, rows[i].accepts) != 0)
			fail_msg("'%s', shown as '%s', then accepts '%s', not '%s'", rows[i].text,
				shown, got, rows[i].accepts);
		filter_program_release(again);
		filter_program_release(program);
		free(shown);
	}
}

static void test_kernel_language(void **state)
{
	check_rows(*state, kernel_rows, ARRAY_SIZE(kernel_rows));
}

static void test_own_language(void **state)
{
	check_rows(*state, own_rows, ARRAY_SIZE(own_rows));
}

static void test_enough_rows(void **state)
{
	(void)state;
	assert_true(ARRAY_SIZE(kernel_rows) + ARRAY_SIZE(own_rows) >= 300);
}

/* ---- wrong filters ---- */

struct wrong {
	const char *text;
	int position, length;
	const char *says; /* part of the message */
	const char *near;
};

static const struct wrong wrong_rows[] = {
	/* the language */
	{ "u8", 2, 1, "operator is expected", "" },
	{ "u8 ==", 5, 1, "value is missing", "" },
	{ "== 1", 0, 1, "field's name is expected", "" },
	{ "u8 == 1 &&", 10, 1, "comparison is missing at the end", "" },
	{ "u8 == 1 || || u8 == 2", 11, 1, "field's name", "" },
	{ "u8 == 1 & u8 == 2", 8, 1, "not & alone", "" },
	{ "u8 == 1 | u8 == 2", 8, 1, "not | alone", "" },
	{ "u8 == 1 u8 == 2", 8, 1, "&& or || is expected", "" },
	{ "u8 == 1 and u8 == 2", 8, 1, "&& or || is expected", "" },
	{ "(u8 == 1", 0, 1, "never closed", "" },
	{ "u8 == 1)", 7, 1, "never opened", "" },
	{ "(u8 == 1 u8 == 2)", 9, 1, "&&, || or )", "" },
	{ "()", 1, 1, "before ')'", "" },
	{ "!", 1, 1, "missing", "" },
	{ "\"u8\" == 1", 0, 1, "without quotes", "" },
	{ "name == \"bash", 8, 1, "closing \"", "" },
	{ "name == 'bash\"", 8, 1, "closing '", "" },
	{ "name == \"ba\" \"sh\"", 13, 1, "&& or ||", "" },
	{ "u8 in 1", 6, 1, "in braces", "" },
	{ "u8 in {}", 7, 1, "value is expected", "" },
	{ "u8 in {1,}", 9, 1, "value is expected", "" },
	{ "u8 in {1 2}", 9, 1, "comma", "" },
	{ "u8 in {1, 2", 11, 1, "comma", "" },
	{ "u8 == {1}", 6, 1, "braces follow", "" },
	{ "CPU & CPUS{0", 10, 1, "closing }", "" },
	{ "CPU & CPUS {0}", 11, 1, "&& or ||", "" },
	{ "u8.x == 1", 2, 2, ".ustring", "" },
	{ "u8.functoin == 1", 2, 9, ".function", ".function" },
	{ "u8 <> 1", 4, 1, "value is expected", "" },
	{ "u8 => 1", 4, 1, "value is expected", "" },
	{ "u8 == 1;", 6, 2, "no number", "" },
	/* fields */
	{ "nofield == 1", 0, 7, "tests:sample has no field 'nofield'", "" },
	{ "u8 == 1 && u9 == 2", 11, 2, "no field 'u9'", "u8" },
	{ "nmae == \"x\"", 0, 4, "no field 'nmae'", "name" },
	{ "Path == \"x\"", 0, 4, "no field", "path, ptr" },
	{ "pth == \"x\"", 0, 3, "no field", "path, ptr, pid" },
	{ "commn_pid == 1", 0, 9, "no field", "common_pid" },
	{ "site == 1", 0, 4, "no field", "state, call_site" },
	/* values */
	{ "u8 == 256", 6, 3, "from 0 to 255", "" },
	{ "u8 == -1", 6, 2, "unsigned in this event; the same bits as a number without sign: 0xff", "" },
	{ "u64 == -1", 7, 2, "0xffffffffffffffff", "" },
	{ "u64 == 18446744073709551616", 7, 20, "from 0 to 18446744073709551615", "" },
	{ "s8 == 256", 6, 3, "from -128 to 127", "" },
	{ "s8 == -129", 6, 4, "from -128 to 127", "" },
	{ "s8 < 200", 5, 3, "these bits are -56", "" },
	{ "s64 < 9223372036854775808", 6, 19, "signed", "" },
	{ "s32 == 0x1ffffffff", 7, 11, "4 bytes", "" },
	{ "u8 == 08", 6, 2, "no number", "" },
	{ "u8 == 0x", 6, 2, "no number", "" },
	{ "u8 == 1k", 6, 2, "no number", "" },
	{ "u8 == 0b1", 6, 3, "no number", "" },
	{ "u8 == bash", 6, 4, "no names of its values are known", "" },
	{ "u8 == \"1\"", 7, 1, "no number", "" },
	{ "u8 < \"1\"", 6, 1, "without quotes", "" },
	{ "u8 ~ 1", 3, 1, "'u8' is a number: ~ is for strings", "" },
	{ "u8 =~ \"1\"", 3, 2, "'u8' is a number: =~ is for strings", "" },
	{ "u8 ^= 1", 3, 2, "for strings", "" },
	{ "u8 in {1..300}", 10, 3, "from 0 to 255", "" },
	{ "u8 in {9..1}", 7, 4, "ends before it begins", "" },
	{ "u8 in {1..}", 10, 1, "no number", "" },
	{ "name < \"bash\"", 5, 1, "'name' is a string: < is for numbers", "" },
	{ "name & 1", 5, 1, "for numbers", "" },
	{ "name == b*", 8, 2, "write ~ for a pattern", "" },
	{ "name in {ba?h}", 9, 4, "write ~ for a pattern", "" },
	{ "name == CPUS{1}", 13, 1, "not a CPU", "" },
	{ "name == 1", 8, 1, "'name' is a string: put '1' in quotes", "" },
	{ "name != -0x1f", 8, 5, "'name' is a string: put '-0x1f' in quotes", "" },
	{ "path = 017", 7, 3, "in quotes", "" },
	{ "path ~ 99999999999999999999", 7, 20, "in quotes", "" },
	{ "path !~ 1", 8, 1, "in quotes", "" },
	{ "comm in {bash, 1}", 15, 1, "'comm' is a string: put '1' in quotes", "" },
	{ "comm in {1..5}", 9, 4, "'comm' is a string: put '1..5' in quotes", "" },
	{ "args == 1", 0, 4, "array", "" },
	{ "mask == 1", 5, 2, "set of CPUs", "" },
	{ "mask < CPUS{1}", 5, 1, "set of CPUs", "" },
	{ "CPU & CPUS{}", 11, 1, "looks like 0-2,5", "" },
	{ "CPU & CPUS{2-1}", 14, 1, "looks like 0-2,5", "" },
	{ "CPU & CPUS{1,x}", 13, 1, "looks like 0-2,5", "" },
	{ "CPU & CPUS{99999}", 16, 1, "looks like 0-2,5", "" },
	{ "CPU < CPUS{1}", 4, 1, "compared by == != or &", "" },
	{ "CPU in {CPUS{1}}", 4, 2, "compared by == != or &", "" },
	{ "ptr == \"x\"", 8, 1, "holds an address", "" },
	{ "ptr.ustring == \"x\"", 0, 3, "address of the traced process", "" },
	{ "u8.function == first", 0, 2, "no address", "" },
	{ "call_site.function < first", 19, 1, "== or !=", "" },
	{ "call_site.function == third", 22, 5, "the function 'third' of the traced kernel", "" },
	{ "call_site.function == third where thir = 1..2, third2 = 1..2", 22, 5, "not known here", "" },
	{ "call_site.function == f where f = 1..", 34, 3, "LOW..HIGH", "" },
	{ "call_site.function == f where f = 2..1", 34, 4, "LOW..HIGH", "" },
	{ "call_site.function == f where f = -2..1", 34, 5, "LOW..HIGH", "" },
	{ "call_site.function == f where f = 1", 34, 1, "LOW..HIGH", "" },
	{ "call_site.function == f where", 29, 1, "missing at the end", "" },
	{ "call_site.function == f where f", 31, 1, "NAME = LOW..HIGH", "" },
	{ "call_site.function == f where f = 1..2,", 39, 1, "missing at the end", "" },
	{ "call_site.function == f where f = 1..2 u8 == 1", 39, 1, "&& or ||", "" },
	{ "call_site.function == f wherever f = 1..2", 24, 1, "&& or ||", "" },
	{ "vec == TIMRE", 7, 5, "never printed as 'TIMRE'", "TIMER" },
	{ "vec == timer", 7, 5, "never printed", "TIMER" },
	{ "vec == BLOCK", 7, 5, "does not say which number 'BLOCK' is", "" },
	{ "gfp & GFP_A|GFP_C", 12, 5, "never printed as 'GFP_C'", "GFP_A, GFP_B" },
	{ "flag == yes", 8, 3, "no names", "" },
	/* regular expressions */
	{ "name =~ \"(\"", 10, 1, "missing closing parenthesis", "" },
	{ "name =~ \"a(b\"", 12, 1, "missing closing parenthesis", "" },
	{ "name =~ \"[z-a]\"", 12, 1, "range out of order", "" },
	{ "name =~ \"*\"", 9, 1, "quantifier does not follow", "" },
	{ "name =~ \"a(*SKIP)b\"", 9, 9, "not allowed", "" },
	{ "name =~ \"(*UTF)a\"", 9, 7, "not allowed", "" },
	{ "name =~ \"a(?R)?b\"", 9, 7, "not allowed", "" },
};

static void test_wrong(void **state)
{
	const struct samples *samples = *state;
	unsigned int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wrong_rows); i++) {
		const struct wrong *row = &wrong_rows[i];
		struct filter_program *program = NULL;
		struct filter_failure failure;

		if (!compile(samples->schema, row->text, &program, &failure))
			fail_msg("'%s' is accepted", row->text);
		if (failure.position != row->position || failure.length != row->length ||
			!strstr(failure.message, row->says) ||
			strcmp(failure.near, row->near) != 0) {
			print_error("'%s' fails at %d+%d: %s (near: %s)\n", row->text,
				failure.position, failure.length, failure.message, failure.near);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

static void test_failure_shown(void **state)
{
	const struct samples *samples = *state;
	static const char text[] = "u8 == 1 &&\n\tnmae == \"x\" &&\nu16 == 2";
	struct filter_program *program = NULL;
	struct filter_failure failure;
	char shown[256], small[20];
	int size;

	assert_int_equal(compile(samples->schema, text, &program, &failure), -22);
	size = filter_failure_show(&failure, text, shown, sizeof(shown));
	assert_string_equal(shown, "   nmae == \"x\" &&\n"
				   "   ^~~~\n"
				   "tests:sample has no field 'nmae'; near: name\n");
	assert_int_equal(size, strlen(shown));
	assert_int_equal(filter_failure_show(&failure, text, small, sizeof(small)), size);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	/* A place behind the end, and none at all. */
	assert_int_equal(compile(samples->schema, "u8 ==", &program, &failure), -22);
	(void)filter_failure_show(&failure, "u8 ==", shown, sizeof(shown));
	assert_string_equal(shown, "  u8 ==\n       ^\na value is missing at the end\n");
	failure.position = -1;
	(void)filter_failure_show(&failure, "u8 ==", shown, sizeof(shown));
	assert_string_equal(shown, "a value is missing at the end\n");
}

/* ---- limits ---- */

static char *repeat(const char *part, size_t times, const char *end)
{
	size_t size = strlen(part);
	char *text = malloc(times * size + strlen(end) + 1);

	assert_non_null(text);
	for (size_t i = 0; i < times; i++)
		memcpy(text + i * size, part, size);
	memcpy(text + times * size, end, strlen(end) + 1);
	return text;
}

static int compile_repeated(const struct schema *schema, const char *part, size_t times,
	const char *end, struct filter_failure *failure)
{
	struct filter_program *program = NULL;
	char *text = repeat(part, times, end);
	int error = compile(schema, text, &program, failure);

	filter_program_release(program);
	free(text);
	return error;
}

static void test_limits(void **state)
{
	const struct samples *samples = *state;
	struct filter_failure failure;

	assert_int_equal(
		compile_repeated(samples->schema, "!", FILTER_DEPTH_MAX - 1, "u8==1", &failure), 0);
	assert_int_equal(
		compile_repeated(samples->schema, "!", FILTER_DEPTH_MAX, "u8==1", &failure), -7);
	assert_int_equal(failure.position, FILTER_DEPTH_MAX);
	assert_int_equal(
		compile_repeated(samples->schema, "(", FILTER_DEPTH_MAX, "u8==1", &failure), -7);
	assert_int_equal(compile_repeated(samples->schema, "u8==1||", FILTER_TESTS_MAX - 1, "u8==1",
				 &failure),
		0);
	assert_int_equal(
		compile_repeated(samples->schema, "u8==1||", FILTER_TESTS_MAX, "u8==1", &failure),
		-7);
	assert_int_equal(compile_repeated(samples->schema, " ", FILTER_TEXT_MAX, "", &failure), 0);
	assert_int_equal(
		compile_repeated(samples->schema, " ", FILTER_TEXT_MAX + 1, "", &failure), -7);
	assert_int_equal(
		compile_repeated(samples->schema, "x", FILTER_TEXT_MAX + 1, "", &failure), -7);
}

static void test_nul_inside(void **state)
{
	static const char text[] = "u8 == 1\0 || u8 == 2";
	struct filter_failure failure;
	struct filter_ast *ast = NULL;

	(void)state;
	assert_int_equal(filter_parse(text, sizeof(text) - 1, &ast, &failure), -22);
	assert_int_equal(failure.position, 7);
}

/* A pattern that backtracks without end on the names it is meant for gives up, and is counted. */
static void test_regex_bound(void **state)
{
	const struct samples *samples = *state;
	struct filter_program *program =
		compile_good(samples->schema, "path =~ \"^(a+)+$\" || path =~ \"(x+x+)+[yz]\"");
	struct samples long_path;
	char path[201];

	assert_int_equal(samples_create(&long_path), 0);
	memset(path, 'a', 200);
	path[199] = '!';
	path[200] = '\0';
	sample_text(&long_path, &long_path.at[0], "path", path);
	long_path.at[0].event.size = long_path.at[0].used;
	assert_int_equal(filter_program_limited(program), 0);
	assert_false(filter_match(program, &long_path.at[0].event));
	assert_int_equal(filter_program_limited(program), 1);
	memset(path, 'x', 200);
	sample_make(&long_path, 1);
	sample_text(&long_path, &long_path.at[1], "path", path);
	long_path.at[1].event.size = long_path.at[1].used;
	assert_false(filter_match(program, &long_path.at[1].event));
	assert_int_equal(filter_program_limited(program), 2);
	samples_release(&long_path);
	filter_program_release(program);
}

/* ---- the environment ---- */

static void test_unknown_in_session(void **state)
{
	const struct samples *samples = *state;
	const struct filter_environment poor = { .lacks =
							 FILTER_PROCESS };
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;

	assert_int_equal(filter_parse("u8 == 1 && uid == 0", 19, &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, &poor, &program, &failure), -22);
	assert_int_equal(failure.position, 11);
	assert_non_null(strstr(failure.message, "'uid' is not known in this session"));
	filter_ast_release(ast);

	/* Where processes are not told apart, pid is the thread's, as ftrace shows it. */
	assert_int_equal(filter_parse("pid == 200", 10, &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, &poor, &program, &failure), 0);
	assert_true(filter_match(program, &samples->at[1].event));
	assert_false(filter_match(program, &samples->at[0].event));
	assert_int_equal(filter_program_facts(program), 0);
	filter_program_release(program);
	filter_ast_release(ast);

	/* Functions that nobody can look up; no probe name. */
	assert_int_equal(filter_parse("call_site.function == x", 23, &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, NULL, &program, &failure), -22);
	assert_int_equal(failure.position, 22);
	filter_ast_release(ast);
	assert_int_equal(filter_parse("probe != \"x\"", 12, &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, NULL, &program, &failure), 0);
	assert_true(filter_program_accepts_none(program));
	filter_program_release(program);
	filter_ast_release(ast);
}

/* One filter for several kinds of events: a field that this kind lacks makes comparisons false. */
static void test_lenient(void **state)
{
	static const struct row rows[] = {
		{ "nofield == 1", "" },
		{ "nofield != 1", "" },
		{ "!(nofield == 1)", "" },
		{ "nofield == 1 || u8 == 0", "a" },
		{ "!(nofield == 1 && u8 == 0)", "bcdef" },
	};
	const struct filter_environment lenient = { .flags = FILTER_LENIENT };
	const struct samples *samples = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct filter_program *program;
		struct filter_failure failure;
		struct filter_ast *ast;
		char got[SAMPLE_EVENTS + 1];

		assert_int_equal(
			filter_parse(rows[i].text, strlen(rows[i].text), &ast, &failure), 0);
		assert_int_equal(
			filter_compile(ast, samples->schema, &lenient, &program, &failure), 0);
		accepted(program, samples, got);
		assert_string_equal(got, rows[i].accepts);
		filter_program_release(program);
		filter_ast_release(ast);
	}
}

/* ... unless all kinds of events that the filter is for are known, and lack it, too. */
static void test_lenient_among_known(void **state)
{
	static const char format[] =
		"name: small\nID: 1001\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:u8 small;\toffset:8;\tsize:1;\tsigned:0;\n\nprint fmt: \"%u\", REC->small\n";
	static const char text[] = "u8 == 0 || small == 1 || smal == 1";
	const struct samples *samples = *state;
	struct filter_environment lenient = { .flags = FILTER_LENIENT };
	const struct schema *others[1];
	struct filter_program *program;
	struct filter_failure failure;
	struct catalog_event *event;
	struct filter_ast *ast;
	const char *what;
	char got[SAMPLE_EVENTS + 1];

	assert_int_equal(catalog_add(samples->catalog, "tests", format, strlen(format), &event, &what), 0);
	others[0] = &event->schema;
	lenient.others = others;
	assert_int_equal(filter_parse(text, strlen(text), &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, &lenient, &program, &failure), -22);
	assert_int_equal(failure.position, strlen("u8 == 0 || "));
	assert_string_equal(failure.message, "tests:sample has no field 'small'");
	lenient.other_count = 1;
	assert_int_equal(filter_compile(ast, samples->schema, &lenient, &program, &failure), -22);
	assert_int_equal(failure.position, strlen("u8 == 0 || small == 1 || "));
	assert_string_equal(failure.message, "none of the events has a field 'smal'");
	assert_non_null(strstr(failure.near, "small"));
	filter_ast_release(ast);
	assert_int_equal(filter_parse(text, strlen("u8 == 0 || small == 1"), &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, samples->schema, &lenient, &program, &failure), 0);
	accepted(program, samples, got);
	assert_string_equal(got, "a");
	filter_program_release(program);
	filter_ast_release(ast);
}

static void test_facts(void **state)
{
	static const struct {
		const char *text;
		uint32_t facts;
	} rows[] = {
		{ "u8 == 1", 0 },
		{ "tid == 1", 0 },
		{ "pid == 1", FILTER_TGID },
		{ "CPU == 1 && comm == x", FILTER_CPU | FILTER_COMM },
		{ "uid == 1 || cgroup == x", FILTER_UID | FILTER_CGROUP },
		{ "gid == 1 || exe == x && tgid == 1", FILTER_GID | FILTER_EXE | FILTER_TGID },
		{ "probe == x && uid == 1", 0 },
	};
	const struct samples *samples = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct filter_program *program = compile_good(samples->schema, rows[i].text);

		assert_int_equal(filter_program_facts(program), rows[i].facts);
		filter_program_release(program);
	}
}

/* A payload that ends early lacks the fields behind its end, and nothing outside of it is read. */
static void test_short_payloads(void **state)
{
	const struct samples *samples = *state;
	const struct sample *sample = &samples->at[0];
	struct filter_program *program =
		compile_good(samples->schema, "u8 >= 0 && s64 == 0 && name ~ \"*\" && path ^= / && "
					      "rel ~ \"*\" && mask & CPUS{0}");

	assert_true(filter_match(program, &sample->event));
	for (uint32_t size = 0; size < sample->used - 4; size++) {
		struct filter_event event = sample->event;
		uint8_t *cut = malloc(size ? size : 1);

		assert_non_null(cut);
		memcpy(cut, sample->payload, size);
		event.payload = cut;
		event.size = size;
		assert_false(filter_match(program, &event));
		free(cut);
	}
	filter_program_release(program);
}

/* A text session's payload: what its line showed is there, the rest is missing. */
static void test_text_source(void **state)
{
	static const struct {
		const char *text;
		bool accepts;
	} rows[] = {
		{ "name == bash", true },
		{ "name == sh", false },
		{ "vec == 1", true },
		{ "vec in {0..5} && name ~ \"b*\"", true },
		{ "vec == TIMER", true },
		{ "s32 == 0", false },
		{ "u64 >= 0", false },
		{ "u8 == 0", false },
		{ "u8 != 0", false },
		{ "!(u8 == 0)", false },
		{ "u8 == 0 || name == bash", true },
		{ "path == \"/etc/passwd\"", true },
		{ "rel == \"a b\"", true },
		{ "text *= \"vec=1\"", true },
		{ "tid == 7 && CPU == 1 && comm == x", true },
		{ "common_pid == 7", true },
	};
	static const char body[] = "name=bash path=/etc/passwd rel=a b gfp=0 vec=1 [action=TIMER] state=R";
	const struct samples *samples = *state;
	const struct text_piece piece = { body, sizeof(body) - 1 };
	struct filter_event event = {
		.facts = FILTER_TID | FILTER_CPU | FILTER_COMM, .tid = 7, .cpu = 1, .comm = "x",
	};
	const struct filter_environment text_environment = {
		.binary = samples->schema,
	};
	uint8_t payload[4096];
	struct schema schema;
	bool suspect;
	void *bytes;
	size_t size;

	assert_int_equal(text_schema_make(samples->schema, "tests", "sample", &bytes, &size), 0);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(text_fields_encode(&schema, &piece, payload, sizeof(payload), &event.size,
				 &suspect),
		0);
	event.payload = payload;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct filter_program *program;
		struct filter_failure failure;
		struct filter_ast *ast;

		assert_int_equal(filter_parse(rows[i].text, strlen(rows[i].text), &ast, &failure), 0);
		assert_int_equal(filter_compile(ast, &schema, &text_environment, &program, &failure), 0);
		filter_ast_release(ast);
		if (filter_match(program, &event) != rows[i].accepts)
			fail_msg("'%s' %s", rows[i].text, rows[i].accepts ? "rejects" : "accepts");
		filter_program_release(program);
	}
	free(bytes);
}

/* What becomes of a filter in a text session: the router reads lines, in which every number has 8
 * bytes, but compares by the kernel's widths; and the kernel gets what it can say of its own event. */
static void test_halves_of_text(void **state)
{
	static const char format[] =
		"name: small\nID: 1001\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:s32 ret;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:u8 kind;\toffset:12;\tsize:1;\tsigned:0;\n"
		"\tfield:u8 hidden;\toffset:13;\tsize:1;\tsigned:0;\n\n"
		"print fmt: \"ret=%x kind=%u\", REC->ret, REC->kind\n";
	static const struct {
		const char *text;
		bool accepts; /* ret=ffffffff kind=200 */
		const char *kernel;
	} rows[] = {
		{ "ret == -1", true, "ret == -1" },
		{ "ret == 0xffffffff", true, "ret == -1" },
		{ "ret != 0xffffffff", false, "ret != -1" },
		{ "ret & 0x80000000", true, "ret & -2147483648" },
		{ "kind > 199", true, "kind >= 200" },
		{ "kind == 200 && common_pid == 7", true, "common_pid == 7 && kind == 200" },
		/* What only lines have. */
		{ "text *= \"=ff\"", true, "0" },
		{ "text *= \"=ff\" && kind == 200", true, "kind == 200" },
		{ "text *= \"=ff\" || kind == 1", true, "0" },
		{ "!(text *= \"=ff\") || kind == 1", false, "0" },
		/* What only the kernel has. */
		{ "hidden == 0", false, "hidden == 0" },
		{ "!(hidden == 0)", false, "hidden >= 1" },
		/* What only another event has. */
		{ "u16 == 3 || kind == 200", true, "kind == 200" },
		{ "!(u16 == 3) && kind == 200", false, "common_type < 0" },
	};
	static const char body[] = "ret=ffffffff kind=200";
	const struct samples *samples = *state;
	const struct text_piece piece = { body, sizeof(body) - 1 };
	struct filter_event event = { .facts = FILTER_TID, .tid = 7 };
	struct filter_environment by_text = { .flags = FILTER_LENIENT, .others = &samples->schema,
		.other_count = 1 };
	_Alignas(uint64_t) uint8_t payload[512];
	struct catalog_event *kind;
	struct schema schema;
	const char *reason;
	bool suspect;
	void *bytes;
	size_t size;

	assert_int_equal(catalog_add(samples->catalog, "tests", format, strlen(format), &kind, &reason), 0);
	assert_int_equal(text_schema_make(&kind->schema, "tests", "small", &bytes, &size), 0);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(text_fields_encode(&schema, &piece, payload, sizeof(payload), &event.size, &suspect), 0);
	event.payload = payload;
	by_text.binary = &kind->schema;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct filter_environment for_kernel = by_text;
		struct filter_program *program, *half = NULL;
		struct filter_failure failure;
		struct filter_ast *ast;
		char *kernel;
		bool exact;

		for_kernel.text = &schema;
		assert_int_equal(filter_parse(rows[i].text, strlen(rows[i].text), &ast, &failure), 0);
		if (filter_compile(ast, &schema, &by_text, &program, &failure) ||
			filter_compile(ast, &kind->schema, &for_kernel, &half, &failure))
			fail_msg("'%s': %s", rows[i].text, failure.message);
		filter_ast_release(ast);
		if (filter_match(program, &event) != rows[i].accepts)
			fail_msg("'%s' %s", rows[i].text, rows[i].accepts ? "rejects" : "accepts");
		assert_int_equal(filter_kernel_text(half, FILTER_KERNEL_TEXT_MAX, &kernel, &exact), 0);
		assert_string_equal(kernel, rows[i].kernel);
		free(kernel);
		filter_program_release(program);
		filter_program_release(half);
	}
	free(bytes);
}

/* A recording of a big-endian machine whose longs have 4 bytes: numbers, arrays, places and masks. */
static void test_other_order(void **state)
{
	static const struct row rows[] = {
		{ "u16 == 0x1234", "x" },
		{ "s32 == -2", "x" },
		{ "s32 < 0 && u32 == 5", "x" },
		{ "saddr == 0x7f000001", "x" },
		{ "path == abc", "x" },
		{ "mask & CPUS{0}", "" },
		{ "mask == CPUS{33}", "x" },
		{ "u32 in {5, 0x05000000}", "x" },
		{ "u32 == 0x05000000", "" },
	};
	static const uint8_t values[] = { 0, 7, 0x12, 0x34, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfe, 127, 0, 0, 1,
		0, 4, 0, 24, 0, 8, 0, 28, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 2 };
	static const char format[] =
		"name: other\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:u16 u16;\toffset:2;\tsize:2;\tsigned:0;\n"
		"\tfield:u32 u32;\toffset:4;\tsize:4;\tsigned:0;\n"
		"\tfield:s32 s32;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:u8 saddr[4];\toffset:12;\tsize:4;\tsigned:0;\n"
		"\tfield:__data_loc char[] path;\toffset:16;\tsize:4;\tsigned:0;\n"
		"\tfield:__data_loc cpumask_t mask;\toffset:20;\tsize:4;\tsigned:0;\n"
		"\nprint fmt: \"%s\", __get_str(path)\n";
	const struct filter_event event = { .payload = values, .size = sizeof(values) };
	struct catalog_event *kind;
	struct catalog *catalog;
	const char *reason;

	(void)state;
	assert_int_equal(catalog_create(true, 4, &catalog), 0);
	if (catalog_add(catalog, "tests", format, strlen(format), &kind, &reason)) fail_msg("%s", reason);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct filter_program *program = compile_good(&kind->schema, rows[i].text);

		if (filter_match(program, &event) != (*rows[i].accepts == 'x'))
			fail_msg("'%s'", rows[i].text);
		filter_program_release(program);
	}
	catalog_release(catalog);
}

static int setup(void **state)
{
	static struct samples samples;

	*state = &samples;
	return samples_create(&samples);
}

static int teardown(void **state)
{
	samples_release(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_language),
		cmocka_unit_test(test_own_language),
		cmocka_unit_test(test_enough_rows),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_failure_shown),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nul_inside),
		cmocka_unit_test(test_regex_bound),
		cmocka_unit_test(test_unknown_in_session),
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_lenient_among_known),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_short_payloads),
		cmocka_unit_test(test_text_source),
		cmocka_unit_test(test_halves_of_text),
		cmocka_unit_test(test_other_order),
	};

	return cmocka_run_group_tests_name("filter", tests, setup, teardown);
}
