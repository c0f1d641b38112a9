/* Answers to a consumer's messages. */
#ifndef TRACEFAN_ROUTER_ANSWER_H
#define TRACEFAN_ROUTER_ANSWER_H

#include "router/upstream.h"
#include "shm/control.h"

#include <stdint.h>

struct consumer;
struct router;

/* Sends the answer to a request of `type`; fills in its header. A consumer that does not take it is closed. */
void answer_send(struct router *router, struct consumer *consumer, void *message, uint16_t type, uint32_t size,
	uint64_t cookie, const int *fds, unsigned int fd_count);
/* The common answer; `failure` may be NULL. */
void answer_status(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie,
	uint32_t status, const struct control_failure *failure);
/* The same out of an -errno. */
void answer_failed(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie, int error,
	const char *what);

/* The reader's answer, or its absence (NULL), as an exit status and a failure. */
uint32_t answer_from_reader(const struct control_message *reply, struct control_failure *ret);

/* For requests to the reader that nobody waits for: a refusal is logged. An upstream_done. */
void answer_nobody(void *context, const struct upstream_request *request, struct control_message *reply);

#endif
