/* Telling later: many events ring by ring. */
#include "router/fanout_parts.h"

#include "base/checked.h"

#define CACHE_LINE 64

/* Fewer records of a ring in a row are written through the cache: half of the lines would be written on at another time. */
#define PAST_LEAST 4

static HOT struct event_view view_of(const struct fanout_later *later)
{
	return (struct event_view){
		.payload = later->payload,
		.comm = later->comm,
		.time = later->time,
		.payload_size = later->payload_size,
		.size = align_up(sizeof(struct record_header) + later->payload_size, RECORD_ALIGN),
		.pid = later->pid,
		.cpu = later->cpu,
		.flags = later->flags,
	};
}

/* Has the view in memory, which tell_lane must not. */
static __attribute__((noinline)) void tell_detailed(struct fanout *fanout, const struct fanout_later *later)
{
	const struct event_view view = view_of(later);

	fanout_tell_detailed(fanout, later->trace, &view);
}

static HOT void tell_lane(struct fanout *fanout, const struct fanout_lane *lane, bool past)
{
	const struct fanout_window *window = &fanout->window;

	for (uint32_t i = lane->end - lane->count; i < lane->end; i++) {
		const struct fanout_later *later = &window->later[window->order[i]];
		const struct event_view view = view_of(later);

		if (__builtin_expect(later->trace->detailed, 0))
			tell_detailed(fanout, later);
		else
			fanout_tell_with(fanout, later->trace, &view, 0, past);
	}
}

/* Makes the lanes, and the order in which theirs are told: an index for each, so that the loads of one need not wait for those of the one
 * before, as along a list they would. Returns how many lanes there are. */
static uint32_t sort(struct fanout_window *window)
{
	uint32_t lanes = 0, end = 0;

	for (uint32_t i = 0; i < window->count; i++) {
		struct outlet *outlet = window->later[i].trace->outlet;

		if (!outlet->lane) {
			window->lanes[lanes++] = (struct fanout_lane){ .outlet = outlet };
			outlet->lane = (uint16_t)lanes;
		}
		window->lane_of[i] = outlet->lane - 1;
		window->lanes[outlet->lane - 1].count++;
	}
	for (uint32_t i = 0; i < lanes; i++) {
		window->lanes[i].end = end;
		end += window->lanes[i].count;
	}
	for (uint32_t i = 0; i < window->count; i++)
		window->order[window->lanes[window->lane_of[i]].end++] = (uint16_t)i;
	return lanes;
}

void fanout_catch_up(struct fanout *fanout)
{
	struct fanout_window *window = &fanout->window;
	const uint32_t lanes = sort(window);

	for (uint32_t i = 0; i < lanes; i++) {
		const struct fanout_lane *lane = &window->lanes[i];

		/* No processor foresees where the next one goes. */
		if (i + 2 < lanes) {
			const uint8_t *place = lane[2].outlet->ring.at;

			__builtin_prefetch(place, 1);
			__builtin_prefetch(place + CACHE_LINE, 1);
		}
		lane->outlet->lane = 0;
		if (lane->count < PAST_LEAST)
			tell_lane(fanout, lane, false);
		else
			tell_lane(fanout, lane, true);
	}
	window->count = 0;
}
