/* What a record of the host's state, or the process of an event, says. */
#include "consumers/client/connection.h"

#include "base/checked.h"
#include "shm/state.h"

#include <errno.h>
#include <string.h>

static struct tfan_text text_of(const char *bytes, uint32_t size)
{
	return (struct tfan_text){ .bytes = bytes, .size = size };
}

/* ---- processes ---- */

/* Behind the payload; the router can still write it, so what counts is copied and checked. */
static int process_of_event(const struct tfan_event *event, struct tfan_process *ret)
{
	/* The size that was checked when the record was taken; of one that was kept, the ring's is its stacks'. */
	const bool is_kept = (const uint8_t *)event->record == event->kept;
	const size_t size = is_kept ? event->record->size : event->tfan->ring.current_size;
	const size_t at = sizeof(*event->record) + align_up(event->payload_size, RECORD_ALIGN);
	const uint8_t *bytes = (const uint8_t *)event->record + at;
	struct record_process process;

	if (!(event->record->flags & RECORD_PROCESS) || !event->tfan->processes)
		return -ENODATA;
	if (!range_inside(at, sizeof(process), size))
		return -EBADMSG;
	memcpy(&process, bytes, sizeof(process));
	if ((uint64_t)process.exe_size + process.cgroup_size > size - at - sizeof(process))
		return -EBADMSG;
	if (!(process.flags & PROCESS_KNOWN))
		return -ENODATA;
	*ret = (struct tfan_process){
		.pid = process.pid,
		.parent = process.parent,
		.start = process.start,
		.is_proven = process.flags & PROCESS_PROVEN,
		.has_ids = process.flags & PROCESS_HAS_IDS,
		.ids_proven = process.flags & PROCESS_IDS_PROVEN,
		.is_kernel = process.flags & PROCESS_IS_KERNEL,
		.uid = process.uid,
		.euid = process.euid,
		.suid = process.suid,
		.gid = process.gid,
		.egid = process.egid,
		.cgroup = process.cgroup,
	};
	if (process.exe_size)
		ret->exe = text_of((const char *)bytes + sizeof(process), process.exe_size);
	if (process.cgroup_size)
		ret->cgroup_path = text_of((const char *)bytes + sizeof(process) + process.exe_size, process.cgroup_size);
	return 0;
}

static void take_ids(struct tfan_process *process, const struct state_ids *ids)
{
	process->uid = ids->uid;
	process->euid = ids->euid;
	process->suid = ids->suid;
	process->gid = ids->gid;
	process->egid = ids->egid;
}

static void process_of_state(const struct capture *capture, struct tfan_process *ret)
{
	const struct state_record *record = capture->record;
	const struct state_process *process = (const void *)record;
	const struct state_thread *thread = (const void *)record;

	*ret = (struct tfan_process){
		.pid = record->pid,
		.parent = -1,
		.start = record->start,
		.is_proven = record->flags & STATE_PROVEN,
		.has_ids = record->flags & STATE_IDS,
		.ids_proven = record->flags & STATE_IDS_PROVEN,
		.is_kernel = record->flags & STATE_KERNEL,
	};
	if (record->kind == STATE_THREAD) {
		take_ids(ret, &thread->ids);
		return;
	}
	take_ids(ret, &process->ids);
	ret->parent = process->parent;
	ret->cgroup = process->cgroup;
	if (record->flags & STATE_EXE)
		ret->exe = text_of(state_text(process, sizeof(*process), 0), process->exe_size);
	if (record->flags & STATE_CGROUP)
		ret->cgroup_path = text_of(state_text(process, sizeof(*process), process->exe_size), process->cgroup_size);
}

int tfan_event_process(const struct tfan_event *event, struct tfan_process *ret)
{
	const struct capture *capture = &event->tfan->capture;

	if (event->head.kind == TFAN_EVENT)
		return process_of_event(event, ret);
	if (event->head.kind != TFAN_STATE || !capture->record ||
		(capture->record->kind != STATE_PROCESS && capture->record->kind != STATE_THREAD))
		return -ENODATA;
	process_of_state(capture, ret);
	return 0;
}

/* ---- state ---- */

static void take_process(const struct capture *capture, struct tfan_state *ret)
{
	const struct state_command *command = capture->command;

	ret->kind = TFAN_STATE_PROCESS;
	if (!command)
		return;
	ret->command = text_of(state_text(command, sizeof(*command), 0), command->command_size);
	if (command->folder_size)
		ret->folder = text_of(state_text(command, sizeof(*command), command->command_size), command->folder_size);
}

static void take_mapping(const struct state_mapping *mapping, struct tfan_state *ret)
{
	ret->kind = TFAN_STATE_MAPPING;
	ret->from = mapping->from;
	ret->to = mapping->to;
	ret->offset = mapping->offset;
	ret->inode = mapping->inode;
	ret->major = mapping->major;
	ret->minor = mapping->minor;
	ret->build_id = text_of(state_text(mapping, sizeof(*mapping), 0), mapping->build_id_size);
	ret->path = text_of(state_text(mapping, sizeof(*mapping), mapping->build_id_size), mapping->path_size);
}

static void take_socket(const struct state_socket *socket, struct tfan_state *ret)
{
	ret->kind = TFAN_STATE_SOCKET;
	ret->fd = socket->fd;
	ret->family = socket->family;
	ret->type = socket->type;
	ret->protocol = socket->protocol;
	ret->socket_state = socket->state;
	ret->inode = socket->inode;
	memcpy(ret->local, socket->local.bytes, sizeof(ret->local));
	memcpy(ret->remote, socket->remote.bytes, sizeof(ret->remote));
	ret->local_port = socket->local.port;
	ret->remote_port = socket->remote.port;
	if (socket->path_size)
		ret->path = text_of(state_text(socket, sizeof(*socket), 0), socket->path_size);
}

int tfan_event_state(const struct tfan_event *event, struct tfan_state *ret)
{
	const struct capture *capture = &event->tfan->capture;
	const struct state_record *record = capture->record;
	struct tfan_state state = { .fd = -1 };

	if (event->head.kind != TFAN_STATE || !record)
		return -EINVAL;
	state.pid = record->pid;
	state.tid = record->tid;
	state.start = record->start;
	switch (record->kind) {
	case STATE_PROCESS:
		take_process(capture, &state);
		break;
	case STATE_THREAD:
		state.kind = TFAN_STATE_THREAD;
		state.thread_start = ((const struct state_thread *)(const void *)record)->thread_start;
		break;
	case STATE_MAPPING:
		take_mapping((const struct state_mapping *)(const void *)record, &state);
		break;
	case STATE_FILE: {
		const struct state_file *file = (const void *)record;

		state.kind = TFAN_STATE_FILE;
		state.fd = file->fd;
		state.path = text_of(state_text(file, sizeof(*file), 0), file->path_size);
		break;
	}
	case STATE_SOCKET:
		take_socket((const struct state_socket *)(const void *)record, &state);
		break;
	default:
		state.kind = TFAN_STATE_END;
		state.left_out = capture->left_out;
	}
	*ret = state;
	return 0;
}

int tfan_capture_state(struct tfan *tfan, unsigned int what)
{
	if (!tfan->attached || tfan->socket < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOTCONN, -1, "not connected to a session");
	if (what == 0 || what & ~STATE_WANT_ALL)
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1, "no kind of state is asked for, or an unknown one");
	if (tfan->capture.stage != CAPTURE_NONE)
		return failure_set(&tfan->failure, TFAN_BUSY, EBUSY, -1, "the last state that was asked for is still being given");
	if (tfan->comeback.state == COMEBACK_GREETED)
		return failure_set(&tfan->failure, TFAN_BUSY, EAGAIN, -1,
			"the router of session \"%s\" is being started again; try again when it is back", tfan->session_name);
	tfan->capture.what = what;
	return capture_ask(tfan);
}
