/* A buffered writer of whole lines. What is written goes out at writer_flush(), or by itself once enough
 * has gathered; never a part of a line, so that lines of other programs on the same pipe stay whole, too.
 *
 * Errors are kept: after the first, everything is thrown away and writer_error() tells it, so that the
 * formatting code needs no checks. */
#ifndef TRACEFAN_CLI_WRITER_H
#define TRACEFAN_CLI_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct writer {
	char *buffer;
	size_t used, size;
	size_t line; /* where the unfinished line begins */
	int fd;      /* the caller's */
	int error;   /* -errno, 0: none */
	bool may_block; /* no plain file */
	/* Called before a write that might block. Returns 0 when fd takes more, a negative errno to give up. */
	int (*wait)(void *context, int fd);
	void *wait_context;
};

/* What one call of writer_room may ask for. */
#define WRITER_ROOM_MAX 4096

int writer_open(struct writer *writer, int fd);
/* One that only gathers, in `buffer`, `used` bytes: for a text without line ends. */
int writer_open_memory(struct writer *writer);
void writer_close(struct writer *writer);
void writer_make_room(struct writer *writer, size_t size);
/* Writes out all finished lines. Returns writer_error(). */
int writer_flush(struct writer *writer);
/* Ends the line that was being written. */
void writer_end_line(struct writer *writer);

static inline int writer_error(const struct writer *writer)
{
	return writer->error;
}

/* Where at least `size` (at most WRITER_ROOM_MAX) bytes can be written; writer_done takes their end. */
static inline char *writer_room(struct writer *writer, size_t size)
{
	if (writer->size - writer->used < size)
		writer_make_room(writer, size);
	return writer->buffer + writer->used;
}

static inline void writer_done(struct writer *writer, const char *end)
{
	writer->used = (size_t)(end - writer->buffer);
}

static inline void writer_char(struct writer *writer, char c)
{
	*writer_room(writer, 1) = c;
	writer->used++;
}

void writer_many_bytes(struct writer *writer, const void *bytes, size_t size);

/* Any number of bytes. */
static inline void writer_bytes(struct writer *writer, const void *bytes, size_t size)
{
	if (writer->size - writer->used < size) {
		writer_many_bytes(writer, bytes, size);
		return;
	}
	memcpy(writer->buffer + writer->used, bytes, size);
	writer->used += size;
}

static inline void writer_text(struct writer *writer, const char *text)
{
	writer_bytes(writer, text, strlen(text));
}

/* A number behind a text. */
void writer_number(struct writer *writer, const char *before, uint64_t value);

#endif
