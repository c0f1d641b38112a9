/* What a filter's meaning depends on beside its text: what is known in the session, other kinds of events, short payloads,
 * the layouts of text sessions and of other machines. */
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

static struct filter_program *compile_in(const struct schema *schema, const struct filter_environment *environment,
	const char *text)
{
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;

	if (filter_parse(text, strlen(text), &ast, &failure) || filter_compile(ast, schema, environment, &program, &failure))
		fail_msg("'%s': %s at %d", text, failure.message, failure.position);
	filter_ast_release(ast);
	return program;
}

static struct filter_program *compile_good(const struct schema *schema, const char *text)
{
	return compile_in(schema, NULL, text);
}

static void accepted(struct filter_program *program, const struct samples *samples, char *ret)
{
	for (size_t i = 0; i < SAMPLE_EVENTS; i++)
		if (filter_match(program, &samples->at[i].event))
			*ret++ = (char)('a' + i);
	*ret = '\0';
}

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
	assert_string_equal(
		failure.message, "tests:sample has no field 'small'; its fields: u8, s8, u16, s16, flag, u32, s32, u64, s64, name, ...");
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

/* What the kernel gets of a filter for lines with the schema `text`. */
static void check_kernel_half(const struct catalog_event *kind, const struct schema *text, struct filter_environment environment,
	const char *filter, const char *wanted)
{
	struct filter_program *half;
	char *kernel;
	bool exact;

	environment.text = text;
	half = compile_in(&kind->schema, &environment, filter);
	assert_int_equal(filter_kernel_text(half, FILTER_KERNEL_TEXT_MAX, &kernel, &exact), 0);
	assert_string_equal(kernel, wanted);
	free(kernel);
	filter_program_release(half);
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
		struct filter_program *program = compile_in(&schema, &by_text, rows[i].text);

		if (filter_match(program, &event) != rows[i].accepts)
			fail_msg("'%s' %s", rows[i].text, rows[i].accepts ? "rejects" : "accepts");
		filter_program_release(program);
		check_kernel_half(kind, &schema, by_text, rows[i].text, rows[i].kernel);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_in_session),
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_lenient_among_known),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_short_payloads),
		cmocka_unit_test(test_text_source),
		cmocka_unit_test(test_halves_of_text),
		cmocka_unit_test(test_other_order),
	};

	return cmocka_run_group_tests_name("filter_environment", tests, samples_setup, samples_teardown);
}
