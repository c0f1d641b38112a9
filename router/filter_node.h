/* A compiled filter as a tree of comparisons under "and" and "or" only: `!` has been carried down
 * to the comparisons. Immutable and counted by reference. The constructors simplify, so a tree is
 * as small as they can make it. */
#ifndef TRACEFAN_ROUTER_FILTER_NODE_H
#define TRACEFAN_ROUTER_FILTER_NODE_H

#include "router/filter_pred.h"

enum node_kind {
	NODE_ALL,  /* accepts every event */
	NODE_NONE, /* accepts none */
	NODE_TEST,
	NODE_AND, /* of two or more children, none of them ALL, NONE or AND */
	NODE_OR,  /* of two or more children, none of them ALL, NONE or OR */
};

struct filter_node {
	uint32_t refs;
	enum node_kind kind;
	uint64_t hash;
	struct filter_pred *pred; /* NODE_TEST */
	size_t count;
	struct filter_node **children;
};

/* NULL: no memory. */
struct filter_node *filter_node_constant(bool all);
/* Takes over the reference to pred, also when it fails; NULL stays NULL. */
struct filter_node *filter_node_test(struct filter_pred *pred);
struct filter_node *filter_node_ref(struct filter_node *node);
void filter_node_release(struct filter_node *node);

/* Children on their way into a node. */
struct filter_nodes {
	size_t count, room;
	struct filter_node **at;
};
/* Takes over the reference to the node, also when it fails; NULL counts as no memory. Returns 0 or
 * -ENOMEM. */
int filter_nodes_add(struct filter_nodes *nodes, struct filter_node *node);
/* Closes the gaps of NULL places. */
void filter_nodes_compact(struct filter_nodes *nodes);
/* Under "or": conjunctions that differ in one comparison of one field become one: (a == 1 && x) ||
 * (a == 2 && x) is a in {1, 2} && x. Returns 0 or -ENOMEM. */
int filter_nodes_factor(struct filter_nodes *children);
void filter_nodes_release(struct filter_nodes *nodes);

/* The simplified conjunction (`both`) or disjunction of the children, which are released; of none,
 * it is ALL or NONE. Returns 0 or -ENOMEM. */
int filter_node_join(bool both, struct filter_nodes *children, struct filter_node **ret);

size_t filter_node_count_tests(const struct filter_node *node);
bool filter_node_equal(const struct filter_node *a, const struct filter_node *b);
/* Whether every event that a accepts is accepted by b. False when it isn't known. */
bool filter_node_implies(const struct filter_node *a, const struct filter_node *b);
bool filter_node_test_event(const struct filter_node *node, const struct filter_event *event);

#endif
