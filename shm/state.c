#include "shm/state.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER_SIZE (256U << 10)

int state_writer_open(struct state_writer *writer, const char *name)
{
	*writer = (struct state_writer){ .fd = -1, .buffer = malloc(BUFFER_SIZE) };
	if (!writer->buffer)
		return -ENOMEM;
	writer->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return writer->fd < 0 ? -errno : 0;
}

void state_writer_release(struct state_writer *writer)
{
	free(writer->buffer);
	writer->buffer = NULL;
	writer->fd = close_fd(writer->fd);
}

static void flush(struct state_writer *writer)
{
	uint64_t done = 0;

	while (!writer->error && done < writer->used) {
		ssize_t n = write(writer->fd, writer->buffer + done, writer->used - done);

		if (n < 0 && errno != EINTR)
			writer->error = -errno;
		else if (n > 0)
			done += (size_t)n;
	}
	writer->written += writer->used;
	writer->used = 0;
}

static void append(struct state_writer *writer, const void *bytes, size_t size)
{
	memcpy(writer->buffer + writer->used, bytes, size);
	writer->used += size;
}

void state_writer_add(struct state_writer *writer, const struct state_piece *piece)
{
	static const uint8_t zeroes[STATE_ALIGN];
	struct state_record *record = piece->record;
	uint32_t size = piece->size;

	for (int i = 0; i < STATE_TEXTS && piece->texts[i].ret_size; i++) {
		uint32_t *length = piece->texts[i].ret_size;

		if (*length > STATE_RECORD_MAX - STATE_ALIGN - size)
			*length = STATE_RECORD_MAX - STATE_ALIGN - size;
		size += *length;
	}
	record->size = (uint32_t)align_up(size, STATE_ALIGN);
	if (writer->error)
		return;
	if (writer->written + writer->used + record->size > STATE_BLOB_MAX) {
		writer->left_out++;
		return;
	}
	if (writer->used + record->size > BUFFER_SIZE)
		flush(writer);
	append(writer, record, piece->size);
	for (int i = 0; i < STATE_TEXTS && piece->texts[i].ret_size; i++) {
		if (*piece->texts[i].ret_size)
			append(writer, piece->texts[i].bytes, *piece->texts[i].ret_size);
	}
	append(writer, zeroes, record->size - size);
}

struct state_mark state_writer_mark(const struct state_writer *writer)
{
	return (struct state_mark){ .at = writer->written + writer->used, .left_out = writer->left_out };
}

void state_writer_undo(struct state_writer *writer, const struct state_mark *mark)
{
	writer->left_out = mark->left_out;
	if (mark->at >= writer->written) {
		writer->used = mark->at - writer->written;
		return;
	}
	writer->used = 0;
	writer->written = mark->at;
	if (!writer->error && (ftruncate(writer->fd, (off_t)mark->at) < 0 || lseek(writer->fd, (off_t)mark->at, SEEK_SET) < 0))
		writer->error = -errno;
}

int state_writer_finish(struct state_writer *writer, uint64_t began, uint64_t now)
{
	struct state_end end = {
		.record = { .kind = STATE_END, .size = sizeof(end), .time = now },
		.left_out = writer->left_out,
		.began = began,
	};

	/* There is room for it even when there is none for more. */
	if (writer->used + sizeof(end) > BUFFER_SIZE)
		flush(writer);
	append(writer, &end, sizeof(end));
	flush(writer);
	if (!writer->error && fcntl(writer->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		writer->error = -errno;
	return writer->error ? writer->error : TAKE_FD(writer->fd);
}

/* ---- reading ---- */

/* The fixed size of each kind, and where its texts' sizes stand. */
static const struct {
	uint32_t size;
	uint32_t texts[STATE_TEXTS]; /* offsets, 0: none */
} kinds[] = {
	[STATE_PROCESS] = { sizeof(struct state_process),
		{ offsetof(struct state_process, exe_size), offsetof(struct state_process, cgroup_size) } },
	[STATE_THREAD] = { sizeof(struct state_thread), { 0 } },
	[STATE_COMMAND] = { sizeof(struct state_command),
		{ offsetof(struct state_command, command_size), offsetof(struct state_command, folder_size) } },
	[STATE_MAPPING] = { sizeof(struct state_mapping),
		{ offsetof(struct state_mapping, build_id_size), offsetof(struct state_mapping, path_size) } },
	[STATE_FILE] = { sizeof(struct state_file), { offsetof(struct state_file, path_size) } },
	[STATE_SOCKET] = { sizeof(struct state_socket), { offsetof(struct state_socket, path_size) } },
	[STATE_END] = { sizeof(struct state_end), { 0 } },
};

static bool known(uint16_t kind)
{
	return kind < ARRAY_SIZE(kinds) && kinds[kind].size;
}

static bool whole(const uint8_t *bytes, const struct state_record *record)
{
	uint64_t need = kinds[record->kind].size;

	if (record->size < need)
		return false;
	for (int i = 0; i < STATE_TEXTS && kinds[record->kind].texts[i]; i++) {
		uint32_t length;

		memcpy(&length, bytes + kinds[record->kind].texts[i], sizeof(length));
		need += length;
	}
	return need <= record->size;
}

int state_next(const void *bytes, size_t size, size_t *at, const struct state_record **ret)
{
	for (;;) {
		const uint8_t *here = (const uint8_t *)bytes + *at;
		struct state_record record;

		if (!range_inside(*at, sizeof(record), size))
			return -EBADMSG;
		memcpy(&record, here, sizeof(record));
		if (record.size < sizeof(record) || record.size % STATE_ALIGN || record.size > STATE_RECORD_MAX ||
			!range_inside(*at, record.size, size))
			return -EBADMSG;
		if (known(record.kind) && !whole(here, &record))
			return -EBADMSG;
		/* The end stays where it is, so that it is found again. */
		if (known(record.kind))
			*ret = (const struct state_record *)(const void *)here;
		if (record.kind == STATE_END)
			return 0;
		*at += record.size;
		if (known(record.kind))
			return 1;
	}
}
