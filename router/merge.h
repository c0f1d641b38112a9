/* Merging the CPUs' sorted runs of sub-buffers into one stream in time order. Pure but for memory.
 *
 * Each CPU is a lane: a queue of slots whose events are in time order. The next event of the merged stream
 * is the earliest head of all lanes, as soon as every lane that has nothing queued is known to have nothing
 * older (its horizon): an idle CPU's horizon comes from the reader's sweeps.
 *
 * Events of one time are in the order of their CPUs, whatever came first: the order is total and does not
 * depend on when slots arrive, so that a router which takes over from another finds the same one.
 *
 * A heap holds the lanes in the order of what is known of them: their head, or, without one, their horizon. So the
 * next event is the top lane's, and there is none while the top lane has no head. */
#ifndef TRACEFAN_ROUTER_MERGE_H
#define TRACEFAN_ROUTER_MERGE_H

#include "router/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERGE_NO_SLOT UINT32_MAX
#define MERGE_DISOWNED (UINT32_MAX - 1) /* of a pool whose reader died */

struct merge_slot {
	const void *bytes;
	uint32_t length;
	uint32_t slot; /* given back through merge_hooks.release */
};

struct merge_lane {
	uint32_t cpu;
	bool open;               /* cursor is inside a page and head is its next event */
	struct page_cursor cursor;
	struct page_event head;
	uint32_t slot;           /* of the open page */
	uint32_t told;           /* events that it gave so far */
	uint64_t last_time;      /* of the last event taken from this lane */
	uint64_t empty_until;    /* a sweep found nothing older than this */
	bool busy;               /* named by POOL_BUSY since the last sweep */
	struct merge_slot *queue; /* ring of waiting slots */
	uint32_t queue_head, queue_count, queue_room;
};

struct merge_hooks {
	void *context;
	/* A page begins: the cursor's header tells of losses before it. */
	void (*page)(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after);
	/* A page, or its rest, can't be read: cursor->error and error_at say why and where. */
	void (*damaged)(void *context, uint32_t cpu, const struct page_cursor *cursor);
	/* The slot is no longer needed; it gave `told` events. */
	void (*release)(void *context, uint32_t slot, uint32_t told);
};

struct merge {
	struct merge_lane *lanes;
	/* The heap of all lanes: what is known of each, its head's time or the least that it may still get. Two arrays: as
	 * pairs they would be loaded by one instruction right after they were stored by two, which processors are slow at. */
	uint64_t *times;
	struct merge_lane **order;
	bool disordered;          /* lanes got slots or another horizon: the heap has to be made anew */
	uint32_t lane_count;
	const struct page_layout *layout;
	struct merge_hooks hooks;
	struct merge_lane *current; /* the lane that merge_next returned an event of: the heap's top */
	uint64_t limit;             /* the current lane may go on before this time without another choice, */
	uint32_t below;             /* which is the lane at this place of the heap then; lane_count: there is none */
};

struct merge_event {
	const uint8_t *data;
	uint32_t size;
	uint32_t cpu;
	uint64_t time;
};

/* `layout` must outlive the merge. Returns 0 or -ENOMEM. */
int merge_init(struct merge *merge, uint32_t cpu_count, const struct page_layout *layout, const struct merge_hooks *hooks);
void merge_release(struct merge *merge);

/* Queues a slot of `cpu`. Returns 0, -ENOMEM or -ERANGE (no such CPU); on failure the slot is the caller's. */
int merge_add(struct merge *merge, uint32_t cpu, const struct merge_slot *slot);
/* The reader's sweep marks. */
void merge_busy(struct merge *merge, uint32_t cpu);
void merge_sweep(struct merge *merge, uint64_t time);

/* The least time up to which the merged stream is complete once merge_next has returned 0. */
uint64_t merge_horizon(const struct merge *merge);

/* From here on every slot that is queued or open is released as MERGE_DISOWNED. Returns how many that newly are. */
uint32_t merge_disown(struct merge *merge);

/* How many events the open slots of this number have given since they were last asked for; a slot that is released tells the
 * rest. */
uint64_t merge_told(struct merge *merge, uint32_t slot);

/* Events that lie in queued or open slots and were not returned yet: for the ledger, walks them all. */
uint64_t merge_held(const struct merge *merge);

/* A look at what follows the event that merge_next returned last in its lane, as far as it is known. */
struct merge_look {
	struct page_cursor cursor;
	uint32_t queued; /* waiting slots that were looked into */
};
void merge_look_begin(const struct merge *merge, struct merge_look *look);
/* False: no more is known. */
bool merge_look_next(const struct merge *merge, struct merge_look *look, struct page_event *ret);
/* Whether a sweep after `time` has found nothing more in that lane. */
bool merge_knows_after(const struct merge *merge, uint64_t time);
/* Slots that lie in all lanes. */
uint32_t merge_slots(const struct merge *merge);

int merge_next_slow(struct merge *merge, struct merge_event *ret);

/* The next event in time order: 1, or 0 when none may be told yet. Valid until the next call. */
static inline int merge_next(struct merge *merge, struct merge_event *ret)
{
	struct merge_lane *lane = merge->current;
	struct page_event event;

	if (lane) {
		if (page_next(&lane->cursor, &event) == 1) {
			if (event.time < merge->limit) {
				lane->told++;
				lane->last_time = event.time;
				ret->data = event.data;
				ret->size = event.size;
				ret->time = event.time;
				ret->cpu = lane->cpu;
				return 1;
			}
			/* One by one, for the reason that is given at the heap. */
			lane->head.data = event.data;
			lane->head.size = event.size;
			lane->head.time = event.time;
		} else {
			lane->open = false;
		}
	}
	return merge_next_slow(merge, ret);
}

#endif
