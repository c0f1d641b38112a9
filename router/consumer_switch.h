/* A consumer's traces on and off. The reader counts how many have each probe enabled and answers later, so a trace that goes
 * before the answer has its share given back when it comes: what is sent blindly would be one too few, or another's. */
#ifndef TRACEFAN_ROUTER_CONSUMER_SWITCH_H
#define TRACEFAN_ROUTER_CONSUMER_SWITCH_H

#include "router/consumer.h"

/* Takes a checked CONTROL_SET_ENABLED. */
void consumer_on_set_enabled(struct router *router, struct consumer *consumer, struct control_message *message);
/* Disables a trace that brought too much, and tells its consumer. */
void consumer_throttle(struct router *router, struct trace *trace, const struct record_throttled *why);
/* The trace is about to go: the reader gets its probe back, switched off if it was on. */
void consumer_switch_drop(struct router *router, struct trace *trace);
/* Gives back a probe that no trace has taken, or that is switched off. */
void consumer_probe_close(struct router *router, uint64_t probe_id, uint32_t owner);

#endif
