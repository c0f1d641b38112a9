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
	TEXT_COMMENT,      /* '#' lines, headers, "##### CPU 2 buffer started ####", trace-cmd's "cpus=8" */
	TEXT_CONTINUATION, /* no prefix: more of the event above, whose text held a newline */
	TEXT_EMPTY,
	TEXT_GRAPH,        /* a function graph tracer's line, " 3)   0.081 us    |  foo();": `cpu` and `body` only */
	TEXT_TOO_BIG,      /* "[LINE TOO BIG]": an event was taken out of the ring that the kernel has no room to print */
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
	uint32_t cpu;            /* also TEXT_LOST, TEXT_GRAPH */
	struct text_piece flags; /* irq-info characters, may be empty */
	uint64_t time;           /* ns; microseconds are times 1000; with a clock that counts, its number */
	bool time_is_ns;         /* nine digits were printed, or the clock counts */
	struct text_piece name;  /* the event's name, without its colon; of a system call "sys_openat" */
	struct text_piece body;  /* what follows the name's ": "; of a system call, and where there is no name, all */
	/* TEXT_LOST */
	uint64_t lost;           /* or TEXT_COUNT_UNKNOWN */
};

/* Takes one line (no newline in it, or ones that belong to the event's text or the thread's name) apart.
 * Never fails: what has no known shape is TEXT_CONTINUATION.
 *
 * The prefix is the first one that is whole, with at least six digits of time: no thread's name has room
 * for such a one, while the event's text may well hold one. Leading blanks of a name are lost: the kernel
 * fills names up with blanks. */
void text_line_parse(const char *line, size_t size, struct text_line *ret);

/* The event's name as its format file has it, NUL-ended: "sys_openat(" is of sys_enter_openat, "sys_openat ->"
 * of sys_exit_openat, any other name is itself. Returns 0 or -ENAMETOOLONG. */
int text_event_name(const struct text_line *line, char *name, size_t room);

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
