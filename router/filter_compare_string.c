#include "router/filter_compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What was typed for a number is hardly meant as a text: `comm == 1` names no thread called 1. */
static int check_text(const struct filter_compiler *compiler, const struct ast_value *value,
	const struct filter_field *field)
{
	if (!filter_value_is_numeric(compiler, value))
		return 0;
	return filter_fail(compiler->failure, value->piece,
		"'%s' is a string: put '%.*s' in quotes if it is meant as one", field->name,
		filter_piece_length(value->piece), filter_piece_text(compiler, value->piece));
}

/* ==, !=, in. A string that the field has no room for is left out: it can't be there. */
static int test_string_set(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_pred *pred = filter_pred_create(field, PRED_STRINGS);
	int error = pred ? 0 : -ENOMEM;

	for (const struct ast_value *value = test->values; value && !error; value = value->next) {
		const char *text = filter_piece_text(compiler, value->piece);

		error = check_text(compiler, value, field);
		if (error)
			break;
		if (value->kind == AST_WORD && (memchr(text, '*', value->piece.size) ||
						       memchr(text, '?', value->piece.size)))
			error = filter_fail(compiler->failure, value->piece,
				"write ~ for a pattern, or quotes for a string that holds * or ?");
		else if (value->kind == AST_CPUS)
			error = filter_fail(compiler->failure, value->piece,
				"'%s' is a string, not a CPU", field->name);
		else if (!field->size || value->piece.size <= field->size)
			error = filter_strings_add(&pred->strings, text, value->piece.size);
	}
	if (!error) {
		filter_strings_normalise(&pred->strings);
		pred->negated = negated;
	}
	return filter_compare_finish(pred, error, ret);
}

/* A pattern of a known shape: its text is copied. Empty ones match every string. */
static int test_pattern(const struct filter_field *field, enum filter_glob_shape shape,
	const char *text, size_t size, bool negated, struct filter_node **ret)
{
	bool every = !size && shape != GLOB_LITERAL && shape != GLOB_GENERAL;
	struct filter_pred *pred = filter_pred_create(
		field, shape == GLOB_LITERAL || every ? PRED_STRINGS : PRED_PATTERN);
	int error = pred ? 0 : -ENOMEM;

	if (error)
		return error;
	pred->negated = every ? !negated : negated;
	if (shape == GLOB_LITERAL) {
		if (!field->size || size <= field->size)
			error = filter_strings_add(&pred->strings, text, size);
	} else if (!every) {
		pred->shape = shape;
		pred->text = malloc(size + 1);
		error = pred->text ? 0 : -ENOMEM;
	}
	if (!error && pred->text) {
		memcpy(pred->text, text, size);
		pred->text[size] = '\0';
		pred->text_size = size;
	}
	return filter_compare_finish(pred, error, ret);
}

/* As in the kernel, a ! at the front negates the whole pattern. */
static int test_glob(const struct filter_compiler *compiler, const struct ast_value *value,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	const char *glob = filter_piece_text(compiler, value->piece);
	size_t glob_size = value->piece.size, size;
	enum filter_glob_shape shape;
	char *text;
	int error = check_text(compiler, value, field);

	if (error)
		return error;
	if (glob_size && *glob == '!') {
		negated = !negated;
		glob++;
		glob_size--;
	}
	text = malloc(glob_size + 1);
	if (!text)
		return -ENOMEM;
	shape = filter_glob_shape(glob, glob_size, text, &size);
	if (shape == GLOB_GENERAL)
		error = test_pattern(field, shape, glob, glob_size, negated, ret);
	else
		error = test_pattern(field, shape, text, size, negated, ret);
	free(text);
	return error;
}

static int test_regex(const struct filter_compiler *compiler, struct ast_piece piece,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_pred *pred = filter_pred_create(field, PRED_REGEX);
	int error = pred ? 0 : -ENOMEM;

	if (error)
		return error;
	pred->negated = negated;
	pred->text_size = piece.size;
	pred->text = malloc(piece.size + 1);
	if (!pred->text) {
		error = -ENOMEM;
	} else {
		memcpy(pred->text, filter_piece_text(compiler, piece), piece.size);
		pred->text[piece.size] = '\0';
		error = filter_regex_create(
			compiler->ast->text, piece, &pred->regex, compiler->failure);
	}
	return filter_compare_finish(pred, error, ret);
}

int filter_compare_string(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct ast_piece piece = test->values->piece;
	const char *text = filter_piece_text(compiler, piece);

	if (test->op != AST_IN && test->values->kind == AST_CPUS)
		return filter_fail(
			compiler->failure, piece, "'%s' is a string, not a CPU", field->name);
	switch (test->op) {
	case AST_EQ:
	case AST_NE:
	case AST_IN:
		return test_string_set(compiler, test, field, negated != (test->op == AST_NE), ret);
	case AST_GLOB:
	case AST_LIKE:
	case AST_NOT_GLOB:
		return test_glob(
			compiler, test->values, field, negated != (test->op == AST_NOT_GLOB), ret);
	case AST_PREFIX:
		return test_pattern(field, GLOB_PREFIX, text, piece.size, negated, ret);
	case AST_SUFFIX:
		return test_pattern(field, GLOB_SUFFIX, text, piece.size, negated, ret);
	case AST_SUBSTRING:
		return test_pattern(field, GLOB_SUBSTRING, text, piece.size, negated, ret);
	case AST_REGEX:
		return test_regex(compiler, piece, field, negated, ret);
	default:
		return filter_compare_fail(compiler, test, field);
	}
}
