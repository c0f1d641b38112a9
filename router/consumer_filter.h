/* The filters of a consumer's traces: read, changed at a place of the stream, explained. */
#ifndef TRACEFAN_ROUTER_CONSUMER_FILTER_H
#define TRACEFAN_ROUTER_CONSUMER_FILTER_H

#include "router/consumer.h"
#include "router/filter.h"

/* A filter's text for a trace of `route`, as what the router evaluates and, in the kernel's own layout, as
 * what the kernel gets. Empty: both are NULL, everything passes. `environment` has what is said of missing
 * fields. Returns an exit status with *ret_failure filled in. */
uint32_t consumer_filter_read(const struct router *router, const struct route *route, const char *name, const char *text,
	struct filter_environment environment, struct filter_program **ret, struct filter_program **ret_kernel,
	struct control_failure *ret_failure);

/* Each takes a checked message of its type. */
void consumer_on_set_filter(struct router *router, struct consumer *consumer, struct control_message *message);
void consumer_on_explain(struct router *router, struct consumer *consumer, struct control_message *message);

#endif
