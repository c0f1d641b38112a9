/* Processes, and the state of the host, in JSON. */
#include "consumers/cli/number.h"
#include "consumers/cli/output_json.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static void json_signed(struct writer *writer, const char *key, int64_t value)
{
	writer_text(writer, key);
	writer_done(writer, number_signed(writer_room(writer, NUMBER_SIZE_MAX), value));
}

static void json_known(struct writer *writer, const char *key, const struct tfan_text *text)
{
	writer_text(writer, key);
	if (text->bytes)
		json_string(writer, text->bytes, text->size);
	else
		writer_text(writer, "null");
}

static void json_bool(struct writer *writer, const char *key, bool value)
{
	writer_text(writer, key);
	writer_text(writer, value ? "true" : "false");
}

/* ---- processes ---- */

static void json_ids(struct writer *writer, const struct tfan_process *process)
{
	if (!process->has_ids) {
		writer_text(writer, ",\"uid\":null,\"gid\":null");
		return;
	}
	writer_number(writer, ",\"uid\":", process->uid);
	writer_number(writer, ",\"gid\":", process->gid);
	/* Of most processes they are the same. */
	if (process->euid != process->uid || process->suid != process->uid) {
		writer_number(writer, ",\"euid\":", process->euid);
		writer_number(writer, ",\"suid\":", process->suid);
	}
	if (process->egid != process->gid)
		writer_number(writer, ",\"egid\":", process->egid);
	json_bool(writer, ",\"ids_proven\":", process->ids_proven);
}

static void json_parent(struct writer *writer, const struct tfan_process *process)
{
	if (process->parent < 0)
		writer_text(writer, ",\"parent\":null");
	else
		json_signed(writer, ",\"parent\":", process->parent);
	writer_number(writer, ",\"start\":", process->start);
}

static void json_program(struct writer *writer, const struct tfan_process *process)
{
	json_known(writer, ",\"exe\":", &process->exe);
	json_known(writer, ",\"cgroup\":", &process->cgroup_path);
	writer_number(writer, ",\"cgroup_id\":", process->cgroup);
	if (process->is_kernel)
		writer_text(writer, ",\"kernel\":true");
}

void output_json_process(struct writer *writer, const struct tfan_event *event)
{
	struct tfan_process process;

	if (tfan_event_process(event, &process) < 0) {
		writer_text(writer, ",\"process\":null");
		return;
	}
	json_signed(writer, ",\"process\":{\"pid\":", process.pid);
	json_bool(writer, ",\"proven\":", process.is_proven);
	json_parent(writer, &process);
	json_ids(writer, &process);
	json_program(writer, &process);
	writer_char(writer, '}');
}

/* ---- state ---- */

/* ["a","b"]: each argument ends with a NUL, the last one of a changed command line need not. */
static void json_arguments(struct writer *writer, const struct tfan_text *command)
{
	const char *at = command->bytes, *end = command->bytes + command->size;

	writer_text(writer, ",\"command\":");
	if (!command->bytes) {
		writer_text(writer, "null");
		return;
	}
	writer_char(writer, '[');
	while (at < end) {
		const char *stop = memchr(at, 0, (size_t)(end - at));
		size_t size = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (at != command->bytes)
			writer_char(writer, ',');
		json_string(writer, at, size);
		at += size + 1;
	}
	writer_char(writer, ']');
}

static void json_process_state(struct writer *writer, const struct tfan_event *event, const struct tfan_state *state)
{
	struct tfan_process process = { .parent = -1 };

	(void)tfan_event_process(event, &process);
	json_parent(writer, &process);
	json_ids(writer, &process);
	json_program(writer, &process);
	json_arguments(writer, &state->command);
	json_known(writer, ",\"folder\":", &state->folder);
	json_bool(writer, ",\"proven\":", process.is_proven);
}

static void json_thread_state(struct writer *writer, const struct tfan_event *event, const struct tfan_state *state)
{
	struct tfan_process process = { .parent = -1 };

	(void)tfan_event_process(event, &process);
	json_signed(writer, ",\"process\":", state->pid);
	writer_number(writer, ",\"start\":", state->thread_start);
	json_ids(writer, &process);
	json_bool(writer, ",\"proven\":", process.is_proven);
}

static void json_mapping(struct writer *writer, const struct tfan_state *state)
{
	static const char digits[] = "0123456789abcdef";

	writer_number(writer, ",\"from\":", state->from);
	writer_number(writer, ",\"to\":", state->to);
	writer_number(writer, ",\"offset\":", state->offset);
	json_known(writer, ",\"path\":", &state->path);
	writer_number(writer, ",\"inode\":", state->inode);
	writer_text(writer, ",\"build_id\":");
	if (!state->build_id.size) {
		writer_text(writer, "null");
		return;
	}
	writer_char(writer, '"');
	for (size_t i = 0; i < state->build_id.size; i++) {
		writer_char(writer, digits[(unsigned char)state->build_id.bytes[i] >> 4]);
		writer_char(writer, digits[state->build_id.bytes[i] & 15]);
	}
	writer_char(writer, '"');
}

static const char *family_name(unsigned int family)
{
	switch (family) {
	case AF_INET:
		return "inet";
	case AF_INET6:
		return "inet6";
	case AF_UNIX:
		return "unix";
	default:
		return NULL;
	}
}

static void json_address(struct writer *writer, const char *key, unsigned int family, const unsigned char *bytes, unsigned int port)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop((int)family, bytes, text, sizeof(text));
	writer_text(writer, key);
	writer_text(writer, "{\"address\":");
	json_string(writer, text, strlen(text));
	writer_number(writer, ",\"port\":", port);
	writer_char(writer, '}');
}

static void json_socket(struct writer *writer, const struct tfan_state *state)
{
	const char *family = family_name(state->family);
	struct tfan_text name = { .bytes = family, .size = family ? strlen(family) : 0 };

	json_signed(writer, ",\"fd\":", state->fd);
	json_known(writer, ",\"family\":", &name);
	writer_number(writer, ",\"type\":", state->type);
	writer_number(writer, ",\"protocol\":", state->protocol);
	writer_number(writer, ",\"socket_state\":", state->socket_state);
	writer_number(writer, ",\"inode\":", state->inode);
	if (state->family == AF_INET || state->family == AF_INET6) {
		json_address(writer, ",\"local\":", state->family, state->local, state->local_port);
		json_address(writer, ",\"remote\":", state->family, state->remote, state->remote_port);
	}
	if (state->family == AF_UNIX)
		json_known(writer, ",\"path\":", &state->path);
}

void output_json_state(struct output *output, const struct tfan_event *event)
{
	static const char *const names[] = {
		[TFAN_STATE_PROCESS] = "process",
		[TFAN_STATE_THREAD] = "thread",
		[TFAN_STATE_MAPPING] = "mapping",
		[TFAN_STATE_FILE] = "file",
		[TFAN_STATE_SOCKET] = "socket",
		[TFAN_STATE_END] = "end",
	};
	struct writer *writer = output->writer;
	struct tfan_state state;

	if (tfan_event_state(event, &state) < 0)
		return;
	json_columns(output, "state", event);
	writer_text(writer, ",\"state\":\"");
	writer_text(writer, names[state.kind]);
	writer_char(writer, '"');
	if (state.kind == TFAN_STATE_PROCESS || state.kind == TFAN_STATE_THREAD)
		json_task(writer, event);
	else if (state.kind != TFAN_STATE_END)
		json_signed(writer, ",\"pid\":", state.pid);
	switch (state.kind) {
	case TFAN_STATE_PROCESS:
		json_process_state(writer, event, &state);
		break;
	case TFAN_STATE_THREAD:
		json_thread_state(writer, event, &state);
		break;
	case TFAN_STATE_MAPPING:
		json_mapping(writer, &state);
		break;
	case TFAN_STATE_FILE:
		json_signed(writer, ",\"fd\":", state.fd);
		json_known(writer, ",\"path\":", &state.path);
		break;
	case TFAN_STATE_SOCKET:
		json_socket(writer, &state);
		break;
	case TFAN_STATE_END:
		writer_number(writer, ",\"left_out\":", state.left_out);
		break;
	}
	writer_char(writer, '}');
	writer_end_line(writer);
}
