/* The fan-out's traces: their making and going, and where each stands in the stream. */
#include "router/filter.h"
#include "router/fanout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void trace_release(struct trace *trace)
{
	filter_program_release(trace->filter);
	filter_program_release(trace->kernel_filter);
	filter_program_release(trace->next_filter);
	filter_program_release(trace->next_kernel_filter);
	free(trace);
}

static int traces_room(struct route *route)
{
	uint32_t room = route->trace_room ? 2 * route->trace_room : 4;
	struct trace **traces, **plain, **owned, **detailed;

	if (route->trace_count < route->trace_room)
		return 0;
	traces = realloc(route->traces, room * sizeof(struct trace *));
	if (!traces)
		return -ENOMEM;
	route->traces = traces;
	plain = realloc(route->plain, room * sizeof(struct trace *));
	if (!plain)
		return -ENOMEM;
	route->plain = plain;
	owned = realloc(route->owned, room * sizeof(struct trace *));
	if (!owned)
		return -ENOMEM;
	route->owned = owned;
	detailed = realloc(route->detailed, room * sizeof(struct trace *));
	if (!detailed)
		return -ENOMEM;
	route->detailed = detailed;
	route->trace_room = room;
	return 0;
}

/* Ids are times: those of traces that were made in a row lie near each other. */
static struct trace **list_of(struct outlet *outlet, uint64_t id)
{
	return &outlet->traces[(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) % OUTLET_LISTS];
}

static void outlet_list(struct trace *trace)
{
	struct trace **list = list_of(trace->outlet, trace->id);

	trace->next_of_outlet = *list;
	*list = trace;
}

static void outlet_unlist(const struct trace *trace)
{
	struct trace **place = list_of(trace->outlet, trace->id);

	while (*place != trace)
		place = &(*place)->next_of_outlet;
	*place = trace->next_of_outlet;
}

int fanout_trace_add(struct route *route, const struct trace *model, struct trace **ret)
{
	struct trace *trace;

	if (traces_room(route) < 0)
		return -ENOMEM;
	trace = aligned_alloc(_Alignof(struct trace), sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	*trace = *model;
	trace->route = route;
	trace->stage = TRACE_OFF;
	trace->missed_before = route->missed;
	route->traces[route->trace_count++] = trace;
	route->stacks |= trace->stacks;
	route->preemptible = trace->in_task;
	outlet_list(trace);
	*ret = trace;
	return 0;
}

static void list_remove(struct trace **list, uint32_t *count, const struct trace *trace)
{
	for (uint32_t i = 0; i < *count; i++) {
		if (list[i] != trace)
			continue;
		memmove(&list[i], &list[i + 1], (*count - i - 1) * sizeof(struct trace *));
		(*count)--;
		return;
	}
}

static bool changing(const struct trace *trace)
{
	return trace->stage == TRACE_WAITING || trace->stage == TRACE_CLOSING;
}

static bool taking(const struct trace *trace)
{
	return trace->stage == TRACE_LIVE || trace->stage == TRACE_CLOSING;
}

/* Whose ids are asked for has them read again whenever they are in doubt. */
static void note_facts(struct route *route)
{
	static const uint32_t ids = FILTER_UID | FILTER_GID;
	uint32_t facts = route->index ? filter_index_facts(route->index) : 0;
	bool asked = route->facts & ids, asks;

	for (uint32_t i = 0; i < route->owned_count; i++)
		facts |= route->owned[i]->filter ? filter_program_facts(route->owned[i]->filter) : 0;
	asks = facts & ids;
	route->facts = facts;
	if (asks && !asked)
		tasks_ask(route->tasks);
	if (asked && !asks)
		route->tasks->asks--;
}

/* The lone filtered trace is asked directly; with more of them the index is. */
static void find_lone(struct route *route)
{
	note_facts(route);
	route->lone = NULL;
	if (!route->index || filter_index_count(route->index) != 1)
		return;
	for (uint32_t i = 0; i < route->trace_count; i++) {
		if (route->traces[i]->indexed)
			route->lone = route->traces[i];
	}
}

static void find_special(struct route *route)
{
	route->special = route->index || route->detailed_count;
}

/* Where the events of a route find the trace. */
static int enlist(struct trace *trace)
{
	struct route *route = trace->route;
	int r = 0;

	if (trace->own) {
		route->owned[route->owned_count++] = trace;
		note_facts(route);
		return 0;
	}
	if (!trace->filter) {
		if (trace->detailed)
			route->detailed[route->detailed_count++] = trace;
		else
			route->plain[route->plain_count++] = trace;
		find_special(route);
		return 0;
	}
	if (!route->index)
		r = filter_index_create(route->seed, &route->index);
	if (r == 0)
		r = filter_index_set(route->index, trace, trace->filter);
	if (r == 0)
		trace->indexed = true;
	find_lone(route);
	find_special(route);
	return r;
}

/* How often expressions gave up while the index had the trace. */
static uint64_t limited_in_index(const struct trace *trace)
{
	return trace->indexed ? filter_index_limited(trace->route->index, trace) : 0;
}

static void delist(struct trace *trace)
{
	struct route *route = trace->route;

	trace->ledger.gave_up += limited_in_index(trace);

	if (trace->own)
		list_remove(route->owned, &route->owned_count, trace);
	else if (trace->indexed)
		(void)filter_index_remove(route->index, trace);
	else if (trace->detailed)
		list_remove(route->detailed, &route->detailed_count, trace);
	else
		list_remove(route->plain, &route->plain_count, trace);
	trace->indexed = false;
	if (route->index && !filter_index_count(route->index)) {
		filter_index_release(route->index);
		route->index = NULL;
	}
	find_lone(route);
	find_special(route);
}

static void set_stage(struct trace *trace, enum trace_stage stage)
{
	trace->route->quick = 0;
	trace->route->changing -= changing(trace);
	trace->stage = stage;
	trace->route->changing += changing(trace);
}

static void trace_end(struct trace *trace)
{
	if (taking(trace)) {
		trace->ledger.decoded += trace->route->told - trace->live_from;
		delist(trace);
	}
	set_stage(trace, TRACE_OFF);
	trace->reopens = false;
}

/* Stopped, and the stream has not come to where that was. */
static bool has_tail(const struct trace *trace)
{
	return trace->stage == TRACE_CLOSING || (trace->stage == TRACE_WAITING && trace->until < UINT64_MAX);
}

int fanout_trace_start(struct trace *trace, uint64_t since, uint32_t cpu)
{
	int r;

	if (has_tail(trace) && since > trace->until) {
		/* Who is that quick again and again has what lies between the last two as well. */
		if (!trace->reopens) {
			trace->next_since = since;
			trace->next_cpu = cpu;
		}
		trace->reopens = true;
		trace->next_until = UINT64_MAX;
		return 0;
	}
	trace->until = UINT64_MAX;
	trace_end(trace);
	/* Listed now, where a failure can still be told, and taken out again until its time comes. */
	r = enlist(trace);
	if (r < 0)
		return r;
	trace->since = since;
	trace->since_cpu = cpu;
	trace->live_from = trace->route->told;
	if (since == 0) {
		set_stage(trace, TRACE_LIVE);
		return 0;
	}
	delist(trace);
	set_stage(trace, TRACE_WAITING);
	return 0;
}

void fanout_trace_stop(struct trace *trace, uint64_t until)
{
	if (trace->reopens) {
		trace->next_until = until;
		return;
	}
	trace->until = until;
	if (trace->stage == TRACE_LIVE)
		set_stage(trace, TRACE_CLOSING);
}

static bool reached(const struct trace *trace, uint64_t time, uint32_t cpu)
{
	return time > trace->since || (time == trace->since && cpu >= trace->since_cpu);
}

/* Returns whether it came to another stage. */
static bool step(struct trace *trace, uint64_t time, uint32_t cpu)
{
	const bool reopens = trace->reopens;

	if (trace->stage == TRACE_WAITING && reached(trace, time, cpu) && enlist(trace) == 0) {
		trace->live_from = trace->route->told;
		set_stage(trace, trace->until < UINT64_MAX ? TRACE_CLOSING : TRACE_LIVE);
		return true;
	}
	if (trace->stage != TRACE_CLOSING || time <= trace->until)
		return false;
	trace_end(trace);
	if (reopens) {
		trace->since = trace->next_since;
		trace->since_cpu = trace->next_cpu;
		trace->until = trace->next_until;
		set_stage(trace, TRACE_WAITING);
	}
	return true;
}

void fanout_traces_settle(struct route *route, uint64_t time, uint32_t cpu)
{
	for (uint32_t i = 0; i < route->trace_count; i++) {
		while (step(route->traces[i], time, cpu))
			;
	}
}

void fanout_trace_remove(struct trace *trace)
{
	struct route *route = trace->route;

	trace_end(trace);
	outlet_unlist(trace);
	list_remove(route->traces, &route->trace_count, trace);
	route->stacks = 0;
	for (uint32_t i = 0; i < route->trace_count; i++)
		route->stacks |= route->traces[i]->stacks;
	trace_release(trace);
}

int fanout_trace_filter(struct trace *trace, struct filter_program *filter, struct filter_program *kernel_filter)
{
	struct filter_program *old = trace->filter;
	bool listed = taking(trace);
	int r = 0;

	if (listed)
		delist(trace);
	trace->filter = filter;
	if (listed)
		r = enlist(trace);
	if (r < 0) {
		/* The old one was listed a moment ago; when even that fails, nothing is filtered out. */
		trace->filter = old;
		if (enlist(trace) < 0)
			trace->route->plain[trace->route->plain_count++] = trace;
		find_special(trace->route);
		return r;
	}
	if (old)
		trace->ledger.gave_up += filter_program_limited(old);
	filter_program_release(old);
	filter_program_release(trace->kernel_filter);
	trace->kernel_filter = kernel_filter;
	return 0;
}

struct ledger_trace fanout_trace_ledger(const struct trace *trace)
{
	struct ledger_trace ledger = trace->ledger;

	if (taking(trace))
		ledger.decoded += trace->route->told - trace->live_from;
	ledger.gave_up += limited_in_index(trace);
	if (trace->filter)
		ledger.gave_up += filter_program_limited(trace->filter);
	ledger.missed = trace->route->missed - trace->missed_before;
	ledger.kept_away = trace->route->kept;
	ledger.filtered = ledger.decoded - ledger.delivered - ledger.lost_ring;
	return ledger;
}

void fanout_event_gone(struct outlet *outlet, uint64_t trace_id)
{
	struct trace *trace = *list_of(outlet, trace_id);

	while (trace && trace->id != trace_id)
		trace = trace->next_of_outlet;
	/* The account of a trace that was closed is closed. */
	if (!trace)
		return;
	trace->ledger.delivered--;
	trace->ledger.lost_ring++;
}

void fanout_columns(struct outlet *outlet)
{
	struct ring_columns *columns = ring_writer_columns_begin(&outlet->ring);
	uint64_t count = 0;

	for (unsigned int i = 0; i < OUTLET_LISTS; i++) {
		for (const struct trace *trace = outlet->traces[i]; trace && count < RING_COLUMNS; trace = trace->next_of_outlet) {
			const uint64_t taken = taking(trace) ? trace->route->told - trace->live_from : 0;

			columns->rows[count++] = (struct ring_column){
				.trace_id = trace->id,
				.filtered = trace->ledger.decoded + taken - trace->ledger.delivered - trace->ledger.lost_ring,
				.lost_ring = trace->ledger.lost_ring,
			};
		}
	}
	columns->count = count;
	ring_writer_columns_end(&outlet->ring, columns);
	outlet->lost_more = false;
}

struct trace *fanout_trace_find(const struct fanout *fanout, uint64_t id)
{
	for (size_t i = 0; i < fanout->route_count; i++) {
		const struct route *route = fanout->routes[i];

		for (uint32_t k = 0; k < route->trace_count; k++) {
			if (route->traces[k]->id == id)
				return route->traces[k];
		}
	}
	return NULL;
}
