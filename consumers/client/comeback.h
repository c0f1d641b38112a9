/* Coming back to a session whose router died: its reader holds probes and events until a new router is there.
 *
 * The new router gets a greeting at once, which it answers when it runs; until then tfan_next has nothing to say.
 * Then the ring is attached anew from the place up to which the caller has seen events, each trace is made again
 * under its own id, and what lies at that place and is known already is passed over. The router tells what was
 * lost meanwhile by a gap record. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_COMEBACK_H
#define TRACEFAN_CONSUMERS_CLIENT_COMEBACK_H

#include "consumers/client/tracefan.h"
#include "shm/record_abi.h"
#include "shm/ring_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* A place in the merged order: time, then CPU. */
struct place {
	uint64_t time;
	uint32_t cpu;
	uint32_t count; /* events that were seen there */
};

enum comeback_state {
	COMEBACK_NONE = 0,
	COMEBACK_GREETED, /* the greeting waits to be answered */
	COMEBACK_MAKING,  /* ring and traces are being made */
};

struct comeback {
	enum comeback_state state;
	struct place seen; /* by the caller, in order; count 0: nothing yet */
	/* What the router that died had not told yet: the sources from `debt_next` on. */
	struct ring_debt debt;
	unsigned int debt_next;
	bool some_closed;      /* traces, since the ring was attached: some of what it lost is theirs */
	uint64_t reader_total; /* events that dead readers took with them, as far as it was told */
	/* After a return, until all of it has been passed over: */
	bool passing;
	struct place known;
	uint64_t enabled_last; /* when the last of the traces was enabled */
};

/* The router closed. Returns 0 (it may come back; tfan->socket is the new one) or -errno with the failure set. */
int comeback_begin(struct tfan *tfan);

/* What the old router knew to be lost and had no room to tell is found in its ring, once that has been read: the place up to
 * which everything was seen includes it. */
void comeback_take_debt(struct tfan *tfan);
/* The same of the traces' columns. */
void comeback_take_columns(struct tfan *tfan);
/* Events were lost at the ring, the last `same` of them at this place, which is younger than what was read: they are not
 * to come again. */
void comeback_see_lost(struct tfan *tfan, uint64_t time, uint32_t cpu, uint32_t same);
/* Dead readers took so many with them in all. Returns how many of `count` that makes new ones. */
uint64_t comeback_see_reader(struct tfan *tfan, uint64_t total, uint64_t count);
/* The next loss of those, or NULL. */
const struct record_lost *comeback_next_loss(struct tfan *tfan);

/* Goes on if the new router has answered. Returns 1 (back: the new ring is attached), 0 (not yet) or -errno. */
int comeback_step(struct tfan *tfan);

/* Whether an event of after a return is known already. */
bool comeback_knows(struct tfan *tfan, const struct record_header *record, uint64_t enabled_at);

#endif
