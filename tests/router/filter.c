/* The filter language, row by row: which of the events a to f (tests/router/filter_events.h) each expression
 * accepts; limits of size and work. */
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
	{ "s8 == 0xff", "b" },
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
	{ "s32 == 037777777777", "b" },
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
	{ "name =~ \"(?x) b a # a comment ends the pattern\"", "a" },
	{ "name =~ \"(?x) \\Qba\"", "a" },
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

static struct filter_program *compile_good(const struct schema *schema, const char *text)
{
	struct filter_failure failure;
	struct filter_program *program = NULL;
	char shown[1024];

	if (sample_compile(schema, text, &program, &failure)) {
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
	int error = sample_compile(schema, text, &program, failure);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_language),
		cmocka_unit_test(test_own_language),
		cmocka_unit_test(test_enough_rows),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nul_inside),
		cmocka_unit_test(test_regex_bound),
	};

	return cmocka_run_group_tests_name("filter", tests, samples_setup, samples_teardown);
}
