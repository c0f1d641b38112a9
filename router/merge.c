#include "router/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int merge_init(struct merge *merge, uint32_t cpu_count, const struct page_layout *layout, const struct merge_hooks *hooks)
{
	memset(merge, 0, sizeof(*merge));
	merge->lanes = calloc(cpu_count, sizeof(*merge->lanes));
	merge->times = calloc(cpu_count, sizeof(*merge->times));
	merge->order = calloc(cpu_count, sizeof(struct merge_lane *));
	if ((!merge->lanes || !merge->times || !merge->order) && cpu_count) {
		merge_release(merge);
		return -ENOMEM;
	}
	merge->lane_count = cpu_count;
	merge->layout = layout;
	merge->hooks = *hooks;
	for (uint32_t i = 0; i < cpu_count; i++) {
		merge->lanes[i].cpu = i;
		merge->lanes[i].slot = MERGE_NO_SLOT;
		merge->order[i] = &merge->lanes[i];
	}
	return 0;
}

void merge_release(struct merge *merge)
{
	for (uint32_t i = 0; merge->lanes && i < merge->lane_count; i++)
		free(merge->lanes[i].queue);
	free(merge->lanes);
	free(merge->times);
	free(merge->order);
	memset(merge, 0, sizeof(*merge));
}

static int queue_grow(struct merge_lane *lane)
{
	uint32_t room = lane->queue_room ? 2 * lane->queue_room : 16;
	struct merge_slot *queue = calloc(room, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	for (uint32_t i = 0; i < lane->queue_count; i++)
		queue[i] = lane->queue[(lane->queue_head + i) & (lane->queue_room - 1)];
	free(lane->queue);
	lane->queue = queue;
	lane->queue_head = 0;
	lane->queue_room = room;
	return 0;
}

int merge_add(struct merge *merge, uint32_t cpu, const struct merge_slot *slot)
{
	struct merge_lane *lane;

	if (cpu >= merge->lane_count)
		return -ERANGE;
	lane = &merge->lanes[cpu];
	if (lane->queue_count == lane->queue_room) {
		int r = queue_grow(lane);

		if (r < 0)
			return r;
	}
	lane->queue[(lane->queue_head + lane->queue_count++) & (lane->queue_room - 1)] = *slot;
	if (!lane->open)
		merge->disordered = true;
	return 0;
}

void merge_busy(struct merge *merge, uint32_t cpu)
{
	if (cpu < merge->lane_count)
		merge->lanes[cpu].busy = true;
}

void merge_sweep(struct merge *merge, uint64_t time)
{
	for (uint32_t i = 0; i < merge->lane_count; i++) {
		struct merge_lane *lane = &merge->lanes[i];

		if (!lane->busy && time > lane->empty_until)
			lane->empty_until = time;
		lane->busy = false;
	}
	merge->disordered = true;
}

static uint64_t lane_horizon(const struct merge_lane *lane)
{
	return lane->empty_until > lane->last_time ? lane->empty_until : lane->last_time;
}

uint64_t merge_horizon(const struct merge *merge)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < merge->lane_count; i++) {
		uint64_t horizon = lane_horizon(&merge->lanes[i]);

		/* A head that waits is older than whatever follows it in its lane. */
		if (merge->lanes[i].open && merge->lanes[i].head.time < horizon)
			horizon = merge->lanes[i].head.time;
		if (horizon < least)
			least = horizon;
	}
	return least;
}

static void lane_give_back(struct merge *merge, struct merge_lane *lane)
{
	if (lane->slot != MERGE_NO_SLOT)
		merge->hooks.release(merge->hooks.context, lane->slot, lane->told);
	lane->slot = MERGE_NO_SLOT;
	lane->told = 0;
}

/* Makes head the lane's next event, going through its queue as far as needed. False: nothing queued. */
static bool lane_fill(struct merge *merge, struct merge_lane *lane)
{
	while (!lane->open) {
		struct merge_slot slot;

		if (lane->slot != MERGE_NO_SLOT && lane->cursor.error != PAGE_OK)
			merge->hooks.damaged(merge->hooks.context, lane->cpu, &lane->cursor);
		lane_give_back(merge, lane);
		if (!lane->queue_count)
			return false;
		slot = lane->queue[lane->queue_head];
		lane->queue_head = (lane->queue_head + 1) & (lane->queue_room - 1);
		lane->queue_count--;
		lane->slot = slot.slot;
		if (page_open(&lane->cursor, merge->layout, slot.bytes, slot.length) < 0)
			continue;
		merge->hooks.page(merge->hooks.context, lane->cpu, &lane->cursor, lane->last_time);
		lane->open = page_next(&lane->cursor, &lane->head) == 1;
	}
	return true;
}

static uint64_t lane_time(const struct merge_lane *lane)
{
	return lane->open ? lane->head.time : lane_horizon(lane);
}

static inline bool place_before(const struct merge *merge, uint32_t place, uint64_t time, const struct merge_lane *lane)
{
	const uint64_t here = merge->times[place];

	return here < time || (here == time && merge->order[place]->cpu < lane->cpu);
}

/* The earlier one of the two places below `place`; lane_count: there is none. */
static inline uint32_t heap_below(const struct merge *merge, uint32_t place)
{
	const uint32_t left = 2 * place + 1, right = left + 1;

	if (right < merge->lane_count)
		return place_before(merge, right, merge->times[left], merge->order[left]) ? right : left;
	return left < merge->lane_count ? left : merge->lane_count;
}

/* Puts a lane where it belongs, at `place` or below. */
static inline void heap_sink(struct merge *merge, uint32_t place, uint64_t time, struct merge_lane *lane)
{
	for (;;) {
		const uint32_t below = heap_below(merge, place);

		if (below == merge->lane_count || !place_before(merge, below, time, lane))
			break;
		merge->times[place] = merge->times[below];
		merge->order[place] = merge->order[below];
		place = below;
	}
	merge->times[place] = time;
	merge->order[place] = lane;
}

/* Puts the heap in order. Every lane that has a slot queued has a head then. */
static void heap_make(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->lane_count; i++) {
		struct merge_lane *lane = merge->order[i];

		(void)lane_fill(merge, lane);
		merge->times[i] = lane_time(lane);
	}
	for (uint32_t i = merge->lane_count / 2; i--;)
		heap_sink(merge, i, merge->times[i], merge->order[i]);
	merge->disordered = false;
}

/* Notes the first time at which an event of the top lane has to wait for one of another lane, and whose. */
static inline void heap_set_limit(struct merge *merge)
{
	const uint32_t below = heap_below(merge, 0);
	uint64_t time;

	merge->below = below;
	merge->limit = UINT64_MAX;
	if (below == merge->lane_count)
		return;
	time = merge->times[below];
	if (time < UINT64_MAX)
		merge->limit = time + (merge->order[0]->cpu < merge->order[below]->cpu);
}

/* Tells the top lane's head; 0: it has none. */
static inline int top_tell(struct merge *merge, struct merge_event *ret)
{
	struct merge_lane *lane = merge->order[0];
	uint64_t time;

	if (!lane->open) {
		merge->current = NULL;
		return 0;
	}
	time = lane->head.time;
	merge->current = lane;
	heap_set_limit(merge);
	lane->told++;
	lane->last_time = time;
	ret->time = time;
	ret->data = lane->head.data;
	ret->size = lane->head.size;
	ret->cpu = lane->cpu;
	return 1;
}

/* Every case but the one that the caller takes itself. */
static __attribute__((noinline)) int next_any(struct merge *merge, struct merge_event *ret)
{
	struct merge_lane *lane = merge->current;

	if (!merge->lane_count)
		return 0;
	if (merge->disordered) {
		heap_make(merge);
	} else if (lane) {
		if (!lane->open)
			(void)lane_fill(merge, lane);
		heap_sink(merge, 0, lane_time(lane), lane);
	}
	return top_tell(merge, ret);
}

int merge_next_slow(struct merge *merge, struct merge_event *ret)
{
	struct merge_lane *lane = merge->current;
	const uint32_t below = merge->below;

	if (__builtin_expect(merge->disordered || !lane || !lane->open || merge->limit == UINT64_MAX, 0))
		return next_any(merge, ret);
	/* The top lane's head comes after the one that the limit was taken from. */
	merge->times[0] = merge->times[below];
	merge->order[0] = merge->order[below];
	heap_sink(merge, below, lane->head.time, lane);
	return top_tell(merge, ret);
}

static uint32_t disown(uint32_t *slot)
{
	if (*slot == MERGE_NO_SLOT || *slot == MERGE_DISOWNED)
		return 0;
	*slot = MERGE_DISOWNED;
	return 1;
}

uint32_t merge_disown(struct merge *merge)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < merge->lane_count; i++) {
		struct merge_lane *lane = &merge->lanes[i];

		count += disown(&lane->slot);
		for (uint32_t k = 0; k < lane->queue_count; k++)
			count += disown(&lane->queue[(lane->queue_head + k) & (lane->queue_room - 1)].slot);
	}
	return count;
}

uint64_t merge_told(struct merge *merge, uint32_t slot)
{
	uint64_t told = 0;

	for (uint32_t i = 0; i < merge->lane_count; i++) {
		if (merge->lanes[i].slot != slot)
			continue;
		told += merge->lanes[i].told;
		merge->lanes[i].told = 0;
	}
	return told;
}

uint64_t merge_held(const struct merge *merge)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < merge->lane_count; i++) {
		const struct merge_lane *lane = &merge->lanes[i];
		uint64_t last;

		if (lane->open)
			held += page_count(&lane->cursor, &last) + (lane == merge->current ? 0 : 1);
		for (uint32_t k = 0; k < lane->queue_count; k++) {
			const struct merge_slot *slot = &lane->queue[(lane->queue_head + k) & (lane->queue_room - 1)];
			struct page_cursor cursor;

			if (page_open(&cursor, merge->layout, slot->bytes, slot->length) == 0)
				held += page_count(&cursor, &last);
		}
	}
	return held;
}

void merge_look_begin(const struct merge *merge, struct merge_look *look)
{
	look->cursor = merge->current->cursor;
	look->queued = 0;
}

bool merge_look_next(const struct merge *merge, struct merge_look *look, struct page_event *ret)
{
	const struct merge_lane *lane = merge->current;

	while (page_next(&look->cursor, ret) != 1) {
		const struct merge_slot *slot;

		if (look->queued == lane->queue_count)
			return false;
		slot = &lane->queue[(lane->queue_head + look->queued++) & (lane->queue_room - 1)];
		/* One that can't be opened has no event: the next call of page_next says so again. */
		(void)page_open(&look->cursor, merge->layout, slot->bytes, slot->length);
	}
	return true;
}

bool merge_knows_after(const struct merge *merge, uint64_t time)
{
	return merge->current->empty_until > time;
}

uint32_t merge_slots(const struct merge *merge)
{
	uint32_t slots = 0;

	for (uint32_t i = 0; i < merge->lane_count; i++)
		slots += merge->lanes[i].queue_count + (merge->lanes[i].slot != MERGE_NO_SLOT);
	return slots;
}
