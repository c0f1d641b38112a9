/* One comparison of a filter's text, as a tree. All take the test apart with the field that it
 * names, turn it round where it is `negated`, and return 0, -EINVAL with the compiler's failure
 * set, or -ENOMEM. */
#ifndef TRACEFAN_ROUTER_FILTER_COMPARE_H
#define TRACEFAN_ROUTER_FILTER_COMPARE_H

#include "router/filter_node.h"
#include "router/filter_value.h"

int filter_compare_number(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret);
int filter_compare_cpumask(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret);
int filter_compare_string(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field, bool negated, struct filter_node **ret);

/* That the operator, or any, is not for this field. Returns -EINVAL. */
int filter_compare_fail(const struct filter_compiler *compiler, const struct ast_node *test,
	const struct filter_field *field);
/* Wraps up a comparison, which is taken over: `error` is what became of its parts. */
int filter_compare_finish(struct filter_pred *pred, int error, struct filter_node **ret);

#endif
