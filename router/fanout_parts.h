/* What the fan-out's files owe each other; for no others. */
#ifndef TRACEFAN_ROUTER_FANOUT_PARTS_H
#define TRACEFAN_ROUTER_FANOUT_PARTS_H

#include "router/fanout.h"

#include "base/checked.h"

#include <string.h>

/* On the way of every event: worth a copy at each place of use, so that what is known of the event stays in
 * registers. */
#define HOT inline __attribute__((always_inline))

/* ---- routes (routes.c) ---- */

void fanout_route_release(struct route *route);
/* The consumers of all events get their traces of it. */
void fanout_route_see(struct fanout *fanout, struct route *route);

/* ---- events (fanout.c) ---- */

/* The name of a thread whose name isn't known. */
extern const char fanout_nobody[RECORD_COMM_SIZE];

/* The session's own use of an event, where that comes first or where it comes after the event was told. */
void fanout_take_own(struct fanout *fanout, const struct route *route, const struct own_event *event, bool first);

/* Whose an event is, which is found out before the session's own use of it. */
#define FANOUT_NOBODY UINT32_MAX

/* The user whose the event's thread is proven to be, or FANOUT_NOBODY; looked for only where a trace asks, or may be about to
 * begin. */
static inline uint32_t fanout_owner(struct fanout *fanout, const struct route *route, int32_t pid, uint64_t time)
{
	const struct task *task = route->owned_count || route->changing ? tasks_find(&fanout->tasks, pid, time) : NULL;

	return task && tasks_owner(&fanout->tasks, task, time, task->ids.uid) ? task->ids.uid : FANOUT_NOBODY;
}

static HOT int32_t fanout_pid(const struct fanout *fanout, const struct route *route, const uint8_t *data, uint32_t size)
{
	uint32_t pid;

	if (route->pid_end > size)
		return -1;
	memcpy(&pid, data + route->pid_offset, sizeof(pid));
	return (int32_t)(__builtin_expect(fanout->foreign, 0) ? __builtin_bswap32(pid) : pid);
}

static HOT struct event_view fanout_view(
	struct fanout *fanout, const struct route *route, const uint8_t *data, uint32_t size, uint32_t cpu, uint64_t time)
{
	const int32_t pid = fanout_pid(fanout, route, data, size);
	const struct task *task = tasks_find(&fanout->tasks, pid, time);
	const bool late = time < fanout->last_time;

	if (!late)
		fanout->last_time = time;
	return (struct event_view){
		.payload = data,
		.comm = task ? task->comm : fanout_nobody,
		.time = time,
		.payload_size = size,
		.size = (uint32_t)align_up(sizeof(struct record_header) + size, RECORD_ALIGN),
		.pid = pid,
		.cpu = (uint16_t)cpu,
		.flags = (uint8_t)((late ? RECORD_LATE : 0) | (task ? RECORD_COMM : 0)),
	};
}

/* ---- telling (fanout_tell.c) ---- */

void fanout_tell_stacked(struct fanout *fanout, struct trace *trace, const struct event_view *view);
void fanout_tell_detailed(struct fanout *fanout, struct trace *trace, const struct event_view *view);
/* One of the merge's events, to the traces that take it whosoever it is, none of which wants stacks; with others' events, or
 * at once. What it points to stays until fanout_catch_up. */
void fanout_tell_later(struct fanout *fanout, struct route *route, const uint8_t *data, uint32_t size, uint32_t cpu, uint64_t time);
/* To everybody whose it is, whatever there is to do for it. `owner`: fanout_owner's. */
void fanout_tell_all(struct fanout *fanout, struct route *route, const struct event_view *view, uint32_t owner);

/* `past`: past the cache, as the record before it in the same ring was. */
static HOT void fanout_tell_with(
	struct fanout *fanout, struct trace *trace, const struct event_view *view, uint32_t more, bool past)
{
	struct outlet *outlet = trace->outlet;
	struct record_header *record = outlet_reserve(outlet, view->size + more, view->time);

	if (__builtin_expect(!outlet->dirty, 0))
		fanout_touch(fanout, outlet);
	if (__builtin_expect(!record, 0)) {
		trace->ledger.lost_ring++;
		if (!(view->flags & RECORD_LATE))
			outlet_lost_at(outlet, view->time, view->cpu);
		return;
	}
	trace->ledger.delivered++;
	if (past && !more) {
		outlet->ring.past_cache = true;
		event_record_write(record, view, trace->id, true);
	} else {
		event_record_write(record, view, trace->id, false);
	}
	fanout->last_told = outlet;
	if (!more)
		return;
	stacks_write(&fanout->stacks, trace->stacks, record, (struct record_header *)(void *)((uint8_t *)record + view->size));
	record->flags |= RECORD_STACKED;
}

static HOT void fanout_tell(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	if (__builtin_expect(trace->stacks, 0))
		fanout_tell_stacked(fanout, trace, view);
	else
		fanout_tell_with(fanout, trace, view, 0, fanout->last_told == trace->outlet);
}

/* ---- telling later (fanout_window.c) ---- */

/* The trace has taken the event. Its members are written one by one to where they stay: a copy of the whole would be loaded in
 * other pieces than those that were just stored, which processors are slow at. */
static HOT void fanout_keep(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	struct fanout_window *window = &fanout->window;
	struct fanout_later *later = &window->later[window->count++];

	later->trace = trace;
	later->payload = view->payload;
	later->comm = view->comm;
	later->time = view->time;
	later->payload_size = view->payload_size;
	later->pid = view->pid;
	later->cpu = view->cpu;
	later->flags = view->flags;
	if (__builtin_expect(window->count == FANOUT_WINDOW, 0))
		fanout_catch_up(fanout);
}

#endif
