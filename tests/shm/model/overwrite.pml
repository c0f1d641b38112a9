/* The record ring of shm/ring.h with RING_OVERWRITE: the writer never waits, the reader proves after each copy
 * that it was whole, and goes on at the oldest record when it was overtaken.
 *
 * Proved for all interleavings of RECORDS records of two words each, all of them events:
 *  - no torn record is delivered;
 *  - delivered and lost records add up: the count of events that comes with the place to go on belongs to it,
 *    also when the writer is interrupted in between;
 *  - the reader comes to the end.
 *
 * -DLATE_OLDEST, -DONE_PAIR and -DNO_PROOF each leave one part out; each must fail. */
#include "constants.h"

#define CAPACITY 2
#define RECORDS  6
#define PERIOD   16
#define STORES   4

#define PUBLISHED 0
#define OLDEST    1
#define TURN      2
#ifdef ONE_PAIR
#define PAIRS 1
#else
#define PAIRS MODEL_RESUME_PAIRS
#endif
#define POSITION  3                  /* PAIRS of them */
#define EVENTS    (POSITION + PAIRS) /* PAIRS of them */
#define FIRST     (EVENTS + PAIRS)   /* each record's first word, CAPACITY of them */
#define SECOND    (FIRST + CAPACITY)
#define MEMORY    (SECOND + CAPACITY)

#define START 13 /* the first position: the indices pass over their top */

#include "tso.h"

/* Record n stands at this position. */
#define PLACE(n) PLUS(START, (n) - 1)

/* Gives up the oldest record, in the order of writer_store_oldest. */
inline push_out()
{
	oldest = PLUS(oldest, 1);
	events++;
	turn++;
	STORE(0, POSITION + turn % PAIRS, oldest);
	STORE(0, EVENTS + turn % PAIRS, events);
	STORE(0, TURN, turn);
	STORE(0, OLDEST, oldest);
	FENCE(0)
}

inline write_words()
{
	STORE(0, FIRST + reserved % CAPACITY, n);
	STORE(0, SECOND + reserved % CAPACITY, n)
}

proctype writer()
{
	byte reserved = START, oldest = START, events = 0, turn = 0, n = 1;

	do
	:: n <= RECORDS ->
#ifdef LATE_OLDEST
		write_words();
#endif
		if
		:: MINUS(reserved, oldest) == CAPACITY -> push_out()
		:: else
		fi;
#ifndef LATE_OLDEST
		write_words();
#endif
		reserved = PLUS(reserved, 1);
		n++;
		STORE(0, PUBLISHED, reserved)
	:: else -> break
	od
}

inline resume()
{
	do
	:: LOAD(turn, TURN);
		LOAD(where, POSITION + turn % PAIRS);
		LOAD(count, EVENTS + turn % PAIRS);
		LOAD(again, TURN);
		if
		:: turn == again -> break
		:: else
		fi
	od;
	turn = 0;
	again = 0;
	/* Farther than the record that could not be read, and not past the end. */
	assert(where != position && MINUS(where, position) <= RECORDS);
	/* Every record is an event, so the count says the place. */
	assert(PLUS(START, count) == where);
	lost = lost + count - seen;
	seen = count;
	position = where;
	where = 0;
	count = 0
}

proctype reader()
{
	byte position = START, limit = START, first, second, oldest, turn, again, where, count;
	byte seen = 0, delivered = 0, lost = 0;

	do
	:: position == PLACE(RECORDS + 1) -> break
	:: position != PLACE(RECORDS + 1) && position == limit ->
		LOAD(limit, PUBLISHED)
	:: position != PLACE(RECORDS + 1) && position != limit ->
		LOAD(first, FIRST + position % CAPACITY);
		LOAD(second, SECOND + position % CAPACITY);
#ifndef NO_PROOF
		LOAD(oldest, OLDEST);
#else
		oldest = position;
#endif
		if
		:: oldest != position && MINUS(oldest, position) < PERIOD / 2 ->
			resume();
			/* As reader_resume does; what is at the new place may be newer than the old limit. */
			LOAD(limit, PUBLISHED)
		:: else ->
			assert(first == second && PLACE(first) == position);
			delivered++;
			seen++;
			position = PLUS(position, 1)
		fi;
		first = 0;
		second = 0;
		oldest = 0
	od;
	assert(delivered + lost == RECORDS)
}

init
{
	atomic {
		mem[PUBLISHED] = START;
		mem[OLDEST] = START;
		mem[POSITION] = START;
		run memory(0);
		run memory(1);
		run writer();
		run reader()
	}
}
