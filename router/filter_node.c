#include "router/filter_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of children are compared with each other up to this many children; beyond it only with
 * those that are single comparisons, which are few after merging. */
#define NODE_PAIRS_MAX 128

static struct filter_node *node_create(enum node_kind kind)
{
	struct filter_node *node = calloc(1, sizeof(*node));

	if (node) {
		node->refs = 1;
		node->kind = kind;
		node->hash = filter_mix(kind + 1);
	}
	return node;
}

struct filter_node *filter_node_constant(bool all)
{
	return node_create(all ? NODE_ALL : NODE_NONE);
}

struct filter_node *filter_node_test(struct filter_pred *pred)
{
	struct filter_node *node;

	if (!pred)
		return NULL;
	if (filter_pred_is_empty(pred)) {
		filter_pred_release(pred);
		return filter_node_constant(false);
	}
	node = node_create(NODE_TEST);
	if (!node) {
		filter_pred_release(pred);
		return NULL;
	}
	node->pred = pred;
	node->hash = filter_mix(node->hash ^ pred->hash);
	return node;
}

struct filter_node *filter_node_ref(struct filter_node *node)
{
	node->refs++;
	return node;
}

/* Trees are as deep as filters may be (FILTER_DEPTH_MAX), so this and its like may recurse. */
void filter_node_release(struct filter_node *node)
{
	if (!node || --node->refs)
		return;
	for (size_t i = 0; i < node->count; i++)
		filter_node_release(node->children[i]);
	free(node->children);
	filter_pred_release(node->pred);
	free(node);
}

int filter_nodes_add(struct filter_nodes *nodes, struct filter_node *node)
{
	if (!node)
		return -ENOMEM;
	if (nodes->count == nodes->room) {
		size_t room = nodes->room ? 2 * nodes->room : 8;
		struct filter_node **moved =
			realloc(nodes->at, room * sizeof(struct filter_node *));

		if (!moved) {
			filter_node_release(node);
			return -ENOMEM;
		}
		nodes->at = moved;
		nodes->room = room;
	}
	nodes->at[nodes->count++] = node;
	return 0;
}

void filter_nodes_release(struct filter_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		filter_node_release(nodes->at[i]);
	free(nodes->at);
	*nodes = (struct filter_nodes){ 0 };
}

size_t filter_node_count_tests(const struct filter_node *node)
{
	size_t count = node->kind == NODE_TEST;

	for (size_t i = 0; i < node->count; i++)
		count += filter_node_count_tests(node->children[i]);
	return count;
}

bool filter_node_equal(const struct filter_node *a, const struct filter_node *b)
{
	if (a == b)
		return true;
	if (a->hash != b->hash || a->kind != b->kind || a->count != b->count)
		return false;
	if (a->kind == NODE_TEST)
		return filter_pred_equal(a->pred, b->pred);
	for (size_t i = 0; i < a->count; i++)
		if (!filter_node_equal(a->children[i], b->children[i]))
			return false;
	return true;
}

static bool implies_some(const struct filter_node *a, const struct filter_node *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (filter_node_implies(a, b->children[i]))
			return true;
	return false;
}

static bool some_implies(const struct filter_node *a, const struct filter_node *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (filter_node_implies(a->children[i], b))
			return true;
	return false;
}

static bool all_imply(const struct filter_node *a, const struct filter_node *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!filter_node_implies(a->children[i], b))
			return false;
	return true;
}

static bool implies_all(const struct filter_node *a, const struct filter_node *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (!filter_node_implies(a, b->children[i]))
			return false;
	return true;
}

bool filter_node_implies(const struct filter_node *a, const struct filter_node *b)
{
	if (a->kind == NODE_NONE || b->kind == NODE_ALL)
		return true;
	if (a->kind == NODE_ALL || b->kind == NODE_NONE)
		return false;
	if (filter_node_equal(a, b))
		return true;
	if (a->kind == NODE_OR)
		return all_imply(a, b);
	if (b->kind == NODE_AND)
		return implies_all(a, b);
	if (a->kind == NODE_AND && some_implies(a, b))
		return true;
	if (b->kind == NODE_OR)
		return implies_some(a, b);
	return a->kind == NODE_TEST && b->kind == NODE_TEST &&
	       filter_pred_implies(a->pred, b->pred);
}

bool filter_node_test_event(const struct filter_node *node, const struct filter_event *event)
{
	switch (node->kind) {
	case NODE_TEST:
		return filter_pred_test(node->pred, event);
	case NODE_AND:
		for (size_t i = 0; i < node->count; i++)
			if (!filter_node_test_event(node->children[i], event))
				return false;
		return true;
	case NODE_OR:
		for (size_t i = 0; i < node->count; i++)
			if (filter_node_test_event(node->children[i], event))
				return true;
		return false;
	case NODE_ALL:
	case NODE_NONE:
	default:
		return node->kind == NODE_ALL;
	}
}

/* ---- simplification ---- */

/* Takes the child at `i` out and releases it; the last one takes its place. */
static void drop(struct filter_nodes *children, size_t i)
{
	filter_node_release(children->at[i]);
	children->at[i] = children->at[--children->count];
}

static void drop_all(struct filter_nodes *children)
{
	while (children->count)
		drop(children, 0);
}

/* A child of the joined kind is replaced by its own children; what changes nothing (ALL under
 * "and") goes. *ret_decided: a child alone decides (NONE under "and"). */
static int flatten(bool both, struct filter_nodes *children, bool *ret_decided)
{
	enum node_kind same = both ? NODE_AND : NODE_OR, neutral = both ? NODE_ALL : NODE_NONE;
	enum node_kind deciding = both ? NODE_NONE : NODE_ALL;

	*ret_decided = false;
	for (size_t i = 0; i < children->count;) {
		struct filter_node *child = children->at[i];

		if (child->kind == deciding) {
			*ret_decided = true;
			return 0;
		}
		if (child->kind != same && child->kind != neutral) {
			i++;
			continue;
		}
		for (size_t j = 0; j < child->count; j++)
			if (filter_nodes_add(children, filter_node_ref(child->children[j])))
				return -ENOMEM;
		drop(children, i);
	}
	return 0;
}

/* Comparisons that filter_pred_merge may join stand side by side in this order. */
static int compare_fields(const void *left, const void *right)
{
	const struct filter_node *a = *(struct filter_node *const *)left,
				 *b = *(struct filter_node *const *)right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind != NODE_TEST)
		return 0;
	if (a->pred->kind != b->pred->kind)
		return a->pred->kind < b->pred->kind ? -1 : 1;
	if (a->pred->field.source != b->pred->field.source)
		return a->pred->field.source < b->pred->field.source ? -1 : 1;
	return a->pred->field.index < b->pred->field.index
		       ? -1
		       : a->pred->field.index > b->pred->field.index;
}

/* Joins the children at i and i + 1 into the one at i + 1 and leaves NULL at i. Returns 1, 0 or
 * -ENOMEM. */
static int merge_pair(bool both, struct filter_nodes *children, size_t i)
{
	struct filter_node **pair = children->at + i, *node;
	struct filter_pred *pred;
	int merged;

	if (pair[0]->kind != NODE_TEST || pair[1]->kind != NODE_TEST)
		return 0;
	merged = filter_pred_merge(pair[0]->pred, pair[1]->pred, both, &pred);
	if (merged <= 0)
		return merged;
	node = filter_node_test(pred);
	if (!node)
		return -ENOMEM;
	filter_node_release(pair[0]);
	filter_node_release(pair[1]);
	pair[0] = NULL;
	pair[1] = node;
	return 1;
}

void filter_nodes_compact(struct filter_nodes *nodes)
{
	size_t kept = 0;

	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->at[i])
			nodes->at[kept++] = nodes->at[i];
	nodes->count = kept;
}

/* One comparison in place of those of one field that can be merged: in pairs, then pairs of pairs,
 * so that a thousand equalities take ten rounds and not a thousand ever longer copies. */
static int merge_tests(bool both, struct filter_nodes *children)
{
	bool again = children->count > 1;

	if (again)
		qsort(children->at, children->count, sizeof(struct filter_node *), compare_fields);
	while (again) {
		int merged = 0;

		again = false;
		for (size_t i = 0; i + 1 < children->count && merged >= 0; i++) {
			merged = merge_pair(both, children, i);
			again |= merged > 0;
			i += merged > 0;
		}
		filter_nodes_compact(children);
		if (merged < 0)
			return merged;
	}
	return 0;
}

/* Drops what another child makes superfluous: under "or" what implies another, under "and" what is
 * implied. */
static void absorb(bool both, struct filter_nodes *children)
{
	bool pairs = children->count <= NODE_PAIRS_MAX;

	for (size_t i = 0; i < children->count; i++) {
		const struct filter_node *keep = children->at[i];

		for (size_t j = 0; keep && j < children->count; j++) {
			struct filter_node *other = children->at[j];

			if (!other || i == j ||
				!(pairs || keep->kind == NODE_TEST || keep->hash == other->hash))
				continue;
			if (both ? !filter_node_implies(keep, other)
				 : !filter_node_implies(other, keep))
				continue;
			filter_node_release(other);
			children->at[j] = NULL;
		}
	}
	filter_nodes_compact(children);
}

static int compare_nodes(const struct filter_node *a, const struct filter_node *b)
{
	size_t common = a->count < b->count ? a->count : b->count;
	int way = (a->kind > b->kind) - (a->kind < b->kind);

	if (!way && a->kind == NODE_TEST)
		return filter_pred_compare(a->pred, b->pred);
	for (size_t i = 0; !way && i < common; i++)
		way = compare_nodes(a->children[i], b->children[i]);
	return way ? way : (a->count > b->count) - (a->count < b->count);
}

/* A canonical order, so that equal filters are equal trees, and one that is good to evaluate and to
 * read. */
static int compare_children(const void *left, const void *right)
{
	return compare_nodes(
		*(struct filter_node *const *)left, *(struct filter_node *const *)right);
}

static int make_join(bool both, struct filter_nodes *children, struct filter_node **ret)
{
	struct filter_node *node;

	if (children->count <= 1) {
		*ret = children->count ? filter_node_ref(children->at[0])
				       : filter_node_constant(both);
		return *ret ? 0 : -ENOMEM;
	}
	node = node_create(both ? NODE_AND : NODE_OR);
	if (!node)
		return -ENOMEM;
	qsort(children->at, children->count, sizeof(struct filter_node *), compare_children);
	node->children = children->at;
	node->count = children->count;
	*children = (struct filter_nodes){ 0 };
	for (size_t i = 0; i < node->count; i++)
		node->hash = filter_mix(node->hash ^ node->children[i]->hash);
	*ret = node;
	return 0;
}

/* Flattening and merging take turns: what is merged may be a constant or a list. */
static int settle(bool both, struct filter_nodes *children, bool *ret_decided)
{
	size_t before;
	int error;

	do {
		error = flatten(both, children, ret_decided);
		if (!error && !*ret_decided)
			error = merge_tests(both, children);
		if (!error && !*ret_decided)
			error = flatten(both, children, ret_decided);
		before = children->count;
		if (!error && !*ret_decided && !both)
			error = filter_nodes_factor(children);
	} while (!error && !*ret_decided && children->count < before);
	return error;
}

int filter_node_join(bool both, struct filter_nodes *children, struct filter_node **ret)
{
	bool decided;
	int error = settle(both, children, &decided);

	if (!error && decided) {
		drop_all(children);
		error = make_join(!both, children, ret);
	} else if (!error) {
		absorb(both, children);
		error = make_join(both, children, ret);
	}
	filter_nodes_release(children);
	return error;
}
