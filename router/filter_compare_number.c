#include "router/filter_compare.h"

#include <errno.h>
#include <stdlib.h>

int filter_compare_fail(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field)
{
	const char *op = filter_piece_text(compiler, test->op_piece);
	int size = filter_piece_length(test->op_piece);

	switch (field->type) {
	case TYPE_NUMBER:
		if (test->values->kind == AST_CPUS)
			return filter_fail(compiler->failure, test->op_piece,
				"a list of CPUs is compared by == != or &");
		return filter_fail(compiler->failure, test->op_piece,
			"'%s' is a number: %.*s is for strings", field->name, size, op);
	case TYPE_STRING:
		return filter_fail(compiler->failure, test->op_piece,
			"'%s' is a string: %.*s is for numbers", field->name, size, op);
	case TYPE_CPUMASK:
		return filter_fail(compiler->failure, test->op_piece,
			"'%s' is a set of CPUs, to be compared by == != & with CPUS{...}",
			field->name);
	case TYPE_NOTHING:
	default:
		return filter_fail(compiler->failure, test->field,
			"'%s' is an array, which no value can be compared with", field->name);
	}
}

int filter_compare_finish(struct filter_pred *pred, int error, struct filter_node **ret)
{
	if (error) {
		filter_pred_release(pred);
		return error;
	}
	filter_pred_seal(pred);
	*ret = filter_node_test(pred);
	return *ret ? 0 : -ENOMEM;
}

/* A number in (or, negated, outside of) the ranges, which are taken over. */
static int test_ranges(const struct filter_field *field, struct filter_ranges *ranges, bool negated,
	struct filter_node **ret)
{
	struct filter_pred *pred = filter_pred_create(field, PRED_RANGES);
	int error = pred ? 0 : -ENOMEM;

	filter_ranges_normalise(ranges);
	if (!error && negated) {
		error = filter_ranges_complement(ranges, filter_field_domain(field), &pred->ranges);
	} else if (!error) {
		pred->ranges = *ranges;
		ranges->at = NULL;
	}
	free(ranges->at);
	return filter_compare_finish(pred, error, ret);
}

static int test_range(const struct filter_field *field, struct filter_range range, bool negated,
	struct filter_node **ret)
{
	struct filter_ranges ranges = { 1, malloc(sizeof(range)) };

	if (!ranges.at)
		return -ENOMEM;
	ranges.at[0] = range;
	return test_ranges(field, &ranges, negated, ret);
}

/* number & mask == value, or not. */
static int test_bits(const struct filter_field *field, uint64_t mask, uint64_t value, bool negated,
	struct filter_node **ret)
{
	struct filter_pred *pred;

	if (!mask || value & ~mask) {
		/* Always so, or never: but only where the field is there at all. */
		bool always = !value;

		return test_range(field, filter_field_domain(field), always == negated, ret);
	}
	pred = filter_pred_create(field, PRED_BITS);
	if (!pred)
		return -ENOMEM;
	/* A single bit that is not clear is set. */
	if (!(mask & (mask - 1)) && negated) {
		value ^= mask;
		negated = false;
	}
	pred->mask = mask;
	pred->value = value;
	pred->negated = negated;
	return filter_compare_finish(pred, 0, ret);
}

static uint64_t full_mask(const struct filter_field *field)
{
	return field->size >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * field->size) - 1;
}

/* ==, !=, =, in: plain values become one set; symbols of a part of the bits stand beside it. */
static int test_number_set(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_ranges ranges = { 0 };
	struct filter_nodes parts = { 0 };
	struct filter_node *part;
	size_t count = 0;
	int error = 0;

	for (const struct ast_value *value = test->values; value; value = value->next)
		count++;
	ranges.at = calloc(count ? count : 1, sizeof(ranges.at[0]));
	if (!ranges.at)
		return -ENOMEM;
	for (const struct ast_value *value = test->values; value && !error; value = value->next) {
		struct filter_range *next = &ranges.at[ranges.count];
		struct filter_number number;

		if (value->kind == AST_CPUS) {
			error = filter_compare_fail(compiler, test, field);
			break;
		}
		if (test->op == AST_IN && filter_value_is_range(compiler, value)) {
			error = filter_value_range(compiler, field, value, next);
			ranges.count++;
			continue;
		}
		error = filter_value_number(compiler, field, value, &number);
		if (error)
			break;
		if (number.mask == full_mask(field)) {
			next->low = next->high = filter_field_key(field, number.value);
			ranges.count++;
			continue;
		}
		error = test_bits(
			field, number.mask, number.value & full_mask(field), negated, &part);
		if (!error)
			error = filter_nodes_add(&parts, part);
	}
	if (!error && ranges.count) {
		error = test_ranges(field, &ranges, negated, &part);
		ranges.at = NULL;
		if (!error)
			error = filter_nodes_add(&parts, part);
	}
	free(ranges.at);
	if (!error)
		return filter_node_join(negated, &parts, ret);
	filter_nodes_release(&parts);
	return error;
}

static int test_ordered(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_range range = filter_field_domain(field);
	bool below = test->op == AST_LT || test->op == AST_LE,
	     strictly = test->op == AST_LT || test->op == AST_GT;
	uint64_t value, key;
	int error;

	if (test->values->kind == AST_CPUS)
		return filter_compare_fail(compiler, test, field);
	if (test->values->kind == AST_QUOTED)
		return filter_fail(compiler->failure, test->values->piece,
			"'%s' is a number: compare it with one, without quotes", field->name);
	error = filter_value_ordered(compiler, field, test->values->piece, &value);
	if (error)
		return error;
	key = filter_field_key(field, value);
	/* Nothing is less than the least value, or greater than the greatest. */
	if (strictly && key == (below ? range.low : range.high))
		return test_range(field, range, !negated, ret);
	if (below)
		range.high = key - strictly;
	else
		range.low = key + strictly;
	return test_range(field, range, negated, ret);
}

static int test_band(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_number number;
	int error = filter_value_number(compiler, field, test->values, &number);

	if (error)
		return error;
	return test_bits(field, number.value & full_mask(field), 0, !negated, ret);
}

/* As the kernel takes it: & is "one of these", == and != mean a list of one CPU; a number never
 * equals a list of several. */
static int test_number_cpus(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_ranges cpus, inside;
	struct filter_range domain = filter_field_domain(field);
	struct filter_ranges all = { 1, &domain };
	int error = filter_value_cpus(compiler, test->values->piece, &cpus);

	if (error)
		return error;
	for (size_t i = 0; i < cpus.count; i++) {
		cpus.at[i].low = filter_field_key(field, cpus.at[i].low);
		cpus.at[i].high = filter_field_key(field, cpus.at[i].high);
	}
	error = filter_ranges_intersection(&cpus, &all, &inside);
	if (!error && test->op != AST_BAND && (cpus.count > 1 || cpus.at[0].low != cpus.at[0].high))
		inside.count = 0;
	free(cpus.at);
	if (error)
		return error;
	return test_ranges(field, &inside, negated != (test->op == AST_NE), ret);
}

int filter_compare_number(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_range function;
	int error;

	if (test->suffix == AST_FUNCTION) {
		if (test->op != AST_EQ && test->op != AST_NE && test->op != AST_LIKE)
			return filter_fail(compiler->failure, test->op_piece,
				"a function is compared by == or !=");
		error = filter_value_function(compiler, test->values->piece, &function);
		if (error)
			return error;
		function.low = filter_field_key(field, function.low);
		function.high = filter_field_key(field, function.high);
		return test_range(field, function, negated != (test->op == AST_NE), ret);
	}
	switch (test->op) {
	case AST_EQ:
	case AST_NE:
	case AST_LIKE:
	case AST_BAND:
		if (test->values->kind == AST_CPUS)
			return test_number_cpus(compiler, test, field, negated, ret);
		if (test->op == AST_BAND)
			return test_band(compiler, test, field, negated, ret);
		return test_number_set(compiler, test, field, negated != (test->op == AST_NE), ret);
	case AST_IN:
		return test_number_set(compiler, test, field, negated, ret);
	case AST_LT:
	case AST_LE:
	case AST_GT:
	case AST_GE:
		return test_ordered(compiler, test, field, negated, ret);
	default:
		return filter_compare_fail(compiler, test, field);
	}
}

int filter_compare_cpumask(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_pred *pred;
	int error;

	if ((test->op != AST_EQ && test->op != AST_NE && test->op != AST_BAND) ||
		test->values->kind != AST_CPUS)
		return filter_compare_fail(compiler, test, field);
	pred = filter_pred_create(field, PRED_CPUS);
	if (!pred)
		return -ENOMEM;
	pred->whole = test->op != AST_BAND;
	pred->negated = negated != (test->op == AST_NE);
	error = filter_value_cpus(compiler, test->values->piece, &pred->ranges);
	return filter_compare_finish(pred, error, ret);
}
