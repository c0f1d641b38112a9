/* Whole events out of the lines of ftrace's text. Pure but for memory.
 *
 * The kernel escapes nothing: a newline in a string that a traced program chose, or in a thread's name, ends
 * the line like any other, and what follows may have been made to look like an event. Joined is
 * - a line without a shape of its own to the event above;
 * - the head of a thread's name that holds newlines to the line with its end: the name's column is sixteen
 *   wide, so that the two must add up;
 * - any line, whatever it looks like, to an event of which the emitter says that its text ends inside a
 *   string (TEXT_JOIN_OPEN), up to TEXT_EVENT_MAX. If the string never ends, the lines are passed on after
 *   all, as doubtful.
 *
 * What can't be known: an event that says all of its print format in its first line and has a string whose
 * end nothing guards (a file's name in sched_process_exec) may be followed by one that is part of that
 * string. A program that knows its own pid, CPU and time can forge such a line without a flaw, in the name
 * of an event that anyone knows. It can't for the probes of a session, whose names it doesn't know, nor from
 * within their strings, which end with a canary (TEXT_CANARY in shm/schema.h). The kernel's count
 * of committed events then is less than the events read. A marker that holds a NUL prints without a newline,
 * so that the next event is taken for more of its text. A marker longer than the kernel's limit comes in
 * pieces, which only their length shows: all but the last are partial. */
#ifndef TRACEFAN_ROUTER_TEXT_JOIN_H
#define TRACEFAN_ROUTER_TEXT_JOIN_H

#include "router/text.h"

#include <stdbool.h>
#include <stddef.h>

/* The kernel writes one event into a buffer of two pages. */
#define TEXT_EVENT_MAX 8192U

/* A line that is no event, or a whole event. */
struct text_joined {
	struct text_line line; /* good during the call only; an event's `whole` and `body` hold its newlines */
	bool swallowed;        /* lines with the shape of events, losses or others are taken for part of it */
	bool doubtful;         /* it lies so close behind an event with newlines that it may be part of one's string */
	bool partial;          /* its text is cut, or more follows in the next event */
	bool last;             /* no more lines can be added: TEXT_JOIN_OPEN is taken for TEXT_JOIN_DONE */
};

enum text_join_verdict {
	TEXT_JOIN_DONE = 0,
	/* The event's text ends inside a string. It will come again with one more line, or as `last`; nothing
	 * may have been done with it. */
	TEXT_JOIN_OPEN = 1,
	/* Done, and nothing that follows can have been part of it: its strings have canaries, or are too short
	 * to hold a line. */
	TEXT_JOIN_SURE = 2,
};

/* Takes one line or event. Returns a verdict, or a negative number, which ends the feeding with it. */
typedef int (*text_join_emit)(void *context, const struct text_joined *joined);

struct text_buffer {
	char *at;
	size_t size, room;
};

/* Members are private to text_join.c. */
struct text_join {
	struct text_split split;
	struct text_buffer held;  /* the text of `event`, which waits for what may belong to it */
	struct text_buffer spare; /* swallowed lines on their way back */
	struct text_buffer named; /* a line whose name was put together */
	struct text_line event;
	size_t own_size;    /* of held: up to the first swallowed line */
	size_t filled_size; /* of held: up to the last line that isn't empty */
	bool has_event, swallowed, doubtful, cut, multiple, returning;
	char fragment[16]; /* lines that may be the head of a thread's name, each with its newline */
	size_t fragment_size;
	size_t doubt; /* so many bytes from here on may be forged */
	text_join_emit emit;
	void *context;
};

void text_join_init(struct text_join *join);
void text_join_release(struct text_join *join);

/* Feeds `size` bytes. The last event stays behind until the next one shows its end, or text_join_flush.
 * Returns 0, -ENOMEM or the emitter's negative value. */
int text_join_feed(struct text_join *join, const char *bytes, size_t size, text_join_emit emit, void *context);

/* Passes on what waits, because nothing follows for now: the pipe was found empty. An unfinished line goes
 * on waiting. */
int text_join_flush(struct text_join *join, text_join_emit emit, void *context);

/* How many events are in hand while an unfinished line waits: what would be told if the text ended here. The kernel
 * counts an event as read that it has printed whole, and may hand the end of its line out with the next read. */
uint32_t text_join_held(const struct text_join *join);

/* Passes on all, because nothing will follow. */
int text_join_end(struct text_join *join, text_join_emit emit, void *context);

#endif
