/* Who is attached, and what became of their events: for whoever asks what the session's consumers are about. */
#ifndef TRACEFAN_ROUTER_CONSUMER_STATUS_H
#define TRACEFAN_ROUTER_CONSUMER_STATUS_H

#include "router/consumer.h"

/* Answers with one page. Root is told of all consumers, others of their own user's. */
void consumer_on_status(struct router *router, struct consumer *consumer, struct control_message *message);

#endif
