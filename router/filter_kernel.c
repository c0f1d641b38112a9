/* What of a filter the kernel can do: text for an event's `filter` file that lets pass at least
 * what the filter accepts. Comparisons that the kernel lacks, or takes for something else, count as
 * true; since trees know no `!`, that only ever makes more events pass.
 *
 * Seen in kernel/trace/trace_events_filter.c and tried on running kernels from 5.10 to 7.3: a text
 * of a page or more is refused; CPU & MASK is always false; a list of CPUs that names one which the
 * machine hasn't is refused. */
#include "router/filter_kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A value with more bits than this under one mask would need a term for each. */
#define KERNEL_BITS_MAX 8

/* ---- numbers ---- */

static void write_number(struct kernel_writer *writer, const struct filter_field *field,
	const char *op, uint64_t value)
{
	if (field->is_signed)
		filter_out_add(
			&writer->out, "%s %s %" PRId64, field->kernel_name, op, (int64_t)value);
	else
		filter_out_add(&writer->out, "%s %s %" PRIu64, field->kernel_name, op, value);
}

static size_t count_terms(const struct filter_ranges *ranges, struct filter_range domain)
{
	size_t terms = 0;

	for (size_t i = 0; i < ranges->count; i++) {
		struct filter_range range = ranges->at[i];

		terms += range.low == range.high || range.low == domain.low ||
					 range.high == domain.high
				 ? 1
				 : 2;
	}
	return terms;
}

static void write_range(struct kernel_writer *writer, const struct filter_field *field,
	struct filter_range range, bool inside)
{
	struct filter_range domain = filter_field_domain(field);
	uint64_t low = filter_field_key(field, range.low),
		 high = filter_field_key(field, range.high);

	if (range.low == range.high) {
		write_number(writer, field, inside ? "==" : "!=", low);
	} else if (range.low == domain.low) {
		write_number(writer, field, inside ? "<=" : ">", high);
	} else if (range.high == domain.high) {
		write_number(writer, field, inside ? ">=" : "<", low);
	} else {
		filter_out_add(&writer->out, "(");
		write_number(writer, field, inside ? ">=" : "<", low);
		filter_out_add(&writer->out, inside ? " && " : " || ");
		write_number(writer, field, inside ? "<=" : ">", high);
		filter_out_add(&writer->out, ")");
	}
}

/* As a list of what is in, or of what is out, whichever is shorter. */
static void write_set(struct kernel_writer *writer, const struct filter_field *field,
	const struct filter_ranges *ranges, bool inside)
{
	if (ranges->count > 1)
		filter_out_add(&writer->out, "(");
	for (size_t i = 0; i < ranges->count; i++) {
		if (i)
			filter_out_add(&writer->out, inside ? " || " : " && ");
		write_range(writer, field, ranges->at[i], inside);
	}
	if (ranges->count > 1)
		filter_out_add(&writer->out, ")");
}

static enum kernel_written write_ranges(
	struct kernel_writer *writer, const struct filter_pred *pred)
{
	struct filter_range domain = filter_field_domain(&pred->field);
	struct filter_ranges coarse, rest;
	bool inside;

	if (filter_ranges_coarsen(&pred->ranges, writer->most, &coarse)) {
		writer->error = -ENOMEM;
		return KERNEL_ALL;
	}
	if (coarse.count < pred->ranges.count)
		writer->exact = false;
	if (filter_ranges_complement(&coarse, domain, &rest)) {
		free(coarse.at);
		writer->error = -ENOMEM;
		return KERNEL_ALL;
	}
	inside = count_terms(&coarse, domain) <= count_terms(&rest, domain);
	/* Nothing is out: the kernel's fields are always there. */
	if (rest.count)
		write_set(writer, &pred->field, inside ? &coarse : &rest, inside);
	free(coarse.at);
	inside = rest.count;
	free(rest.at);
	return inside ? KERNEL_TEXT : KERNEL_ALL;
}

static uint64_t sign_extended(const struct filter_field *field, uint64_t bits)
{
	unsigned int shift = 64 - 8 * field->size;

	return field->is_signed ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits;
}

/* The kernel's & says "some of these bits": each bit of the value by itself, and none of the
 * others. */
static enum kernel_written write_bits(struct kernel_writer *writer, const struct filter_pred *pred)
{
	const struct filter_field *field = &pred->field;
	uint64_t clear = pred->mask & ~pred->value, set = pred->value;
	const char *between = pred->negated ? " || " : " && ", *before = "";
	bool several;

	if (field->source != FROM_PAYLOAD || __builtin_popcountll(set) > KERNEL_BITS_MAX)
		return kernel_widen(writer);
	several = __builtin_popcountll(set) + (clear != 0) > 1;
	filter_out_add(&writer->out, several ? "(" : "");
	for (; set; set &= set - 1) {
		filter_out_add(&writer->out, "%s%s", before, pred->negated ? "!(" : "");
		write_number(writer, field, "&", sign_extended(field, set & -set));
		filter_out_add(&writer->out, pred->negated ? ")" : "");
		before = between;
	}
	if (clear) {
		filter_out_add(&writer->out, "%s%s", before, pred->negated ? "" : "!(");
		write_number(writer, field, "&", sign_extended(field, clear));
		filter_out_add(&writer->out, pred->negated ? "" : ")");
	}
	filter_out_add(&writer->out, several ? ")" : "");
	return KERNEL_TEXT;
}

/* ---- the tree ---- */

static enum kernel_written write_test(struct kernel_writer *writer, const struct filter_pred *pred)
{
	if (!pred->field.kernel_name)
		return kernel_widen(writer);
	switch (pred->kind) {
	case PRED_RANGES:
		return write_ranges(writer, pred);
	case PRED_BITS:
		return write_bits(writer, pred);
	case PRED_STRINGS:
		return filter_kernel_strings(writer, pred);
	case PRED_PATTERN:
		return filter_kernel_pattern(writer, pred);
	case PRED_REGEX:
	case PRED_CPUS:
	default:
		return kernel_widen(writer);
	}
}

static const struct filter_pred *same_kind(
	const struct filter_node *node, const struct filter_pred *wanted)
{
	if (node->kind == NODE_TEST)
		return node->pred->kind == wanted->kind &&
				       filter_field_equal(&node->pred->field, &wanted->field)
			       ? node->pred
			       : NULL;
	for (size_t i = 0; node->kind == NODE_AND && i < node->count; i++) {
		const struct filter_pred *found = same_kind(node->children[i], wanted);

		if (found)
			return found;
	}
	return NULL;
}

/* What all alternatives of `list` but single comparisons (where those are `kept`) say of the field
 * of `first`, merged. Returns 1, 0 (one of them says nothing of it) or -ENOMEM. */
static int merge_alternatives(const struct filter_node *list, bool kept,
	const struct filter_pred *first, struct filter_node **ret)
{
	struct filter_nodes parts = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		const struct filter_pred *other = same_kind(list->children[i], first);

		if (kept && list->children[i]->kind == NODE_TEST)
			continue;
		if (!other || filter_nodes_add(&parts, filter_node_test(filter_pred_ref(
							       (struct filter_pred *)other)))) {
			filter_nodes_release(&parts);
			return other ? -ENOMEM : 0;
		}
	}
	return filter_node_join(false, &parts, ret) ? -ENOMEM : 1;
}

/* What the alternatives, single comparisons aside where those are `kept`, have in common: a term
 * for each field of which all say something that can be merged. */
static int make_common(const struct filter_node *list, bool kept, struct filter_node **ret)
{
	const struct filter_node *first = list->children[0];
	struct filter_nodes parts = { 0 };
	size_t count;

	for (size_t i = 1; kept && first->kind == NODE_TEST && i < list->count; i++)
		first = list->children[i];
	count = first->kind == NODE_AND ? first->count : 1;
	for (size_t i = 0; i < count; i++) {
		const struct filter_node *part =
			first->kind == NODE_AND ? first->children[i] : first;
		struct filter_node *merged;
		int found = 0;

		if (part->kind == NODE_TEST &&
			(part->pred->kind == PRED_RANGES || part->pred->kind == PRED_STRINGS))
			found = merge_alternatives(list, kept, part->pred, &merged);
		if (found > 0 && filter_nodes_add(&parts, merged))
			found = -ENOMEM;
		if (found < 0) {
			filter_nodes_release(&parts);
			return found;
		}
	}
	return filter_node_join(true, &parts, ret);
}

/* Alternatives that are too many: (a == 1 && b == 2) || (a == 3 && b == 4) becomes a in {1, 3} && b
 * in {2, 4}. Single comparisons are kept beside that while there is room for them. */
static int make_hull(const struct filter_node *list, size_t most, struct filter_node **ret)
{
	struct filter_nodes parts = { 0 };
	struct filter_node *common;
	size_t tests = 0;
	bool kept;
	int error;

	for (size_t i = 0; i < list->count; i++)
		tests += list->children[i]->kind == NODE_TEST;
	kept = tests < most && tests < list->count;
	error = make_common(list, kept, &common);
	if (!error)
		error = filter_nodes_add(&parts, common);
	for (size_t i = 0; kept && !error && i < list->count; i++)
		if (list->children[i]->kind == NODE_TEST)
			error = filter_nodes_add(&parts, filter_node_ref(list->children[i]));
	if (!error)
		return filter_node_join(false, &parts, ret);
	filter_nodes_release(&parts);
	return error;
}

static enum kernel_written write_node(
	struct kernel_writer *writer, const struct filter_node *node, bool inside);

static enum kernel_written write_hull(
	struct kernel_writer *writer, const struct filter_node *node, bool inside)
{
	enum kernel_written written = KERNEL_ALL;
	struct filter_node *hull;

	writer->exact = false;
	if (make_hull(node, writer->most, &hull)) {
		writer->error = -ENOMEM;
		return KERNEL_ALL;
	}
	if (hull->kind != NODE_ALL)
		written = write_node(writer, hull, inside);
	filter_node_release(hull);
	return written;
}

static enum kernel_written write_list(
	struct kernel_writer *writer, const struct filter_node *node, bool inside)
{
	size_t start = writer->out.size, count = node->count, written = 0;
	bool both = node->kind == NODE_AND;

	if (count > writer->most) {
		if (!both)
			return write_hull(writer, node, inside);
		count = writer->most;
		writer->exact = false;
	}
	filter_out_add(&writer->out, inside ? "(" : "");
	for (size_t i = 0; i < count && !writer->error && !writer->out.full; i++) {
		size_t before = writer->out.size;

		if (written)
			filter_out_add(&writer->out, both ? " && " : " || ");
		if (write_node(writer, node->children[i], true) == KERNEL_TEXT) {
			written++;
			continue;
		}
		writer->out.size = before;
		if (!both) {
			written = 0;
			break;
		}
	}
	if (!written) {
		writer->out.size = start;
		return KERNEL_ALL;
	}
	filter_out_add(&writer->out, inside ? ")" : "");
	return KERNEL_TEXT;
}

/* `inside`: a list stands in another and needs parentheses. */
static enum kernel_written write_node(
	struct kernel_writer *writer, const struct filter_node *node, bool inside)
{
	switch (node->kind) {
	case NODE_TEST:
		return write_test(writer, node->pred);
	case NODE_AND:
	case NODE_OR:
		return write_list(writer, node, inside);
	case NODE_NONE:
		/* No event has a type below 0. */
		filter_out_add(&writer->out, "common_type < 0");
		return KERNEL_TEXT;
	case NODE_ALL:
	default:
		return KERNEL_ALL;
	}
}

/* The tree with "true" for what the kernel can't do, simplified: widening may have made terms
 * equal. */
static int reduce(const struct filter_node *node, bool *exact, struct filter_node **ret)
{
	struct kernel_writer writer = {
		.out = { .limit = SIZE_MAX }, .most = SIZE_MAX, .exact = true
	};
	struct filter_nodes parts = { 0 };
	struct filter_node *part;
	enum kernel_written written;
	int error = 0;

	if (node->kind == NODE_TEST) {
		written = write_test(&writer, node->pred);
		free(writer.out.at);
		if (writer.error || writer.out.failed)
			return -ENOMEM;
		*exact &= writer.exact;
		*ret = written == KERNEL_ALL ? filter_node_constant(true)
					     : filter_node_ref((struct filter_node *)node);
		return *ret ? 0 : -ENOMEM;
	}
	if (node->kind != NODE_AND && node->kind != NODE_OR) {
		*ret = filter_node_ref((struct filter_node *)node);
		return 0;
	}
	for (size_t i = 0; i < node->count && !error; i++) {
		error = reduce(node->children[i], exact, &part);
		if (!error)
			error = filter_nodes_add(&parts, part);
	}
	if (!error)
		return filter_node_join(node->kind == NODE_AND, &parts, ret);
	filter_nodes_release(&parts);
	return error;
}

static int finish_text(struct kernel_writer *writer, char **ret_text, bool *ret_exact)
{
	*ret_exact = writer->exact;
	writer->out.at[writer->out.size] = '\0';
	*ret_text = writer->out.at;
	writer->out.at = NULL;
	return 0;
}

static int write_tree(
	const struct filter_node *tree, bool exact, size_t room, char **ret_text, bool *ret_exact)
{
	static const size_t steps[] = { SIZE_MAX, 128, 32, 8, 2, 1 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct kernel_writer writer = {
			.out = { .limit = room }, .most = steps[i], .exact = exact
		};
		enum kernel_written written = write_node(&writer, tree, false);

		if (!writer.error && !writer.out.failed && !writer.out.full &&
			written == KERNEL_TEXT)
			return finish_text(&writer, ret_text, ret_exact);
		free(writer.out.at);
		if (writer.error || writer.out.failed)
			return -ENOMEM;
		exact &= writer.exact && !writer.out.full;
		if (written == KERNEL_ALL && !writer.out.full)
			break;
	}
	*ret_exact = exact;
	*ret_text = strdup("0");
	return *ret_text ? 0 : -ENOMEM;
}

int filter_kernel_text(
	const struct filter_program *program, size_t room, char **ret_text, bool *ret_exact)
{
	struct filter_node *tree;
	bool exact = true;
	int error = reduce(program->tree, &exact, &tree);

	if (error)
		return error;
	error = write_tree(tree, exact, room, ret_text, ret_exact);
	filter_node_release(tree);
	return error;
}
