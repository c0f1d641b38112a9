#include "router/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int merge_init(struct merge *merge, uint32_t cpu_count, const struct page_layout *layout, const struct merge_hooks *hooks)
{
	memset(merge, 0, sizeof(*merge));
	merge->lanes = calloc(cpu_count, sizeof(*merge->lanes));
	if (!merge->lanes && cpu_count)
		return -ENOMEM;
	merge->lane_count = cpu_count;
	merge->layout = layout;
	merge->hooks = *hooks;
	for (uint32_t i = 0; i < cpu_count; i++) {
		merge->lanes[i].cpu = i;
		merge->lanes[i].slot = MERGE_NO_SLOT;
	}
	return 0;
}

void merge_release(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->lane_count; i++)
		free(merge->lanes[i].queue);
	free(merge->lanes);
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

/* The first time at which an event of `lane` has to wait for one of `other`, which has nothing before
 * `time`: of equal times the lower CPU is first. UINT64_MAX: it never has to. */
static uint64_t lane_limit(const struct merge_lane *lane, const struct merge_lane *other, uint64_t time)
{
	return lane->cpu < other->cpu && time < UINT64_MAX ? time + 1 : time;
}

/* What is known of a lane: its head's time, or, when it has none, the least time that it may still get. */
static uint64_t lane_time(const struct merge_lane *lane)
{
	return lane->open ? lane->head.time : lane_horizon(lane);
}

int merge_next_slow(struct merge *merge, struct merge_event *ret)
{
	struct merge_lane *best = NULL;
	uint64_t limit = UINT64_MAX;

	merge->current = NULL;
	for (uint32_t i = 0; i < merge->lane_count; i++) {
		struct merge_lane *lane = &merge->lanes[i];

		if (lane_fill(merge, lane) && (!best || lane->head.time < best->head.time))
			best = lane;
	}
	if (!best)
		return 0;
	for (uint32_t i = 0; i < merge->lane_count; i++) {
		const struct merge_lane *lane = &merge->lanes[i];
		uint64_t time = lane == best ? UINT64_MAX : lane_limit(best, lane, lane_time(lane));

		limit = time < limit ? time : limit;
	}
	if (best->head.time >= limit)
		return 0;
	merge->current = best;
	merge->limit = limit;
	best->told++;
	*ret = (struct merge_event){
		.data = best->head.data,
		.size = best->head.size,
		.cpu = best->cpu,
		.time = best->head.time,
	};
	return 1;
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
