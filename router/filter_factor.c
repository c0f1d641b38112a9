/* Conjunctions under "or" that differ in one comparison only, made one. What a hundred consumers of
 * one program write, each with its own pid, comes down to one term for the kernel. */
#include "router/filter_node.h"

#include <errno.h>
#include <stdlib.h>

/* A conjunction without one of its comparisons, which could be merged with another of the same
 * field. */
struct candidate {
	uint64_t key; /* equal rests have equal keys */
	size_t child, conjunct;
};

static bool is_mergeable(const struct filter_node *node)
{
	return node->kind == NODE_TEST &&
	       (node->pred->kind == PRED_RANGES || node->pred->kind == PRED_STRINGS);
}

static uint64_t field_key(const struct filter_pred *pred)
{
	return filter_mix(
		(uint64_t)pred->field.index << 16 | (uint64_t)pred->field.source << 8 | pred->kind);
}

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static struct candidate *collect(const struct filter_nodes *children, size_t *ret_count)
{
	struct candidate *candidates;
	size_t room = 0, count = 0;

	for (size_t i = 0; i < children->count; i++)
		room += children->at[i]->kind == NODE_AND ? children->at[i]->count : 0;
	candidates = calloc(room ? room : 1, sizeof(*candidates));
	if (!candidates)
		return NULL;
	for (size_t i = 0; i < children->count; i++) {
		const struct filter_node *child = children->at[i];
		uint64_t sum = 0;

		if (child->kind != NODE_AND)
			continue;
		for (size_t j = 0; j < child->count; j++)
			sum += filter_mix(child->children[j]->hash);
		for (size_t j = 0; j < child->count; j++)
			if (is_mergeable(child->children[j]))
				candidates[count++] = (struct candidate){
					.key = filter_mix(
						       sum - filter_mix(child->children[j]->hash)) ^
					       field_key(child->children[j]->pred),
					.child = i,
					.conjunct = j,
				};
	}
	qsort(candidates, count, sizeof(*candidates), compare_candidates);
	*ret_count = count;
	return candidates;
}

/* The order of conjunctions is canonical, so what is left of two equal ones stands in the same
 * order. */
static bool same_rest(const struct filter_node *a, size_t a_without, const struct filter_node *b,
	size_t b_without)
{
	size_t j = 0;

	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (i == a_without)
			continue;
		j += j == b_without;
		if (!filter_node_equal(a->children[i], b->children[j]))
			return false;
		j++;
	}
	return true;
}

/* Puts the joint conjunction in a's place and NULL in b's. Returns 1, 0 (they don't go together) or
 * -ENOMEM. */
static int join_pair(
	struct filter_nodes *children, const struct candidate *a, const struct candidate *b)
{
	struct filter_node *first = children->at[a->child], *second = children->at[b->child],
			   *joint;
	struct filter_nodes rest = { 0 };
	struct filter_pred *pred;
	int merged;

	if (!same_rest(first, a->conjunct, second, b->conjunct))
		return 0;
	merged = filter_pred_merge(first->children[a->conjunct]->pred,
		second->children[b->conjunct]->pred, false, &pred);
	if (merged <= 0)
		return merged;
	if (filter_nodes_add(&rest, filter_node_test(pred)))
		goto no_memory;
	for (size_t i = 0; i < first->count; i++)
		if (i != a->conjunct &&
			filter_nodes_add(&rest, filter_node_ref(first->children[i])))
			goto no_memory;
	if (filter_node_join(true, &rest, &joint))
		return -ENOMEM;
	filter_node_release(first);
	filter_node_release(second);
	children->at[a->child] = joint;
	children->at[b->child] = NULL;
	return 1;

no_memory:
	filter_nodes_release(&rest);
	return -ENOMEM;
}

/* Pairs of neighbours among the candidates; a child that was joined waits for the next round. */
static int join_round(struct filter_nodes *children, bool *ret_joined)
{
	size_t count, last = 0;
	struct candidate *candidates = collect(children, &count);
	bool *busy = calloc(children->count ? children->count : 1, sizeof(*busy));
	int joined = candidates && busy ? 0 : -ENOMEM;

	*ret_joined = false;
	for (size_t i = 1; joined >= 0 && i < count; i++) {
		const struct candidate *a = &candidates[last], *b = &candidates[i];

		if (a->key != b->key || busy[a->child] || a->child == b->child) {
			last = i;
			continue;
		}
		if (busy[b->child])
			continue;
		joined = join_pair(children, a, b);
		if (joined > 0) {
			busy[a->child] = busy[b->child] = true;
			*ret_joined = true;
		}
		last = i;
	}
	free(candidates);
	free(busy);
	filter_nodes_compact(children);
	return joined < 0 ? joined : 0;
}

int filter_nodes_factor(struct filter_nodes *children)
{
	bool joined = true;
	int error = 0;

	/* Each round that joins makes the children fewer. */
	while (joined && !error)
		error = join_round(children, &joined);
	return error;
}
