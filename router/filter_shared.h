/* The comparisons of many programs, each kept once. It remembers what it said of the event at hand,
 * so that it is evaluated once per event, however many ask. */
#ifndef TRACEFAN_ROUTER_FILTER_SHARED_H
#define TRACEFAN_ROUTER_FILTER_SHARED_H

#include "router/filter_code.h"
#include "router/filter_table.h"

struct shared_test;

/* What a comparison said last, and of which event. */
struct shared_memory {
	uint64_t event;
	struct shared_test *test; /* NULL: this number is free */
	struct filter_pred *pred;
	bool said;
	bool limited; /* its expression gave up */
};

struct filter_shared {
	uint64_t event; /* counts events; whoever has a new one adds 1 */
	struct filter_table tests;
	struct shared_memory *memory; /* by the comparisons' numbers */
	size_t count, room;
};

int filter_shared_create(struct filter_shared *shared);
void filter_shared_release(struct filter_shared *shared);

/* Makes the code of a tree, whose comparisons are numbered here. Returns 0, -ENOMEM or -E2BIG. */
int filter_shared_code(
	struct filter_shared *shared, const struct filter_node *tree, struct filter_code *ret);
/* Gives the code's comparisons back, and releases it. */
void filter_shared_drop(struct filter_shared *shared, struct filter_code *code);

/* Counts in the code what gave up, whoever asked it first. */
bool filter_shared_run(struct filter_shared *shared, struct filter_code *code,
	const struct filter_event *event);
/* What the comparisons look at (enum filter_fact). */
uint32_t filter_shared_facts(const struct filter_shared *shared);

#endif
