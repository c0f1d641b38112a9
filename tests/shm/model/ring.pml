/* The record ring of shm/ring.h with RING_DROP, between the router (writer) and one consumer (reader).
 *
 * Proved for all interleavings of RECORDS records of one unit each, published in batches of any size:
 *  - no lost wake-up: the reader does not sleep for ever while there is a published record. It ends only when
 *    it has read all, so a lost wake-up is an invalid end state;
 *  - no overwritten unread slot: what is read is what was written, in order, without a gap but the drops.
 *
 * -DNO_WRITER_FENCE, -DNO_READER_FENCE, -DNO_LAST_LOOK and -DNO_CURSOR each leave one part out; each must fail. */
#include "constants.h"

#define CAPACITY 2
#define RECORDS  5
#define PERIOD   8
#define STORES   4

#define PUBLISHED 0
#define CONSUMED  1
#define SLEEPS    2
#define DATA      3 /* up to DATA + CAPACITY - 1 */
#define MEMORY    5

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
	byte reserved = START, published = START, consumed = START;
	byte signalled = 0, sleeps, cursor, n = 1;

	do
	:: n <= RECORDS ->
		if
		:: MINUS(reserved, consumed) == CAPACITY ->
			LOAD(cursor, CONSUMED);
			if
			:: MINUS(cursor, consumed) <= MINUS(published, consumed) -> consumed = cursor
			:: else
			fi
		:: else
		fi;
		if
#ifndef NO_CURSOR
		:: MINUS(reserved, consumed) < CAPACITY ->
#else
		:: true ->
#endif
			atomic {
				STORE(0, DATA + reserved % CAPACITY, n);
				written[reserved] = n;
				reserved = PLUS(reserved, 1);
				accepted = reserved
			}
#ifndef NO_CURSOR
		:: else /* dropped */
#endif
		fi;
		n++;
		if
		:: publish()
		:: skip /* the batch goes on */
		fi
	:: else -> break
	od;
	publish();
	writer_done = true
}

proctype reader()
{
	byte position = START, limit = START, released = START, sleeps = 0, value;

	do
	:: position == limit ->
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
		LOAD(value, DATA + position % CAPACITY);
		assert(value == written[position]);
		value = 0;
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
