#include "router/filter_ways.h"

#include <stdlib.h>

/* How many values a comparison's ranges may add to be looked up one by one. */
#define WAYS_MORE_MAX 64
/* More ways in than this by a value aren't counted: it is common. */
#define WAYS_OTHERS_MAX 64

/* How many values the comparison accepts, if they can be looked up one by one; else 0. Neighbouring
 * values have become ranges: those of a few values are taken apart again, wider ones are asked. */
static size_t count_values(const struct filter_pred *pred)
{
	size_t count = pred->ranges.count;
	uint64_t more = 0;

	if (pred->kind == PRED_STRINGS)
		return pred->negated ? 0 : pred->strings.count;
	if (pred->kind != PRED_RANGES || count > FILTER_SET_MAX)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t width = pred->ranges.at[i].high - pred->ranges.at[i].low;

		if (width > WAYS_MORE_MAX - more)
			return 0;
		more += width;
	}
	return count + (size_t)more;
}

static struct ways_field *find_field(
	const struct filter_ways *ways, const struct filter_field *field)
{
	struct ways_field *known = ways->fields;

	while (known && !filter_field_equal(&known->field, field))
		known = known->next;
	return known;
}

/* The values of a comparison that has count_values, one by one. `way` has text and size, or value.
 */
static void each_value(const struct filter_ways *ways, const struct filter_pred *pred,
	void (*value)(void *context, const struct way_in *way, uint64_t hash), void *context)
{
	struct way_in way = { 0 };

	for (size_t i = 0; i < pred->strings.count; i++) {
		way.text = pred->strings.at[i].at;
		way.value = pred->strings.at[i].size;
		value(context, &way, filter_hash_text(ways->seed, way.text, way.value));
	}
	for (size_t i = 0; i < pred->ranges.count; i++) {
		struct filter_range range = pred->ranges.at[i];

		for (uint64_t more = 0; more <= range.high - range.low; more++) {
			way.value = range.low + more;
			value(context, &way, filter_ways_hash(ways, way.value));
		}
	}
}

struct counting {
	const struct ways_field *field;
	struct ways_cover cover;
};

static void count_value(void *context, const struct way_in *wanted, uint64_t hash)
{
	struct counting *counting = context;
	struct table_link *link =
		counting->field ? filter_table_chain(&counting->field->values, hash) : NULL;
	size_t others = 0;

	for (; link && others < WAYS_OTHERS_MAX; link = link->next)
		others += link->hash == hash &&
			  filter_ways_equal(TABLE_ITEM(link, struct way_in, link), wanted->text,
				  wanted->value);
	if (!counting->cover.values++ || others < counting->cover.others)
		counting->cover.others = others;
}

static struct ways_cover cover_test(const struct filter_ways *ways, const struct filter_pred *pred)
{
	struct counting counting = { .field = find_field(ways, &pred->field) };

	if (count_values(pred))
		each_value(ways, pred, count_value, &counting);
	return counting.cover;
}

static bool is_better(struct ways_cover a, struct ways_cover b)
{
	if (!a.values || !b.values)
		return a.values;
	return a.others != b.others ? a.others < b.others : a.values < b.values;
}

struct ways_cover filter_ways_cover(
	const struct filter_ways *ways, const struct filter_node *node, size_t *ret_best)
{
	struct ways_cover all = { 0 };
	size_t best;

	if (node->kind == NODE_TEST)
		return cover_test(ways, node->pred);
	if (node->kind != NODE_AND && node->kind != NODE_OR)
		return all;
	for (size_t i = 0; i < node->count; i++) {
		struct ways_cover part = filter_ways_cover(ways, node->children[i], &best);

		if (node->kind == NODE_OR) {
			if (!part.values)
				return part;
			all.values += part.values;
			all.others = part.others > all.others ? part.others : all.others;
		} else if (is_better(part, all)) {
			all = part;
			*ret_best = i;
		}
	}
	return all;
}

struct ways_field *filter_ways_field(struct filter_ways *ways, struct filter_pred *pred)
{
	struct ways_field *field = find_field(ways, &pred->field);

	if (field)
		return field;
	field = calloc(1, sizeof(*field));
	if (!field || filter_table_create(&field->values)) {
		free(field);
		return NULL;
	}
	field->pred = filter_pred_ref(pred);
	field->field = pred->field;
	field->next = ways->fields;
	ways->fields = field;
	return field;
}

struct adding {
	struct ways_field *field;
	struct way_in model, *next;
};

static void add_way(void *context, const struct way_in *value, uint64_t hash)
{
	struct adding *adding = context;
	struct way_in *way = adding->next++;

	*way = adding->model;
	way->text = value->text;
	way->value = value->value;
	filter_table_add(&adding->field->values, &way->link, hash);
}

size_t filter_ways_add(struct filter_ways *ways, const struct filter_pred *pred,
	struct ways_field *field, struct way_in model, struct way_in *room)
{
	struct adding adding = { field, model, room };

	each_value(ways, pred, add_way, &adding);
	return (size_t)(adding.next - room);
}

void filter_ways_release(struct filter_ways *ways)
{
	while (ways->fields) {
		struct ways_field *field = ways->fields;

		ways->fields = field->next;
		free(field->values.buckets);
		filter_pred_release(field->pred);
		free(field);
	}
}
