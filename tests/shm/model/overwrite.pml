/* The record ring of shm/ring.h with RING_OVERWRITE: the writer never waits. The consumer's cursor is moved by
 * compare-and-exchange alone, by the reader from a record that it has copied to the next, by the writer over what it is
 * about to overwrite.
 *
 * Proved for all interleavings of RECORDS records of two words each, all of them events:
 *  - no torn record is delivered;
 *  - delivered and lost records add up: the count of events that comes with the place to go on belongs to it,
 *    also when the writer is interrupted in between;
 *  - writer and reader agree on how many were lost;
 *  - the reader comes to the end.
 *
 * -DLATE_CURSOR, -DONE_PAIR, -DNO_CLAIM and -DLATE_PAIR each leave one part out; each must fail. */
#include "constants.h"

#define CAPACITY 2
#define RECORDS  6
#define PERIOD   16
#define STORES   4

#define PUBLISHED 0
#define CURSOR    1
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

byte gone, lost; /* records, by the writer's and by the reader's account */

/* Record n stands at this position. */
#define PLACE(n) PLUS(START, (n) - 1)

#define BEFORE(a, b) (a != b && MINUS(b, a) < PERIOD / 2)

/* In the order of writer_store_resume. */
inline store_resume()
{
	turn++;
	STORE(0, POSITION + turn % PAIRS, oldest);
	STORE(0, EVENTS + turn % PAIRS, events);
	STORE(0, TURN, turn)
}

/* As writer_move_cursor and writer_tell_gone. */
inline move_cursor()
{
	do
	:: LOAD(cursor, CURSOR);
		if
		:: BEFORE(cursor, oldest) ->
			EXCHANGE(0, CURSOR, cursor, oldest, seen);
			if
			:: seen == cursor -> gone = gone + MINUS(oldest, cursor); break
			:: else
			fi
		:: else -> break
		fi
	od;
	cursor = 0;
	seen = 0
}

/* Gives up the oldest record. */
inline push_out()
{
	oldest = PLUS(oldest, 1);
	events++;
#ifndef LATE_PAIR
	store_resume();
#endif
	move_cursor();
#ifdef LATE_PAIR
	store_resume()
#endif
}

inline write_words()
{
	STORE(0, FIRST + reserved % CAPACITY, n);
	STORE(0, SECOND + reserved % CAPACITY, n)
}

proctype writer()
{
	byte reserved = START, oldest = START, events = 0, turn = 0, n = 1, cursor = 0, seen = 0;

	do
	:: n <= RECORDS ->
		/* steps write */
#ifdef LATE_CURSOR
		write_words();
#endif
		if
		:: MINUS(reserved, oldest) == CAPACITY -> push_out()
		:: else
		fi;
#ifndef LATE_CURSOR
		write_words();
#endif
		reserved = PLUS(reserved, 1);
		n++;
		STORE(0, PUBLISHED, reserved)
		/* end */
	:: else -> break
	od
}

/* As reader_load_resume and reader_resume. That no pair fits is possible for a moment only: it must come to an end. */
inline resume()
{
	do
	:: LOAD(cursor, CURSOR);
		LOAD(turn, TURN);
		if
		:: pair = turn % PAIRS
		:: pair = (turn + 1) % PAIRS
		fi;
		LOAD(where, POSITION + pair);
		LOAD(count, EVENTS + pair);
		LOAD(again, TURN);
		LOAD(seen, CURSOR);
		if
		:: where == cursor && turn == again && seen == cursor -> break
		:: else
		fi
	od;
	turn = 0;
	again = 0;
	pair = 0;
	seen = 0;
	cursor = 0;
	/* Farther than the record that could not be read, and not past the end. */
	assert(where != position && MINUS(where, position) <= RECORDS);
	/* Every record is an event, so the count says the place. */
	assert(PLUS(START, count) == where);
	lost = lost + count - known;
	known = count;
	position = where;
	where = 0;
	count = 0
}

inline claim()
{
#ifdef NO_CLAIM
	LOAD(seen, CURSOR);
	if
	:: seen == position -> STORE(1, CURSOR, PLUS(position, 1))
	:: else
	fi
#else
	EXCHANGE(1, CURSOR, position, PLUS(position, 1), seen)
#endif
}

proctype reader()
{
	byte position = START, limit = START, first, second, cursor, seen, turn, again, pair, where, count;
	byte known = 0, delivered = 0;

	do
	:: position == PLACE(RECORDS + 1) -> break
	:: position != PLACE(RECORDS + 1) && position == limit ->
		LOAD(limit, PUBLISHED)
	:: position != PLACE(RECORDS + 1) && position != limit ->
		/* steps read */
		LOAD(first, FIRST + position % CAPACITY);
		LOAD(second, SECOND + position % CAPACITY);
		claim();
		if
		:: seen != position ->
			seen = 0;
			resume();
			/* As reader_resume does; what is at the new place may be newer than the old limit. */
			LOAD(limit, PUBLISHED)
			/* end */
		:: else ->
			seen = 0;
			assert(first == second && PLACE(first) == position);
			delivered++;
			known++;
			position = PLUS(position, 1)
		fi;
		first = 0;
		second = 0
	od;
	/* The writer may have moved the cursor and not have said so yet. */
	assert(delivered + lost == RECORDS && gone <= lost)
}

init
{
	atomic {
		mem[PUBLISHED] = START;
		mem[CURSOR] = START;
		mem[POSITION] = START;
		run memory(0);
		run memory(1);
		run writer();
		run reader()
	};
	/* All but the two memories have ended. */
	_nr_pr == 3 -> assert(gone == lost)
}
