/* A tree as straight code: one step per comparison, each with the place to go on at when it is true
 * and when it is false. Every jump goes forward, so a run takes no more steps than there are. */
#ifndef TRACEFAN_ROUTER_FILTER_CODE_H
#define TRACEFAN_ROUTER_FILTER_CODE_H

#include "router/filter_node.h"

#define CODE_ACCEPT UINT32_MAX
#define CODE_REJECT (UINT32_MAX - 1)

struct filter_step {
	uint32_t test;              /* number of the comparison */
	uint32_t on_true, on_false; /* a later step, CODE_ACCEPT or CODE_REJECT */
};

struct filter_code {
	uint32_t entry; /* 0, CODE_ACCEPT or CODE_REJECT */
	uint32_t count;
	struct filter_step *steps;
	uint64_t limited; /* runs in which a regular expression gave up, each time (filter_shared.h) */
};

/* Makes the code of a tree; `number` gives each comparison its number, or returns -errno. Returns 0
 * or -errno. */
int filter_code_create(const struct filter_node *node,
	int64_t (*number)(void *context, struct filter_pred *pred), void *context,
	struct filter_code *ret);
void filter_code_release(struct filter_code *code);

/* Whether all jumps go forward and inside, and all comparisons are among `tests`. */
bool filter_code_check(const struct filter_code *code, size_t tests);

#endif
