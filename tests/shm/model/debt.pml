/* What a router that dies leaves of the losses at a consumer's ring (ring_writer_owe), and how the consumer and the next
 * router go on from there (comeback.c).
 *
 * The router takes the events 1 to EVENTS in order, in batches: each finds room or is lost, and before an event goes in
 * the record that tells of losses does. At the end of a batch it shows what it wrote and gives the events' slots back. It may
 * die between any two of its stores.
 *
 * Proved for all of its choices and deaths: each event is delivered, or told as lost, and never both; and no
 * event is asked for whose slot went back.
 *
 * -DNO_DEBT, -DONE_DEBT, -DEARLY_SERIAL, -DEARLY_RETURN and -DNO_PLACE each leave one part out; each must fail. */
#include "constants.h"

#ifndef EVENTS
#define EVENTS 6
#endif
#define BATCH   2
#define RECORDS (2 * EVENTS)

#ifdef ONE_DEBT
#define DEBTS 1
#else
#define DEBTS MODEL_DEBTS
#endif

/* Shared memory, as the next process finds it. */
byte published = 0; /* records */
byte serial[MODEL_DEBTS], at[MODEL_DEBTS], owed[MODEL_DEBTS], last[MODEL_DEBTS];
byte returned = 0;  /* events whose slots went back */
/* A record: `told` events are lost, the last of which is `event`; or, with told 0, this event. */
byte event[RECORDS], told[RECORDS];

bool dead = false;

/* What a store may be followed by. */
#define STEP if :: true :: dead = true; goto died fi

proctype router()
{
	byte reserved = 0, lost = 0, last_lost = 0, e = 0, batch, use, number;
	bool room;

	do
	:: e == EVENTS -> break
	:: else ->
		batch = 0;
		do
		:: batch == BATCH || e == EVENTS -> break
		:: else ->
			e++;
			batch++;
			if :: room = true :: room = false fi;
			if
			:: !room -> lost++; last_lost = e
			:: else ->
				if
				:: lost -> told[reserved] = lost; event[reserved] = last_lost; reserved++; lost = 0
				:: else
				fi;
				told[reserved] = 0; event[reserved] = e; reserved++
			fi
		od;
		/* outlet_publish */
		if
		:: lost ->
			if
			:: told[reserved] = lost; event[reserved] = last_lost; reserved++; lost = 0
			:: true
			fi
		:: else
		fi;
#ifdef EARLY_RETURN
		returned = e; STEP;
#endif
#ifndef NO_DEBT
		if
		:: lost ->
			use = 0;
			if :: DEBTS == 2 && serial[0] > serial[1] -> use = 1 :: else fi;
			number = serial[0];
			if :: serial[1] > number -> number = serial[1] :: else fi;
			/* steps owe */
#ifdef EARLY_SERIAL
			serial[use] = number + 1; STEP;
#else
			serial[use] = 0; STEP;
#endif
			owed[use] = lost; STEP;
			last[use] = last_lost; STEP;
			at[use] = reserved; STEP;
			serial[use] = number + 1; STEP
		:: else
		fi;
#endif
		published = reserved; STEP;
		/* end */
		/* In router/outlet.c, outlet_publish: owe_losses( < ring_writer_show(
		 * In router/stream.c, publish: fanout_publish( < pool_reader_return_all( */
		returned = e; STEP
	od;
	dead = true;
died:	skip
}

proctype consumer()
{
	byte i = 0, seen = 0, delivered = 0, lost = 0, best = 0;

	dead;
	do
	:: i == published -> break
	:: else ->
		if
		:: told[i] == 0 -> delivered++; seen = event[i]
		:: else ->
			lost = lost + told[i];
#ifndef NO_PLACE
			seen = event[i]
#endif
		fi;
		i++
	od;
	/* ring_reader_debt */
	i = 0;
	do
	:: i == DEBTS -> break
	:: else ->
		if
		:: at[i] == published && serial[i] > best -> best = serial[i]
		:: else
		fi;
		i++
	od;
	i = 0;
	do
	:: i == DEBTS || best == 0 -> break
	:: else ->
		if
		:: serial[i] == best && at[i] == published -> lost = lost + owed[i]; seen = last[i]
		:: else
		fi;
		i++
	od;
	/* The next router has what did not go back, and gives what is younger than the place. */
	assert(seen >= returned);
	assert(delivered + lost == seen)
}

init {
	atomic { run router(); run consumer() }
}
