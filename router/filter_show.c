/* A program as text in the filters' own language: for people, and for tests that read it back. */
#include "router/filter_out.h"
#include "router/filter_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void show_value(struct filter_out *out, const struct filter_field *field, uint64_t key)
{
	uint64_t value = filter_field_key(field, key);

	if (field->is_signed)
		filter_out_add(out, "%" PRId64, (int64_t)value);
	else
		filter_out_add(out, "%" PRIu64, value);
}

static void show_ranges(struct filter_out *out, const struct filter_pred *pred)
{
	const struct filter_ranges *ranges = &pred->ranges;
	const struct filter_field *field = &pred->field;
	struct filter_range domain = filter_field_domain(field);

	if (ranges->count == 1 && ranges->at[0].low == ranges->at[0].high) {
		filter_out_add(out, "%s == ", field->name);
		show_value(out, field, ranges->at[0].low);
		return;
	}
	if (ranges->count == 2 && ranges->at[0].low == domain.low &&
		ranges->at[1].high == domain.high && ranges->at[0].high + 2 == ranges->at[1].low) {
		filter_out_add(out, "%s != ", field->name);
		show_value(out, field, ranges->at[0].high + 1);
		return;
	}
	if (ranges->count == 1 && ranges->at[0].low == domain.low &&
		ranges->at[0].high != domain.high) {
		filter_out_add(out, "%s <= ", field->name);
		show_value(out, field, ranges->at[0].high);
		return;
	}
	if (ranges->count == 1 && ranges->at[0].high == domain.high &&
		ranges->at[0].low != domain.low) {
		filter_out_add(out, "%s >= ", field->name);
		show_value(out, field, ranges->at[0].low);
		return;
	}
	filter_out_add(out, "%s in {", field->name);
	for (size_t i = 0; i < ranges->count; i++) {
		filter_out_add(out, i ? ", " : "");
		show_value(out, field, ranges->at[i].low);
		if (ranges->at[i].low == ranges->at[i].high)
			continue;
		filter_out_add(out, "..");
		show_value(out, field, ranges->at[i].high);
	}
	filter_out_add(out, "}");
}

/* The language's & says "some of these bits": each bit of the value by itself, and none of the
 * others. */
static void show_bits(struct filter_out *out, const struct filter_pred *pred)
{
	uint64_t clear = pred->mask & ~pred->value, set = pred->value;
	bool several = __builtin_popcountll(set) + (clear != 0) > 1;
	const char *before = "";

	filter_out_add(out, several ? "(" : "");
	for (; set; set &= set - 1) {
		filter_out_add(out, "%s%s%s & 0x%" PRIx64, before, pred->negated ? "!" : "",
			pred->field.name, set & -set);
		before = pred->negated ? " || " : " && ";
	}
	if (clear)
		filter_out_add(out, "%s%s%s & 0x%" PRIx64, before, pred->negated ? "" : "!",
			pred->field.name, clear);
	filter_out_add(out, several ? ")" : "");
}

static void show_strings(struct filter_out *out, const struct filter_pred *pred)
{
	if (!pred->strings.count) {
		filter_out_add(out, "%s ~ \"*\"", pred->field.name);
		return;
	}
	if (pred->strings.count == 1) {
		filter_out_add(out, "%s %s ", pred->field.name, pred->negated ? "!=" : "==");
		filter_out_quoted(out, pred->strings.at[0].at, pred->strings.at[0].size);
		return;
	}
	filter_out_add(out, "%s%s in {", pred->negated ? "!" : "", pred->field.name);
	for (size_t i = 0; i < pred->strings.count; i++) {
		filter_out_add(out, i ? ", " : "");
		filter_out_quoted(out, pred->strings.at[i].at, pred->strings.at[i].size);
	}
	filter_out_add(out, "}");
}

static const char *pattern_operator(const struct filter_pred *pred)
{
	if (pred->kind == PRED_REGEX)
		return "=~";
	switch (pred->shape) {
	case GLOB_PREFIX:
		return "^=";
	case GLOB_SUFFIX:
		return "$=";
	case GLOB_SUBSTRING:
		return "*=";
	case GLOB_LITERAL:
	case GLOB_GENERAL:
	default:
		return "~";
	}
}

static void show_pattern(struct filter_out *out, const struct filter_pred *pred)
{
	filter_out_add(out, "%s%s %s ", pred->negated ? "!" : "", pred->field.name,
		pattern_operator(pred));
	if (pred->kind == PRED_PATTERN && pred->shape == GLOB_GENERAL && pred->text[0] == '!') {
		/* The first ! would negate. */
		char quote = strchr(pred->text, '"') ? '\'' : '"';

		filter_out_add(out, "%c\\%s%c", quote, pred->text, quote);
		return;
	}
	filter_out_quoted(out, pred->text, pred->text_size);
}

static void show_cpus(struct filter_out *out, const struct filter_pred *pred)
{
	const char *op = pred->negated ? "!=" : "==";

	if (!pred->whole)
		op = "&";
	filter_out_add(out, "%s%s %s CPUS{", pred->negated && !pred->whole ? "!" : "",
		pred->field.name, op);
	for (size_t i = 0; i < pred->ranges.count; i++)
		filter_out_add(out, "%s%" PRIu64 "-%" PRIu64, i ? "," : "", pred->ranges.at[i].low,
			pred->ranges.at[i].high);
	filter_out_add(out, "}");
}

static void show_test(struct filter_out *out, const struct filter_pred *pred)
{
	switch (pred->kind) {
	case PRED_RANGES:
		show_ranges(out, pred);
		return;
	case PRED_BITS:
		show_bits(out, pred);
		return;
	case PRED_STRINGS:
		show_strings(out, pred);
		return;
	case PRED_PATTERN:
	case PRED_REGEX:
		show_pattern(out, pred);
		return;
	case PRED_CPUS:
	default:
		show_cpus(out, pred);
		return;
	}
}

static void show_node(struct filter_out *out, const struct filter_node *node, bool inside)
{
	switch (node->kind) {
	case NODE_TEST:
		show_test(out, node->pred);
		return;
	case NODE_NONE:
		filter_out_add(out, "probe in {\"\"}");
		return;
	case NODE_ALL:
		filter_out_add(out, "%s", "");
		return;
	case NODE_AND:
	case NODE_OR:
	default:
		break;
	}
	filter_out_add(out, inside ? "(" : "");
	for (size_t i = 0; i < node->count; i++) {
		filter_out_add(out, !i ? "" : node->kind == NODE_AND ? " && " : " || ");
		show_node(out, node->children[i], true);
	}
	filter_out_add(out, inside ? ")" : "");
}

int filter_program_show(const struct filter_program *program, char **ret)
{
	struct filter_out out = { .limit = SIZE_MAX };

	show_node(&out, program->tree, false);
	if (out.failed || !out.at) {
		free(out.at);
		return -ENOMEM;
	}
	*ret = out.at;
	return 0;
}
