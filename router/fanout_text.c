/* The fan-out's events of a text session. */
#include "router/fanout_parts.h"

#include "base/checked.h"
#include "router/text_fields.h"

#include <errno.h>
#include <string.h>

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

/* `own`: the same event, with its payload. */
static void text_tell(
	struct fanout *fanout, struct route *route, const struct text_joined *joined, const struct own_event *own, bool suspect)
{
	const uint32_t owner = fanout_owner(fanout, route, own->tid, own->time);
	const struct text_line *line = &joined->line;
	char comm[RECORD_COMM_SIZE];
	struct event_view view = {
		.comm = comm,
		.payload = own->payload,
		.payload_size = (uint32_t)own->size,
		.size = (uint32_t)align_up(sizeof(struct record_header) + own->size, RECORD_ALIGN),
		.time = line->time,
		.pid = line->pid,
		.cpu = line->cpu == TEXT_CPU_NONE ? RECORD_CPU_NONE : (uint16_t)line->cpu,
		.line = line,
	};

	/* A name that may be forged is no better than none. */
	if (!suspect)
		fanout_take_own(fanout, route, own, true);
	view.flags = (uint8_t)((suspect ? RECORD_SUSPECT : 0) | (joined->partial ? RECORD_PARTIAL : 0));
	view.flags |= text_comm(fanout, line, comm);
	if (line->time < fanout->last_time)
		view.flags |= RECORD_LATE;
	else
		fanout->last_time = line->time;
	fanout_tell_all(fanout, route, &view, owner);
	if (!suspect)
		fanout_take_own(fanout, route, own, false);
}

int fanout_text(struct fanout *fanout, const struct text_joined *joined)
{
	struct route *route = text_route(fanout, &joined->line);
	uint64_t *const payload = fanout->text_payload;
	bool suspect = false;
	size_t size = 0;
	int r;

	if (!route) {
		fanout->decoded++;
		fanout->unrouted++;
		return TEXT_JOIN_DONE;
	}
	r = text_fields_encode(&route->schema, &joined->line.body, payload, FANOUT_TEXT_MAX, &size, &suspect);
	if (r == -EAGAIN && !joined->last)
		return TEXT_JOIN_OPEN;
	if (r == -ENOSPC || r == -EINVAL) {
		fanout->undecodable++;
		return TEXT_JOIN_DONE;
	}
	fanout->decoded++;
	if (route->all_seen != fanout->all_generation)
		fanout_route_see(fanout, route);
	suspect = suspect || (joined->swallowed && !route->guarded) || joined->doubtful;
	text_tell(fanout, route, joined, &(struct own_event){
		.schema = &route->schema,
		.payload = payload,
		.size = size,
		.time = joined->line.time,
		.tid = joined->line.pid,
	}, suspect);
	return route->guarded ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}
