/* Readers that die and are followed by others, while the router lives on (router/takeover.c, reader/successor.c), or dies
 * at whatever stage of that, too (decision 0020). READERS readers take EVENTS events out of the kernel, one by one, into
 * slots of a pool of their own each, and all but the last may die between any two of their steps. The router reads a dead
 * one's pool to its end, goes on to the next one's, and holds slots of both while the merge needs them.
 *
 * Proved for all of their choices and deaths:
 *  - no double ownership: what comes back to a reader is a slot of its own that the router had, and no slot's bytes change,
 *    or are unmapped, while the router holds it;
 *  - no slot is lost: when all has been told, the last reader has every slot again;
 *  - an event that was published in a pool which the router had come to is told, and none is told twice;
 *  - what was not told is what a dead one had in its hands, or had published in a pool that was never taken up, or lay
 *    with a router that died, too; and that is the number that is told as lost. When a router dies between its telling an
 *    event of a dead reader's and its counting that, the event is told as lost, too; never the other way about.
 *
 * That each ring is what the channels here are, in order and with nothing overwritten, is shown by pool.pml.
 *
 * -DNO_DRAIN, -DNO_DISOWN, -DEARLY_RELEASE and -DNO_HELD each leave one part out; with -DROUTER_DIES also -DNO_COUNT,
 * -DNO_CARRY and -DNO_PAUSE. Each must fail. */
#include "constants.h"

#ifndef READERS
#define READERS 3
#endif
#ifndef EVENTS
#define EVENTS 4
#endif
#define SLOTS  2
#define FILLED (MODEL_FILLED_PER_SLOT * SLOTS)
#define FREE   (MODEL_FREE_PER_SLOT * SLOTS)

/* In place of a slot. */
#define ACCOUNT  100 /* POOL_ACCOUNT: the entry's value is the kernel's count of events read */
#define DISOWNED 101 /* MERGE_DISOWNED */

#define AT(reader, slot) ((reader) * SLOTS + (slot))

/* ---- pools, by reader ---- */

chan filled[READERS] = [FILLED] of { byte, byte }; /* slot or ACCOUNT, event or count */
chan freed[READERS] = [FREE] of { byte };
byte bytes[READERS * SLOTS];                       /* of each slot: the event in it */
bool mapped[READERS];                              /* by the router */
byte counted[READERS], counted_lost[READERS];      /* free_head's counters */

/* ---- messages between readers and routers ---- */

bool wants[READERS];     /* CONTROL_READER */
bool heir[READERS];      /* its answer, with these counts: */
byte heir_decoded[READERS], heir_lost[READERS];
bool offered[READERS];   /* the pool is there for a router */
bool asked[READERS];     /* for an account */
bool dead[READERS];
bool router_dead = false, follows = false;
bool again = false;      /* the pool is ready for another router */
bool over = false;       /* nobody is left to take over from */

byte taken = 0; /* out of the kernel */
byte hand = 0;  /* the event that a reader has taken and not published; 0: none */

/* ---- known to the checks alone ---- */

bool got[EVENTS + 1]; /* by a consumer */
byte seen = 0;        /* the consumer's place */
byte gone = 0;        /* events that nobody can tell any more */
byte twice = 0;       /* told, and going to be told as lost */
byte fresh = 0;       /* told of older pools, and counted nowhere yet */
bool done = false;
byte i, k;

/* ---- readers ---- */

proctype reader(byte me)
{
	byte slot, value;
	bool routers[SLOTS], all;

	if
	:: me == 0
	:: me != 0 ->
		if
		:: atomic { dead[me - 1] && !over -> wants[me] = true }
		:: over -> goto end
		fi;
		if
		:: atomic { heir[me] ->
#ifndef NO_CARRY
			/* pool_writer_carry */
			counted[me] = heir_decoded[me];
			counted_lost[me] = heir_lost[me]
#endif
			}
		:: over -> goto end
		fi
	fi;
	atomic { offered[me] = true; mapped[me] = true }

	do
	:: atomic { hand == 0 && taken < EVENTS && (!routers[0] || !routers[1]) -> taken++; hand = taken }
	:: atomic { hand != 0 ->
		if
		:: !routers[0] -> slot = 0
		:: routers[0] && !routers[1] -> slot = 1
		fi;
		routers[slot] = true;
		bytes[AT(me, slot)] = hand;
		filled[me]!slot,hand;
		hand = 0;
		slot = 0 }
	:: atomic { freed[me]?slot ->
		assert(slot < SLOTS && routers[slot]);
		routers[slot] = false;
		bytes[AT(me, slot)] = 0;
		slot = 0 }
	:: atomic { hand == 0 && asked[me] -> asked[me] = false; filled[me]!ACCOUNT,taken }
	:: atomic { me < READERS - 1 ->
		/* What was in its hands went with it. */
		gone = gone + (hand != 0);
		hand = 0;
		dead[me] = true;
		over = over || (router_dead && !follows);
		break }
#ifdef ROUTER_DIES
	/* pool_writer_republish */
	:: atomic { router_dead && !again ->
		do
		:: freed[me]?slot -> routers[slot] = false; bytes[AT(me, slot)] = 0
		:: empty(freed[me]) -> break
		od;
		do
		:: filled[me]?slot,value
		:: empty(filled[me]) -> break
		od;
		i = 1;
		do
		:: i > EVENTS -> break
		:: else ->
			if
			:: routers[0] && bytes[AT(me, 0)] == i -> filled[me]!0,i
			:: routers[1] && bytes[AT(me, 1)] == i -> filled[me]!1,i
			:: else
			fi;
			i++
		od;
		i = 0; slot = 0; value = 0;
		asked[me] = false;
		again = true }
#endif
	:: atomic { done && empty(freed[me]) -> all = !routers[0] && !routers[1]; assert(all); break }
	:: over -> break
	od;
end:	skip
}

/* ---- the router ---- */

/* The one to whose reader it is connected or will be. */
#define LAST (has_next -> next : cur)

inline tell()
{
	merge?pool,place,slot,event;
	/* There, and as it was. */
	assert(mapped[pool] && bytes[AT(pool, place)] == event);
	if
	:: event > seen -> assert(!got[event]); got[event] = true; seen = event
	:: else /* the consumer has it from the last router */
	fi;
	decoded++;
	fresh = fresh + (pool != LAST);
	batch = true;
	if
	:: slot == DISOWNED -> disowned--
	:: else -> back[place] = true
	fi;
	pool = 0; place = 0; slot = 0; event = 0
}

/* As publish() in stream.c: what comes back to the reader, with the counters that include it. One store makes both hold:
 * steps give_back: STORE FREE, STORE COUNTERS, STORE FREED
 * In router/stream.c, publish: fanout_publish( < pool_reader_return_all( < takeover_count( */
inline give_back()
{
	k = 0;
	do
	:: k == SLOTS -> break
	:: else ->
		if
		:: back[k] -> freed[cur]!k; back[k] = false; counted[cur] = decoded; counted_lost[cur] = lost; fresh = (has_next -> fresh : 0)
		:: else
		fi;
		k++
	od;
	k = 0;
	counted_lost[cur] = lost
}

/* takeover_count */
inline count()
{
#ifndef NO_COUNT
	if
	:: has_next -> counted[next] = decoded; counted_lost[next] = lost; fresh = 0
	:: !has_next && olds -> counted[cur] = counted[cur] + fresh; fresh = 0
	:: else
	fi;
#endif
	if
#ifdef EARLY_RELEASE
	:: olds ->
#else
	:: olds && disowned == 0 ->
#endif
		olds = false;
		k = 0;
		do
		:: k == cur -> break
		:: else -> mapped[k] = false; k++
		od;
		k = 0
	:: else
	fi
}

/* takeover_switch */
inline switch()
{
#ifndef NO_DISOWN
	k = len(merge);
	do
	:: k == 0 -> break
	:: else ->
		merge?pool,place,slot,event;
		disowned = disowned + (slot != DISOWNED);
		merge!pool,place,DISOWNED,event;
		k--
	od;
	pool = 0; place = 0; slot = 0; event = 0;
#endif
	olds = true;
	cur = next;
	next = 0;
	has_next = false;
	count()
}

inline account()
{
#ifdef NO_HELD
	k = decoded + lost;
#else
	k = decoded + len(merge) + lost;
#endif
	lost = lost + (event > k -> event - k : 0);
	k = 0;
	looks = false
}

inline count_unread(which)
{
	do
	:: filled[which]?slot,event -> gone = gone + (slot != ACCOUNT)
	:: empty(filled[which]) -> break
	od;
	slot = 0; event = 0
}

/* takeover.c's begin. One step, for the reader answers when it has read all of it, in this order:
 * In router/takeover.c, begin: takeover->pausing = true < control_send( < greet( < name_consumers( < keep_probes( < stream_ask_again( < stream_look( */
inline begin()
{
	up++;
	heir_decoded[up] = decoded;
	heir_lost[up] = lost;
	heir[up] = true;
	fresh = 0;
	waiting = false;
#ifndef NO_PAUSE
	pausing = true;
#endif
	looks = true;
	asked[up] = true
}

/* take_pool: one that was taken and whose turn never came goes. */
inline take_pool()
{
	if
	:: has_next -> count_unread(next); mapped[next] = false
	:: else
	fi;
	next = up;
	has_next = true;
	pausing = false
}

/* Nobody but the reader that lives will be asked for what it had. */
inline die()
{
	if
	:: waiting || dead[up] -> over = true
	:: else ->
		/* Of one batch. */
		assert(fresh <= 1);
		twice = twice + fresh;
		fresh = 0;
		do
		:: merge?pool,place,slot,event -> gone = gone + (pool != up)
		:: empty(merge) -> break
		od;
		pool = 0; place = 0; slot = 0; event = 0;
		if
		:: cur != up -> count_unread(cur)
		:: else
		fi;
		if
		:: has_next && next != up -> count_unread(next)
		:: else
		fi;
		router_dead = true
	fi
}

/* Readers come one after the other. */
#define NEXT_CAME (waiting && up < READERS - 1 && wants[up + 1])

proctype router(byte cur)
{
	/* Of a slot: its pool, where it is in there, what it counts as, the event. */
	chan merge = [EVENTS] of { byte, byte, byte, byte };
	byte up = cur, next = 0, pool, place, slot, event, decoded = counted[cur], lost = counted_lost[cur], disowned = 0;
	bool back[SLOTS], batch = false, waiting = false, pausing = false, has_next = false, olds = false, looks = true, ended = false;

	asked[cur] = true;
	do
	:: atomic { !pausing && nempty(filled[cur]) ->
		filled[cur]?slot,event;
		if
		:: slot == ACCOUNT -> account()
		:: else -> assert(bytes[AT(cur, slot)] == event); merge!cur,slot,slot,event
		fi;
		slot = 0; event = 0 }
	:: atomic { !pausing && nempty(merge) && !batch -> tell() }
	:: atomic { batch -> give_back() }
		atomic { count(); batch = false }
#ifdef NO_DRAIN
	:: atomic { has_next && !pausing && !batch -> switch() }
#else
	:: atomic { has_next && !pausing && empty(filled[cur]) && !batch -> switch() }
#endif
	/* The connection's end; a pool that had not come by then never comes. */
	:: atomic { dead[up] && !waiting ->
		if
		:: up != cur && (!has_next || next != up) -> count_unread(up)
		:: else
		fi;
		waiting = true;
		pausing = false }
	:: atomic { NEXT_CAME -> begin() }
	:: atomic { !waiting && up != cur && (!has_next || next != up) && offered[up] -> take_pool() }
#ifdef ROUTER_DIES
	:: atomic { !router_dead -> die(); break }
#endif
	/* All is told: one more account, as the last. */
	:: atomic { taken == EVENTS && hand == 0 && up == READERS - 1 && cur == up && !waiting && empty(filled[cur]) && empty(merge) && !batch &&
		!asked[cur] && !looks ->
		ended = true;
		break }
	od;
	if
	:: atomic { ended ->
		k = 0;
		i = 1;
		do
		:: i > EVENTS -> break
		:: else -> k = k + !got[i]; i++
		od;
		assert(k == gone && lost == gone + twice && decoded + lost == EVENTS);
		i = 0;
		k = 0;
		done = true }
	:: else
	fi
}

init
{
	atomic {
		run reader(0);
		i = 1;
		do
		:: i == READERS -> break
		:: else -> run reader(i); i++
		od;
		i = 0
	};
	atomic { offered[0] -> run router(0) };
#ifdef ROUTER_DIES
	if
	:: atomic { again && !over ->
		follows = true;
		k = 0;
		do
		:: dead[k] || !offered[k] -> k++
		:: else -> break
		od;
		run router(k);
		k = 0 }
	:: done
	:: over
	fi
#endif
}
