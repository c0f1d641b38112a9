/* What the fan-out's files owe each other; for no others. */
#ifndef TRACEFAN_ROUTER_FANOUT_PARTS_H
#define TRACEFAN_ROUTER_FANOUT_PARTS_H

#include "router/fanout.h"

/* On the way of every event: worth a copy at each place of use, so that what is known of the event stays in
 * registers. */
#define HOT inline __attribute__((always_inline))

/* ---- routes (routes.c) ---- */

void fanout_route_release(struct route *route);
/* The consumers of all events get their traces of it. */
void fanout_route_see(struct fanout *fanout, struct route *route);

/* ---- events (fanout.c) ---- */

/* The session's own use of an event, after it was told: a thread that is renamed still has its old name in the event that says
 * so. */
void fanout_take_own(struct fanout *fanout, const struct route *route, const struct own_event *event);

/* ---- telling (fanout_tell.c) ---- */

void fanout_tell_stacked(struct fanout *fanout, struct trace *trace, const struct event_view *view);
/* To the traces that are neither plain nor their owners'. */
void fanout_tell_special(struct fanout *fanout, struct route *route, const struct event_view *view);
/* To everybody whose it is, whatever there is to do for it. */
void fanout_tell_all(struct fanout *fanout, struct route *route, const struct event_view *view);

/* Where the view of an event that may be told later is made. */
static inline struct event_view *fanout_ahead_view(struct fanout *fanout)
{
	return &fanout->ahead[fanout->ahead_end % FANOUT_AHEAD].view;
}

static HOT void fanout_tell_with(struct fanout *fanout, struct trace *trace, const struct event_view *view, uint32_t more)
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
	if (fanout->last_told == outlet && !more) {
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
		fanout_tell_with(fanout, trace, view, 0);
}

#endif
