/* The state of the host's processes, as the router has to do with it: what was read of them comes from the reader's
 * helper some time after it was asked for, and counts from its place in the merged stream on.
 *
 *   the whole    at the start, and again after events were lost
 *   queries      threads whose ids are to be proven, or that are not known
 *   captures     a consumer's: the tasks as of one place, with what was read right after */
#ifndef TRACEFAN_ROUTER_STATE_H
#define TRACEFAN_ROUTER_STATE_H

#include "shm/control.h"

#include <stdbool.h>
#include <stdint.h>

struct router;
struct consumer;
struct state_work;

struct state {
	struct state_work *works; /* list */
	uint64_t last_number;
	bool refreshing, querying; /* one of each at a time */
	uint64_t began;            /* ns: when the last whole was asked for */
};

/* Reads all of it and waits: at the start, once the session's own events are switched on. A recording has none, and
 * a session whose reader has no helper knows what events tell. Returns 0 or -errno. */
int state_start(struct router *router);
void state_release(struct router *router);

/* Events before this time were lost. */
void state_doubt(struct router *router, uint64_t time);
/* Asks for what has to be asked for; after each batch of the stream. */
void state_turn(struct router *router);
/* How long the loop may sleep before state_turn has something to do, in ms; -1: for ever. */
int state_sleep(const struct router *router);
/* The stream is complete up to where this work's reading ended. */
void state_due(struct router *router, uint64_t number);

/* A consumer asks (CONTROL_CAPTURE). */
void state_on_capture(struct router *router, struct consumer *consumer, struct control_message *message);

#endif
