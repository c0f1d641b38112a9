#include "router/fanout_parts.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>

/* ns that a stack is waited for on a CPU that has nothing else to tell. */
#define STACKS_PATIENCE 200000000U

const char fanout_nobody[RECORD_COMM_SIZE];

int fanout_init(struct fanout *fanout, struct catalog *catalog, bool text, bool big_endian)
{
	memset(fanout, 0, sizeof(*fanout));
	fanout->catalog = catalog;
	fanout->snapshot_due = UINT64_MAX;
	fanout->dirty_end = &fanout->dirty;
	fanout->text = text;
	fanout->big_endian = big_endian;
	fanout->foreign = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	fanout->by_type = calloc(1U << 16, sizeof(struct route *));
	fanout->text_payload = text ? malloc(FANOUT_TEXT_MAX) : NULL;
	if (!fanout->by_type || (text && !fanout->text_payload))
		return -ENOMEM;
	if (getrandom(&fanout->seed, sizeof(fanout->seed), 0) != sizeof(fanout->seed))
		return -EIO;
	return tasks_init(&fanout->tasks);
}

void fanout_release(struct fanout *fanout)
{
	for (size_t i = 0; i < fanout->route_count; i++)
		fanout_route_release(fanout->routes[i]);
	free(fanout->routes);
	free(fanout->by_type);
	free(fanout->text_payload);
	tasks_release(&fanout->tasks);
	memset(fanout, 0, sizeof(*fanout));
}

void fanout_route_see(struct fanout *fanout, struct route *route)
{
	route->all_seen = fanout->all_generation;
	fanout->unseen(fanout->unseen_context, route);
}

/* An event that has no route gets one when somebody wants all events. */
static struct route *unseen_route(struct fanout *fanout, uint16_t type)
{
	struct catalog_event *kind = fanout->all_generation ? catalog_by_type(fanout->catalog, type) : NULL;
	struct route *route;

	return kind && fanout_route(fanout, kind, &route) == 0 ? route : NULL;
}

static HOT struct route *event_route(struct fanout *fanout, const struct merge_event *event)
{
	uint16_t type;
	struct route *route;

	if (event->size < sizeof(type))
		return NULL;
	memcpy(&type, event->data, sizeof(type));
	if (__builtin_expect(fanout->foreign, 0))
		type = __builtin_bswap16(type);
	route = fanout->by_type[type];
	return route ? route : unseen_route(fanout, type);
}

void fanout_take_own(struct fanout *fanout, const struct route *route, const struct own_event *event, bool first)
{
	if (!route->own || route->own_first != first)
		return;
	/* Each moves the time on to that of the next. */
	while (event->time >= fanout->snapshot_due)
		fanout->snapshot(route->own_context);
	route->own(route->own_context, event);
}

static uint64_t stacks_clock(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* False: the event waits. */
static __attribute__((noinline)) bool gather(struct fanout *fanout, const struct route *route, const struct merge_event *event)
{
	fanout->stacks.impatient = fanout->waits_until && stacks_clock() >= fanout->waits_until;
	fanout->waits = !stacks_gather(&fanout->stacks, event, route->stacks, route->preemptible);
	if (!fanout->waits)
		fanout->waits_until = 0;
	else if (!fanout->waits_until)
		fanout->waits_until = stacks_clock() + STACKS_PATIENCE;
	if (fanout->waits)
		fanout->awaiting = *event;
	return !fanout->waits;
}

/* Whether there is nothing to do for the route's next event but to tell it to the plain and the special traces. */
static bool route_is_quick(const struct fanout *fanout, const struct route *route)
{
	return route->trace_count && !route->own && !route->stacks && !route->changing && !route->owned_count &&
	       route->all_seen == fanout->all_generation;
}

static void tell_any(struct fanout *fanout, struct route *route, const struct merge_event *event)
{
	const struct own_event own = {
		.schema = &route->schema,
		.payload = event->data,
		.size = event->size,
		.time = event->time,
		.tid = fanout_pid(fanout, route, event->data, event->size),
	};
	const uint32_t owner = fanout_owner(fanout, route, own.tid, event->time);

	fanout_take_own(fanout, route, &own, true);
	if (route->trace_count) {
		const struct event_view view = fanout_view(fanout, route, event->data, event->size, event->cpu, event->time);

		fanout_tell_all(fanout, route, &view, owner);
	} else {
		route->unclaimed++;
	}
	fanout_take_own(fanout, route, &own, false);
}

static __attribute__((noinline)) bool take_any(struct fanout *fanout, struct route *route, const struct merge_event *event)
{
	fanout_catch_up(fanout);
	if (route && route->stacks && !gather(fanout, route, event))
		return false;
	fanout->decoded++;
	if (!route) {
		fanout->unrouted++;
		return true;
	}
	if (route->all_seen != fanout->all_generation)
		fanout_route_see(fanout, route);
	tell_any(fanout, route, event);
	route->quick = route_is_quick(fanout, route) ? fanout->all_generation + UINT64_C(1) : 0;
	return true;
}

static HOT bool take_event(struct fanout *fanout, const struct merge_event *event)
{
	struct route *route = event_route(fanout, event);

	if (__builtin_expect(route && route->quick == fanout->all_generation + UINT64_C(1), 1)) {
		fanout->decoded++;
		route->told++;
		if (__builtin_expect(!route->special && !fanout->window.count, 1)) {
			const struct event_view view = fanout_view(fanout, route, event->data, event->size, event->cpu, event->time);

			for (uint32_t i = 0; i < route->plain_count; i++)
				fanout_tell_with(fanout, route->plain[i], &view, 0, fanout->last_told == route->plain[i]->outlet);
		} else {
			fanout_tell_later(fanout, route, event->data, event->size, event->cpu, event->time);
		}
		return true;
	}
	return take_any(fanout, route, event);
}

int fanout_next(struct fanout *fanout, struct merge *merge, struct merge_event *ret)
{
	if (__builtin_expect(!fanout->waits, 1))
		return merge_next(merge, ret);
	fanout->waits = false;
	*ret = fanout->awaiting;
	return 1;
}

bool fanout_event(struct fanout *fanout, const struct merge_event *event)
{
	const bool told_all = take_event(fanout, event);

	fanout_catch_up(fanout);
	return told_all;
}

void fanout_drain(struct fanout *fanout, struct merge *merge)
{
	struct merge_event event;
	int r = fanout_next(fanout, merge, &event);

	while (r == 1 && take_event(fanout, &event))
		r = merge_next(merge, &event);
	fanout_catch_up(fanout);
}
