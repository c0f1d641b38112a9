#include "router/filter_program.h"

#include "router/filter_compile.h"

#include <errno.h>
#include <stdlib.h>

static int64_t add_test(void *context, struct filter_pred *pred)
{
	struct filter_program *program = context;

	program->tests[program->test_count] = pred;
	program->facts |= filter_field_fact(&pred->field);
	return (int64_t)program->test_count++;
}

int filter_program_create(struct filter_node *tree, struct filter_program **ret)
{
	struct filter_program *program = calloc(1, sizeof(*program));
	size_t tests = filter_node_count_tests(tree);
	int error = -ENOMEM;

	if (!program) {
		filter_node_release(tree);
		return -ENOMEM;
	}
	program->tree = tree;
	program->tests = calloc(tests ? tests : 1, sizeof(struct filter_pred *));
	if (program->tests)
		error = filter_code_create(tree, add_test, program, &program->code);
	/* The code was made to pass; that it does is what filter_match relies on. */
	if (!error && !filter_code_check(&program->code, program->test_count))
		error = -EBADMSG;
	if (error) {
		filter_program_release(program);
		return error;
	}
	*ret = program;
	return 0;
}

void filter_program_release(struct filter_program *program)
{
	if (!program)
		return;
	filter_node_release(program->tree);
	filter_code_release(&program->code);
	free(program->tests);
	free(program);
}

int filter_compile(const struct filter_ast *ast, const struct schema *schema,
	const struct filter_environment *environment, struct filter_program **ret,
	struct filter_failure *ret_failure)
{
	static const struct filter_environment none = { 0 };
	struct filter_node *tree;
	int error = filter_compile_tree(
		ast, schema, environment ? environment : &none, &tree, ret_failure);

	return error ? error : filter_program_create(tree, ret);
}

bool filter_match(struct filter_program *program, const struct filter_event *event)
{
	uint32_t at = program->code.entry;

	while (at < CODE_REJECT) {
		const struct filter_step *step = &program->code.steps[at];
		bool said =
			filter_pred_count(program->tests[step->test], event, &program->limited);

		at = said ? step->on_true : step->on_false;
	}
	return at == CODE_ACCEPT;
}

uint32_t filter_program_facts(const struct filter_program *program)
{
	return program->facts;
}

bool filter_program_accepts_none(const struct filter_program *program)
{
	return program->tree->kind == NODE_NONE;
}

uint64_t filter_program_limited(const struct filter_program *program)
{
	return program->limited;
}

int filter_union(
	const struct filter_program *const *programs, size_t count, struct filter_program **ret)
{
	struct filter_nodes trees = { 0 };
	struct filter_node *joined;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = filter_nodes_add(&trees, filter_node_ref(programs[i]->tree));
	if (error) {
		filter_nodes_release(&trees);
		return error;
	}
	error = filter_node_join(false, &trees, &joined);
	return error ? error : filter_program_create(joined, ret);
}
