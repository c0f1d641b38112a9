/* The parser of ftrace's text (trace_pipe, trace, logs). Pure: bytes in, lines out; no system calls, no
 * logging.
 *
 * Two steps. text_split cuts a stream of bytes, which arrives in pieces of any size, into logical lines;
 * text_line_parse takes one line apart by its shape. What an event's body holds is read by
 * router/text_fields.h with the event's schema. */
#ifndef TRACEFAN_ROUTER_TEXT_H
#define TRACEFAN_ROUTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_kind {
	TEXT_EVENT = 1,    /* a prefix and a body; `name` may be empty (function tracer, bpf_trace_printk of 4.x, ...) */
	TEXT_LOST,         /* CPU:n [LOST m EVENTS] or, count unknown, CPU:n [LOST EVENTS] */
	TEXT_STACK,        /* " => symbol": belongs to the event above */
	TEXT_COMMENT,      /* '#' lines, headers, "##### CPU 2 buffer started ####" */
	TEXT_CONTINUATION, /* no prefix: more of the event above, whose text held a newline */
	TEXT_EMPTY,
};

#define TEXT_COUNT_UNKNOWN UINT64_MAX
#define TEXT_CPU_NONE      UINT32_MAX

struct text_piece {
	const char *at;
	size_t size;
};

struct text_line {
	enum text_kind kind;
	struct text_piece whole; /* the line without its newline */
	/* TEXT_EVENT */
	struct text_piece comm;  /* as printed; "<...>" when the kernel did not know it */
	int32_t pid, tgid;       /* tgid -1: not printed or unknown */
	uint32_t cpu;            /* also TEXT_LOST */
	struct text_piece flags; /* irq-info characters, may be empty */
	uint64_t time;           /* ns; microseconds are times 1000 */
	bool time_is_ns;         /* nine digits were printed */
	struct text_piece name;  /* the event's name, without its colon */
	struct text_piece body;  /* what follows ": " */
	/* TEXT_LOST */
	uint64_t lost;           /* or TEXT_COUNT_UNKNOWN */
};

/* Takes one line (no newline in it, or ones that belong to the event's text) apart. Never fails: what has
 * no known shape is TEXT_CONTINUATION. */
void text_line_parse(const char *line, size_t size, struct text_line *ret);

/* A stream of text cut into lines: keeps an unfinished last line until its rest comes. */
struct text_split {
	char *held;
	size_t held_size, held_room;
};
void text_split_init(struct text_split *split);
void text_split_release(struct text_split *split);

/* Feeds `size` bytes and calls `line` for each whole line in order (without the newline; valid during the
 * call only). A callback that returns non-zero ends the feeding with that value. A line longer than
 * TEXT_LINE_MAX is cut there and passed on in pieces. Returns 0, -ENOMEM or the callback's value. */
#define TEXT_LINE_MAX (64U << 10)
int text_split_feed(struct text_split *split, const char *bytes, size_t size,
	int (*line)(void *context, const char *line, size_t size), void *context);
/* Passes on what is left without a newline. */
int text_split_end(struct text_split *split, int (*line)(void *context, const char *line, size_t size),
	void *context);

#endif
