#include "router/filter_compile.h"

#include "router/filter_compare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- fields ---- */

static void offer_names(struct filter_near *near, const struct filter_schema *schema)
{
	const char *name;

	for (size_t i = 0; (name = filter_field_name(schema, i)); i++)
		filter_near_offer(near, name, strlen(name));
}

/* Where no name is near: which there are, as many as a line can have. */
#define NAMED_FIELDS 10
static void name_fields(const struct filter_compiler *compiler)
{
	char *message = compiler->failure->message;
	size_t room = sizeof(compiler->failure->message), named = 0;

	for (size_t i = 0; i < compiler->source->header->field_count; i++) {
		const char *name = filter_field_name(compiler->schema, i);
		size_t used = strlen(message);

		if (!*name || strncmp(name, "common_", strlen("common_")) == 0)
			continue;
		if (named == NAMED_FIELDS || strlen(name) + sizeof("; its fields: , ...") > room - used) {
			(void)snprintf(message + used, room - used, "%s", named ? ", ..." : "");
			break;
		}
		(void)snprintf(message + used, room - used, "%s%s", named++ ? ", " : "; its fields: ", name);
	}
}

static int fail_field(const struct filter_compiler *compiler, const struct ast_node *test)
{
	const struct filter_environment *environment = compiler->environment;
	const struct schema_header *header = compiler->source->header;
	const char *text = filter_piece_text(compiler, test->field);
	int length = filter_piece_length(test->field);
	struct filter_schema *other;
	struct filter_near near;

	if (environment->other_count)
		(void)filter_fail(compiler->failure, test->field,
			"none of the events has a field '%.*s'", length, text);
	else if (environment->probe)
		/* What the kernel calls the event of a probe says nothing to its owner. */
		(void)filter_fail(compiler->failure, test->field, "%s has no field '%.*s'",
			environment->probe, length, text);
	else
		(void)filter_fail(compiler->failure, test->field, "%s:%s has no field '%.*s'",
			schema_string(compiler->source, header->system),
			schema_string(compiler->source, header->event), length, text);
	filter_near_begin(&near, text, test->field.size);
	offer_names(&near, compiler->schema);
	for (size_t i = 0; i < environment->other_count; i++) {
		if (filter_schema_create(environment->others[i], &other))
			continue;
		offer_names(&near, other);
		filter_schema_release(other);
	}
	filter_near_end(&near, compiler->failure);
	if (!near.count && !environment->other_count)
		name_fields(compiler);
	return -EINVAL;
}

/* Whether another schema has the test's field. Returns 1, 0 or -ENOMEM. */
static int has_field(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct schema *schema)
{
	struct filter_schema *other;
	struct filter_field field;
	int found;

	if (filter_schema_create(schema, &other))
		return -ENOMEM;
	found = !filter_field_find(other, compiler->environment,
		filter_piece_text(compiler, test->field), test->field.size, &field);
	filter_schema_release(other);
	return found;
}

/* A field that this event lacks: false where another event has it, else an error. */
static int compile_missing(const struct filter_compiler *compiler, const struct ast_node *test,
	struct filter_node **ret)
{
	const struct filter_environment *environment = compiler->environment;
	int known = (environment->flags & FILTER_LENIENT) && !environment->others;
	int shown = environment->text ? has_field(compiler, test, environment->text) : 0;

	for (size_t i = 0; !known && i < environment->other_count; i++)
		known = has_field(compiler, test, environment->others[i]);
	if (known < 0 || shown < 0)
		return -ENOMEM;
	if (!known && !shown)
		return fail_field(compiler, test);
	*ret = filter_node_constant(shown);
	return *ret ? 0 : -ENOMEM;
}

/* Suffixes fit some fields only. */
static int check_suffix(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field)
{
	uint32_t long_size = compiler->source->header->flags & SCHEMA_LONG4 ? 4 : 8;

	if (test->suffix == AST_USTRING && field->type != TYPE_STRING)
		return filter_fail(compiler->failure, test->field,
			"'%s' is an address of the traced process, and the event has not what "
			"stands there",
			field->name);
	if (test->suffix == AST_FUNCTION && compiler->source->header->flags & SCHEMA_TEXT)
		return filter_fail(compiler->failure, test->field,
			"lines show functions by their names: compare the line, as in text *= "
			"\"=kfree+\"");
	if (test->suffix == AST_FUNCTION &&
		(field->type != TYPE_NUMBER || field->size != long_size))
		return filter_fail(compiler->failure, test->field,
			"'%s' is no address (%u bytes) in the kernel", field->name, long_size);
	return 0;
}

/* The probe's name is known already, so what is said of it is true or false for every event. */
static int settle_probe(const struct filter_compiler *compiler, struct filter_node **node)
{
	const char *name = compiler->environment->probe;
	struct filter_node *settled;

	if ((*node)->kind != NODE_TEST)
		return 0;
	settled = filter_node_constant(
		name && filter_pred_test_text((*node)->pred, name, strlen(name)));
	if (!settled)
		return -ENOMEM;
	filter_node_release(*node);
	*node = settled;
	return 0;
}

static int compile_known(const struct filter_compiler *compiler, const struct ast_node *test,
	bool negated, struct filter_node **ret)
{
	const struct filter_environment *environment = compiler->environment;
	struct filter_field field;
	int error;

	if (filter_field_find(compiler->schema, environment,
		    filter_piece_text(compiler, test->field), test->field.size, &field))
		return compile_missing(compiler, test, ret);
	if (field.source != FROM_TGID && (filter_field_fact(&field) & environment->lacks))
		return filter_fail(compiler->failure, test->field,
			"'%s' is not known in this session", field.name);
	error = check_suffix(compiler, test, &field);
	if (error)
		return error;
	switch (field.type) {
	case TYPE_NUMBER:
		return filter_compare_number(compiler, test, &field, negated, ret);
	case TYPE_STRING:
		error = filter_compare_string(compiler, test, &field, negated, ret);
		break;
	case TYPE_CPUMASK:
		return filter_compare_cpumask(compiler, test, &field, negated, ret);
	case TYPE_NOTHING:
	default:
		return filter_compare_fail(compiler, test, &field);
	}
	if (!error && field.source == FROM_PROBE) {
		error = settle_probe(compiler, ret);
		if (error)
			filter_node_release(*ret);
	}
	return error;
}

/* The filter as a whole is right, or it would not have been compiled for a text schema: what can't
 * be said of the kernel's own event is for the router alone. */
static int compile_test(const struct filter_compiler *compiler, const struct ast_node *test,
	bool negated, struct filter_node **ret)
{
	int error = compile_known(compiler, test, negated, ret);

	if (error != -EINVAL || !compiler->environment->text)
		return error;
	*ret = filter_node_constant(true);
	return *ret ? 0 : -ENOMEM;
}

/* ---- the logic ---- */

/* The tree is no deeper than FILTER_DEPTH_MAX parentheses allow. */
static int compile_node(const struct filter_compiler *compiler, const struct ast_node *node,
	bool negated, struct filter_node **ret)
{
	struct filter_nodes children = { 0 };
	struct filter_node *child = NULL;
	int error = 0;

	switch (node->kind) {
	case AST_ALL:
		*ret = filter_node_constant(!negated);
		return *ret ? 0 : -ENOMEM;
	case AST_NOT:
		return compile_node(compiler, node->first, !negated, ret);
	case AST_TEST:
		return compile_test(compiler, node, negated, ret);
	case AST_AND:
	case AST_OR:
	default:
		break;
	}
	for (const struct ast_node *part = node->first; part && !error; part = part->next) {
		error = compile_node(compiler, part, negated, &child);
		if (!error)
			error = filter_nodes_add(&children, child);
	}
	/* Not (a and b) is not a or not b. */
	if (!error)
		return filter_node_join((node->kind == AST_AND) != negated, &children, ret);
	filter_nodes_release(&children);
	return error;
}

int filter_compile_tree(const struct filter_ast *ast, const struct schema *schema,
	const struct filter_environment *environment, struct filter_node **ret,
	struct filter_failure *ret_failure)
{
	struct filter_compiler compiler = {
		.ast = ast,
		.source = schema,
		.environment = environment,
		.failure = ret_failure,
	};
	int error;

	*ret_failure = (struct filter_failure){ .position = -1, .length = 1 };
	error = filter_schema_create(schema, &compiler.schema);
	if (error)
		return error;
	error = compile_node(&compiler, ast->root, false, ret);
	filter_schema_release(compiler.schema);
	return error;
}
