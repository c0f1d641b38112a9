/* What filter.h calls a program, for the files that look inside: filter_kernel.c, filter_show.c,
 * filter_index.c. */
#ifndef TRACEFAN_ROUTER_FILTER_PROGRAM_H
#define TRACEFAN_ROUTER_FILTER_PROGRAM_H

#include "router/filter_code.h"

struct filter_program {
	struct filter_node *tree;
	struct filter_code code;
	struct filter_pred **tests; /* borrowed from the tree, by number */
	size_t test_count;
	uint32_t facts;
	uint64_t limited; /* see filter_program_limited */
};

/* Takes over the reference to the tree, also when it fails. Returns 0, -ENOMEM or -E2BIG. */
int filter_program_create(struct filter_node *tree, struct filter_program **ret);

#endif
