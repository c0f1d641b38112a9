/* Every allocation of the filters fails once: each time the caller is told, nothing leaks (the
 * sanitizers look), and an index that could not be changed is what it was. And what the worst of
 * them take. */
#include "tests/router/filter_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/checked.h"

/* The linker sends the allocations here (--wrap). */
static unsigned int allowed = UINT32_MAX; /* so many more succeed */
static bool refused;
static size_t largest; /* of all that were asked for */
static size_t sorted;  /* members of all that was sorted */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void __real_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
void __wrap_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));

void __wrap_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	sorted += count;
	__real_qsort(base, count, size, compare);
}

static bool is_refused(void)
{
	if (allowed == UINT32_MAX)
		return false;
	if (allowed) {
		allowed--;
		return false;
	}
	refused = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	if (size > largest)
		largest = size;
	return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	if (count * size > largest)
		largest = count * size;
	return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	if (size > largest)
		largest = size;
	return is_refused() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return is_refused() ? NULL : __real_aligned_alloc(alignment, size);
}

static const char *const filters[] = {
	"u8 == 1 && (s8 == 2 || name == bash) && !(path ^= /etc)",
	"u8 in {1, 2, 3} && name in {a, b}",
	"(u8 == 1 && name == a) || (u8 == 2 && name == a) || mask & CPUS{0-3,5}",
	"name =~ \"^x\" || rel ~ \"a*b?\" || gfp & GFP_A|GFP_B || state == S",
	"name == a || u8 == 7",
};

static int compile(const struct samples *samples, const char *text, struct filter_program **ret)
{
	struct filter_failure failure;
	struct filter_ast *ast;
	int error = filter_parse(text, strlen(text), &ast, &failure);

	if (error)
		return error;
	error = filter_compile(ast, samples->schema, NULL, ret, &failure);
	filter_ast_release(ast);
	return error;
}

static struct filter_program *compile_good(const struct samples *samples, const char *text)
{
	struct filter_program *program = NULL;

	assert_int_equal(compile(samples, text, &program), 0);
	return program;
}

/* Runs `step` with the 1st, 2nd, ... allocation refused until it needs no more; `after` sees each
 * failure. Returns how often it ran. */
static unsigned int starve(int (*step)(void *context), void (*after)(void *context), void *context)
{
	unsigned int tries = 0;

	do {
		int error;

		allowed = tries++;
		refused = false;
		error = step(context);
		allowed = UINT32_MAX;
		if (!refused)
			assert_int_equal(error, 0);
		else if (error)
			assert_int_equal(error, -ENOMEM);
		if (error)
			after(context);
	} while (refused);
	return tries;
}

static void nothing(void *context)
{
	(void)context;
}

struct compiling {
	const struct samples *samples;
	const char *text;
};

static int compile_step(void *context)
{
	const struct compiling *compiling = context;
	struct filter_program *program;
	int error = compile(compiling->samples, compiling->text, &program);

	if (!error)
		filter_program_release(program);
	return error;
}

static void test_compile(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct compiling compiling = { *state, filters[i] };

		assert_true(starve(compile_step, nothing, &compiling) > 10);
	}
}

struct uniting {
	struct filter_program *programs[ARRAY_SIZE(filters)];
};

static int unite_step(void *context)
{
	const struct uniting *uniting = context;
	struct filter_program *all;
	char *text;
	bool exact;
	int error = filter_union(
		(const struct filter_program *const *)uniting->programs, ARRAY_SIZE(filters), &all);

	if (error)
		return error;
	/* Short of room, so that it is coarsened, too. */
	error = filter_kernel_text(all, 60, &text, &exact);
	if (!error) {
		free(text);
		error = filter_program_show(all, &text);
	}
	if (!error)
		free(text);
	filter_program_release(all);
	return error;
}

static void test_unite(void **state)
{
	struct uniting uniting;

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		uniting.programs[i] = compile_good(*state, filters[i]);
	assert_true(starve(unite_step, nothing, &uniting) > 10);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		filter_program_release(uniting.programs[i]);
}

struct indexing {
	const struct samples *samples;
	struct filter_index *index;
	struct filter_program *programs[ARRAY_SIZE(filters)];
	struct filter_program
		*now[ARRAY_SIZE(filters)]; /* what the index should hold for each user */
	size_t user, with;
};

static int index_step(void *context)
{
	struct indexing *indexing = context;

	return filter_index_set(indexing->index, &indexing->now[indexing->user],
		indexing->programs[indexing->with]);
}

static void check_index(void *context)
{
	struct indexing *indexing = context;

	for (size_t i = 0; i < SAMPLE_EVENTS; i++) {
		bool found[ARRAY_SIZE(filters)] = { false };
		void *const *users;
		size_t count = filter_index_match(
			indexing->index, &indexing->samples->at[i].event, &users);

		for (size_t j = 0; j < count; j++)
			found[(struct filter_program **)users[j] - indexing->now] = true;
		for (size_t j = 0; j < ARRAY_SIZE(filters); j++)
			assert_int_equal(found[j],
				indexing->now[j] && filter_match(indexing->now[j],
							    &indexing->samples->at[i].event));
	}
}

static void test_index(void **state)
{
	struct indexing indexing = { .samples = *state };
	unsigned int tries = 0;

	assert_int_equal(filter_index_create(1, &indexing.index), 0);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		indexing.programs[i] = compile_good(*state, filters[i]);
	/* Each user comes in, then takes another's filter, then one that nobody has. */
	for (size_t round = 0; round < 3 * ARRAY_SIZE(filters); round++) {
		indexing.user = round % ARRAY_SIZE(filters);
		indexing.with = (round + round / ARRAY_SIZE(filters)) % ARRAY_SIZE(filters);
		tries += starve(index_step, check_index, &indexing);
		indexing.now[indexing.user] = indexing.programs[indexing.with];
		check_index(&indexing);
		if (round % 4 == 3) {
			assert_int_equal(
				filter_index_remove(indexing.index, &indexing.now[indexing.user]),
				0);
			indexing.now[indexing.user] = NULL;
			check_index(&indexing);
		}
	}
	assert_true(tries > 50);
	filter_index_release(indexing.index);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		filter_program_release(indexing.programs[i]);
}

/* Matching takes no memory at all. */
static void test_match_takes_none(void **state)
{
	const struct samples *samples = *state;
	char who[ARRAY_SIZE(filters)];
	struct filter_index *index;
	void *const *users;

	assert_int_equal(filter_index_create(1, &index), 0);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct filter_program *program = compile_good(samples, filters[i]);

		assert_int_equal(filter_index_set(index, &who[i], program), 0);
		filter_program_release(program);
	}
	allowed = 0;
	refused = false;
	for (size_t i = 0; i < SAMPLE_EVENTS; i++)
		(void)filter_index_match(index, &samples->at[i].event, &users);
	allowed = UINT32_MAX;
	assert_false(refused);
	filter_index_release(index);
}

/* `element` as often as there is room for it. */
static void repeat(char *text, size_t room, const char *begin, const char *element, const char *between, const char *end)
{
	size_t used = (size_t)snprintf(text, room, "%s%s", begin, element);

	while (used + strlen(between) + strlen(element) + strlen(end) < room)
		used += (size_t)snprintf(text + used, room - used, "%s%s", between, element);
	(void)snprintf(text + used, room - used, "%s", end);
}

/* Compiles the text, with `largest` and `sorted` of that alone. */
static void compile_measured(const struct samples *samples, const char *text)
{
	largest = 0;
	sorted = 0;
	filter_program_release(compile_good(samples, text));
}

/* However often a list names them, it is no more CPUs than there can be. */
static void test_cpus_again_and_again(void **state)
{
	char text[4096];

	repeat(text, sizeof(text), "CPU & CPUS{", "0-65535:1/2", ",", "}");
	compile_measured(*state, text);
	assert_in_range(largest, 1, 1U << 20);
}

/* Sets that are in order are joined as they are, however many and however large they are. */
static void test_large_sets(void **state)
{
	char text[4096];

	repeat(text, sizeof(text), "", "CPU & CPUS{0-65535:1/2}", " || ", "");
	compile_measured(*state, text);
	assert_in_range(sorted, 0, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compile),
		cmocka_unit_test(test_unite),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_match_takes_none),
		cmocka_unit_test(test_cpus_again_and_again),
		cmocka_unit_test(test_large_sets),
	};

	return cmocka_run_group_tests_name("filter_memory", tests, samples_setup, samples_teardown);
}
