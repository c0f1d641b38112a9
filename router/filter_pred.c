#include "router/filter_pred.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct filter_pred *filter_pred_create(const struct filter_field *field, enum pred_kind kind)
{
	struct filter_pred *pred = calloc(1, sizeof(*pred));

	if (!pred)
		return NULL;
	pred->refs = 1;
	pred->kind = kind;
	pred->field = *field;
	(void)filter_schema_ref(field->schema);
	return pred;
}

struct filter_pred *filter_pred_ref(struct filter_pred *pred)
{
	pred->refs++;
	return pred;
}

void filter_pred_release(struct filter_pred *pred)
{
	if (!pred || --pred->refs)
		return;
	filter_schema_release(pred->field.schema);
	free(pred->ranges.at);
	filter_strings_release(&pred->strings);
	filter_regex_release(pred->regex);
	free(pred->text);
	free(pred);
}

uint64_t filter_hash_text(uint64_t seed, const char *text, size_t size)
{
	uint64_t hash = seed ^ size, part;

	while (size >= sizeof(part)) {
		memcpy(&part, text, sizeof(part));
		hash = filter_mix(hash ^ part);
		text += sizeof(part);
		size -= sizeof(part);
	}
	part = 0;
	if (size)
		memcpy(&part, text, size);
	return filter_mix(hash ^ part);
}

void filter_pred_seal(struct filter_pred *pred)
{
	uint64_t hash = pred->kind | (uint64_t)pred->negated << 8 | (uint64_t)pred->whole << 9 |
			(uint64_t)pred->shape << 16 | (uint64_t)pred->field.source << 24 |
			(uint64_t)pred->field.index << 32;

	hash = filter_mix(hash);
	hash = filter_mix(hash ^ pred->mask);
	hash = filter_mix(hash ^ pred->value);
	for (size_t i = 0; i < pred->ranges.count; i++)
		hash = filter_mix(
			filter_mix(hash ^ pred->ranges.at[i].low) ^ pred->ranges.at[i].high);
	for (size_t i = 0; i < pred->strings.count; i++)
		hash = filter_hash_text(hash, pred->strings.at[i].at, pred->strings.at[i].size);
	if (pred->text)
		hash = filter_hash_text(hash, pred->text, pred->text_size);
	pred->hash = hash;
}

/* ---- evaluation ---- */

static bool contains_text(const char *text, size_t size, const struct filter_pred *pred)
{
	return memmem(text, size, pred->text, pred->text_size) != NULL;
}

static bool match_pattern(const struct filter_pred *pred, const char *text, size_t size)
{
	switch (pred->shape) {
	case GLOB_PREFIX:
		return size >= pred->text_size && !memcmp(text, pred->text, pred->text_size);
	case GLOB_SUFFIX:
		return size >= pred->text_size &&
		       !memcmp(text + size - pred->text_size, pred->text, pred->text_size);
	case GLOB_SUBSTRING:
		return contains_text(text, size, pred);
	case GLOB_LITERAL:
	case GLOB_GENERAL:
	default:
		return filter_glob_match(pred->text, pred->text_size, text, size);
	}
}

bool filter_pred_test_text(const struct filter_pred *pred, const char *text, size_t size)
{
	bool match;

	if (pred->kind == PRED_STRINGS)
		match = filter_strings_contain(&pred->strings, text, size);
	else if (pred->kind == PRED_PATTERN)
		match = match_pattern(pred, text, size);
	else
		match = filter_regex_match(pred->regex, text, size);
	return match != pred->negated;
}

static bool test_cpus(const struct filter_pred *pred, const struct filter_event *event)
{
	const uint8_t *bytes;
	size_t size;
	bool match = pred->whole;

	if (!filter_field_bytes(&pred->field, event, &bytes, &size))
		return false;
	/* Only whole longs can be told apart in a mask of the other byte order. */
	size -= size % (pred->field.schema->header.flags & SCHEMA_LONG4 ? 4 : 8);
	for (size_t cpu = 0; cpu < 8 * size; cpu++) {
		bool set = filter_field_bit(&pred->field, bytes, cpu);
		bool wanted = filter_ranges_contain(&pred->ranges, cpu);

		if (pred->whole ? set != wanted : set && wanted) {
			match = !pred->whole;
			break;
		}
	}
	/* A wanted CPU that the mask has no bit for isn't set. */
	if (pred->whole && match && pred->ranges.count)
		match = pred->ranges.at[pred->ranges.count - 1].high < 8 * size;
	return match != pred->negated;
}

bool filter_pred_test(const struct filter_pred *pred, const struct filter_event *event)
{
	const char *text;
	uint64_t value;
	size_t size;

	switch (pred->kind) {
	case PRED_RANGES:
		if (!filter_field_number(&pred->field, event, &value))
			return false;
		value = filter_field_key(&pred->field, value);
		if (pred->ranges.count == 1)
			return value >= pred->ranges.at[0].low && value <= pred->ranges.at[0].high;
		return filter_ranges_contain(&pred->ranges, value);
	case PRED_BITS:
		if (!filter_field_number(&pred->field, event, &value))
			return false;
		return ((value & pred->mask) == pred->value) != pred->negated;
	case PRED_CPUS:
		return test_cpus(pred, event);
	case PRED_STRINGS:
	case PRED_PATTERN:
	case PRED_REGEX:
	default:
		return filter_field_text(&pred->field, event, &text, &size) &&
		       filter_pred_test_text(pred, text, size);
	}
}

/* What one evaluation costs, roughly. */
static unsigned int cost(const struct filter_pred *pred)
{
	switch (pred->kind) {
	case PRED_RANGES:
	case PRED_BITS:
		return 1;
	case PRED_STRINGS:
		return 2;
	case PRED_PATTERN:
		return pred->shape == GLOB_GENERAL ? 4 : 3;
	case PRED_CPUS:
		return 5;
	case PRED_REGEX:
	default:
		return 6;
	}
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int filter_pred_compare(const struct filter_pred *a, const struct filter_pred *b)
{
	int way = compare_numbers(cost(a), cost(b));

	if (!way)
		way = compare_numbers(a->field.source, b->field.source);
	if (!way)
		way = compare_numbers(a->field.index, b->field.index);
	if (!way && a->ranges.count && b->ranges.count)
		way = compare_numbers(a->ranges.at[0].low, b->ranges.at[0].low);
	if (!way && a->strings.count && b->strings.count)
		way = strcmp(a->strings.at[0].at, b->strings.at[0].at);
	if (!way && a->text && b->text)
		way = strcmp(a->text, b->text);
	return way ? way : compare_numbers(a->hash, b->hash);
}

/* ---- algebra ---- */

static bool same_text(const struct filter_pred *a, const struct filter_pred *b)
{
	return a->text_size == b->text_size &&
	       (!a->text_size || !memcmp(a->text, b->text, a->text_size));
}

bool filter_pred_equal(const struct filter_pred *a, const struct filter_pred *b)
{
	if (a == b)
		return true;
	return a->hash == b->hash && a->kind == b->kind && a->negated == b->negated &&
	       a->whole == b->whole && a->shape == b->shape &&
	       filter_field_equal(&a->field, &b->field) && a->mask == b->mask &&
	       a->value == b->value && filter_ranges_equal(&a->ranges, &b->ranges) &&
	       filter_strings_equal(&a->strings, &b->strings) && same_text(a, b);
}

bool filter_pred_is_empty(const struct filter_pred *pred)
{
	if (pred->kind == PRED_RANGES)
		return !pred->ranges.count;
	return pred->kind == PRED_STRINGS && !pred->strings.count && !pred->negated;
}

static bool implies_strings(const struct filter_strings *a, bool a_negated,
	const struct filter_strings *b, bool b_negated)
{
	if (!a_negated && !b_negated)
		return filter_strings_inside(a, b);
	if (a_negated && b_negated)
		return filter_strings_inside(b, a);
	if (a_negated)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (filter_strings_contain(b, a->at[i].at, a->at[i].size))
			return false;
	return true;
}

/* Every text of a's pattern has b's pattern as well: /etc* has /e*. */
static bool implies_pattern(const struct filter_pred *a, const struct filter_pred *b)
{
	if (a->negated || b->negated)
		return a->negated && b->negated && a->shape == b->shape && same_text(a, b);
	if (a->shape == GLOB_GENERAL || b->shape == GLOB_GENERAL)
		return a->shape == b->shape && same_text(a, b);
	return (b->shape == GLOB_SUBSTRING || a->shape == b->shape) &&
	       match_pattern(b, a->text, a->text_size);
}

static bool implies_bits(const struct filter_pred *a, const struct filter_pred *b)
{
	/* Every value of few enough ranges, one by one. */
	if (a->kind == PRED_RANGES) {
		for (size_t i = 0; i < a->ranges.count; i++) {
			uint64_t value = filter_field_key(&a->field, a->ranges.at[i].low);

			if (a->ranges.at[i].low != a->ranges.at[i].high ||
				((value & b->mask) == b->value) == b->negated)
				return false;
		}
		return true;
	}
	if (a->negated || b->negated) {
		/* Some bit of the smaller mask is set: then some bit of the greater one is. */
		if (a->negated && b->negated && !a->value && !b->value)
			return !(a->mask & ~b->mask);
		/* The bits that both look at differ from b's value. */
		return !a->negated && ((a->value ^ b->value) & a->mask & b->mask) != 0;
	}
	return !(b->mask & ~a->mask) && (a->value & b->mask) == b->value;
}

bool filter_pred_implies(const struct filter_pred *a, const struct filter_pred *b)
{
	if (!filter_field_equal(&a->field, &b->field))
		return false;
	if (filter_pred_equal(a, b))
		return true;
	if (a->kind == PRED_RANGES && b->kind == PRED_RANGES)
		return filter_ranges_inside(&a->ranges, &b->ranges);
	if (a->kind == PRED_STRINGS && b->kind == PRED_STRINGS)
		return implies_strings(&a->strings, a->negated, &b->strings, b->negated);
	/* Everything says that the field is there, which is what "all but nothing" says. */
	if (b->kind == PRED_STRINGS && b->negated && !b->strings.count)
		return true;
	if (b->kind == PRED_RANGES && b->ranges.count == 1) {
		struct filter_range domain = filter_field_domain(&b->field);

		return b->ranges.at[0].low == domain.low && b->ranges.at[0].high == domain.high;
	}
	if (b->kind == PRED_BITS && (a->kind == PRED_RANGES || a->kind == PRED_BITS))
		return implies_bits(a, b);
	if (a->kind == PRED_STRINGS && !a->negated && b->kind == PRED_PATTERN) {
		for (size_t i = 0; i < a->strings.count; i++)
			if (!filter_pred_test_text(b, a->strings.at[i].at, a->strings.at[i].size))
				return false;
		return true;
	}
	return a->kind == PRED_PATTERN && b->kind == PRED_PATTERN && implies_pattern(a, b);
}

static int merge_ranges(const struct filter_pred *a, const struct filter_pred *b, bool both,
	struct filter_pred *result)
{
	return both ? filter_ranges_intersection(&a->ranges, &b->ranges, &result->ranges)
		    : filter_ranges_union(&a->ranges, &b->ranges, &result->ranges);
}

/* With "all but" sets, and is or and or is and; one of each kind is a difference. */
static int merge_strings(const struct filter_pred *a, const struct filter_pred *b, bool both,
	struct filter_pred *result)
{
	if (a->negated == b->negated) {
		result->negated = a->negated;
		return both == a->negated
			       ? filter_strings_union(&a->strings, &b->strings, &result->strings)
			       : filter_strings_intersection(
					 &a->strings, &b->strings, &result->strings);
	}
	if (a->negated)
		return merge_strings(b, a, both, result);
	result->negated = !both;
	return both ? filter_strings_difference(&a->strings, &b->strings, &result->strings)
		    : filter_strings_difference(&b->strings, &a->strings, &result->strings);
}

int filter_pred_merge(const struct filter_pred *a, const struct filter_pred *b, bool both,
	struct filter_pred **ret)
{
	struct filter_pred *result;
	int error;

	if (a->kind != b->kind || (a->kind != PRED_RANGES && a->kind != PRED_STRINGS) ||
		!filter_field_equal(&a->field, &b->field))
		return 0;
	result = filter_pred_create(&a->field, a->kind);
	if (!result)
		return -ENOMEM;
	error = a->kind == PRED_RANGES ? merge_ranges(a, b, both, result)
				       : merge_strings(a, b, both, result);
	if (error) {
		filter_pred_release(result);
		return error;
	}
	filter_pred_seal(result);
	*ret = result;
	return 1;
}
