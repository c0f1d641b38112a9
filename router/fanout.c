#include "router/fanout.h"

#include "base/checked.h"
#include "base/log.h"
#include "router/filter.h"
#include "router/text_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>

/* ns that a stack is waited for on a CPU that has nothing else to tell. */
#define STACKS_PATIENCE 200000000U

#define TEXT_PAYLOAD_MAX (128U << 10)
#define CACHE_LINE       64

/* On the way of every event: worth a copy at each place of use, so that what is known of the event stays in
 * registers. */
#define HOT inline __attribute__((always_inline))

/* To wake a process costs tens of microseconds of its and our time, as much as hundreds of events. So many are woken
 * at once, and beyond them one in so many ns: consumers that would be woken for a few events each take more at a time. */
#define WAKE_BURST  UINT64_C(32)
#define WAKE_PERIOD UINT64_C(250000)
/* Nobody waits for longer. */
#define WAKE_WAIT   UINT64_C(16000000)

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
	if (!fanout->by_type)
		return -ENOMEM;
	if (getrandom(&fanout->seed, sizeof(fanout->seed), 0) != sizeof(fanout->seed))
		return -EIO;
	return tasks_init(&fanout->tasks);
}

static void route_release(struct route *route)
{
	if (!route)
		return;
	while (route->trace_count)
		fanout_trace_remove(route->traces[route->trace_count - 1]);
	free(route->traces);
	free(route->plain);
	free(route->owned);
	free(route->detailed);
	filter_index_release(route->index);
	free(route->schema_bytes);
	free(route->system);
	free(route->name);
	free(route->shown);
	free(route->pushed);
	free(route);
}

void fanout_release(struct fanout *fanout)
{
	for (size_t i = 0; i < fanout->route_count; i++)
		route_release(fanout->routes[i]);
	free(fanout->routes);
	free(fanout->by_type);
	tasks_release(&fanout->tasks);
	memset(fanout, 0, sizeof(*fanout));
}

static uint32_t name_hash(const char *name, size_t size)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return (hash ^ hash >> 16) & (FANOUT_NAMES - 1);
}

/* `body` is of a line of the event, where that is all that is known of it. */
static int route_schema(struct fanout *fanout, struct route *route, const struct text_piece *body)
{
	int r;

	if (!route->event)
		r = text_schema_infer(body, route->system, route->name, &route->schema_bytes, &route->schema_size);
	else if (fanout->text)
		r = text_schema_make(&route->event->schema, route->system, route->name, &route->schema_bytes,
			&route->schema_size);
	else
		r = catalog_schema_for(route->event, 0, 0, &route->schema_bytes, &route->schema_size);
	if (r == 0)
		r = schema_view(route->schema_bytes, route->schema_size, &route->schema);
	route->guarded = r == 0 && fanout->text && text_schema_is_guarded(&route->schema);
	return r;
}

static int routes_append(struct fanout *fanout, struct route *route)
{
	if (fanout->route_count == fanout->route_room) {
		size_t room = fanout->route_room ? 2 * fanout->route_room : 64;
		struct route **routes = realloc(fanout->routes, room * sizeof(struct route *));

		if (!routes)
			return -ENOMEM;
		fanout->routes = routes;
		fanout->route_room = room;
	}
	fanout->routes[fanout->route_count++] = route;
	return 0;
}

static int route_make(struct fanout *fanout, struct catalog_event *event, const struct text_piece *name,
	const struct text_piece *body, struct route **ret)
{
	struct route *route = calloc(1, sizeof(*route));
	int r = -ENOMEM;
	uint32_t hash;

	if (!route)
		return r;
	route->event = event;
	route->pid_end = UINT32_MAX;
	route->kept = LEDGER_UNKNOWN;
	if (event && event->pid_offset != UINT16_MAX) {
		route->pid_offset = event->pid_offset;
		route->pid_end = event->pid_offset + (uint32_t)sizeof(uint32_t);
	}
	route->flags_offset = UINT32_MAX;
	if (event && !fanout->text) {
		int flags = schema_find(&event->schema, "common_flags");

		if (flags >= 0 && event->schema.fields[flags].size == 1)
			route->flags_offset = event->schema.fields[flags].offset;
	}
	route->seed = fanout->seed;
	route->tasks = &fanout->tasks;
	route->system = strdup(event ? event->system : "");
	route->name = calloc(1, name->size + 1);
	if (route->name && name->size)
		memcpy(route->name, name->at, name->size);
	if (route->system && route->name)
		r = route_schema(fanout, route, body);
	if (r == 0)
		r = routes_append(fanout, route);
	if (r < 0) {
		route_release(route);
		return r;
	}
	hash = name_hash(name->at, name->size);
	route->next_name = fanout->by_name[hash];
	fanout->by_name[hash] = route;
	*ret = route;
	return 0;
}

int fanout_route(struct fanout *fanout, struct catalog_event *event, struct route **ret)
{
	struct route *route = event->user;
	int r = 0;

	if (!route) {
		const struct text_piece name = { .at = event->name, .size = strlen(event->name) };

		r = route_make(fanout, event, &name, NULL, &route);
		if (r < 0)
			return r;
		event->user = route;
	}
	fanout->by_type[event->type] = route;
	*ret = route;
	return r;
}

struct route *fanout_route_named(const struct fanout *fanout, const char *name, size_t size)
{
	struct route *route = fanout->by_name[name_hash(name, size)];

	while (route && (strncmp(route->name, name, size) != 0 || route->name[size]))
		route = route->next_name;
	return route;
}

int fanout_text_route(struct fanout *fanout, const struct text_piece *name, const struct text_piece *body,
	struct route **ret)
{
	struct route *route = fanout_route_named(fanout, name->at, name->size);
	int r;

	if (!route) {
		r = route_make(fanout, NULL, name, body, &route);
		if (r < 0)
			return r;
	}
	*ret = route;
	return 0;
}

/* A line of a log begins with the name of a thread, never with "name:", which begins every format file. */
static bool is_line(const struct fanout *fanout, const char *text, size_t size)
{
	return fanout->text && (size < 5 || memcmp(text, "name:", 5) != 0);
}

int fanout_describe(struct fanout *fanout, const char *system, const char *text, size_t size, struct route **ret,
	const char **ret_reason)
{
	struct catalog_event *event = NULL;
	char name[CONTROL_NAME_MAX];
	struct text_line line;
	int r;

	if (!is_line(fanout, text, size)) {
		r = catalog_add(fanout->catalog, system, text, size, &event, ret_reason);
		return r < 0 ? r : fanout_route(fanout, event, ret);
	}
	*ret_reason = "there is no whole line of it";
	text_line_parse(text, size, &line);
	if (line.kind != TEXT_EVENT || text_event_name(&line, name, sizeof(name)) < 0)
		return -EBADMSG;
	return fanout_text_route(fanout, &(struct text_piece){ .at = name, .size = strlen(name) }, &line.body, ret);
}

static void route_unlist(struct fanout *fanout, const struct route *route)
{
	struct route **place = &fanout->by_name[name_hash(route->name, strlen(route->name))];

	while (*place && *place != route)
		place = &(*place)->next_name;
	if (*place)
		*place = route->next_name;
	for (size_t i = 0; i < fanout->route_count; i++) {
		if (fanout->routes[i] != route)
			continue;
		fanout->routes[i] = fanout->routes[--fanout->route_count];
		break;
	}
	if (fanout->by_type[route->event->type] == route)
		fanout->by_type[route->event->type] = NULL;
}

void fanout_route_drop(struct fanout *fanout, struct route *route)
{
	if (route->gone || route->trace_count || route->own || !route->event)
		return;
	route_unlist(fanout, route);
	catalog_remove(fanout->catalog, route->event);
	route->event = NULL;
	route->gone = true;
	if (!route->holds)
		route_release(route);
}

struct route *fanout_route_hold(struct route *route)
{
	route->holds++;
	return route;
}

void fanout_route_let_go(struct route *route)
{
	if (--route->holds == 0 && route->gone)
		route_release(route);
}

void fanout_touch(struct fanout *fanout, struct outlet *outlet)
{
	if (outlet->dirty)
		return;
	outlet->dirty = true;
	outlet->next_dirty = NULL;
	*fanout->dirty_end = outlet;
	fanout->dirty_end = &outlet->next_dirty;
}

static void told(int r)
{
	if (r < 0)
		log_warning("waking a consumer: %s", strerror(-r));
}

void fanout_publish(struct fanout *fanout)
{
	for (struct outlet *outlet = fanout->dirty; outlet; outlet = outlet->next_dirty)
		told(outlet_publish(outlet));
}

/* When the next may be woken, if it is not yet. */
static uint64_t wake_turn(struct fanout *fanout, uint64_t now)
{
	const uint64_t turn = fanout->woken_until - WAKE_BURST * WAKE_PERIOD + 1;

	if (fanout->woken_until - now < WAKE_BURST * WAKE_PERIOD)
		return now;
	if (!fanout->held)
		fanout->held = now;
	return turn < fanout->held + WAKE_WAIT ? turn : fanout->held + WAKE_WAIT;
}

uint64_t fanout_wake(struct fanout *fanout, uint64_t now)
{
	int r;

	if (fanout->woken_until < now)
		fanout->woken_until = now;
	while (fanout->dirty) {
		struct outlet *outlet = fanout->dirty;
		const uint64_t turn = wake_turn(fanout, now);

		if (turn > now)
			return turn;
		fanout->dirty = outlet->next_dirty;
		if (!fanout->dirty)
			fanout->dirty_end = &fanout->dirty;
		outlet->dirty = false;
		/* What became due since the last publication: nothing may come behind it for long. */
		r = outlet_publish(outlet);
		if (r == 0)
			r = outlet_wake(outlet);
		if (r > 0)
			fanout->woken_until += WAKE_PERIOD;
		told(r);
	}
	fanout->held = 0;
	/* Those who were woken before their turn are no debt of those who come. */
	if (fanout->woken_until - now > WAKE_BURST * WAKE_PERIOD)
		fanout->woken_until = now + WAKE_BURST * WAKE_PERIOD;
	return UINT64_MAX;
}

void fanout_forget(struct fanout *fanout, struct outlet *outlet)
{
	struct outlet **place = &fanout->dirty;

	while (*place && *place != outlet)
		place = &(*place)->next_dirty;
	if (!*place)
		return;
	*place = outlet->next_dirty;
	if (!*place)
		fanout->dirty_end = place;
}

/* The kernel's enum trace_flag_type. */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_NMI     0x40

/* The name of a thread whose name isn't known. */
static const char nobody[RECORD_COMM_SIZE];

static HOT void tell_with(struct fanout *fanout, struct trace *trace, const struct event_view *view, uint32_t more)
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

/* Both records get their room at once, so that a consumer has both or none. */
static __attribute__((noinline)) void tell_stacked(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	tell_with(fanout, trace, view, stacks_size(&fanout->stacks, trace->stacks));
}

static HOT void tell(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	if (__builtin_expect(trace->stacks, 0))
		tell_stacked(fanout, trace, view);
	else
		tell_with(fanout, trace, view, 0);
}

/* What is known of the process of an event; *ret_exe and *ret_group are texts that belong behind it, or NULL. */
static struct record_process process_of(struct fanout *fanout, const struct event_view *view, const char **ret_exe,
	const char **ret_group)
{
	const struct task *task = tasks_find(&fanout->tasks, view->pid, view->time);
	const struct process *process = task ? task->process : NULL;
	struct record_process record = { .pid = -1, .parent = -1 };

	*ret_exe = *ret_group = NULL;
	if (!process)
		return record;
	record = (struct record_process){
		.flags = PROCESS_KNOWN | (tasks_is_proven(&fanout->tasks, task) ? PROCESS_PROVEN : 0) |
			(task->flags & TASK_IDS ? PROCESS_HAS_IDS : 0) |
			(tasks_ids_proven(&fanout->tasks, task, view->time) ? PROCESS_IDS_PROVEN : 0) |
			(process->flags & PROCESS_KERNEL ? PROCESS_IS_KERNEL : 0),
		.pid = process->pid,
		.parent = tasks_parent(&fanout->tasks, process),
		.uid = task->ids.uid,
		.euid = task->ids.euid,
		.suid = task->ids.suid,
		.gid = task->ids.gid,
		.egid = task->ids.egid,
		.start = process->start,
		.cgroup = process->cgroup,
		.exe_size = process->exe ? process->exe->size : 0,
		.cgroup_size = process->cgroup_path ? process->cgroup_path->size : 0,
	};
	*ret_exe = process->exe ? process->exe->bytes : NULL;
	*ret_group = process->cgroup_path ? process->cgroup_path->bytes : NULL;
	return record;
}

/* The same record with a struct record_process behind the payload. */
static void tell_detailed(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	const char *exe, *group;
	const struct record_process process = process_of(fanout, view, &exe, &group);
	struct event_view longer = *view;
	const uint32_t more = trace->stacks ? stacks_size(&fanout->stacks, trace->stacks) : 0;
	uint64_t delivered = trace->ledger.delivered;
	uint8_t *behind;

	/* What is written behind it goes through the cache. */
	fanout->last_told = NULL;
	longer.flags |= RECORD_PROCESS;
	longer.size = (uint32_t)align_up(view->size + sizeof(process) + process.exe_size + process.cgroup_size, RECORD_ALIGN);
	tell(fanout, trace, &longer);
	if (trace->ledger.delivered == delivered)
		return;
	/* Written to where the ring's next record will begin, with that of its stacks. */
	behind = trace->outlet->ring.at - more - (longer.size - view->size);
	memcpy(behind, &process, sizeof(process));
	if (exe)
		memcpy(behind + sizeof(process), exe, process.exe_size);
	if (group)
		memcpy(behind + sizeof(process) + process.exe_size, group, process.cgroup_size);
}

static void tell_one(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	if (trace->detailed)
		tell_detailed(fanout, trace, view);
	else
		tell(fanout, trace, view);
}

/* ---- telling later ---- */

/* Between two events of a ring come those of others, so no processor foresees where the next one goes, and with many rings it is
 * in no near cache. So in so many steps, so many events apart, the trace is fetched, its outlet, and the place in the ring. */
#define AHEAD_STEP 5

static struct event_view *ahead_view(struct fanout *fanout)
{
	return &fanout->ahead[fanout->ahead_end % FANOUT_AHEAD].view;
}

static void ahead_tell(struct fanout *fanout)
{
	const struct fanout_ahead *oldest = &fanout->ahead[fanout->ahead_first++ % FANOUT_AHEAD];

	tell_one(fanout, oldest->trace, &oldest->view);
}

void fanout_catch_up(struct fanout *fanout)
{
	while (fanout->ahead_first != fanout->ahead_end)
		ahead_tell(fanout);
}

/* The trace takes the event of ahead_view. */
static void put_off(struct fanout *fanout, struct trace *trace)
{
	const uint32_t last = fanout->ahead_end++, waiting = last - fanout->ahead_first;

	fanout->ahead[last % FANOUT_AHEAD].trace = trace;
	__builtin_prefetch(trace, 1);
	if (waiting >= AHEAD_STEP)
		__builtin_prefetch(fanout->ahead[(last - AHEAD_STEP) % FANOUT_AHEAD].trace->outlet, 1);
	if (waiting >= 2 * AHEAD_STEP) {
		const uint8_t *place = fanout->ahead[(last - 2 * AHEAD_STEP) % FANOUT_AHEAD].trace->outlet->ring.at;

		__builtin_prefetch(place, 1);
		__builtin_prefetch(place + CACHE_LINE, 1);
	}
	if (waiting + 1 == FANOUT_AHEAD - 1)
		ahead_tell(fanout);
}

/* What is known of the process of an event's thread, be it proven or guessed. */
static void add_process(struct fanout *fanout, const struct event_view *view, struct filter_event *event)
{
	const struct task *task = tasks_find(&fanout->tasks, view->pid, view->time);
	const struct process *process = task ? task->process : NULL;

	/* What a CPU does when there is nothing to do is in no table. */
	if (view->pid == 0)
		event->facts |= FILTER_TGID;
	if (!process)
		return;
	event->facts |= FILTER_TGID | (task->flags & TASK_IDS ? FILTER_UID | FILTER_GID : 0) | (process->exe ? FILTER_EXE : 0) |
			(process->cgroup_path ? FILTER_CGROUP : 0);
	event->tgid = process->pid;
	event->uid = task->ids.uid;
	event->gid = task->ids.gid;
	event->exe = process->exe ? process->exe->bytes : NULL;
	event->cgroup = process->cgroup_path ? process->cgroup_path->bytes : NULL;
}

static struct filter_event filter_event_of(struct fanout *fanout, const struct route *route, const struct event_view *view)
{
	struct filter_event event = {
		.payload = view->payload,
		.size = view->payload_size,
		.facts = FILTER_TID | (view->cpu != RECORD_CPU_NONE ? FILTER_CPU : 0) | (view->flags & RECORD_COMM ? FILTER_COMM : 0),
		.tid = view->pid,
		.cpu = view->cpu,
		.comm = view->comm,
	};

	if (__builtin_expect((route->facts & FILTER_PROCESS) != 0, 0))
		add_process(fanout, view, &event);
	return event;
}

/* What an interrupt does is not the business of whom it interrupts: a packet of another's, say. What can't be known
 * counts as one. */
static bool in_interrupt(const struct route *route, const struct event_view *view)
{
	const struct text_piece *flags = view->line ? &view->line->flags : NULL;
	const uint8_t *payload = view->payload;

	if (flags)
		return flags->size < 3 || memchr("hHsZz", flags->at[2], 5);
	return route->flags_offset >= view->payload_size || payload[route->flags_offset] & (FLAG_HARDIRQ | FLAG_SOFTIRQ | FLAG_NMI);
}

/* Whatever its filter says, a trace of the owner's processes sees nothing else; what isn't proven to be the owner's
 * isn't. */
static __attribute__((noinline)) void tell_owners(struct fanout *fanout, struct route *route, const struct event_view *view)
{
	const struct task *task = tasks_find(&fanout->tasks, view->pid, view->time);
	const struct filter_event event = filter_event_of(fanout, route, view);

	/* A line that may be forged names any process. */
	if (view->flags & RECORD_SUSPECT)
		return;
	for (uint32_t i = 0; i < route->owned_count; i++) {
		struct trace *trace = route->owned[i];

		if (!tasks_owner(&fanout->tasks, task, view->time, trace->owner) || (!trace->in_task && in_interrupt(route, view)))
			continue;
		if (!trace->filter || filter_match(trace->filter, &event))
			tell_one(fanout, trace, view);
	}
}

static __attribute__((noinline)) void tell_filtered(struct fanout *fanout, struct route *route, const struct event_view *view)
{
	const struct filter_event event = filter_event_of(fanout, route, view);
	void *const *users;
	size_t count;

	if (route->lone) {
		if (!filter_match(route->lone->filter, &event))
			return;
		fanout_catch_up(fanout);
		tell_one(fanout, route->lone, view);
		return;
	}
	count = filter_index_match(route->index, &event, &users);
	if (count == 1 && view == ahead_view(fanout)) {
		put_off(fanout, users[0]);
		return;
	}
	if (count)
		fanout_catch_up(fanout);
	for (size_t i = 0; i < count; i++)
		tell_one(fanout, users[i], view);
}

static __attribute__((noinline)) void tell_special(struct fanout *fanout, struct route *route, const struct event_view *view)
{
	if (route->detailed_count)
		fanout_catch_up(fanout);
	for (uint32_t i = 0; i < route->detailed_count; i++)
		tell_detailed(fanout, route->detailed[i], view);
	if (route->index)
		tell_filtered(fanout, route, view);
}

/* To the traces that take it whosoever it is, none of which wants stacks. */
static HOT void tell_plain(struct fanout *fanout, struct route *route, const struct event_view *view)
{
	route->told++;
	if (route->plain_count)
		fanout_catch_up(fanout);
	for (uint32_t i = 0; i < route->plain_count; i++)
		tell_with(fanout, route->plain[i], view, 0);
	if (route->special) {
		struct event_view *kept = ahead_view(fanout);

		/* A copy: so only this way has it in memory. Member by member, because as a whole it would be loaded in other pieces
		 * than those that were just stored. */
		*kept = (struct event_view){
			.payload = view->payload,
			.comm = view->comm,
			.time = view->time,
			.payload_size = view->payload_size,
			.size = view->size,
			.pid = view->pid,
			.cpu = view->cpu,
			.flags = view->flags,
			.line = view->line,
		};

		tell_special(fanout, route, kept);
	}
}

static void tell_all(struct fanout *fanout, struct route *route, const struct event_view *view)
{
	if (route->changing)
		fanout_traces_settle(route, view->time, view->cpu);
	route->told++;
	for (uint32_t i = 0; i < route->plain_count; i++)
		tell(fanout, route->plain[i], view);
	if (route->special)
		tell_special(fanout, route, view);
	if (route->owned_count)
		tell_owners(fanout, route, view);
}

static void see_route(struct fanout *fanout, struct route *route)
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

static HOT int32_t event_pid(const struct fanout *fanout, const struct route *route, const struct merge_event *event)
{
	uint32_t pid;

	if (route->pid_end > event->size)
		return -1;
	memcpy(&pid, event->data + route->pid_offset, sizeof(pid));
	return (int32_t)(__builtin_expect(fanout->foreign, 0) ? __builtin_bswap32(pid) : pid);
}

static HOT struct event_view view_of(struct fanout *fanout, const struct route *route, const struct merge_event *event)
{
	const int32_t pid = event_pid(fanout, route, event);
	const struct task *task = tasks_find(&fanout->tasks, pid, event->time);
	const bool late = event->time < fanout->last_time;

	if (!late)
		fanout->last_time = event->time;
	return (struct event_view){
		.payload = event->data,
		.comm = task ? task->comm : nobody,
		.time = event->time,
		.payload_size = event->size,
		.size = (uint32_t)align_up(sizeof(struct record_header) + event->size, RECORD_ALIGN),
		.pid = pid,
		.cpu = (uint16_t)event->cpu,
		.flags = (uint8_t)((late ? RECORD_LATE : 0) | (task ? RECORD_COMM : 0)),
	};
}

/* After it was told: a thread that is renamed still has its old name in the event that says so. */
static __attribute__((noinline)) void take_own(struct fanout *fanout, const struct route *route, const struct own_event *event)
{
	/* Each moves the time on to that of the next. */
	while (event->time >= fanout->snapshot_due)
		fanout->snapshot(route->own_context);
	route->own(route->own_context, event);
}

void fanout_route_use(struct route *route, void (*own)(void *context, const struct own_event *event), void *context)
{
	route->own = own;
	route->own_context = context;
	route->quick = 0;
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
		see_route(fanout, route);
	if (route->trace_count) {
		const struct event_view view = view_of(fanout, route, event);

		tell_all(fanout, route, &view);
	} else {
		route->unclaimed++;
	}
	if (route->own)
		take_own(fanout, route, &(struct own_event){
			.schema = &route->schema,
			.payload = event->data,
			.size = event->size,
			.time = event->time,
			.tid = event_pid(fanout, route, event),
		});
	route->quick = route_is_quick(fanout, route) ? fanout->all_generation + UINT64_C(1) : 0;
	return true;
}

static HOT bool take_event(struct fanout *fanout, const struct merge_event *event)
{
	struct route *route = event_route(fanout, event);

	if (__builtin_expect(route && route->quick == fanout->all_generation + UINT64_C(1), 1)) {
		const struct event_view view = view_of(fanout, route, event);

		fanout->decoded++;
		tell_plain(fanout, route, &view);
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

static struct route *text_route(struct fanout *fanout, const struct text_line *line)
{
	char call[CONTROL_NAME_MAX];
	struct text_piece name = line->name;
	struct route *route;

	/* A system call's line has another name than its format file. */
	if (name.size > 4 && memcmp(name.at, "sys_", 4) == 0 && text_event_name(line, call, sizeof(call)) == 0)
		name = (struct text_piece){ .at = call, .size = strlen(call) };
	route = fanout_route_named(fanout, name.at, name.size);
	if (!route && fanout->all_generation && fanout_text_route(fanout, &name, &line->body, &route) < 0)
		return NULL;
	return route;
}

/* The flag of a name that is known, or 0. The kernel prints <...> for a thread that it has not yet seen leaving a
 * CPU: the first events of a short program have no other name. The session's own events may know it. */
static uint8_t text_comm(struct fanout *fanout, const struct text_line *line, char comm[RECORD_COMM_SIZE])
{
	const struct task *task;

	memset(comm, 0, RECORD_COMM_SIZE);
	if (line->comm.size != 5 || memcmp(line->comm.at, "<...>", 5) != 0) {
		memcpy(comm, line->comm.at, line->comm.size < RECORD_COMM_SIZE - 1 ? line->comm.size : RECORD_COMM_SIZE - 1);
		return RECORD_COMM;
	}
	task = tasks_find(&fanout->tasks, line->pid, line->time);
	if (!task)
		return 0;
	memcpy(comm, task->comm, RECORD_COMM_SIZE);
	return RECORD_COMM;
}

static void text_tell(struct fanout *fanout, struct route *route, const struct text_joined *joined, const void *payload, size_t size, bool suspect)
{
	const struct text_line *line = &joined->line;
	char comm[RECORD_COMM_SIZE];
	struct event_view view = {
		.comm = comm,
		.payload = payload,
		.payload_size = (uint32_t)size,
		.size = (uint32_t)align_up(sizeof(struct record_header) + size, RECORD_ALIGN),
		.time = line->time,
		.pid = line->pid,
		.cpu = line->cpu == TEXT_CPU_NONE ? RECORD_CPU_NONE : (uint16_t)line->cpu,
		.line = line,
	};

	view.flags = (uint8_t)((suspect ? RECORD_SUSPECT : 0) | (joined->partial ? RECORD_PARTIAL : 0));
	view.flags |= text_comm(fanout, line, comm);
	if (line->time < fanout->last_time)
		view.flags |= RECORD_LATE;
	else
		fanout->last_time = line->time;
	tell_all(fanout, route, &view);
}

int fanout_text(struct fanout *fanout, const struct text_joined *joined)
{
	struct route *route = text_route(fanout, &joined->line);
	/* Read by 64-bit words (the bitmap of present fields). */
	uint64_t payload[TEXT_PAYLOAD_MAX / sizeof(uint64_t)];
	bool suspect = false;
	size_t size = 0;
	int r;

	if (!route) {
		fanout->decoded++;
		fanout->unrouted++;
		return TEXT_JOIN_DONE;
	}
	r = text_fields_encode(&route->schema, &joined->line.body, payload, sizeof(payload), &size, &suspect);
	if (r == -EAGAIN && !joined->last)
		return TEXT_JOIN_OPEN;
	if (r == -ENOSPC || r == -EINVAL) {
		fanout->undecodable++;
		return TEXT_JOIN_DONE;
	}
	fanout->decoded++;
	if (route->all_seen != fanout->all_generation)
		see_route(fanout, route);
	suspect = suspect || (joined->swallowed && !route->guarded) || joined->doubtful;
	text_tell(fanout, route, joined, payload, size, suspect);
	/* A name that may be forged is no better than none. */
	if (route->own && !suspect)
		take_own(fanout, route, &(struct own_event){
			.schema = &route->schema,
			.payload = payload,
			.size = size,
			.time = joined->line.time,
			.tid = joined->line.pid,
		});
	return route->guarded ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}
