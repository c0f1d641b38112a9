/* An ftrace text log: `cat trace`, `cat trace_pipe`, `trace-cmd report`. Handed over in pieces that
 * end with a line. */
#include "reader/replay.h"

#include "base/cleanup.h"
#include "base/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PIECE 65536

struct text_log {
	struct replay replay;
	int fd;
	uint64_t size, at;
	char piece[PIECE];
};

static int next(struct replay *replay, struct replay_item *ret)
{
	struct text_log *log = (struct text_log *)replay;
	uint64_t left = log->size - log->at;
	size_t length = left < PIECE ? (size_t)left : PIECE;
	const char *end;
	int r;

	if (!length)
		return 0;
	r = replay_read(log->fd, log->at, log->piece, length);
	if (r < 0)
		return r;
	/* A line longer than a piece is cut; the last line may lack its newline. */
	end = length == left ? NULL : memrchr(log->piece, '\n', length);
	if (end)
		length = (size_t)(end - log->piece) + 1;
	*ret = (struct replay_item){
		.entry = { .kind = POOL_DATA, .cpu = POOL_CPU_ALL, .length = (uint32_t)length },
		.fd = log->fd,
		.offset = log->at,
		.stored = (uint32_t)length,
	};
	log->at += length;
	return 1;
}

/* What stands before an event's body in its lines. System calls have code of their own in the
 * kernel: "sys_openat(dfd: ..." is of sys_enter_openat. */
static int line_mark(const char *event, char *mark, size_t room)
{
	int n;

	if (strncmp(event, "sys_enter_", 10) == 0)
		n = snprintf(mark, room, ": sys_%s(", event + 10);
	else if (strncmp(event, "sys_exit_", 9) == 0)
		n = snprintf(mark, room, ": sys_%s -> ", event + 9);
	else
		n = snprintf(mark, room, ": %s:", event);
	return n > 0 && (size_t)n < room ? 0 : -ENAMETOOLONG;
}

/* The line around `at`. */
static int copy_line(const struct text_log *log, size_t size, const char *at, char **ret, size_t *ret_size)
{
	const char *start = memrchr(log->piece, '\n', (size_t)(at - log->piece));
	const char *end = memchr(at, '\n', size - (size_t)(at - log->piece));
	size_t length;
	char *line;

	start = start ? start + 1 : log->piece;
	end = end ? end : log->piece + size;
	/* The piece is no string: nothing ends it. */
	length = (size_t)(end - start);
	line = malloc(length + 1);
	if (!line)
		return -ENOMEM;
	memcpy(line, start, length);
	line[length] = '\0';
	*ret = line;
	*ret_size = strlen(line);
	return 0;
}

static int find(const struct replay *replay, const char *event, char **ret, size_t *ret_size)
{
	/* A reading of its own, from the beginning. */
	CLEANUP_FREE struct text_log *log = malloc(sizeof(*log));
	struct replay_item item;
	char mark[CONTROL_NAME_MAX + 16];
	int r = line_mark(event, mark, sizeof(mark));

	if (r == 0 && !log)
		r = -ENOMEM;
	if (r < 0)
		return r;
	memcpy(log, replay, sizeof(*log));
	log->at = 0;
	while ((r = next(&log->replay, &item)) == 1) {
		const char *at = memmem(log->piece, item.entry.length, mark, strlen(mark));

		if (at)
			return copy_line(log, item.entry.length, at, ret, ret_size);
	}
	return r < 0 ? r : -ENOENT;
}

static void text_log_close(struct replay *replay)
{
	struct text_log *log = (struct text_log *)replay;

	(void)close_fd(log->fd);
	free(log);
}

static const struct replay_ops text_ops = { .next = next, .close = text_log_close, .find = find };

int replay_text_open(const char *path, struct replay **ret, struct tracedir_problem *ret_problem)
{
	struct text_log *log = calloc(1, sizeof(*log));
	uint32_t tag;

	if (!log)
		return replay_problem(ret_problem, EXIT_FAILED, -ENOMEM, "%s", strerror(ENOMEM));
	log->replay.ops = &text_ops;
	log->replay.source = SOURCE_TEXT;
	log->replay.slot_size = PIECE;
	log->replay.cpu_count = 1;
	log->fd = replay_open_file(path, &log->size, ret_problem);
	if (log->fd < 0) {
		int r = log->fd;

		replay_close(&log->replay);
		return r;
	}
	if (!log->size) {
		replay_close(&log->replay);
		return replay_problem(ret_problem, EXIT_FAILED, -ENODATA,
			"%.250s: empty: nothing in it is text of ftrace's (trace, trace_pipe, trace-cmd report)", path);
	}
	/* No line of the log can bear it, so none is taken for a mark of this session. */
	if (getrandom(&tag, sizeof(tag), 0) == sizeof(tag))
		(void)snprintf(log->replay.tag, sizeof(log->replay.tag), "%08x", tag);
	*ret = &log->replay;
	return 0;
}
