/* What a consumer asks for about its traces. Each handler takes a checked message of its type. */
#ifndef TRACEFAN_ROUTER_CONSUMER_TRACES_H
#define TRACEFAN_ROUTER_CONSUMER_TRACES_H

#include "router/consumer.h"

void consumer_on_create(struct router *router, struct consumer *consumer, struct control_message *message);
void consumer_on_schema(struct router *router, struct consumer *consumer, struct control_message *message);
void consumer_on_close(struct router *router, struct consumer *consumer, struct control_message *message);
void consumer_on_stats(struct router *router, struct consumer *consumer, struct control_message *message);

/* The consumer's own trace of this id, or NULL. */
struct trace *consumer_trace_find(struct router *router, const struct consumer *consumer, uint64_t id);
/* The same; where there is none, the message has been answered. */
struct trace *consumer_trace_need(struct router *router, struct consumer *consumer, const struct control_header *header, uint64_t id);

/* The consumer's traces that are held back (ATTACH_HOLD) begin at this time. */
void consumer_traces_release(struct router *router, struct consumer *consumer, uint64_t since);
/* Takes away every trace of a consumer; what only it wanted is disabled. */
void consumer_traces_drop(struct router *router, uint64_t number);

#endif
