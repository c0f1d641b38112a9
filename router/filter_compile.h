/* From a parsed filter and a schema to a tree of comparisons. */
#ifndef TRACEFAN_ROUTER_FILTER_COMPILE_H
#define TRACEFAN_ROUTER_FILTER_COMPILE_H

#include "router/filter_node.h"

/* As filter_compile, short of the program. */
int filter_compile_tree(const struct filter_ast *ast, const struct schema *schema,
	const struct filter_environment *environment, struct filter_node **ret,
	struct filter_failure *ret_failure);

#endif
