/* libtracefan: attach to a tracefan session and read your own events.
 *
 * Functions return 0 (or a count) on success and a negative errno on failure; tfan_failure() then tells
 * more. `ret_` arguments are written only on success. A struct tfan and all that hangs on it belong to
 * one thread at a time. Times are in nanoseconds of CLOCK_MONOTONIC unless said otherwise. The library
 * never logs, never exits, changes no signal's disposition and starts no thread. */
#ifndef TRACEFAN_H
#define TRACEFAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfan;       /* a connection to a session */
struct tfan_trace; /* one probe as this connection sees it */
struct tfan_event; /* one event, lost record, ..., in place in the ring */

/* ---- connection ---- */

enum tfan_overflow {
	TFAN_DROP = 0,      /* ring full: the newest events are lost */
	TFAN_OVERWRITE = 1, /* ring full: the oldest events are lost */
};

struct tfan_options {
	size_t size;             /* sizeof(struct tfan_options): set by TFAN_OPTIONS */
	const char *session;     /* name of the session; NULL: "default" */
	const char *directory;   /* of the sessions' sockets; NULL: /run/tracefan */
	const char *program;     /* shown in status; NULL: the process's own name */
	size_t ring_size;        /* bytes, rounded up to a power of two; 0: 4 MiB */
	enum tfan_overflow overflow;
	bool include_self;       /* trace this process, too */
	bool all_events;         /* recordings: every event, without tfan_trace_create */
	bool force;              /* place probes that are known to endanger their program: return probes in Go's */
	void (*logger)(void *context, int level, const char *text); /* level: enum tfan_level; NULL: none */
	void *logger_context;
};
#define TFAN_OPTIONS { .size = sizeof(struct tfan_options) }

/* What the logger is told: nothing that fails a call, which tfan_failure tells. */
enum tfan_level { TFAN_NOTE_WARNING = 1, TFAN_NOTE_NOTE = 2 };

/* Why the last call on this connection failed. The numbers are the exit statuses of the tracefan command. */
enum tfan_class {
	TFAN_FAILED = 1, TFAN_USAGE = 2, TFAN_NOT_PERMITTED = 3, TFAN_MISSING = 4, TFAN_LOCATION = 5,
	TFAN_FETCH_ARG = 6, TFAN_BUSY = 7,
};
struct tfan_failure {
	enum tfan_class category;
	int error;           /* errno, 0 where none fits */
	int position;        /* byte in the text that was wrong, -1: none */
	const char *message; /* names the thing and the mend; valid until the next call on the connection */
};

/* Connects and attaches. On failure *ret is still a connection that holds the failure, or NULL when there
 * is no memory; close it in both cases. */
int tfan_open(const struct tfan_options *options, struct tfan **ret);
/* Detaches, releases every trace, event and mapping; takes NULL. */
void tfan_close(struct tfan *tfan);
const struct tfan_failure *tfan_failure(const struct tfan *tfan);

/* The session that this is a connection to; lives as long as the connection. */
struct tfan_session {
	const char *name;
	size_t ring_size;  /* the effective one */
	bool is_recorded;  /* the events come from a recording, log or page dump */
	bool is_text;      /* the events are read from the kernel's text: see tfan_event_suspect */
	bool is_fallback;  /* the start-up proof of io_uring failed: poll and read instead */
};
const struct tfan_session *tfan_session(const struct tfan *tfan);

/* The events that this user may attach to: a line "SYSTEM:EVENT" each. Valid until the next tfan_list or
 * tfan_close. */
int tfan_list(struct tfan *tfan, const char **ret);

/* ---- traces ---- */

/* Creates a trace from the command line's own notation:
 *   [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [if FILTER]
 * It starts disabled. Errors: TFAN_USAGE (the notation, with position), TFAN_LOCATION, TFAN_FETCH_ARG,
 * TFAN_NOT_PERMITTED, TFAN_MISSING. *ret belongs to the connection; tfan_trace_close gives it back early. */
int tfan_trace_create(struct tfan *tfan, const char *probe, struct tfan_trace **ret);
int tfan_trace_set_enabled(struct tfan_trace *trace, bool enabled);
/* Replaces the trace's filter; on failure the old one stays. */
int tfan_trace_set_filter(struct tfan_trace *trace, const char *filter);
void tfan_trace_close(struct tfan_trace *trace);

uint64_t tfan_trace_id(const struct tfan_trace *trace);
const char *tfan_trace_name(const struct tfan_trace *trace);
/* What the kernel calls the event. */
const char *tfan_trace_system(const struct tfan_trace *trace);
const char *tfan_trace_event(const struct tfan_trace *trace);
/* The connection's traces in the order of their making; NULL past the last. */
struct tfan_trace *tfan_trace_at(const struct tfan *tfan, size_t i);

struct tfan_ledger {
	uint64_t decoded, delivered, filtered, lost_ring, missed;
};
/* Asks the router: decoded = delivered + filtered + lost_ring. */
int tfan_trace_ledger(struct tfan_trace *trace, struct tfan_ledger *ret);

struct tfan_session_ledger {
	uint64_t committed, decoded, undecodable, lost_kernel, dropped;
};
/* committed = decoded + undecodable + lost_kernel. After the end of the session: its last ledger. */
int tfan_session_ledger(struct tfan *tfan, struct tfan_session_ledger *ret);

/* ---- fields ---- */

enum tfan_type { TFAN_INTEGER = 1, TFAN_STRING = 2, TFAN_BYTES = 3 };
enum tfan_display { TFAN_DECIMAL = 0, TFAN_HEX = 1, TFAN_OCTAL = 2, TFAN_CHAR = 3, TFAN_BOOL = 4, TFAN_BITMASK = 5 };

struct tfan_field {
	const char *name, *type; /* `type`: the kernel's own C type */
	enum tfan_type kind;
	enum tfan_display display;
	unsigned int size;         /* bytes of an integer, or of an element */
	bool is_signed, is_common; /* is_common: one of the kernel's common_ fields */
	bool is_pointer;
};
size_t tfan_field_count(const struct tfan_trace *trace);
int tfan_field_at(const struct tfan_trace *trace, size_t i, struct tfan_field *ret);
/* Index of a field by name, or -ENOENT. */
int tfan_field_find(const struct tfan_trace *trace, const char *name);

/* ---- events ---- */

enum tfan_kind {
	TFAN_EVENT = 1, TFAN_LOST = 2, TFAN_STATE = 3, TFAN_GAP = 4, TFAN_END = 5, TFAN_FLUSHED = 6,
};

/* The next record, valid until the next call of tfan_next or tfan_close. Returns 1, 0 (none now), or a
 * negative errno (-ECONNRESET: the router is gone; -ESHUTDOWN: TFAN_END has been returned before;
 * -EBADMSG: the ring is damaged). What is already in the ring is delivered first. */
int tfan_next(struct tfan *tfan, const struct tfan_event **ret);
/* Waits at most `milliseconds` (-1: for ever) until tfan_next may have something, be it an error. Returns 1,
 * 0 (time is up) or a negative errno (-EINTR: a signal came). */
int tfan_wait(struct tfan *tfan, int milliseconds);
/* A descriptor that is readable when tfan_next may have something, for the caller's own poll loop. Call
 * tfan_next until it returns 0 before each wait. Stays the library's. */
int tfan_fd(struct tfan *tfan);
/* Asks for everything that was committed before now; a TFAN_FLUSHED record marks the place. */
int tfan_flush(struct tfan *tfan);

enum tfan_kind tfan_event_kind(const struct tfan_event *event);
struct tfan_trace *tfan_event_trace(const struct tfan_event *event); /* NULL for other kinds than events */
uint64_t tfan_event_time(const struct tfan_event *event);
/* Wall time by the session's clock model, ns since the epoch. */
uint64_t tfan_event_wall(const struct tfan_event *event);
int tfan_event_cpu(const struct tfan_event *event); /* -1: none */
int tfan_event_pid(const struct tfan_event *event);
const char *tfan_event_comm(const struct tfan_event *event); /* "" when it isn't known */
bool tfan_event_late(const struct tfan_event *event);    /* delivered after a later event */
bool tfan_event_suspect(const struct tfan_event *event); /* text source: may hold forged parts */
bool tfan_event_partial(const struct tfan_event *event); /* text source: the kernel cut the line */

/* Fields by index. -ENODATA: this event does not have it (text source); -EBADMSG: outside the event. */
int tfan_event_u64(const struct tfan_event *event, size_t field, uint64_t *ret);
int tfan_event_i64(const struct tfan_event *event, size_t field, int64_t *ret);
/* In place, not NUL-terminated. */
int tfan_event_bytes(const struct tfan_event *event, size_t field, const void **ret, size_t *ret_size);
/* Element i of an array of integers; -ERANGE past its end. */
int tfan_event_element(const struct tfan_event *event, size_t field, size_t i, uint64_t *ret);

/* TFAN_LOST_KERNEL: the kernel counts by CPU, so the lost events may or may not have been this trace's. */
enum tfan_lost_source { TFAN_LOST_KERNEL = 1, TFAN_LOST_RING = 2, TFAN_LOST_UNDECODABLE = 3, TFAN_LOST_READER = 4 };
struct tfan_lost {
	enum tfan_lost_source source;
	int cpu;             /* -1: no one CPU */
	bool counted;        /* false: at least `count` */
	uint64_t count;
	uint64_t from, to;   /* ns */
};
int tfan_event_lost(const struct tfan_event *event, struct tfan_lost *ret); /* TFAN_LOST, TFAN_GAP */

enum tfan_end_reason { TFAN_END_STOPPED = 1, TFAN_END_FINISHED = 2, TFAN_END_ERROR = 3, TFAN_END_REFUSED = 4 };
int tfan_event_end(const struct tfan_event *event, enum tfan_end_reason *ret, const char **ret_message);

#ifdef __cplusplus
}
#endif
#endif
