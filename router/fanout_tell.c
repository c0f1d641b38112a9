/* How an event is told to those whose it is: which traces take it, and its record in each one's ring. */
#include "router/fanout_parts.h"

#include "base/checked.h"
#include "router/filter.h"

#include <string.h>

/* The kernel's enum trace_flag_type. */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_NMI     0x40

/* Both records get their room at once, so that a consumer has both or none. */
void fanout_tell_stacked(struct fanout *fanout, struct trace *trace, const struct event_view *view)
{
	fanout_tell_with(fanout, trace, view, stacks_size(&fanout->stacks, trace->stacks), false);
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
void fanout_tell_detailed(struct fanout *fanout, struct trace *trace, const struct event_view *view)
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
	fanout_tell(fanout, trace, &longer);
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
		fanout_tell_detailed(fanout, trace, view);
	else
		fanout_tell(fanout, trace, view);
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
static __attribute__((noinline)) void tell_owners(
	struct fanout *fanout, struct route *route, const struct event_view *view, uint32_t owner)
{
	const struct filter_event event = filter_event_of(fanout, route, view);

	/* A line that may be forged names any process. */
	if (owner == FANOUT_NOBODY || view->flags & RECORD_SUSPECT)
		return;
	for (uint32_t i = 0; i < route->owned_count; i++) {
		struct trace *trace = route->owned[i];

		if (trace->owner != owner || (!trace->in_task && in_interrupt(route, view)))
			continue;
		if (!trace->filter || filter_match(trace->filter, &event))
			tell_one(fanout, trace, view);
	}
}

/* `later`: the event stays, and may be told with others. */
static HOT void take(struct fanout *fanout, struct trace *trace, const struct event_view *view, bool later)
{
	if (later)
		fanout_keep(fanout, trace, view);
	else
		tell_one(fanout, trace, view);
}

static HOT void tell_filtered(struct fanout *fanout, struct route *route, const struct event_view *view, bool later)
{
	const struct filter_event event = filter_event_of(fanout, route, view);
	void *const *users;
	size_t count;

	if (route->lone) {
		if (filter_match(route->lone->filter, &event))
			take(fanout, route->lone, view, later && fanout->window.count);
		return;
	}
	count = filter_index_match(route->index, &event, &users);
	for (size_t i = 0; i < count; i++)
		take(fanout, users[i], view, later);
}

static HOT void tell_special(struct fanout *fanout, struct route *route, const struct event_view *view, bool later)
{
	for (uint32_t i = 0; i < route->detailed_count; i++)
		take(fanout, route->detailed[i], view, later);
	if (route->index)
		tell_filtered(fanout, route, view, later);
}

/* Has the view in memory, which fanout_tell_later must not. */
static __attribute__((noinline)) void tell_special_later(struct fanout *fanout, struct route *route, const uint8_t *data,
	uint32_t size, uint32_t cpu, uint64_t time)
{
	const struct event_view view = fanout_view(fanout, route, data, size, cpu, time);

	tell_special(fanout, route, &view, true);
}

void fanout_tell_later(struct fanout *fanout, struct route *route, const uint8_t *data, uint32_t size, uint32_t cpu, uint64_t time)
{
	enum filter_found found = route->special ? FILTER_ASK : FILTER_NOBODY;
	void *user;

	if (route->index && !route->detailed_count)
		found = filter_index_find(route->index, data, size, &user);
	if (route->plain_count || found == FILTER_ONE) {
		const struct event_view view = fanout_view(fanout, route, data, size, cpu, time);

		for (uint32_t i = 0; i < route->plain_count; i++)
			fanout_keep(fanout, route->plain[i], &view);
		if (found == FILTER_ONE)
			fanout_keep(fanout, user, &view);
	}
	if (found == FILTER_ASK)
		tell_special_later(fanout, route, data, size, cpu, time);
	else if (time > fanout->last_time)
		fanout->last_time = time;
}

void fanout_tell_all(struct fanout *fanout, struct route *route, const struct event_view *view, uint32_t owner)
{
	if (route->changing)
		fanout_traces_settle(route, view->time, view->cpu);
	route->told++;
	for (uint32_t i = 0; i < route->plain_count; i++)
		fanout_tell(fanout, route->plain[i], view);
	if (route->special)
		tell_special(fanout, route, view, false);
	if (route->owned_count)
		tell_owners(fanout, route, view, owner);
}
