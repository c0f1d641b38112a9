/* A session whose reader died: the router goes on with what was published, keeps its consumers, and waits for a reader that
 * takes over. That one comes on the consumers' socket (the router opens none), hands out a pool of its own, and is told
 * which probes are wanted. */
#ifndef TRACEFAN_ROUTER_TAKEOVER_H
#define TRACEFAN_ROUTER_TAKEOVER_H

#include "router/ledger.h"
#include "shm/pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct consumer;
struct control_message;
struct router;

struct takeover {
	uid_t reader_uid;  /* whose processes may take over */
	bool pausing;      /* a reader has been told how far the stream was told, and has not handed out its pool yet */
	bool waiting;      /* there is no reader */
	uint64_t deadline; /* ns, CLOCK_MONOTONIC: when the session ends without one */
	int heir;          /* a reader that came before the last one's end was seen here; -1: none */
	uint64_t heir_cookie;
	int remover;       /* who told us to end; -1: nobody */
	struct pool_reader next;  /* of the new reader, until the last one's filled ring is empty */
	bool has_next;
	/* Pools of dead readers, in which the merge still holds slots. */
	struct pool_reader *pools;
	uint32_t pool_count, slots;
	uint64_t lost_from; /* what the last reader took with it is younger than this */
};

void takeover_init(struct router *router);
void takeover_release(struct router *router);

/* The connection to the reader broke. True: the session goes on, and another reader is waited for. */
bool takeover_wait(struct router *router);
/* CONTROL_READER. */
void takeover_on_reader(struct router *router, struct consumer *consumer, struct control_message *message);

/* CONTROL_READER_END. */
void takeover_on_end(struct router *router, struct consumer *consumer, struct control_message *message);

/* Goes on to the new reader's pool, once the old one's filled ring is empty. Returns 1 (there is one), 0 or -errno. */
int takeover_switch(struct router *router);
/* A slot of a dead reader's pool is no longer needed. */
void takeover_released(struct router *router);
/* Lets go of what nobody needs any more. */
void takeover_tidy(struct router *router);
/* After each batch: a router that dies now can't have its successor look at dead readers' pools again, so what was told of
 * them counts at once. */
void takeover_count(struct router *router);

/* The kernel's counts, and ours at the same place in the stream: tells what a dead reader had taken out of the kernel and
 * not published. */
void takeover_accounted(struct router *router, const struct ledger_kernel *kernel, uint64_t decoded, uint64_t undecodable);

#endif
