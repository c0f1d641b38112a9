/* The slot pool of shm/pool.h between the reader (owner of the filled ring) and the router (owner of the free
 * ring). Both sleep: the reader when it has no slot, the router when there is no entry.
 *
 * Proved for all interleavings of BUFFERS filled slots and NOTES notes:
 *  - no lost wake-up on either side: the router ends only with the last entry, so one is an invalid end state;
 *  - no double ownership: a slot that the router holds is never taken by the reader, and its bytes do not
 *    change while the router holds it; none comes back twice;
 *  - no unread entry is overwritten, though notes and data share the filled ring.
 *
 * -DNO_READER_FENCE, -DNO_ROUTER_FENCE, -DNO_LAST_LOOK, -DEARLY_RETURN and -DNO_KEPT_ROOM each leave one part
 * out; each must fail.
 *
 * An atomic block is one access to what the other side may write, and what follows from it: own variables
 * and own stores, which nobody sees before they leave the buffer. */
#include "constants.h"

#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef BUFFERS
#define BUFFERS 3
#endif
#ifndef NOTES
#define NOTES (MODEL_FILLED_PER_SLOT * SLOTS)
#endif
#ifdef NO_KEPT_ROOM
#define KEPT    0
#else
#define KEPT    (MODEL_KEPT_PER_SLOT * SLOTS)
#endif
#define FILLED_CAPACITY (MODEL_FILLED_PER_SLOT * SLOTS)
#define FREE_CAPACITY   (MODEL_FREE_PER_SLOT * SLOTS)
#define PERIOD  16
#ifndef STORES
#define STORES  4
#endif

#define NOTE    99 /* in place of a slot */
#define START   14 /* the first position: the indices pass over their top */

#define FILLED        0
#define READER_SLEEPS 1
#define TAKEN         2
#define FREED         3
#define ROUTER_SLEEPS 4
#define ENTRY         5                         /* FILLED_CAPACITY of them: the slot, or NOTE */
#define FREE          (ENTRY + FILLED_CAPACITY) /* FREE_CAPACITY of them */
#define SLOT          (FREE + FREE_CAPACITY)    /* SLOTS of them: the bytes */
#define MEMORY        (SLOT + SLOTS)

#include "tso.h"

bool filled_signal = false, free_signal = false;
bool held[SLOTS]; /* by the router, from publish to return; known to the checks alone */
byte queued = 0;  /* entries published and not taken, known to the checks alone */

/* ---- reader ---- */

/* The index was stored before the counter, and stays until it has been taken back. */
inline take_back()
{
	/* steps take_back */
	LOAD(peer, FREED);
	do
	:: freed != peer ->
		LOAD(slot, FREE + freed % FREE_CAPACITY);
		/* end */
		assert(slot < SLOTS && owner_router[slot]);
		owner_router[slot] = false;
		spare[slot] = true;
		freed = PLUS(freed, 1)
	:: else -> break
	od;
	peer = 0;
	slot = 0
}

inline append(what)
{
	assert(queued < FILLED_CAPACITY);
	queued++;
	STORE(0, ENTRY + filled % FILLED_CAPACITY, what);
	filled = PLUS(filled, 1);
	STORE(0, FILLED, filled)
}

inline wake_router()
{
	/* steps wake_router */
#ifndef NO_READER_FENCE
	FENCE(0);
#endif
	atomic {
		LOAD(peer, ROUTER_SLEEPS);
		/* end */
		need = (peer != signalled);
		signalled = peer;
		peer = 0
	};
	if
	:: need -> atomic { filled_signal = true; need = false }
	:: else
	fi
}

inline publish()
{
	assert(!held[slot]);
	held[slot] = true;
	spare[slot] = false;
	owner_router[slot] = true;
	/* steps publish */
	STORE(0, SLOT + slot, n);
	append(slot);
	/* end */
	n++;
	slot = 0
}

inline sleep_until_slots_come_back()
{
	wake_router();
	/* steps sleep_until_slots_come_back */
	atomic {
		sleeps = (sleeps + 1) % 16;
		STORE(0, READER_SLEEPS, sleeps)
	};
#ifndef NO_READER_FENCE
	FENCE(0);
#endif
#ifndef NO_LAST_LOOK
	atomic { LOAD(peer, FREED); need = (peer == freed); peer = 0 };
	/* end */
#else
	need = true;
#endif
	if
	:: need -> atomic { free_signal -> free_signal = false; need = false }
	:: else
	fi
}

proctype reader()
{
	byte filled = START, freed = START, taken = START;
	byte signalled = 0, sleeps = 0, peer, slot, n = 1, notes = 0;
	bool owner_router[2], spare[2], need, found;

	spare[0] = true;
	spare[1] = SLOTS > 1;
	do
	:: n <= BUFFERS ->
		atomic {
			take_back();
			found = true;
			if
			:: spare[0] -> publish()
			:: spare[1] -> slot = 1; publish()
			:: else -> found = false
			fi
		};
		if
		:: !found -> sleep_until_slots_come_back()
		:: found -> wake_router()
		:: found /* the batch goes on */
		fi
	:: notes < NOTES && n <= BUFFERS ->
		atomic {
			/* When there is room by the last known position, or after a look at it. */
			/* steps note */
			if
			:: MINUS(filled, taken) >= FILLED_CAPACITY - KEPT -> LOAD(taken, TAKEN)
			:: else
			fi;
			if
			:: MINUS(filled, taken) < FILLED_CAPACITY - KEPT -> append(NOTE)
			/* end */
			:: else
			fi;
			notes++
		}
	:: n > BUFFERS -> break
	od;
	wake_router()
}

/* ---- router ---- */

inline give_back()
{
	do
	:: holding > 0 ->
		atomic {
			holding--;
			/* The last one taken: any order would do. */
			slot = mine[holding];
			LOAD(value, SLOT + slot);
			assert(held[slot] && value == bytes[slot]);
			held[slot] = false;
			/* steps give_back */
			STORE(1, FREE + freed % FREE_CAPACITY, slot);
			freed = PLUS(freed, 1);
			STORE(1, FREED, freed);
			/* end */
			mine[holding] = 0;
			value = 0
		};
#ifdef EARLY_RETURN
		/* Reads on in a slot that it has given back. */
		LOAD(value, SLOT + slot);
		assert(value == bytes[slot]);
		value = 0;
#endif
		slot = 0
	:: else -> break
	od
}

inline wake_reader()
{
	/* steps wake_reader */
#ifndef NO_ROUTER_FENCE
	FENCE(1);
#endif
	atomic {
		LOAD(value, READER_SLEEPS);
		/* end */
		need = (value != signalled);
		signalled = value;
		value = 0
	};
	if
	:: need -> atomic { free_signal = true; need = false }
	:: else
	fi
}

proctype router()
{
	byte taken = START, limit = START, freed = START;
	byte signalled = 0, sleeps = 0, value, slot, received = 0, holding = 0;
	byte mine[2], bytes[2];
	bool need;

	do
	:: taken == limit ->
		LOAD(limit, FILLED);
		if
		:: taken != limit
		:: else ->
			give_back();
			wake_reader();
			/* steps sleep */
			atomic {
				sleeps = (sleeps + 1) % 16;
				STORE(1, ROUTER_SLEEPS, sleeps)
			};
#ifndef NO_ROUTER_FENCE
			FENCE(1);
#endif
#ifndef NO_LAST_LOOK
			atomic { LOAD(value, FILLED); need = (value == taken); value = 0 };
			/* end */
#else
			need = true;
#endif
			if
			:: need ->
				if
				:: atomic { filled_signal -> filled_signal = false; need = false }
				:: received == BUFFERS && queued == 0 -> break
				fi
			:: else
			fi
		fi
	:: taken != limit ->
		atomic {
			/* steps take */
			LOAD(slot, ENTRY + taken % FILLED_CAPACITY);
			assert(queued > 0);
			queued--;
			taken = PLUS(taken, 1);
			STORE(1, TAKEN, taken)
			/* end */
		};
		if
		:: slot == NOTE -> slot = 0
		:: else ->
			atomic {
				assert(slot < SLOTS && held[slot]);
				received++;
				LOAD(value, SLOT + slot);
				/* The data comes in order, and whole. */
				assert(value == received);
				bytes[slot] = value;
				mine[holding] = slot;
				holding++;
				value = 0;
				slot = 0
			};
			if
			:: give_back(); wake_reader()
			:: skip /* held for the merge */
			fi
		fi
	od
}

init
{
	atomic {
		mem[FILLED] = START;
		mem[TAKEN] = START;
		mem[FREED] = START;
		run memory(0);
		run memory(1);
		run reader();
		run router()
	}
}
