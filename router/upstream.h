/* The router's connection to the reader: requests go out and their answers come back later, so that
 * the router never waits for the privileged side while events flow. */
#ifndef TRACEFAN_ROUTER_UPSTREAM_H
#define TRACEFAN_ROUTER_UPSTREAM_H

#include "shm/control.h"

#include <stdbool.h>
#include <stdint.h>

struct upstream_request;

/* Called with the checked answer, or with NULL when the reader went away before it answered.
 * Descriptors in the answer that are not taken (set to -1) are closed afterwards. */
typedef void (*upstream_done)(
	void *context, const struct upstream_request *request, struct control_message *answer);

/* What a request has to remember until its answer comes. Consumers and traces may be gone by then,
 * so they are remembered by number. */
struct upstream_request {
	uint64_t cookie; /* of the message to the reader */
	uint16_t type;
	uint64_t consumer;        /* 0: the router's own */
	uint64_t consumer_cookie; /* of the consumer's message that is waiting for an answer */
	uint64_t trace;
	void *extra; /* owned by the request: freed after `done` */
	upstream_done done;
	struct upstream_waiting *copy; /* of the message, if it can be sent again; filled in here */
};

/* A message that the socket had no room for, or that may have to be sent again. */
struct upstream_waiting;

struct upstream {
	int fd;
	struct upstream_waiting *first_waiting, *last_waiting;
	unsigned int waiting_fds; /* descriptors that they hold */
	uint64_t next_cookie;
	struct upstream_request *pending;
	size_t pending_count, pending_room;
	uint64_t heard; /* ns, CLOCK_MONOTONIC: of the last answer, or of the first request since nothing was pending */
	bool lasting; /* another reader may take over: copies are kept */
	void *context; /* handed to `done` */
};

void upstream_init(struct upstream *upstream, void *context);
void upstream_release(struct upstream *upstream);

/* Sends a request; its header is filled in here. `request` says what to remember (cookie and type
 * are filled in). The reader takes its time, a grace period of the kernel for each probe that goes,
 * and the socket holds a few hundred messages: more wait here and go out as answers come in. On
 * failure `extra` stays the caller's and `done` is not called. Returns 0 or -errno (-ENOTCONN:
 * there is no reader; -EAGAIN: too many descriptors wait already). */
int upstream_send(struct upstream *upstream, void *message, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, const struct upstream_request *request);

/* Reads one answer, hands it to its request, and sends what waits. Returns 1, 0 (the reader closed)
 * or -errno
 * (-EAGAIN: nothing there, -EBADMSG: an answer to nothing). */
int upstream_receive(struct upstream *upstream);

/* For how many ns of CLOCK_MONOTONIC until `now` the reader has not answered anything of what it was asked. */
uint64_t upstream_silent(const struct upstream *upstream, uint64_t now);

/* The last request of this type that a consumer's trace has without an answer, or NULL. The queue's own: it lies there until
 * the next call of any of these functions. */
struct upstream_request *upstream_find(struct upstream *upstream, uint16_t type, uint64_t consumer, uint64_t trace);
/* No other reader is to have them: all requests of this type for the trace are done with NULL if this reader goes away before
 * it has answered, and at once if it has gone. */
void upstream_forgo(struct upstream *upstream, uint16_t type, uint64_t consumer, uint64_t trace);

/* The reader is gone, and another may take over. What a consumer waits for is kept for that one; all else is done with
 * NULL, as what the router itself wants it will have asked anew. */
void upstream_cut(struct upstream *upstream);
/* There is a new connection: sends what was kept. Returns 0 or -errno. */
int upstream_send_again(struct upstream *upstream);

/* Forgets the connection: every pending request is done with NULL. */
void upstream_lost(struct upstream *upstream);

#endif
