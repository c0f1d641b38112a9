#include "consumers/cli/writer.h"

#include "consumers/cli/number.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITER_SIZE     (64U << 10)
/* A line longer than this can't come from a sub-buffer, whatever its bytes are. */
#define WRITER_SIZE_MAX (64U << 20)

int writer_open_memory(struct writer *writer)
{
	char *buffer = malloc(WRITER_SIZE);

	if (!buffer)
		return -ENOMEM;
	*writer = (struct writer){ .buffer = buffer, .size = WRITER_SIZE, .fd = -1 };
	return 0;
}

int writer_open(struct writer *writer, int fd)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = writer_open_memory(writer);
	if (r < 0)
		return r;
	writer->fd = fd;
	writer->may_block = !S_ISREG(st.st_mode);
	return 0;
}

void writer_close(struct writer *writer)
{
	free(writer->buffer);
	*writer = (struct writer){ .fd = -1 };
}

/* After an error nothing is kept, but the caller's pointer must still be good for what it is about to write. */
static void writer_fail(struct writer *writer, int error)
{
	if (!writer->error)
		writer->error = error;
	writer->used = 0;
	writer->line = 0;
}

/* A file that took a part of a line is cut back to what it holds of whole ones: it is to be read. */
static void writer_cut(const struct writer *writer, size_t written)
{
	const char *newline = written > 0 ? memrchr(writer->buffer, '\n', written) : NULL;
	size_t part = written - (newline ? (size_t)(newline + 1 - writer->buffer) : 0);
	off_t end = lseek(writer->fd, 0, SEEK_CUR);
	struct stat st;

	if (part == 0 || end < (off_t)part || fstat(writer->fd, &st) < 0 || st.st_size != end)
		return;
	if (ftruncate(writer->fd, end - (off_t)part) == 0)
		(void)lseek(writer->fd, -(off_t)part, SEEK_CUR);
}

static int writer_wait(struct writer *writer)
{
	struct pollfd poll_fd = { .fd = writer->fd, .events = POLLOUT };

	if (writer->wait)
		return writer->wait(writer->wait_context, writer->fd);
	return poll(&poll_fd, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* The piece for one write: whole lines, and where writing may block no more than a pipe takes at once, so
 * that a write after a wait doesn't. A line longer than that goes in pieces. */
static size_t writer_piece(const struct writer *writer, size_t from)
{
	size_t left = writer->line - from;
	const char *newline;

	if (!writer->may_block || left <= PIPE_BUF)
		return left;
	newline = memrchr(writer->buffer + from, '\n', PIPE_BUF);
	return newline ? (size_t)(newline + 1 - (writer->buffer + from)) : PIPE_BUF;
}

int writer_flush(struct writer *writer)
{
	size_t written = 0;

	while (!writer->error && written < writer->line) {
		int r = writer->may_block ? writer_wait(writer) : 0;
		ssize_t n;

		if (r < 0) {
			writer_fail(writer, r);
			break;
		}
		n = write(writer->fd, writer->buffer + written, writer_piece(writer, written));
		if (n >= 0)
			written += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN) {
			int error = -errno;

			if (!writer->may_block)
				writer_cut(writer, written);
			writer_fail(writer, error);
		}
	}
	if (writer->error)
		return writer->error;
	memmove(writer->buffer, writer->buffer + written, writer->used - written);
	writer->used -= written;
	writer->line = 0;
	return 0;
}

void writer_make_room(struct writer *writer, size_t size)
{
	char *bigger;
	int error = writer_flush(writer);

	if (error < 0)
		writer_fail(writer, error);
	if (writer->size - writer->used >= size)
		return;
	bigger = writer->size > 0 && writer->size < WRITER_SIZE_MAX ? realloc(writer->buffer, writer->size * 2) : NULL;
	if (!bigger) {
		writer_fail(writer, -ENOMEM);
		return;
	}
	writer->buffer = bigger;
	writer->size *= 2;
}

void writer_end_line(struct writer *writer)
{
	writer_char(writer, '\n');
	writer->line = writer->used;
	if (writer->used >= WRITER_SIZE / 2)
		(void)writer_flush(writer);
}

void writer_many_bytes(struct writer *writer, const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size > 0) {
		size_t n = size < WRITER_ROOM_MAX ? size : WRITER_ROOM_MAX;
		char *p = writer_room(writer, n);

		memcpy(p, from, n);
		writer_done(writer, p + n);
		from += n;
		size -= n;
	}
}

void writer_number(struct writer *writer, const char *before, uint64_t value)
{
	writer_text(writer, before);
	writer_done(writer, number_unsigned(writer_room(writer, NUMBER_SIZE_MAX), value));
}
