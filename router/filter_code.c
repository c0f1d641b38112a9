#include "router/filter_code.h"

#include <errno.h>
#include <stdlib.h>

/* Code is made from its end: a step is written when both places that it may go to exist. While that
 * goes on, places are counted from the end, too. */
struct writer {
	struct filter_step *steps;
	uint32_t count;
	int64_t (*number)(void *context, struct filter_pred *pred);
	void *context;
};

/* Writes the node before all that is written and returns its first place; negative: -errno. */
static int64_t write_node(
	struct writer *writer, const struct filter_node *node, uint32_t on_true, uint32_t on_false)
{
	int64_t test, place = node->kind == NODE_ALL ? on_true : on_false;

	if (node->kind == NODE_TEST) {
		test = writer->number(writer->context, node->pred);
		if (test < 0)
			return test;
		writer->steps[writer->count] =
			(struct filter_step){ (uint32_t)test, on_true, on_false };
		return writer->count++;
	}
	for (size_t i = node->count; i-- > 0;) {
		/* All but the last child go on to the next one while nothing is decided. */
		uint32_t next_true =
			node->kind == NODE_AND && i + 1 < node->count ? (uint32_t)place : on_true;
		uint32_t next_false =
			node->kind == NODE_OR && i + 1 < node->count ? (uint32_t)place : on_false;

		place = write_node(writer, node->children[i], next_true, next_false);
		if (place < 0)
			return place;
	}
	return place;
}

static uint32_t from_front(uint32_t place, uint32_t count)
{
	return place >= CODE_REJECT ? place : count - 1 - place;
}

/* Turns the code round, and the places with it. */
static void reverse(struct filter_step *steps, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		steps[i].on_true = from_front(steps[i].on_true, count);
		steps[i].on_false = from_front(steps[i].on_false, count);
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		struct filter_step step = steps[i];

		steps[i] = steps[count - 1 - i];
		steps[count - 1 - i] = step;
	}
}

int filter_code_create(const struct filter_node *node,
	int64_t (*number)(void *context, struct filter_pred *pred), void *context,
	struct filter_code *ret)
{
	struct writer writer = { .number = number, .context = context };
	size_t tests = filter_node_count_tests(node);
	int64_t entry;

	if (tests >= CODE_REJECT)
		return -E2BIG;
	writer.steps = calloc(tests ? tests : 1, sizeof(writer.steps[0]));
	if (!writer.steps)
		return -ENOMEM;
	entry = write_node(&writer, node, CODE_ACCEPT, CODE_REJECT);
	if (entry < 0) {
		free(writer.steps);
		return (int)entry;
	}
	reverse(writer.steps, writer.count);
	*ret = (struct filter_code){ from_front((uint32_t)entry, writer.count), writer.count,
		writer.steps };
	return 0;
}

void filter_code_release(struct filter_code *code)
{
	free(code->steps);
	*code = (struct filter_code){ .entry = CODE_REJECT };
}

static bool goes_forward(const struct filter_code *code, uint32_t from, uint32_t to)
{
	return to == CODE_ACCEPT || to == CODE_REJECT || (to > from && to < code->count);
}

bool filter_code_check(const struct filter_code *code, size_t tests)
{
	if (code->count ? code->entry != 0 : code->entry < CODE_REJECT)
		return false;
	for (uint32_t i = 0; i < code->count; i++) {
		const struct filter_step *step = &code->steps[i];

		if (step->test >= tests || !goes_forward(code, i, step->on_true) ||
			!goes_forward(code, i, step->on_false))
			return false;
	}
	return true;
}
