#include "router/own_events.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "router/router.h"

#include <string.h>

#define FORMAT_MAX (1U << 20)

/* ---- fields ---- */

static bool number(const struct own_event *event, const char *name, uint64_t *ret)
{
	int i = schema_find(event->schema, name);

	return i >= 0 && schema_read_integer(event->schema, &event->schema->fields[i], event->payload, event->size, ret) == 0;
}

static bool text(const struct own_event *event, const char *name, const char **ret, size_t *ret_size)
{
	int i = schema_find(event->schema, name);
	const uint8_t *bytes;

	if (i < 0 || schema_read_bytes(event->schema, &event->schema->fields[i], event->payload, event->size, &bytes, ret_size) < 0)
		return false;
	*ret = (const char *)bytes;
	return true;
}

static void told(int r, int32_t tid)
{
	if (r < 0)
		log_error("what thread %d is: %s", tid, strerror(-r));
}

/* ---- the events ---- */

static void on_newtask(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	struct task_fork fork = { .time = event->time, .creator = event->tid };
	uint64_t tid;

	if (!number(event, "pid", &tid) || !number(event, "clone_flags", &fork.flags) ||
		!text(event, "comm", &fork.comm, &fork.comm_size))
		return;
	fork.tid = (int32_t)tid;
	told(tasks_fork(tasks, &fork), fork.tid);
}

static void on_rename(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	const char *comm;
	uint64_t tid;
	size_t size;

	if (number(event, "pid", &tid) && text(event, "newcomm", &comm, &size))
		tasks_rename(tasks, event->time, (int32_t)tid, comm, size);
}

static void on_exec(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	uint64_t tid, old_tid;
	const char *file;
	size_t size;

	if (number(event, "pid", &tid) && number(event, "old_pid", &old_tid) && text(event, "filename", &file, &size))
		told(tasks_exec(tasks, event->time, (int32_t)tid, (int32_t)old_tid, file, size), (int32_t)tid);
}

static void on_end(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	uint64_t tid, last;
	bool tells = number(event, "group_dead", &last);

	if (number(event, "pid", &tid))
		tasks_exit(tasks, event->time, (int32_t)tid, tells ? last != 0 : -1);
}

static void on_moved(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	uint64_t tid, hierarchy, group;
	const char *path;
	size_t size;

	/* Hierarchy 0 is the unified one. */
	if (number(event, "pid", &tid) && number(event, "dst_root", &hierarchy) && hierarchy == 0 &&
		number(event, "dst_id", &group) && text(event, "dst_path", &path, &size))
		tasks_moved(tasks, event->time, (int32_t)tid, group, path, size);
}

/* A system call that changes users or groups has returned. */
static void on_ids(void *context, const struct own_event *event)
{
	struct tasks *tasks = &((struct router *)context)->fanout.tasks;
	uint64_t result;

	if (!number(event, "ret", &result) || result == 0)
		tasks_ids_changed(tasks, event->time, event->tid);
}

/* A thread that is renamed still has its old name in the event that says so. In that of a program's execution the kernel has
 * given it the new name, ids and program (`first`). */
static const struct {
	const char *system, *event;
	void (*own)(void *context, const struct own_event *event);
	bool first;
} rows[] = {
	{ "task", "task_newtask", on_newtask },
	{ "task", "task_rename", on_rename },
	{ "sched", "sched_process_exec", on_exec, true },
	{ "sched", "sched_process_exit", on_end },
	{ "cgroup", "cgroup_attach_task", on_moved },
	{ "syscalls", "sys_exit_setuid", on_ids },
	{ "syscalls", "sys_exit_setreuid", on_ids },
	{ "syscalls", "sys_exit_setresuid", on_ids },
	{ "syscalls", "sys_exit_setgid", on_ids },
	{ "syscalls", "sys_exit_setregid", on_ids },
	{ "syscalls", "sys_exit_setresgid", on_ids },
};

/* ---- the start ---- */

static int take_format(struct router *router, size_t row, const struct control_probe_created *created, int fd)
{
	struct route *route = NULL;
	CLEANUP_FREE void *format = NULL;
	const char *reason = NULL;
	size_t size = 0;
	int r = segment_blob_read(fd, FORMAT_MAX, &format, &size);

	if (r == 0)
		r = fanout_describe(&router->fanout, created->system, format, size, &route, &reason);
	if (r < 0 || !route)
		return r;
	fanout_route_use(route, rows[row].first, rows[row].own, router);
	route->own_probe = router_recorded(router) ? 0 : created->probe_id;
	recorder_format(&router->recorder, created->probe_id, PROBE_TRACEPOINT, created->system, created->event, "", format,
		size);
	return 0;
}

static int enable(struct router *router, uint64_t probe_id)
{
	struct control_set_enabled enable = { .id = probe_id, .enabled = 1 };
	struct control_message reply;
	int r;

	control_header_init(&enable.header, CONTROL_PROBE_ENABLE, sizeof(enable), ++router->upstream.next_cookie);
	r = control_call(router->upstream.fd, &enable, NULL, 0, &reply);
	if (r == 0)
		control_message_release(&reply);
	return r;
}

/* *ret_probe: 0 where there is no such event. */
static int define(struct router *router, size_t row, uint64_t *ret_probe)
{
	struct control_create create = { .kind = PROBE_TRACEPOINT };
	struct control_message reply;
	const struct control_probe_created *created = (const struct control_probe_created *)reply.bytes;
	int r;

	*ret_probe = 0;
	(void)control_text(create.system, sizeof(create.system), rows[row].system);
	(void)control_text(create.event, sizeof(create.event), rows[row].event);
	control_header_init(&create.header, CONTROL_PROBE_CREATE, sizeof(create), ++router->upstream.next_cookie);
	r = control_call(router->upstream.fd, &create, NULL, 0, &reply);
	if (r < 0)
		return r;
	if (created->status || reply.fd_count != 1) {
		log_debug("%s:%s: %s", rows[row].system, rows[row].event, created->failure.message);
	} else {
		r = take_format(router, row, created, reply.fds[0]);
		*ret_probe = created->probe_id;
	}
	control_message_release(&reply);
	return r;
}

static int start_one(struct router *router, size_t row)
{
	uint64_t probe_id;
	int r = define(router, row, &probe_id);

	return r == 0 && probe_id && !router_recorded(router) ? enable(router, probe_id) : r;
}

int own_events_start(struct router *router)
{
	int r = tasks_set(&router->fanout.tasks, 0, "<idle>", sizeof("<idle>"), false);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		r = start_one(router, i);
	return r;
}
