/* Wrong filters, row by row: what is said of each, and where. */
#include "tests/router/filter_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/checked.h"

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
	{ "nofield == 1", 0, 7, "open:file has no field 'nofield'; its fields: u8, s8, u16, s16, flag, u32, s32, u64, s64, name, ...", "" },
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
	/* A decimal number is a value, not bits. */
	{ "s8 == 128", 6, 3, "at most 127, or bits in hexadecimal; these bits are -128", "" },
	{ "s8 != 255", 6, 3, "at most 127", "" },
	{ "s16 == 65535", 7, 5, "at most 32767", "" },
	{ "s32 == 4294967295", 7, 10, "at most 2147483647", "" },
	{ "s32 in {1, 4294967295}", 11, 10, "at most 2147483647", "" },
	{ "s32 & 4294967295", 6, 10, "at most 2147483647", "" },
	{ "s64 == 18446744073709551615", 7, 20, "at most 9223372036854775807", "" },
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

		if (!sample_compile(samples->schema, row->text, &program, &failure))
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

	assert_int_equal(sample_compile(samples->schema, text, &program, &failure), -22);
	size = filter_failure_show(&failure, text, shown, sizeof(shown));
	assert_string_equal(shown, "   nmae == \"x\" &&\n"
				   "   ^~~~\n"
				   "open:file has no field 'nmae'; near: name\n");
	assert_int_equal(size, strlen(shown));
	assert_int_equal(filter_failure_show(&failure, text, small, sizeof(small)), size);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	/* A place behind the end, and none at all. */
	assert_int_equal(sample_compile(samples->schema, "u8 ==", &program, &failure), -22);
	(void)filter_failure_show(&failure, "u8 ==", shown, sizeof(shown));
	assert_string_equal(shown, "  u8 ==\n       ^\na value is missing at the end\n");
	failure.position = -1;
	(void)filter_failure_show(&failure, "u8 ==", shown, sizeof(shown));
	assert_string_equal(shown, "a value is missing at the end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_failure_shown),
	};

	return cmocka_run_group_tests_name("filter_wrong", tests, samples_setup, samples_teardown);
}
