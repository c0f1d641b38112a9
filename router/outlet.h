/* One consumer's ring as the router writes it: events where there is room, losses told where they happened
 * and merged, and the records that must not get lost (flush marks, the end) in room that events leave free. In a ring
 * that overwrites, what is overwritten unread is counted, and all but events is told again. */
#ifndef TRACEFAN_ROUTER_OUTLET_H
#define TRACEFAN_ROUTER_OUTLET_H

#include "shm/ring.h"

#include <stdbool.h>
#include <stdint.h>

/* Flushes that may be under way at once; more are refused, so that their marks always find room. */
#define OUTLET_FLUSHES_MAX 8
/* Marks of new filters that may wait for room in the ring; with more, filters are not changed. */
#define OUTLET_FILTERS_MAX 4
/* Throttled traces whose records wait for room; of more than those only the ledger tells. */
#define OUTLET_THROTTLED_MAX 8
/* Room that is left for what is more important: by events for every other record, by records of losses and
 * clocks for the marks of flushes and the end, by marks for the end. OUTLET_MARGIN is room for all that can be due. */
#define OUTLET_MARGIN       2048UL
#define OUTLET_MARGIN_LOST  1024
#define OUTLET_MARGIN_FLUSH 256

struct outlet_flush {
	uint64_t cookie; /* the consumer's */
	uint64_t time;   /* of the mark in the stream */
};

struct outlet_filter {
	uint64_t trace_id;
	uint64_t cookie; /* of the request that set it */
	uint64_t time;   /* no event that was told before is younger */
};

struct outlet_throttled {
	uint64_t trace_id;
	uint64_t time;
	struct record_throttled why;
};

/* An outlet's traces are found by their ids among so many lists. */
#define OUTLET_LISTS 64

struct trace;

/* What each event touches stands together, at the front and at the ring's: with a thousand outlets no more of them fits
 * into a core's cache. */
struct outlet {
	_Alignas(64) const uint8_t *stop; /* up to here events are written without a further look */
	uint64_t last_time;   /* of the last event written or lost */
	struct outlet *next_dirty; /* the fan-out's list of rings to publish, and of consumers to wake */
	bool dirty;
	uint16_t lane; /* the fan-out's: among those of its window, 0: none */
	bool due; /* one of lost, flushes, filters, clock and end waits to be written */
	struct ring_writer ring;
	struct trace *traces[OUTLET_LISTS]; /* the fan-out's */
	/* RING_OVERWRITE: told of each event that is overwritten unread; may be NULL. */
	void (*event_gone)(struct outlet *outlet, uint64_t trace_id);
	/* Called before what is lost since it was called last is made visible; may be NULL. */
	void (*columns)(struct outlet *outlet);
	bool lost_more;
	struct record_lost lost[LOST_SOURCES]; /* by source, told before the next record; at_least 0: none */
	uint64_t lost_time;   /* the place of the last event that was lost here, while no record tells of it */
	uint32_t lost_cpu, lost_same;
	uint64_t reader_total; /* of the session, what readers that died took with them */
	struct outlet_flush flushes[OUTLET_FLUSHES_MAX]; /* marks whose time has come */
	uint32_t flush_count;
	uint32_t flushes_unread; /* marks in the ring that may still be overwritten */
	uint64_t flushes_end;    /* the position behind the last of them */
	struct outlet_filter filters[OUTLET_FILTERS_MAX]; /* marks that stand before the next event */
	uint32_t filter_count;
	struct outlet_throttled throttled[OUTLET_THROTTLED_MAX];
	uint32_t throttled_count;
	bool clock_known, gap_due, end_due, ended;
	bool due_waits, events_wait; /* for room, which the consumer is told */
	uint64_t gap_time, gap_until, end_time;
	struct record_clock clock;
	struct record_end end;
};

/* Makes the ring. Returns 0 or -errno. */
int outlet_init(struct outlet *outlet, size_t capacity, enum ring_overflow overflow);
void outlet_release(struct outlet *outlet);

/* Room for an event of `size` bytes (RECORD_ALIGN), or NULL: then the event is lost and counted here. */
struct record_header *outlet_reserve_slow(struct outlet *outlet, size_t size, uint64_t time);

static inline struct record_header *outlet_reserve(struct outlet *outlet, size_t size, uint64_t time)
{
	uint8_t *record = outlet->ring.at;

	if (__builtin_expect((size_t)(outlet->stop - record) < size, 0))
		return outlet_reserve_slow(outlet, size, time);
	outlet->last_time = time;
	outlet->ring.at = record + size;
	return (struct record_header *)(void *)record;
}

/* A loss between two times that was not this ring's; count LOST_COUNT_UNKNOWN: at least one. */
void outlet_lost(struct outlet *outlet, enum lost_source source, uint32_t cpu, uint64_t count, uint64_t from, uint64_t to);
/* An event of this place in the merged order found no room. */
void outlet_lost_at(struct outlet *outlet, uint64_t time, uint32_t cpu);
void outlet_clock(struct outlet *outlet, const struct record_clock *clock);
/* The router was restarted; the consumer goes on at this time (ns). `until` is 0 where it came back in time: then the gap cost
 * nothing beyond what is told as lost elsewhere, since no slot was given back before its events were published. Otherwise the
 * stream had gone on without it, and nobody knows how much it missed up to then. */
void outlet_gap(struct outlet *outlet, uint64_t time, uint64_t until);
/* Marks of flushes that may still have to be written. */
uint32_t outlet_flushes(struct outlet *outlet);
/* A flush mark; the caller keeps to OUTLET_FLUSHES_MAX. */
void outlet_flushed(struct outlet *outlet, uint64_t cookie, uint64_t time);
/* A trace's new filter holds from here on; the caller keeps to OUTLET_FILTERS_MAX. */
void outlet_filter(struct outlet *outlet, uint64_t trace_id, uint64_t cookie, uint64_t time);
/* A trace is disabled from here on, because it brought too much. */
void outlet_throttled(struct outlet *outlet, uint64_t trace_id, uint64_t time, const struct record_throttled *why);
/* The end of the session, at this time or, if that is later, that of the last event; nothing is written behind it. */
void outlet_end(struct outlet *outlet, uint64_t time, const struct record_end *end);

/* Writes what is due and makes everything visible. Where there is no room for it, the consumer says when it has read all
 * (CONTROL_ROOM), and this is to be called again. A consumer that sleeps is woken when much has come since it
 * was last woken. Returns as outlet_wake. */
int outlet_publish(struct outlet *outlet);
/* Wakes the consumer if it sleeps and was not woken for what is visible. Returns 1 (woken), 0 (no need) or -errno. */
int outlet_wake(struct outlet *outlet);

/* Bytes of events that find room, by the consumer's own word. */
size_t outlet_room(struct outlet *outlet);
/* Says whether the router waits for room for events, in which the consumer has a part as above. The caller looks at outlet_room
 * once more behind it. */
void outlet_await_room(struct outlet *outlet, bool waits);

#endif
