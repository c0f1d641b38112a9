/* The index of many consumers' filters: who is found, what is evaluated for it, and changes while
 * it is used. */
#include "tests/router/filter_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/checked.h"
#include "router/filter_pred.h"

#define MANY 1000

static struct filter_program *compile(const struct samples *samples, const char *text)
{
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;

	if (filter_parse(text, strlen(text), &ast, &failure) ||
		filter_compile(ast, samples->schema, NULL, &program, &failure))
		fail_msg("'%s': %s at %d", text, failure.message, failure.position);
	filter_ast_release(ast);
	return program;
}

static void set(
	struct filter_index *index, void *user, const struct samples *samples, const char *text)
{
	struct filter_program *program = compile(samples, text);

	assert_int_equal(filter_index_set(index, user, program), 0);
	filter_program_release(program);
}

/* What is known by one number is what all comparisons say; asked twice, since it is remembered. */
static void check_find(struct filter_index *index, const struct sample *sample, void *const *which, size_t count)
{
	for (int i = 0; i < 2; i++) {
		void *user = NULL;
		enum filter_found one =
			filter_index_find(index, sample->event.payload, sample->event.size, &user);

		if (one == FILTER_NOBODY)
			assert_int_equal(count, 0);
		if (one != FILTER_ONE)
			continue;
		assert_int_equal(count, 1);
		assert_ptr_equal(user, which[0]);
	}
}

/* The consumers, named by letters of `users`, that an event is for, in alphabetical order. */
static const char *found(
	struct filter_index *index, const char *users, const struct sample *sample, char *ret)
{
	void *const *which;
	size_t count = filter_index_match(index, &sample->event, &which);
	bool seen[26] = { false };
	char *at = ret;

	check_find(index, sample, which, count);
	for (size_t i = 0; i < count; i++) {
		size_t user = (size_t)((const char *)which[i] - users);

		assert_false(seen[user]);
		seen[user] = true;
	}
	for (size_t i = 0; i < 26; i++)
		if (seen[i])
			*at++ = (char)('A' + i);
	*at = '\0';
	return ret;
}

static void test_changes(void **state)
{
	const struct samples *samples = *state;
	struct filter_index *index;
	char users[26], got[27];

	assert_int_equal(filter_index_create(1, &index), 0);
	assert_string_equal(found(index, users, &samples->at[0], got), "");
	set(index, &users[0], samples, "u8 == 0");
	set(index, &users[1], samples, "u8 == 1");
	set(index, &users[2], samples, "u8 in {0, 1} && name == bash");
	set(index, &users[3], samples, "name == sh || name == bash || u8 == 0");
	set(index, &users[4], samples, "");
	set(index, &users[5], samples, "u8 < 1");
	set(index, &users[6], samples, "u8 == 0");
	set(index, &users[7], samples, "u8 == 1 && u8 == 2");
	assert_int_equal(filter_index_count(index), 8);
	assert_string_equal(found(index, users, &samples->at[0], got), "ACDEFG");
	assert_string_equal(found(index, users, &samples->at[1], got), "BDE");
	assert_string_equal(found(index, users, &samples->at[2], got), "E");

	set(index, &users[0], samples, "u8 == 255");
	set(index, &users[4], samples, "name == sh");
	set(index, &users[7], samples, "");
	assert_int_equal(filter_index_count(index), 8);
	assert_string_equal(found(index, users, &samples->at[0], got), "CDFGH");
	assert_string_equal(found(index, users, &samples->at[1], got), "BDEH");
	assert_string_equal(found(index, users, &samples->at[2], got), "AH");

	assert_int_equal(filter_index_remove(index, &users[6]), 0);
	assert_int_equal(filter_index_remove(index, &users[6]), -ENOENT);
	assert_int_equal(filter_index_remove(index, &users[20]), -ENOENT);
	assert_int_equal(filter_index_remove(index, &users[7]), 0);
	assert_string_equal(found(index, users, &samples->at[0], got), "CDF");
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(filter_index_remove(index, &users[i]), 0);
	assert_int_equal(filter_index_count(index), 0);
	assert_string_equal(found(index, users, &samples->at[0], got), "");
	/* And again, from nothing. */
	set(index, &users[0], samples, "u8 == 0");
	assert_string_equal(found(index, users, &samples->at[0], got), "A");
	filter_index_release(index);
}

/* Several ways to one consumer still bring it each event once; a missing field brings none. */
static void test_ways(void **state)
{
	const struct samples *samples = *state;
	struct filter_index *index;
	char users[26], got[27];

	assert_int_equal(filter_index_create(2, &index), 0);
	set(index, &users[0], samples,
		"u8 == 0 || s8 == 0 || name == bash || path == \"/etc/passwd\"");
	set(index, &users[1], samples,
		"(u8 == 0 && name == sh) || (s8 == 0 && name == bash) || (s16 == 0 && name == "
		"bash)");
	set(index, &users[2], samples, "path in {\"\", \"/etc/passwd\"}");
	set(index, &users[3], samples, "comm == bash || CPU == 1");
	set(index, &users[4], samples, "u8 in {0, 1, 2, 255} && s8 == -128");
	assert_string_equal(found(index, users, &samples->at[0], got), "ABCD");
	assert_string_equal(found(index, users, &samples->at[1], got), "D");
	assert_string_equal(found(index, users, &samples->at[2], got), "CE");
	assert_string_equal(found(index, users, &samples->at[4], got), "");
	assert_string_equal(found(index, users, &samples->at[5], got), "C");
	filter_index_release(index);
}

static void test_facts(void **state)
{
	const struct samples *samples = *state;
	struct filter_index *index;
	char users[3];

	assert_int_equal(filter_index_create(3, &index), 0);
	assert_int_equal(filter_index_facts(index), 0);
	set(index, &users[0], samples, "comm == bash");
	assert_int_equal(filter_index_facts(index), FILTER_COMM);
	set(index, &users[1], samples, "uid > 5 || u8 == 1");
	assert_int_equal(filter_index_facts(index), FILTER_COMM | FILTER_UID);
	set(index, &users[2], samples, "u8 == 1 && CPU == 3");
	assert_int_equal(filter_index_facts(index), FILTER_COMM | FILTER_UID | FILTER_CPU);
	assert_int_equal(filter_index_remove(index, &users[0]), 0);
	assert_int_equal(filter_index_remove(index, &users[2]), 0);
	assert_int_equal(filter_index_facts(index), FILTER_UID);
	filter_index_release(index);
}

/* The linker puts this in the place of the router's own: it counts what is evaluated. */
bool __real_filter_pred_test(const struct filter_pred *pred, const struct filter_event *event);
bool __wrap_filter_pred_test(const struct filter_pred *pred, const struct filter_event *event);

static size_t evaluations;

bool __wrap_filter_pred_test(const struct filter_pred *pred, const struct filter_event *event)
{
	evaluations++;
	return __real_filter_pred_test(pred, event);
}

/* Adds MANY consumers by the same format with their number in it; returns how many comparisons
 * were evaluated for the first event, whose numbers are 0. */
static size_t count_evaluations(
	const struct samples *samples, const char *format, size_t *ret_found)
{
	static char users[MANY];
	struct filter_index *index;
	void *const *found;
	char text[256];

	assert_int_equal(filter_index_create(4, &index), 0);
	for (unsigned int i = 0; i < MANY; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(text, sizeof(text), format, i, i, i, i);
#pragma GCC diagnostic pop
		set(index, &users[i], samples, text);
	}
	evaluations = 0;
	*ret_found = filter_index_match(index, &samples->at[0].event, &found);
	filter_index_release(index);
	return evaluations;
}

/* Of a thousand consumers with values of their own in one field, the one that the event is for is
 * looked up: nothing is evaluated for the others. */
static void test_looked_up(void **state)
{
	static const struct {
		const char *format;
		size_t evaluations, found;
	} rows[] = {
		{ "u32 == %u", 0, 1 },
		{ "u32 in {%u, 5000}", 0, 1 },
		{ "name == \"x%u\"", 0, 0 },
		{ "u32 == %u && u16 < 3", 1, 1 },
		{ "u16 < 3 && u32 == %u", 1, 1 },
		{ "u32 == %u && path =~ \"^/[x%u]\"", 1, 0 },
		/* Some equalities of one field, side by side, scattered and both. */
		{ "u32 == %u || u32 == 5%u || u32 == 6%u || u32 == 7%u", 0, 1 },
		{ "u32 == %u || u32 == 5000 || u32 == 5001 || u32 == 5002", 0, 1 },
		{ "u32 in {%u, 5000..5063}", 0, 1 },
		{ "(u32 == %u || u32 == 5000 || u32 == 5001) && u16 < 3 && s32 < 3", 2, 1 },
		{ "(u32 == %u && u16 < 3) || (u32 == 5000 && u8 > 3)", 1, 1 },
		/* Of several fields. */
		{ "u32 == %u || name == \"x%u\"", 0, 1 },
		{ "(u32 == %u || name == \"x%u\") && u16 < 3", 1, 1 },
		{ "u16 < 3 && (name == \"x%u\" || (s32 < 3 && u32 == %u))", 2, 1 },
		{ "(u32 == %u || (u32 == 5000 && u16 > 3)) && s32 < 3", 1, 1 },
		/* By what tells them apart, wherever it stands, not by what they ask alike. */
		{ "u8 == 0 && u32 == %u", 1, 1 },
		{ "u8 == 0 && u32 in {%u, 5%u, 6%u} && s8 in {0, 1}", 4, 1 },
		/* Nothing to look up by: each is tried. A range of too many values is, too. */
		{ "u32 > %u", MANY, 0 },
		{ "u32 in {%u, 5000..5065}", MANY, 1 },
		{ "u32 == %u || u32 > 7%u", MANY, 1 },
		{ "u32 != %u", MANY, MANY - 1 },
		{ "name ^= \"x%u\"", MANY, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t found, count = count_evaluations(*state, rows[i].format, &found);

		if (count != rows[i].evaluations || found != rows[i].found)
			fail_msg("'%s': %zu comparisons, %zu found", rows[i].format, count, found);
	}
}

/* What many filters ask alike is asked once per event. */
static void test_asked_once(void **state)
{
	size_t found;

	assert_int_equal(count_evaluations(*state, "u32 != 1%u && path ^= /x", &found), MANY + 1);
	assert_int_equal(found, 0);
	assert_int_equal(count_evaluations(*state, "u32 > %u || path ^= /e", &found), MANY + 1);
	assert_int_equal(found, MANY);
	assert_int_equal(count_evaluations(*state, "path ^= /e", &found), 1);
	assert_int_equal(found, MANY);
}

static enum filter_found find(struct filter_index *index, const struct sample *sample, void **ret)
{
	return filter_index_find(index, sample->event.payload, sample->event.size, ret);
}

/* Filters of one number need nothing but the payload: what is remembered of a value is forgotten when one comes, goes or is
 * replaced. Whatever asks for more is not known by it. */
static void test_known_by_a_number(void **state)
{
	const struct samples *samples = *state;
	const struct sample *zero = &samples->at[0], *one = &samples->at[1];
	struct filter_index *index;
	char users[4];
	void *user;

	assert_int_equal(filter_index_create(6, &index), 0);
	set(index, &users[0], samples, "u8 == 0");
	assert_int_equal(find(index, zero, &user), FILTER_ONE);
	assert_ptr_equal(user, &users[0]);
	assert_int_equal(find(index, one, &user), FILTER_NOBODY);
	set(index, &users[1], samples, "u8 in {1, 100}");
	assert_int_equal(find(index, one, &user), FILTER_ONE);
	assert_ptr_equal(user, &users[1]);
	assert_int_equal(filter_index_find(index, zero->event.payload, 0, &user), FILTER_NOBODY);
	set(index, &users[0], samples, "u8 == 200");
	assert_int_equal(find(index, zero, &user), FILTER_NOBODY);
	/* Two of one value, and one that asks for more. */
	set(index, &users[2], samples, "u8 in {1, 3}");
	assert_int_equal(find(index, one, &user), FILTER_ASK);
	assert_int_equal(find(index, zero, &user), FILTER_NOBODY);
	assert_int_equal(filter_index_remove(index, &users[2]), 0);
	assert_int_equal(find(index, one, &user), FILTER_ONE);
	set(index, &users[2], samples, "u8 == 0 && name == bash");
	assert_int_equal(find(index, one, &user), FILTER_ONE);
	assert_int_equal(find(index, zero, &user), FILTER_ASK);
	/* Another field, and what can't be looked up. */
	set(index, &users[2], samples, "u32 == 7");
	assert_int_equal(find(index, one, &user), FILTER_ASK);
	set(index, &users[2], samples, "u8 > 100");
	assert_int_equal(find(index, one, &user), FILTER_ASK);
	filter_index_release(index);
}

/* More of them than are remembered. */
static void test_more_than_are_remembered(void **state)
{
	struct samples *samples = *state;
	static char users[5000];
	struct filter_index *index;
	struct sample sample = samples->at[0];
	char text[32];
	void *user;

	assert_int_equal(filter_index_create(7, &index), 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		(void)snprintf(text, sizeof(text), "u32 == %zu", i);
		set(index, &users[i], samples, text);
	}
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
			sample.event.payload = sample.payload;
			sample_number(samples, &sample, "u32", i);
			assert_int_equal(find(index, &sample, &user), FILTER_ONE);
			assert_ptr_equal(user, &users[i]);
		}
	}
	filter_index_release(index);
}

static void test_many_of_one(void **state)
{
	const struct samples *samples = *state;
	static char users[MANY];
	struct filter_index *index;
	void *const *which;

	assert_int_equal(filter_index_create(5, &index), 0);
	for (size_t i = 0; i < MANY; i++)
		set(index, &users[i], samples, i % 2 ? "u8 == 1" : "u8 in {1, 200}");
	assert_int_equal(filter_index_match(index, &samples->at[1].event, &which), MANY);
	for (size_t i = 0; i < MANY; i += 2)
		assert_int_equal(filter_index_remove(index, &users[i]), 0);
	assert_int_equal(filter_index_match(index, &samples->at[1].event, &which), MANY / 2);
	for (size_t i = 0; i < MANY / 2; i++)
		assert_true(((const char *)which[i] - users) % 2);
	filter_index_release(index);
}

/* Who asked an expression that gave up is told so, though it was tried only once; who had no need to ask is not, and
 * neither is what gave up before one came. */
static void test_who_gave_up(void **state)
{
	static const char slow[] = "path =~ \"^(a+)+$\"";
	struct samples samples;
	struct filter_index *index;
	char path[201], text[64], users[5], got[6];

	(void)state;
	assert_int_equal(samples_create(&samples), 0);
	memset(path, 'a', 199);
	memcpy(path + 199, "!", 2);
	sample_text(&samples, &samples.at[0], "path", path);
	samples.at[0].event.size = samples.at[0].used;
	assert_int_equal(filter_index_create(6, &index), 0);
	set(index, &users[0], &samples, slow);
	(void)snprintf(text, sizeof(text), "u8 == 0 && %s", slow);
	set(index, &users[1], &samples, text);
	(void)snprintf(text, sizeof(text), "u8 == 1 && %s", slow);
	set(index, &users[2], &samples, text);
	(void)snprintf(text, sizeof(text), "u8 == 0 || %s", slow);
	set(index, &users[3], &samples, text);
	evaluations = 0;
	assert_string_equal(found(index, users, &samples.at[0], got), "D");
	assert_int_equal(filter_index_limited(index, &users[0]), 1);
	assert_int_equal(filter_index_limited(index, &users[1]), 1);
	assert_int_equal(filter_index_limited(index, &users[2]), 0);
	assert_int_equal(filter_index_limited(index, &users[3]), 0);
	set(index, &users[4], &samples, slow);
	assert_int_equal(filter_index_limited(index, &users[4]), 0);
	assert_string_equal(found(index, users, &samples.at[0], got), "D");
	assert_int_equal(filter_index_limited(index, &users[0]), 2);
	assert_int_equal(filter_index_limited(index, &users[4]), 1);
	/* Once per event: the number looks for the rest. */
	assert_true(evaluations <= 6);
	filter_index_release(index);
	samples_release(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_many_of_one),
		cmocka_unit_test(test_known_by_a_number),
		cmocka_unit_test(test_more_than_are_remembered),
		cmocka_unit_test(test_looked_up),
		cmocka_unit_test(test_asked_once),
		cmocka_unit_test(test_who_gave_up),
	};

	return cmocka_run_group_tests_name("filter_index", tests, samples_setup, samples_teardown);
}
