/* The line that defines a probe in tracefs, built from checked parts. Pure. */
#ifndef TRACEFAN_READER_PROBE_LINE_H
#define TRACEFAN_READER_PROBE_LINE_H

#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel takes in one write: it reads commands into a page. */
#define PROBE_LINE_MAX 4096

#define PROBE_LINE_FETCH_ARGS_MAX 128 /* as in the kernel */

/* What the reader added between the user's arguments: a canary behind a string. */
struct probe_line_addition {
	uint16_t at, size; /* in the text, with the blank before it */
};

struct probe_line {
	char text[PROBE_LINE_MAX];
	size_t bare; /* length without the fetch arguments */
	uint32_t addition_count;
	struct probe_line_addition additions[PROBE_LINE_FETCH_ARGS_MAX];
};

/* Which part of a definition can't be used. */
enum probe_line_part {
	PROBE_LINE_FINE,
	PROBE_LINE_LOCATION,
	PROBE_LINE_FETCH,
};

struct probe_line_error {
	enum probe_line_part part;
	int position; /* in the fetch arguments, joined by blanks; -1 where there is none */
	const char *message;
};

/* Builds the line. `target` is the descriptor of the file of a uprobe, as /proc/self/fd names it.
 * With `tag`, which the traced program can't know, each string is followed by a canary that is
 * named after it (TEXT_CANARY in shm/schema.h); NULL: none. Returns 0, or -EINVAL with *ret_error
 * filled in. */
int probe_line_build(const struct control_create *create, const char *group, const char *event,
	int target, const char *tag, struct probe_line *ret, struct probe_line_error *ret_error);

/* Where a column of the line lies in the user's fetch arguments, joined by blanks; what lies in an
 * addition counts as the end of the argument before it. -1: before the arguments. */
int probe_line_position(const struct probe_line *line, int column);

/* What the kernel said of a command, out of the text of an error_log: the last entry for exactly
 * this command. */
struct probe_line_words {
	char message[200];
	int column; /* of the wrong byte in the command, -1 where it doesn't say */
};
bool probe_line_words(const char *log, const char *command, struct probe_line_words *ret);

/* True for the kinds that are uprobes: they need a file. */
static inline bool probe_kind_in_file(uint32_t kind)
{
	return kind == PROBE_UPROBE || kind == PROBE_URETPROBE || kind == PROBE_USDT;
}

#endif
