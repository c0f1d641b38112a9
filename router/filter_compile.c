#include "router/filter_compile.h"

#include "router/filter_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields ---- */

static int fail_field(const struct filter_compiler *compiler, const struct ast_node *test)
{
	const struct schema_header *header = compiler->source->header;
	const char *text = filter_piece_text(compiler, test->field), *name;
	struct filter_near near;

	(void)filter_fail(compiler->failure, test->field, "%s:%s has no field '%.*s'",
		schema_string(compiler->source, header->system), schema_string(compiler->source, header->event),
		filter_piece_length(test->field), text);
	filter_near_begin(&near, text, test->field.size);
	for (size_t i = 0; (name = filter_field_name(compiler->schema, i)); i++)
		filter_near_offer(&near, name, strlen(name));
	filter_near_end(&near, compiler->failure);
	return -EINVAL;
}

static int fail_type(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field)
{
	const char *op = filter_piece_text(compiler, test->op_piece);
	int size = filter_piece_length(test->op_piece);

	switch (field->type) {
	case TYPE_NUMBER:
		if (test->values->kind == AST_CPUS)
			return filter_fail(compiler->failure, test->op_piece, "a list of CPUs is compared by == != or &");
		return filter_fail(compiler->failure, test->op_piece, "'%s' is a number: %.*s is for strings", field->name, size,
			op);
	case TYPE_STRING:
		return filter_fail(compiler->failure, test->op_piece, "'%s' is a string: %.*s is for numbers", field->name, size,
			op);
	case TYPE_CPUMASK:
		return filter_fail(compiler->failure, test->op_piece,
			"'%s' is a set of CPUs, to be compared by == != & with CPUS{...}", field->name);
	case TYPE_NOTHING:
	default:
		return filter_fail(compiler->failure, test->field, "'%s' is an array, which no value can be compared with",
			field->name);
	}
}

/* Suffixes fit some fields only. */
static int check_suffix(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field)
{
	uint32_t long_size = compiler->source->header->flags & SCHEMA_LONG4 ? 4 : 8;

	if (test->suffix == AST_USTRING && field->type != TYPE_STRING)
		return filter_fail(compiler->failure, test->field,
			"'%s' is an address of the traced process, and the event has not what stands there", field->name);
	if (test->suffix == AST_FUNCTION && (field->type != TYPE_NUMBER || field->size != long_size))
		return filter_fail(compiler->failure, test->field, "'%s' is no address (%u bytes) in the kernel", field->name,
			long_size);
	return 0;
}

/* ---- one comparison ---- */

/* Wraps up a comparison: `error` is what became of its parts. */
static int finish(struct filter_pred *pred, int error, struct filter_node **ret)
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
	return finish(pred, error, ret);
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
	return finish(pred, 0, ret);
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
			error = fail_type(compiler, test, field);
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
		error = test_bits(field, number.mask, number.value & full_mask(field), negated, &part);
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
	bool below = test->op == AST_LT || test->op == AST_LE, strictly = test->op == AST_LT || test->op == AST_GT;
	uint64_t value, key;
	int error;

	if (test->values->kind == AST_CPUS)
		return fail_type(compiler, test, field);
	if (test->values->kind == AST_QUOTED)
		return filter_fail(compiler->failure, test->values->piece, "'%s' is a number: compare it with one, without quotes",
			field->name);
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

/* As the kernel takes it: & is "one of these", == and != mean a list of one CPU; a number never equals a list
 * of several. */
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

static int test_number(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_range function;
	int error;

	if (test->suffix == AST_FUNCTION) {
		if (test->op != AST_EQ && test->op != AST_NE && test->op != AST_LIKE)
			return filter_fail(compiler->failure, test->op_piece, "a function is compared by == or !=");
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
		return fail_type(compiler, test, field);
	}
}

static int test_cpumask(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_pred *pred;
	int error;

	if ((test->op != AST_EQ && test->op != AST_NE && test->op != AST_BAND) || test->values->kind != AST_CPUS)
		return fail_type(compiler, test, field);
	pred = filter_pred_create(field, PRED_CPUS);
	if (!pred)
		return -ENOMEM;
	pred->whole = test->op != AST_BAND;
	pred->negated = negated != (test->op == AST_NE);
	error = filter_value_cpus(compiler, test->values->piece, &pred->ranges);
	return finish(pred, error, ret);
}

/* ---- strings ---- */

/* ==, !=, in. A string that the field has no room for is left out: it can't be there. */
static int test_string_set(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct filter_pred *pred = filter_pred_create(field, PRED_STRINGS);
	int error = pred ? 0 : -ENOMEM;

	for (const struct ast_value *value = test->values; value && !error; value = value->next) {
		const char *text = filter_piece_text(compiler, value->piece);

		if (value->kind == AST_WORD && (memchr(text, '*', value->piece.size) || memchr(text, '?', value->piece.size)))
			error = filter_fail(compiler->failure, value->piece,
				"write ~ for a pattern, or quotes for a string that holds * or ?");
		else if (value->kind == AST_CPUS)
			error = filter_fail(compiler->failure, value->piece, "'%s' is a string, not a CPU", field->name);
		else if (!field->size || value->piece.size <= field->size)
			error = filter_strings_add(&pred->strings, text, value->piece.size);
	}
	if (!error) {
		filter_strings_normalise(&pred->strings);
		pred->negated = negated;
	}
	return finish(pred, error, ret);
}

/* A pattern of a known shape: its text is copied. Empty ones match every string. */
static int test_pattern(const struct filter_field *field, enum filter_glob_shape shape, const char *text, size_t size,
	bool negated, struct filter_node **ret)
{
	bool every = !size && shape != GLOB_LITERAL && shape != GLOB_GENERAL;
	struct filter_pred *pred = filter_pred_create(field, shape == GLOB_LITERAL || every ? PRED_STRINGS : PRED_PATTERN);
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
	return finish(pred, error, ret);
}

/* As in the kernel, a ! at the front negates the whole pattern. */
static int test_glob(const struct filter_compiler *compiler, struct ast_piece piece, const struct filter_field *field,
	bool negated, struct filter_node **ret)
{
	const char *glob = filter_piece_text(compiler, piece);
	size_t glob_size = piece.size, size;
	enum filter_glob_shape shape;
	char *text;
	int error;

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

static int test_regex(const struct filter_compiler *compiler, struct ast_piece piece, const struct filter_field *field,
	bool negated, struct filter_node **ret)
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
		error = filter_regex_create(compiler->ast->text, piece, &pred->regex, compiler->failure);
	}
	return finish(pred, error, ret);
}

static int test_string(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret)
{
	struct ast_piece piece = test->values->piece;
	const char *text = filter_piece_text(compiler, piece);

	if (test->op != AST_IN && test->values->kind == AST_CPUS)
		return filter_fail(compiler->failure, piece, "'%s' is a string, not a CPU", field->name);
	switch (test->op) {
	case AST_EQ:
	case AST_NE:
	case AST_IN:
		return test_string_set(compiler, test, field, negated != (test->op == AST_NE), ret);
	case AST_GLOB:
	case AST_LIKE:
	case AST_NOT_GLOB:
		return test_glob(compiler, piece, field, negated != (test->op == AST_NOT_GLOB), ret);
	case AST_PREFIX:
		return test_pattern(field, GLOB_PREFIX, text, piece.size, negated, ret);
	case AST_SUFFIX:
		return test_pattern(field, GLOB_SUFFIX, text, piece.size, negated, ret);
	case AST_SUBSTRING:
		return test_pattern(field, GLOB_SUBSTRING, text, piece.size, negated, ret);
	case AST_REGEX:
		return test_regex(compiler, piece, field, negated, ret);
	default:
		return fail_type(compiler, test, field);
	}
}

/* The probe's name is known already, so what is said of it is true or false for every event. */
static int settle_probe(const struct filter_compiler *compiler, struct filter_node **node)
{
	const char *name = compiler->environment->probe;
	struct filter_node *settled;

	if ((*node)->kind != NODE_TEST)
		return 0;
	settled = filter_node_constant(name && filter_pred_test_text((*node)->pred, name, strlen(name)));
	if (!settled)
		return -ENOMEM;
	filter_node_release(*node);
	*node = settled;
	return 0;
}

static int compile_test(const struct filter_compiler *compiler, const struct ast_node *test, bool negated,
	struct filter_node **ret)
{
	const struct filter_environment *environment = compiler->environment;
	struct filter_field field;
	int error;

	if (filter_field_find(compiler->schema, environment, filter_piece_text(compiler, test->field), test->field.size,
		    &field)) {
		if (!(environment->flags & FILTER_LENIENT))
			return fail_field(compiler, test);
		*ret = filter_node_constant(false);
		return *ret ? 0 : -ENOMEM;
	}
	if (field.source != FROM_TGID && (filter_field_fact(&field) & environment->lacks))
		return filter_fail(compiler->failure, test->field, "'%s' is not known in this session", field.name);
	error = check_suffix(compiler, test, &field);
	if (error)
		return error;
	switch (field.type) {
	case TYPE_NUMBER:
		return test_number(compiler, test, &field, negated, ret);
	case TYPE_STRING:
		error = test_string(compiler, test, &field, negated, ret);
		break;
	case TYPE_CPUMASK:
		return test_cpumask(compiler, test, &field, negated, ret);
	case TYPE_NOTHING:
	default:
		return fail_type(compiler, test, &field);
	}
	if (!error && field.source == FROM_PROBE) {
		error = settle_probe(compiler, ret);
		if (error)
			filter_node_release(*ret);
	}
	return error;
}

/* ---- the logic ---- */

/* The tree is no deeper than FILTER_DEPTH_MAX parentheses allow. */
static int compile_node(const struct filter_compiler *compiler, const struct ast_node *node, bool negated,
	struct filter_node **ret)
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
	const struct filter_environment *environment, struct filter_node **ret, struct filter_failure *ret_failure)
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
