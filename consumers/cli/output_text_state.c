/* Processes, and the state of the host, as text. */
#include "consumers/cli/escape.h"
#include "consumers/cli/number.h"
#include "consumers/cli/output_text.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static void text_known(struct writer *writer, const char *key, const struct tfan_text *text, bool decorated)
{
	if (!text->bytes || !text->size)
		return;
	text_key(writer, key, decorated);
	escape_text(writer, text->bytes, text->size);
}

static void text_value(struct writer *writer, const char *key, uint64_t value, bool decorated)
{
	text_key(writer, key, decorated);
	writer_number(writer, "", value);
}

static void text_hex(struct writer *writer, const char *key, uint64_t value, bool decorated)
{
	text_key(writer, key, decorated);
	writer_text(writer, "0x");
	writer_done(writer, number_hex(writer_room(writer, NUMBER_SIZE_MAX), value));
}

/* ---- processes ---- */

static void text_user(struct writer *writer, const struct tfan_process *process, bool decorated)
{
	if (process->parent >= 0)
		text_value(writer, "parent", (uint64_t)process->parent, decorated);
	if (!process->has_ids)
		return;
	text_value(writer, "uid", process->uid, decorated);
	if (!process->ids_proven)
		writer_char(writer, '?');
	if (process->euid != process->uid)
		text_value(writer, "euid", process->euid, decorated);
}

void output_text_process(struct writer *writer, const struct tfan_event *event, bool decorated)
{
	struct tfan_process process;

	if (tfan_event_process(event, &process) < 0)
		return;
	text_value(writer, "process", (uint64_t)process.pid, decorated);
	if (!process.is_proven)
		writer_char(writer, '?');
	text_user(writer, &process, decorated);
	text_known(writer, "exe", &process.exe, decorated);
	text_known(writer, "cgroup", &process.cgroup_path, decorated);
}

/* ---- state ---- */

static void text_process_state(struct writer *writer, const struct tfan_event *event, const struct tfan_state *state, bool decorated)
{
	struct tfan_process process = { .parent = -1 };

	(void)tfan_event_process(event, &process);
	text_user(writer, &process, decorated);
	text_known(writer, "exe", &process.exe, decorated);
	text_known(writer, "cgroup", &process.cgroup_path, decorated);
	text_known(writer, "folder", &state->folder, decorated);
	/* As people know it: the NULs between as blanks. */
	if (state->command.size) {
		text_key(writer, "command", decorated);
		writer_char(writer, '[');
		for (size_t at = 0; at < state->command.size;) {
			const char *word = state->command.bytes + at;
			const char *end = memchr(word, 0, state->command.size - at);
			size_t size = end ? (size_t)(end - word) : state->command.size - at;

			if (at)
				writer_char(writer, ' ');
			escape_text(writer, word, size);
			at += size + 1;
		}
		writer_char(writer, ']');
	}
}

static void text_mapping(struct writer *writer, const struct tfan_state *state, bool decorated)
{
	text_value(writer, "process", (uint64_t)state->pid, decorated);
	text_hex(writer, "from", state->from, decorated);
	text_hex(writer, "to", state->to, decorated);
	text_hex(writer, "offset", state->offset, decorated);
	text_known(writer, "path", &state->path, decorated);
	if (!state->build_id.size)
		return;
	text_key(writer, "build_id", decorated);
	for (size_t i = 0; i < state->build_id.size; i++) {
		static const char digits[] = "0123456789abcdef";

		writer_char(writer, digits[(unsigned char)state->build_id.bytes[i] >> 4]);
		writer_char(writer, digits[state->build_id.bytes[i] & 15]);
	}
}

static void text_address(struct writer *writer, const char *key, unsigned int family, const unsigned char *bytes, unsigned int port,
	bool decorated)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop((int)family, bytes, text, sizeof(text));
	text_key(writer, key, decorated);
	writer_text(writer, family == AF_INET6 ? "[" : "");
	writer_text(writer, text);
	writer_text(writer, family == AF_INET6 ? "]" : "");
	writer_number(writer, ":", port);
}

static void text_socket(struct writer *writer, const struct tfan_state *state, bool decorated)
{
	text_value(writer, "process", (uint64_t)state->pid, decorated);
	text_value(writer, "fd", (uint64_t)state->fd, decorated);
	text_value(writer, "family", state->family, decorated);
	text_value(writer, "type", state->type, decorated);
	text_value(writer, "protocol", state->protocol, decorated);
	text_value(writer, "socket_state", state->socket_state, decorated);
	if (state->family == AF_INET || state->family == AF_INET6) {
		text_address(writer, "local", state->family, state->local, state->local_port, decorated);
		text_address(writer, "remote", state->family, state->remote, state->remote_port, decorated);
	}
	text_known(writer, "path", &state->path, decorated);
}

void output_text_state(struct output *output, const struct tfan_event *event)
{
	struct writer *writer = output->writer;
	const bool decorated = output->decorated;
	struct tfan_state state;

	/* That it is all is said by what follows. */
	if (tfan_event_state(event, &state) < 0 || (state.kind == TFAN_STATE_END && !state.left_out))
		return;
	text_columns(output, event);
	switch (state.kind) {
	case TFAN_STATE_PROCESS:
		writer_text(writer, "PROCESS");
		text_process_state(writer, event, &state, decorated);
		break;
	case TFAN_STATE_THREAD:
		writer_text(writer, "THREAD");
		text_value(writer, "process", (uint64_t)state.pid, decorated);
		break;
	case TFAN_STATE_MAPPING:
		writer_text(writer, "MAPPING");
		text_mapping(writer, &state, decorated);
		break;
	case TFAN_STATE_FILE:
		writer_text(writer, "FILE");
		text_value(writer, "process", (uint64_t)state.pid, decorated);
		text_value(writer, "fd", (uint64_t)state.fd, decorated);
		text_known(writer, "path", &state.path, decorated);
		break;
	case TFAN_STATE_SOCKET:
		writer_text(writer, "SOCKET");
		text_socket(writer, &state, decorated);
		break;
	case TFAN_STATE_END:
		writer_text(writer, "STATE");
		text_value(writer, "left_out", state.left_out, decorated);
		break;
	}
	writer_end_line(writer);
}
