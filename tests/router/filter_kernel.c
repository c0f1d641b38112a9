/* The kernel's half of filters: the texts, row by row; unions; and texts that have to be made
 * shorter. */
#include "tests/router/filter_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/checked.h"

static const struct filter_environment environment = { .probe = "open", .lacks = FILTER_UID };

static struct filter_program *compile(const struct schema *schema, const char *text)
{
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;

	if (filter_parse(text, strlen(text), &ast, &failure) ||
		filter_compile(ast, schema, &environment, &program, &failure))
		fail_msg("'%s': %s at %d", text, failure.message, failure.position);
	filter_ast_release(ast);
	return program;
}

static const struct {
	const char *text, *kernel;
	bool exact;
} kernel_rows[] = {
	/* numbers */
	{ "u8 == 1", "u8 == 1", true },
	{ "u8 != 1", "u8 != 1", true },
	{ "!(u8 == 1)", "u8 != 1", true },
	{ "u8 < 7", "u8 <= 6", true },
	{ "u8 > 7", "u8 >= 8", true },
	{ "s32 == 0xffffffff", "s32 == -1", true },
	{ "u64 > 0x8000000000000000", "u64 >= 9223372036854775809", true },
	{ "s64 < -9223372036854775807", "s64 == -9223372036854775808", true },
	{ "u8 in {1, 3, 5}", "(u8 == 1 || u8 == 3 || u8 == 5)", true },
	{ "!(u8 in {1, 3, 5})", "(u8 != 1 && u8 != 3 && u8 != 5)", true },
	{ "u8 in {1, 2, 3, 9}", "((u8 >= 1 && u8 <= 3) || u8 == 9)", true },
	{ "u8 in {0..5, 250..255}", "(u8 <= 5 || u8 >= 250)", true },
	{ "u8 in {0..100, 102..255}", "u8 != 101", true },
	{ "u8 == 1 || u8 != 1", "0", true },
	{ "u8 == 1 && u8 == 2", "common_type < 0", true },
	{ "u8 & 1", "u8 & 1", true },
	{ "!(u8 & 1)", "!(u8 & 1)", true },
	{ "!(u8 & 3)", "!(u8 & 3)", true },
	{ "s32 & 0x80000000", "s32 & -2147483648", true },
	{ "state == S|D", "(state & 1 && state & 2 && !(state & 252))", true },
	{ "state != S|D", "(!(state & 1) || !(state & 2) || state & 252)", true },
	{ "vec == TIMER", "vec == 1", true },
	{ "tid == 7", "common_pid == 7", true },
	{ "CPU == 1", "CPU == 1", true },
	{ "CPU in {0, 2}", "(CPU == 0 || CPU == 2)", true },
	{ "CPU & CPUS{0-2}", "(CPU >= 0 && CPU <= 2)", true },
	/* what the kernel gets wrong or lacks */
	{ "CPU & 1", "0", false },
	{ "pid == 7", "0", false },
	{ "saddr == 1", "0", false },
	{ "mask & CPUS{0}", "0", false },
	{ "name =~ \"^b\"", "0", false },
	{ "cgroup == \"/\"", "0", false },
	{ "name =~ \"^b\" && u8 == 1", "u8 == 1", false },
	{ "name =~ \"^b\" || u8 == 1", "0", false },
	{ "!(name =~ \"^b\" && u8 == 1)", "0", false },
	{ "!(name =~ \"^b\" || u8 == 1)", "u8 != 1", false },
	{ "(name =~ b && u8 == 1) || u8 == 2", "(u8 >= 1 && u8 <= 2)", false },
	{ "probe == open && u8 == 1", "u8 == 1", true },
	{ "probe == close && u8 == 1", "common_type < 0", true },
	{ "probe == close || u8 == 1", "u8 == 1", true },
	/* strings of fixed room */
	{ "name == bash", "name == \"bash\"", true },
	{ "name != bash", "name != \"bash\"", true },
	{ "name == 'a\"b'", "name == 'a\"b'", true },
	{ "name in {bash, sh}", "(name == \"bash\" || name == \"sh\")", true },
	{ "!(name in {bash, sh})", "(name != \"bash\" && name != \"sh\")", true },
	{ "name == \"longer than sixteen\"", "common_type < 0", true },
	{ "name != \"longer than sixteen\"", "0", true },
	{ "name ~ \"b*\"", "name ~ \"b*\"", true },
	{ "name ^= b", "name ~ \"b*\"", true },
	{ "name ^= 1", "name ~ \"\\1*\"", true },
	{ "name ^= \"!\"", "name ~ \"\\!*\"", true },
	{ "name ^= \"a*\"", "name ~ \"a\\**\"", true },
	{ "name ~ \"*sh\"", "name ~ \"*\\sh\"", true },
	{ "name ~ \"*as*\"", "name ~ \"*\\as*\"", true },
	{ "name !~ \"*as*\"", "!(name ~ \"*\\as*\")", true },
	{ "name ~ \"!b*\"", "!(name ~ \"b*\")", true },
	{ "name ~ \"b?sh\"", "name ~ \"b?sh\"", true },
	{ "name ~ \"1?\"", "name ~ \"\\1?\"", true },
	{ "name ~ \"[!b]*\"", "name ~ \"[!b]*\"", false },
	{ "name !~ \"[!b]*\"", "0", false },
	{ "name !~ \"[b]*\"", "!(name ~ \"[b]*\")", true },
	{ "name ~ \"\"", "name == \"\"", true },
	{ "name ~ \"*\"", "0", true },
	{ "!(name ^= \"longer than sixteen\")", "0", false },
	/* comm is the kernel's own */
	{ "comm == bash", "COMM == \"bash\"", true },
	{ "comm ~ \"*sh\"", "COMM ~ \"*\\sh\"", true },
	{ "comm !~ \"k*\"", "!(COMM ~ \"k*\")", true },
	/* strings in their own place: one that could not be read is never exact */
	{ "path == \"/x\"", "path == \"/x\"", false },
	{ "path != \"/x\"", "path != \"/x\"", false },
	{ "path == \"\"", "0", false },
	{ "path != \"\"", "path != \"\"", false },
	{ "path in {\"\", x}", "0", false },
	{ "path ^= /x", "path ~ \"/x*\"", false },
	{ "!(path ^= /x)", "!(path ~ \"/x*\")", false },
	{ "path $= x", "path ~ \"*\\x\"", false },
	{ "!(path $= x)", "0", false },
	{ "path ~ \"*\"", "0", false },
	/* the type 1000 is the bytes e8 03 */
	{ "path != \"\xe8\x03\"", "0", false },
	{ "path != \"\xe8x\"", "path != \"\xe8x\"", false },
	{ "!(path ^= \"\xe8\")", "0", false },
	/* relative places, and strings that the kernel doesn't print as such */
	{ "rel == x", "rel == \"x\"", false },
	{ "rel != x", "0", false },
	{ "raw == x", "raw == \"x\"", false },
	{ "raw != x", "0", false },
	{ "raw ^= x", "raw ~ \"x*\"", false },
	{ "raw $= x", "0", false },
	{ "raw *= x", "raw ~ \"*\\x*\"", false },
	{ "!(raw *= x)", "0", false },
	/* logic */
	{ "u8 == 1 && s8 == 2 && u16 == 3", "u8 == 1 && s8 == 2 && u16 == 3", true },
	{ "u8 == 1 && (s8 == 2 || u16 == 3)", "u8 == 1 && (s8 == 2 || u16 == 3)", true },
	{ "u8 == 1 || (s8 == 2 && u16 == 3)", "u8 == 1 || (s8 == 2 && u16 == 3)", true },
	{ "u8 == 1 || (s8 == 2 && path == \"\")", "u8 == 1 || s8 == 2", false },
	{ "", "0", true },
};

static void test_texts(void **state)
{
	const struct samples *samples = *state;
	unsigned int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernel_rows); i++) {
		struct filter_program *program = compile(samples->schema, kernel_rows[i].text);
		char *text;
		bool exact;

		assert_int_equal(
			filter_kernel_text(program, FILTER_KERNEL_TEXT_MAX, &text, &exact), 0);
		if (strcmp(text, kernel_rows[i].kernel) != 0 || exact != kernel_rows[i].exact) {
			print_error("'%s' becomes '%s' (%s)\n", kernel_rows[i].text, text,
				exact ? "exact" : "not exact");
			bad++;
		}
		free(text);
		filter_program_release(program);
	}
	assert_int_equal(bad, 0);
}

/* Strings in the kernel's text have at most 255 bytes, with what has to be escaped. */
static void test_long_strings(void **state)
{
	const struct samples *samples = *state;

	for (int size = 120; size < 400; size++) {
		char filter[512], *text;
		struct filter_program *program;
		bool exact;

		(void)snprintf(filter, sizeof(filter), "path == \"%0*d\"", size, 0);
		program = compile(samples->schema, filter);
		assert_int_equal(
			filter_kernel_text(program, FILTER_KERNEL_TEXT_MAX, &text, &exact), 0);
		assert_string_equal(text, size <= 255 ? filter : "0");
		free(text);
		filter_program_release(program);
	}
}

/* A schema in text form is no layout of the kernel's. */
static void test_text_schema(void **state)
{
	const struct samples *samples = *state;
	struct schema_header header = *samples->schema->header;
	const struct schema text_schema = { &header, samples->schema->fields,
		samples->schema->strings };
	struct filter_program *program;
	char *text;
	bool exact;

	header.flags |= SCHEMA_TEXT;
	program = compile(&text_schema, "u8 == 1");
	assert_int_equal(filter_kernel_text(program, FILTER_KERNEL_TEXT_MAX, &text, &exact), 0);
	assert_string_equal(text, "0");
	assert_false(exact);
	free(text);
	filter_program_release(program);
}

/* ---- unions ---- */

static const struct {
	const char *parts[6];
	const char *shown;
} union_rows[] = {
	{ { "u8 == 1", "u8 == 2" }, "u8 in {1..2}" },
	{ { "u8 == 1", "u8 == 1" }, "u8 == 1" },
	{ { "u8 == 1", "u8 in {3, 5}", "u8 == 3" }, "u8 in {1, 3, 5}" },
	{ { "u8 == 1", "" }, "" },
	{ { "u8 == 1", "u8 == 1 && name == sh" }, "u8 == 1" },
	{ { "u8 == 1 && name == sh", "name == sh" }, "name == \"sh\"" },
	{ { "u8 < 10", "u8 < 20", "u8 == 15" }, "u8 <= 19" },
	{ { "u8 < 10", "u8 >= 10" }, "u8 in {0..255}" },
	{ { "u8 < 10 && s8 == 1", "u8 < 5 && s8 == 1 && u16 == 2" }, "u8 <= 9 && s8 == 1" },
	{ { "name == a", "name == b", "name == a" }, "name in {\"a\", \"b\"}" },
	{ { "name == a", "name != a" }, "name ~ \"*\"" },
	{ { "name != a", "name == b" }, "name != \"a\"" },
	{ { "name != a", "name != b" }, "name ~ \"*\"" },
	{ { "name == a", "name ^= a" }, "name ^= \"a\"" },
	{ { "name ^= ab", "name ^= a", "name *= a" }, "name *= \"a\"" },
	{ { "name =~ x", "name =~ x" }, "name =~ \"x\"" },
	{ { "u8 == 1 && name == sh", "u8 == 2 && name == sh" }, "u8 in {1..2} && name == \"sh\"" },
	{ { "u8 == 1 && name == a", "u8 == 1 && name == b", "u8 == 2 && name in {a, b}" },
		"u8 in {1..2} && name in {\"a\", \"b\"}" },
	{ { "u8 == 1 && s8 == 1 && u16 == 1", "u8 == 1 && s8 == 2 && u16 == 1", "u8 == 1 && s8 == 3 && u16 == 2" },
		"(u8 == 1 && s8 in {1..2} && u16 == 1) || (u8 == 1 && s8 == 3 && u16 == 2)" },
	{ { "u8 & 1", "u8 & 3" }, "u8 & 0x3" },
	{ { "u8 == 1", "s8 == 1", "u8 == 2", "s8 == 1" }, "u8 in {1..2} || s8 == 1" },
	{ { "u8 == 1 || s8 == 1", "s8 == 1 || u8 == 1" }, "u8 == 1 || s8 == 1" },
	{ { "probe == close", "u8 == 1" }, "u8 == 1" },
	{ { "probe == close" }, "probe in {\"\"}" },
};

static void test_unions(void **state)
{
	const struct samples *samples = *state;
	unsigned int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(union_rows); i++) {
		struct filter_program *programs[6], *all;
		size_t count = 0;
		char *shown;

		for (; count < 6 && union_rows[i].parts[count]; count++)
			programs[count] = compile(samples->schema, union_rows[i].parts[count]);
		assert_int_equal(
			filter_union((const struct filter_program *const *)programs, count, &all),
			0);
		assert_int_equal(filter_program_show(all, &shown), 0);
		if (strcmp(shown, union_rows[i].shown) != 0) {
			print_error("row %zu: '%s'\n", i, shown);
			bad++;
		}
		free(shown);
		filter_program_release(all);
		while (count)
			filter_program_release(programs[--count]);
	}
	assert_int_equal(bad, 0);
}

static void test_union_of_none(void **state)
{
	struct filter_program *all;

	(void)state;
	assert_int_equal(filter_union(NULL, 0, &all), 0);
	assert_true(filter_program_accepts_none(all));
	filter_program_release(all);
}

/* Unites what `format` makes of 0 .. count - 1 and returns the kernel's text of it. */
static char *united(const struct samples *samples, const char *format, unsigned int count,
	size_t room, bool *ret_exact)
{
	struct filter_program **programs = calloc(count, sizeof(struct filter_program *)), *all;
	char filter[256], *text;

	assert_non_null(programs);
	for (unsigned int i = 0; i < count; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(filter, sizeof(filter), format, i, i, i);
#pragma GCC diagnostic pop
		programs[i] = compile(samples->schema, filter);
	}
	assert_int_equal(
		filter_union((const struct filter_program *const *)programs, count, &all), 0);
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(
			filter_kernel_text(programs[i], FILTER_KERNEL_TEXT_MAX, &text, ret_exact),
			0);
		free(text);
		filter_program_release(programs[i]);
	}
	free(programs);
	assert_int_equal(filter_kernel_text(all, room, &text, ret_exact), 0);
	filter_program_release(all);
	return text;
}

/* Many consumers' filters shrink to what fits: first exactly, then by accepting more. */
static void test_shortening(void **state)
{
	static const struct {
		const char *format;
		unsigned int count;
		size_t room;
		const char *text;
		bool exact;
	} rows[] = {
		{ "u16 == 7%u", 10, 4095, "(u16 >= 70 && u16 <= 79)", true },
		{ "u8 == %u && name == sh", 100, 4095, "u8 <= 99 && name == \"sh\"", true },
		{ "u8 == %u && name == \"n%u\"", 1, 4095, "u8 == 0 && name == \"n0\"", true },
		/* too long in full: the values of each field by themselves, names by what they
		   begin with */
		{ "u16 == %u && name == \"n%u\"", 1000, 4095, "u16 <= 999 && name ~ \"n*\"",
			false },
		{ "u16 == %u && name == \"%u\"", 1000, 4095, "u16 <= 999", false },
		{ "name == \"/x/%u\"", 1000, 4095, "name ~ \"/x/*\"", false },
		{ "u16 == %u || name == \"/x/%u\"", 1000, 4095, "u16 <= 999 || name ~ \"/x/*\"",
			false },
		/* nothing in common */
		{ "u16 == %u && name =~ \"%u\" && u8 =%u", 200, 100, "u8 <= 199 && u16 <= 199",
			false },
		/* single comparisons beside what the others have in common */
		{ "u16 > %u && name *= b%u || u8 == 3", 1000, 4095, "u8 == 3 || u16 >= 1", false },
		{ "u8 == 1", 1, 8, "u8 == 1", true },
		{ "u8 == 1", 1, 7, "0", false },
		{ "u8 == 1 && s8 == 1", 1, 18, "u8 == 1", false },
	};
	const struct samples *samples = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool exact;
		char *text = united(samples, rows[i].format, rows[i].count, rows[i].room, &exact);

		if (strcmp(text, rows[i].text) != 0 || exact != rows[i].exact)
			fail_msg("%s: '%s' (%s)", rows[i].format, text,
				exact ? "exact" : "not exact");
		free(text);
	}
}

/* Whatever the room, the text fits and what it lacks is lacking from its middle: scattered values
 * come closer. */
static void test_any_room(void **state)
{
	const struct samples *samples = *state;
	char filter[4096] = "u64 in {0";
	struct filter_program *program;
	size_t last = 0;

	for (unsigned int i = 1; i < 200; i++)
		(void)snprintf(filter + strlen(filter), sizeof(filter) - strlen(filter), ", %u%s",
			i * i * i, i == 199 ? "}" : "");
	program = compile(samples->schema, filter);
	for (size_t room = 1; room < 5000; room += 7) {
		bool exact;
		char *text;

		assert_int_equal(
			filter_kernel_text(program, room > 4 ? room : 4, &text, &exact), 0);
		assert_true(strlen(text) < (room > 4 ? room : 4));
		assert_true(strlen(text) >= last || strcmp(text, "0") == 0);
		last = strlen(text);
		free(text);
	}
	filter_program_release(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_long_strings),
		cmocka_unit_test(test_text_schema),
		cmocka_unit_test(test_unions),
		cmocka_unit_test(test_union_of_none),
		cmocka_unit_test(test_shortening),
		cmocka_unit_test(test_any_room),
	};

	return cmocka_run_group_tests_name("filter_kernel", tests, samples_setup, samples_teardown);
}
