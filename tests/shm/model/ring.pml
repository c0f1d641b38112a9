/* The record ring of shm/ring.h with RING_DROP, between the router (writer) and one consumer (reader). A chunk holds
 * one record here, so each record takes the chunk that came back last, and the order says which.
 *
 * Proved for all interleavings of RECORDS records of one unit each, published in batches of any size:
 *  - no lost wake-up: the reader does not sleep for ever while there is a published record. It ends only when
 *    it has read all, so a lost wake-up is an invalid end state;
 *  - no overwritten unread slot: what is read is what was written, in order, without a gap but the drops.
 *
 * -DNO_WRITER_FENCE, -DNO_READER_FENCE, -DNO_LAST_LOOK, -DNO_CURSOR and -DLATE_ORDER each leave one part out; each
 * must fail. */
#include "constants.h"

#define CAPACITY 2
#define RECORDS  5
#define PERIOD   8
#define STORES   4

#define PUBLISHED 0
#define CONSUMED  1
#define SLEEPS    2
#define ORDER     3 /* up to ORDER + CAPACITY - 1 */
#define DATA      5 /* up to DATA + CAPACITY - 1 */
#define MEMORY    7

#define START 6 /* the first position: the indices pass over their top */

#include "tso.h"

bool signal = false; /* the pipe holds a byte; a system call, so it needs no buffer */
bool writer_done = false;
byte accepted = START; /* the end of what was written, known to the checks alone */
byte written[PERIOD];  /* which record was written at each position, known to the checks alone */

inline publish()
{
	if
	:: published != reserved ->
		published = reserved;
		STORE(0, PUBLISHED, published);
#ifdef LATE_ORDER
		STORE(0, ORDER + MINUS(reserved, 1) % CAPACITY, chunk);
#endif
#ifndef NO_WRITER_FENCE
		FENCE(0);
#endif
		LOAD(sleeps, SLEEPS);
		if
		:: sleeps != signalled -> signalled = sleeps; signal = true
		:: else
		fi
	:: else
	fi
}

proctype writer()
{
	byte reserved = START, published = START, consumed = START, returned = START;
	byte signalled = 0, sleeps, cursor, n = 1, chunk = 0;
	byte order[CAPACITY]; /* what the writer itself stored there */
	byte spare[CAPACITY], spare_count = CAPACITY;

	spare[0] = 1;
	do
	:: n <= RECORDS ->
		/* steps write */
		if
		:: spare_count == 0 ->
			LOAD(cursor, CONSUMED);
			if
			:: MINUS(cursor, consumed) <= MINUS(published, consumed) -> consumed = cursor
			:: else
			fi;
			do
#ifndef NO_CURSOR
			:: consumed != returned ->
#else
			:: reserved != returned ->
#endif
				spare[spare_count] = order[returned % CAPACITY];
				spare_count++;
				returned = PLUS(returned, 1)
			:: else -> break
			od
		:: else
		fi;
		if
		:: spare_count != 0 ->
			spare_count--;
			chunk = spare[spare_count];
#ifndef LATE_ORDER
			STORE(0, ORDER + reserved % CAPACITY, chunk);
#endif
			atomic {
				order[reserved % CAPACITY] = chunk;
				STORE(0, DATA + chunk, n);
				written[reserved] = n;
				reserved = PLUS(reserved, 1);
				accepted = reserved
			}
		:: else /* dropped */
		fi;
		n++;
		if
		:: publish()
		:: skip /* the batch goes on */
		fi
		/* end */
	:: else -> break
	od;
	publish();
	writer_done = true
}

proctype reader()
{
	byte position = START, limit = START, released = START, sleeps = 0, value, chunk;

	do
	:: position == limit ->
		/* steps sleep */
		LOAD(limit, PUBLISHED);
		if
		:: position != limit
		:: else ->
			if
			:: position != released -> released = position; STORE(1, CONSUMED, released)
			:: else
			fi;
			sleeps = (sleeps + 1) % 16;
			STORE(1, SLEEPS, sleeps);
#ifndef NO_READER_FENCE
			FENCE(1);
#endif
#ifndef NO_LAST_LOOK
			LOAD(value, PUBLISHED);
#else
			value = position;
#endif
			/* end */
			if
			:: value != position
			:: else ->
				if
				:: atomic { signal -> signal = false }
				:: writer_done && position == accepted -> break
				fi
			fi;
			value = 0
		fi
	:: position != limit ->
		/* steps read */
		LOAD(chunk, ORDER + position % CAPACITY);
		LOAD(value, DATA + chunk);
		/* end */
		assert(value == written[position]);
		value = 0;
		chunk = 0;
		position = PLUS(position, 1);
		if
		/* An eighth of the ring is less than a record here: at each record, or later. */
		:: released = position; STORE(1, CONSUMED, released)
		:: skip
		fi
	od
}

init
{
	atomic {
		mem[PUBLISHED] = START;
		mem[CONSUMED] = START;
		run memory(0);
		run memory(1);
		run writer();
		run reader()
	}
}
