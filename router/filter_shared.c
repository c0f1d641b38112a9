#include "router/filter_shared.h"

#include <errno.h>
#include <stdlib.h>

struct shared_test {
	struct table_link link; /* shared->tests, by the comparison's hash */
	struct filter_pred *pred;
	uint32_t refs;
	uint32_t number; /* in shared->memory */
};

int filter_shared_create(struct filter_shared *shared)
{
	*shared = (struct filter_shared){ 0 };
	return filter_table_create(&shared->tests);
}

/* All code has been dropped by now, and with it all comparisons. */
void filter_shared_release(struct filter_shared *shared)
{
	free(shared->tests.buckets);
	free(shared->memory);
	*shared = (struct filter_shared){ 0 };
}

static struct shared_test *find_test(
	const struct filter_shared *shared, const struct filter_pred *pred)
{
	for (struct table_link *link = filter_table_chain(&shared->tests, pred->hash); link;
		link = link->next) {
		struct shared_test *test = TABLE_ITEM(link, struct shared_test, link);

		if (link->hash == pred->hash && filter_pred_equal(test->pred, pred))
			return test;
	}
	return NULL;
}

/* A free number: those of comparisons that are gone are used again. */
static int64_t new_number(struct filter_shared *shared)
{
	struct shared_memory *moved;
	size_t room;

	for (size_t i = 0; shared->tests.count < shared->count && i < shared->count; i++)
		if (!shared->memory[i].test)
			return (int64_t)i;
	if (shared->count == shared->room) {
		room = shared->room ? 2 * shared->room : 64;
		moved = realloc(shared->memory, room * sizeof(*moved));
		if (!moved)
			return -ENOMEM;
		shared->memory = moved;
		shared->room = room;
	}
	shared->memory[shared->count] = (struct shared_memory){ 0 };
	return (int64_t)shared->count++;
}

/* The number of a comparison, which gains a reference. */
static int64_t use_test(struct filter_shared *shared, struct filter_pred *pred)
{
	struct shared_test *test = find_test(shared, pred);
	int64_t number;

	if (test) {
		test->refs++;
		return test->number;
	}
	test = calloc(1, sizeof(*test));
	number = test ? new_number(shared) : -ENOMEM;
	if (number < 0) {
		free(test);
		return number;
	}
	test->pred = filter_pred_ref(pred);
	test->refs = 1;
	test->number = (uint32_t)number;
	shared->memory[number] = (struct shared_memory){ .test = test, .pred = pred };
	filter_table_add(&shared->tests, &test->link, pred->hash);
	return number;
}

static void drop_test(struct filter_shared *shared, uint32_t number)
{
	struct shared_test *test = shared->memory[number].test;

	if (--test->refs)
		return;
	shared->memory[number] = (struct shared_memory){ 0 };
	filter_table_remove(&shared->tests, &test->link);
	filter_pred_release(test->pred);
	free(test);
}

void filter_shared_drop(struct filter_shared *shared, struct filter_code *code)
{
	for (uint32_t i = 0; i < code->count; i++)
		drop_test(shared, code->steps[i].test);
	filter_code_release(code);
}

/* What code in the making has taken so far, to be given back if it isn't finished. */
struct taking {
	struct filter_shared *shared;
	uint32_t *numbers;
	size_t count;
};

static int64_t take_test(void *context, struct filter_pred *pred)
{
	struct taking *taking = context;
	int64_t number = use_test(taking->shared, pred);

	if (number >= 0)
		taking->numbers[taking->count++] = (uint32_t)number;
	return number;
}

int filter_shared_code(
	struct filter_shared *shared, const struct filter_node *tree, struct filter_code *ret)
{
	size_t tests = filter_node_count_tests(tree);
	struct taking taking = { .shared = shared,
		.numbers = calloc(tests ? tests : 1, sizeof(uint32_t)) };
	int error = taking.numbers ? filter_code_create(tree, take_test, &taking, ret) : -ENOMEM;

	if (!error && !filter_code_check(ret, shared->count)) {
		filter_code_release(ret);
		error = -EBADMSG;
	}
	for (size_t i = 0; error && i < taking.count; i++)
		drop_test(shared, taking.numbers[i]);
	free(taking.numbers);
	return error;
}

static void ask(struct filter_shared *shared, struct shared_memory *memory,
	const struct filter_event *event)
{
	uint64_t limited = 0;

	memory->event = shared->event;
	memory->said = filter_pred_count(memory->pred, event, &limited);
	memory->limited = limited;
}

bool filter_shared_run(struct filter_shared *shared, struct filter_code *code,
	const struct filter_event *event)
{
	uint32_t at = code->entry;

	while (at < CODE_REJECT) {
		const struct filter_step *step = &code->steps[at];
		struct shared_memory *memory = &shared->memory[step->test];

		if (memory->event != shared->event)
			ask(shared, memory, event);
		code->limited += memory->limited;
		at = memory->said ? step->on_true : step->on_false;
	}
	return at == CODE_ACCEPT;
}

uint32_t filter_shared_facts(const struct filter_shared *shared)
{
	uint32_t facts = 0;

	for (size_t i = 0; i < shared->count; i++)
		if (shared->memory[i].test)
			facts |= filter_field_fact(&shared->memory[i].pred->field);
	return facts;
}
