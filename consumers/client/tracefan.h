/* libtracefan: attach to a tracefan session and read your own events.
 *
 * Functions return 0 (or a count) on success and a negative errno on failure; tfan_failure() then tells
 * more. `ret_` arguments are written only on success. A struct tfan and all that hangs on it belong to
 * one thread at a time. Times are in nanoseconds of the machine's CLOCK_MONOTONIC (in a time namespace
 * the process has another one) unless said otherwise. The library never logs, never exits, changes no
 * signal's disposition and starts no thread. */
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
	/* There is no path of tracefs here: only the session's reader opens it. */
	const char *session;     /* name of the session; NULL: "default" */
	const char *directory;   /* of the sessions' sockets; NULL: /run/tracefan */
	const char *program;     /* shown in status; NULL: the process's own name */
	size_t ring_size;        /* bytes, rounded up to a power of two; 0: 4 MiB */
	enum tfan_overflow overflow;
	unsigned int interval;   /* ms: once events have been read, the descriptor stays quiet for so long, so that
				  * a steady stream costs a wake-up per interval and no more; the ring must hold
				  * what comes meanwhile. 0: it tells of each at once */
	bool include_self;       /* trace this process, too. Else the threads that it has at tfan_open are kept out, and one
				  * that is made later need not be */
	bool all_events;         /* recordings: every event, without tfan_trace_create */
	bool no_return;          /* when the session's router dies, that is the end: -ECONNRESET. Else the connection
				  * waits for the next router, comes back to its place, and is told by TFAN_GAP how
				  * much was lost */
	bool await_state;        /* traces give no event before tfan_capture_state: theirs begin where the state is of */
	bool processes;          /* events tell of their process: tfan_event_process. Costs some 100 bytes in each */
	bool force;              /* place probes that are known to endanger their program: return probes in Go's, or at
				  * another place than a function's begin; probes inside an instruction */
	unsigned int patience;   /* ms: a request that is not answered while the session was not heard of for so long either
				  * fails as TFAN_BUSY, and the connection is over. A session whose reader waits for the
				  * kernel is heard of each second. 0: it waits for as long as it takes */
	bool only_look;          /* takes no events and has no ring: for tfan_consumers and tfan_list, and no other request */
	/* Waits in the library's place until `fd` is readable, so that the caller can look at other things meanwhile. Returns 1,
	 * 0 once `milliseconds` (-1: for ever) are over, or a negative errno: the call fails with it, and the connection is
	 * over. `readerless` as in tfan_is_readerless. It must not use the connection. NULL: the library waits by itself. */
	int (*wait)(void *context, int fd, int milliseconds, bool readerless);
	void *wait_context;
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

/* Whether the session's reader is dead. Nothing comes then, and requests wait, until it is started again, or the router gives
 * up and ends the session; but the traces' ledgers and tfan_consumers are answered. The logger is told when it begins. */
bool tfan_is_readerless(const struct tfan *tfan);

/* Whether a session runs: 1, 0 or -errno. Takes no right to attach to it. NULL names the usual directory and session. A
 * session stays until it is stopped, an error ends it or the machine restarts, and its consumers are told which. */
int tfan_is_running(const char *directory, const char *session);

/* The session that this is a connection to; lives as long as the connection. */
struct tfan_session {
	const char *name;
	size_t ring_size;  /* the effective one */
	bool is_recorded;  /* the events come from a recording, log or page dump */
	bool is_text;      /* the events are read from the kernel's text: see tfan_event_suspect */
	bool is_fallback;  /* the start-up proof of io_uring failed: poll and read instead */
};
const struct tfan_session *tfan_session(const struct tfan *tfan);

/* The events that this user may attach to: a line "SYSTEM:EVENT" each, behind a blank what a policy says of it. Valid until the next tfan_list or
 * tfan_close. */
int tfan_list(struct tfan *tfan, const char **ret);

/* ---- traces ---- */

/* Creates a trace from the command line's own notation:
 *   [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [stack] [ustack] [if FILTER]
 * It starts disabled. Errors: TFAN_USAGE (the notation, with position), TFAN_LOCATION, TFAN_FETCH_ARG,
 * TFAN_NOT_PERMITTED, TFAN_MISSING. *ret belongs to the connection; tfan_trace_close gives it back early. */
int tfan_trace_create(struct tfan *tfan, const char *probe, struct tfan_trace **ret);
/* All places of the trace are switched or, on failure, none. */
int tfan_trace_set_enabled(struct tfan_trace *trace, bool enabled);
/* Replaces the trace's filter; on failure the old one stays. Of a trace that is enabled a TFAN_FILTER record marks
 * the place where the new one took over. */
int tfan_trace_set_filter(struct tfan_trace *trace, const char *filter);
/* One more condition on every trace that the connection has by now, beside its own; it replaces the last such one, and
 * NULL takes it away. A field that only some of the events have makes comparisons false for the others; one that none
 * has is an error. All traces get it, or on failure none. */
int tfan_set_filter(struct tfan *tfan, const char *filter);
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
	uint64_t gave_up; /* matches of regular expressions that took too many steps, which counts as no match */
	uint64_t kept_away; /* see below */
	bool kept_known;
};
/* Asks the router: decoded = delivered + filtered + lost_ring. Of the probe itself, for all consumers together, come
 * `missed`, returns that found the kernel without room, and `kept_away`, hits that it did not record: by all
 * consumers' filters nobody wanted them, or their strings were longer than its page for them. The latter is the
 * least that it can be, exact once the probe rests, and known of probes whose hits the kernel counts (not of
 * tracepoints and uretprobes), and of which no event can have been lost, nor come to an earlier router. */
int tfan_trace_ledger(struct tfan_trace *trace, struct tfan_ledger *ret);

/* Who does what of a trace's filter. The texts are valid until the next call on the connection. */
struct tfan_explanation {
	const char *kernel; /* the filter as the kernel can have it; "0": not at all */
	bool exact;         /* the kernel alone does all of it */
	const char *router; /* the whole filter, simplified, as the router evaluates it; "": there is none */
	const char *pushed; /* in the probe's `filter` file now, for all consumers together; "0": none; "": not shown, since other
			     * users' filters are in it and this one isn't root */
};
int tfan_trace_explain(struct tfan_trace *trace, struct tfan_explanation *ret);

struct tfan_session_ledger {
	uint64_t committed, decoded, undecodable, lost_kernel, dropped;
	uint64_t kept_away;   /* of kept_probes together, see tfan_trace_ledger */
	size_t kept_probes;   /* of the probes that anybody has, those of which it is known */
	size_t unkept_probes; /* those of which it isn't */
	int recording_error;  /* -errno: why the router's recording of the session goes on no more; 0: none does, or it does */
	bool unrecorded_known;
	uint64_t unrecorded;  /* of `decoded`, those that are not in it */
	bool cleared;         /* somebody else cleared the kernel's buffers and with them its counts: committed, lost_kernel and dropped are
			       * so much at least */
};
/* committed = decoded + undecodable + lost_kernel. After the end of the session: its last ledger, without what was
 * kept away. TFAN_MISSING: the session's reader is dead, so the kernel's counts can't be had. */
int tfan_session_ledger(struct tfan *tfan, struct tfan_session_ledger *ret);

/* Who else is attached: root is told of every consumer, others of their own user's. */
struct tfan_consumer_trace {
	uint64_t id;
	const char *name;
	bool enabled;
	struct tfan_ledger ledger; /* since its router runs; of one moment */
};
struct tfan_consumer {
	uint64_t number;     /* the router's */
	unsigned int uid;
	int pid;             /* of who connected; 0: in no namespace that the router sees */
	const char *program; /* by its own word */
	size_t ring_size, ring_used; /* bytes */
	enum tfan_overflow overflow;
	bool is_self;        /* this very connection */
	const struct tfan_consumer_trace *traces;
	size_t trace_count;
};
/* All is valid until the next tfan_consumers or tfan_close. It is asked for in pages: who comes or goes meanwhile may be
 * missing. *ret_readerless, which may be NULL: the session's reader is dead, and events come no more until another one is
 * started. That does not keep this from being answered. */
int tfan_consumers(struct tfan *tfan, const struct tfan_consumer **ret, size_t *ret_count, bool *ret_readerless);

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
	TFAN_FILTER = 7, /* a trace's new filter took over: what came before is by the old one, what follows by the new */
	TFAN_THROTTLED = 8, /* a trace brought more events than the policy allows: it is disabled from here on, until it is
			     * enabled again (tfan_trace_set_enabled) */
};

/* The next record, valid until the next call of tfan_next or tfan_close. Returns 1, 0 (none now), or a
 * negative errno (-ECONNRESET: the session is gone; -ESHUTDOWN: TFAN_END has been returned before;
 * -EBADMSG: the ring is damaged). What is already in the ring is delivered first. While a router that died has
 * no successor yet, there is none now, and every request fails as TFAN_BUSY. */
int tfan_next(struct tfan *tfan, const struct tfan_event **ret);
/* Waits at most `milliseconds` (-1: for ever) until tfan_next may have something, be it an error. Returns 1,
 * 0 (time is up) or a negative errno (-EINTR: a signal came). */
int tfan_wait(struct tfan *tfan, int milliseconds);
/* A descriptor that is readable when tfan_next may have something, for the caller's own poll loop. Call
 * tfan_next until it returns 0 before each wait. Stays the library's. */
int tfan_fd(struct tfan *tfan);
/* Asks for everything that was committed before now; a TFAN_FLUSHED record marks the place. */
int tfan_flush(struct tfan *tfan);

/* Asks for the present state of the host's processes, as much of it as policy lets this user see (root: all; others: their
 * own): TFAN_STATE records, which tfan_next returns before any event that it has not returned yet. Until they have come,
 * tfan_next has nothing to return. The processes and threads are those at one place in the stream: what began later is
 * told by its events. Mappings, files and sockets are read right after that place.
 *
 * With the option await_state the events of all traces that are enabled by then begin at that very place, so that nothing
 * lies between the state and the first event, and nothing is told twice. -EBUSY: the last state is still being given;
 * what else fails is told by tfan_next. Recordings have none (TFAN_MISSING). */
enum tfan_state_what {
	TFAN_WANT_PROCESSES = 1 << 0, TFAN_WANT_MAPPINGS = 1 << 1, TFAN_WANT_FILES = 1 << 2, TFAN_WANT_SOCKETS = 1 << 3,
};
int tfan_capture_state(struct tfan *tfan, unsigned int what);

/* What every record has, and each tfan_event begins with: for who wants several of these, and no call for each. */
struct tfan_head {
	uint64_t time;            /* tfan_event_time */
	struct tfan_trace *trace; /* tfan_event_trace */
	int32_t pid;              /* tfan_event_pid */
	int32_t cpu;              /* tfan_event_cpu */
	enum tfan_kind kind;      /* tfan_event_kind */
};

/* Valid as long as the event. */
static inline const struct tfan_head *tfan_event_head(const struct tfan_event *event)
{
	return (const struct tfan_head *)event;
}

enum tfan_kind tfan_event_kind(const struct tfan_event *event);
struct tfan_trace *tfan_event_trace(const struct tfan_event *event); /* TFAN_EVENT, TFAN_FILTER, TFAN_THROTTLED; else NULL */
uint64_t tfan_event_time(const struct tfan_event *event);
/* Wall time by the session's clock model, ns since the epoch. */
uint64_t tfan_event_wall(const struct tfan_event *event);
int tfan_event_cpu(const struct tfan_event *event); /* -1: none */
int tfan_event_pid(const struct tfan_event *event);
const char *tfan_event_comm(const struct tfan_event *event); /* "" when it isn't known */
bool tfan_event_late(const struct tfan_event *event);    /* delivered after a later event */
bool tfan_event_suspect(const struct tfan_event *event); /* text source: may hold forged parts */
bool tfan_event_partial(const struct tfan_event *event); /* text source: the kernel cut the line */

/* Fields by index. -ENODATA: this event does not have it (text source), or its probe could not read it; -EBADMSG: outside
 * the event. */
int tfan_event_u64(const struct tfan_event *event, size_t field, uint64_t *ret);
int tfan_event_i64(const struct tfan_event *event, size_t field, int64_t *ret);
/* The first `count` fields at once: ret[i] is what tfan_event_u64 gives for field i, and 0 where that fails, as for a
 * string. Costs a fraction of as many calls. -EINVAL: no event, or it has fewer fields. */
int tfan_event_integers(const struct tfan_event *event, uint64_t *ret, size_t count);
/* In place, not NUL-terminated. */
int tfan_event_bytes(const struct tfan_event *event, size_t field, const void **ret, size_t *ret_size);
/* Element i of an array of integers; -ERANGE past its end. */
int tfan_event_element(const struct tfan_event *event, size_t field, size_t i, uint64_t *ret);

/* ---- stacks ----
 *
 * A probe that is created with `stack` or `ustack` in its notation has the kernel's or the program's stack with each
 * event, innermost frame first. The kernel follows a program's frame pointers: functions that were compiled without
 * them are missing, or end the stack; and it keeps no more than eight of its frames. */
enum tfan_stack { TFAN_KERNEL_STACK = 1, TFAN_USER_STACK = 2 };
/* Whether the trace was created with it. */
bool tfan_trace_has_stack(const struct tfan_trace *trace, enum tfan_stack which);
/* The number of frames, which may be 0; -ENODATA: the event has no such stack. */
int tfan_event_stack(const struct tfan_event *event, enum tfan_stack which, size_t *ret_count);
struct tfan_frame {
	uint64_t address;
	const char *symbol;   /* NULL: it has no name, or this process may not read it */
	uint64_t offset;      /* of the address from the symbol's begin */
	const char *file;     /* the mapped file, or the kernel's module; NULL: not known, or the kernel itself */
	const char *build_id; /* of the file, in hex; NULL: it has none */
};
/* Names a frame by what the process has mapped by now, and its files' symbols; of a process that is gone, by what was
 * known before. The kernel's symbols are those that this process may see in /proc/kallsyms. In a recording
 * nothing but the address is known. Texts are valid until the next call. -ENODATA as above; -ERANGE past the last. */
int tfan_event_frame(const struct tfan_event *event, enum tfan_stack which, size_t i, struct tfan_frame *ret);

/* TFAN_LOST_KERNEL: the kernel counts by CPU, so the lost events may or may not have been this trace's.
 * TFAN_LOST_RECORDING: nothing is lost here, but from here on nothing gets into the router's recording: see the session's
 * ledger. */
enum tfan_lost_source {
	TFAN_LOST_KERNEL = 1, TFAN_LOST_RING = 2, TFAN_LOST_UNDECODABLE = 3, TFAN_LOST_READER = 4, TFAN_LOST_RECORDING = 5,
};
struct tfan_lost {
	enum tfan_lost_source source;
	int cpu;             /* -1: no one CPU */
	bool counted;        /* false: at least `count` */
	uint64_t count;
	uint64_t from, to;   /* ns */
};
int tfan_event_lost(const struct tfan_event *event, struct tfan_lost *ret); /* TFAN_LOST, TFAN_GAP */

/* ---- processes, and the state ---- */

/* Bytes as the kernel gave them, not NUL-ended; NULL: not known. */
struct tfan_text {
	const char *bytes;
	size_t size;
};

/* Whose an event is, at its time. A user is proven until a program is executed, or a system call has changed it, and again
 * once it was read; identity is proven until events are lost. */
struct tfan_process {
	int pid, parent;      /* the process's; parent -1: not known */
	uint64_t start;       /* ns, CLOCK_BOOTTIME: to a tick of 10 ms, or where its begin was seen, exact; 0: not known */
	bool is_proven;       /* that the thread is still this one: else guessed */
	bool has_ids, ids_proven;
	bool is_kernel;       /* a thread of the kernel: it has no executable */
	unsigned int uid, euid, suid, gid, egid;
	struct tfan_text exe; /* as /proc/PID/exe tells it, or as it was named to execve(2) */
	uint64_t cgroup;      /* its id in the unified hierarchy; 0: not known */
	struct tfan_text cgroup_path;
};
/* Of an event (with the option `processes`), and of TFAN_STATE records of processes and threads. -ENODATA: not known. */
int tfan_event_process(const struct tfan_event *event, struct tfan_process *ret);

enum tfan_state_kind {
	TFAN_STATE_PROCESS = 1, /* tfan_event_process says the rest */
	TFAN_STATE_THREAD = 2,  /* each thread but the first of its process */
	TFAN_STATE_MAPPING = 3, /* an executable part of a mapped file */
	TFAN_STATE_FILE = 4,
	TFAN_STATE_SOCKET = 5,
	TFAN_STATE_END = 6,     /* that was all */
};

/* Members that a kind has not are zero. */
struct tfan_state {
	enum tfan_state_kind kind;
	int pid, tid;
	uint64_t start, thread_start;     /* as struct tfan_process's */
	struct tfan_text command, folder; /* process: arguments, a NUL behind each; its working directory */
	uint64_t from, to, offset;        /* mapping: addresses, and where in the file */
	uint64_t inode;                   /* mapping, socket */
	unsigned int major, minor;        /* mapping: the device */
	struct tfan_text build_id;        /* mapping */
	struct tfan_text path;            /* mapping, file; socket: a unix one's name, as /proc/net/unix shows it */
	int fd;                           /* file, socket */
	unsigned int family, type, protocol, socket_state; /* socket: AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_LISTEN, ...; 0: not known */
	unsigned char local[16], remote[16]; /* network order; IPv4 in the first four */
	unsigned int local_port, remote_port;
	uint64_t left_out;                /* end: records that found no room */
};
/* Of TFAN_STATE records; what it points to is valid as long as the event. -EINVAL: it is none. */
int tfan_event_state(const struct tfan_event *event, struct tfan_state *ret);

struct tfan_throttled {
	uint64_t rate;  /* events per second that the policy allows */
	uint64_t count; /* that came since `since` */
	uint64_t since; /* ns */
	bool of_user;   /* by all probes of the user together, of which this one brought most */
};
int tfan_event_throttled(const struct tfan_event *event, struct tfan_throttled *ret); /* TFAN_THROTTLED */

enum tfan_end_reason { TFAN_END_STOPPED = 1, TFAN_END_FINISHED = 2, TFAN_END_ERROR = 3, TFAN_END_REFUSED = 4 };
int tfan_event_end(const struct tfan_event *event, enum tfan_end_reason *ret, const char **ret_message);


/* ---- typed traces: events as the caller's own structures ----
 *
 * A table binds members of a structure to what is fetched for them; the library makes the fetch arguments
 * and the condition out of it, and hands the filled structure to a handler:
 *
 *	struct opened { const char *path; int flags; };
 *	static const struct tfan_member members[] = {
 *		{ TFAN_MEMBER(struct opened, path), .fetch = "$arg1" },
 *		{ TFAN_MEMBER(struct opened, flags), .fetch = "$arg2", .condition = "flags & 0x40" },
 *	};
 *	static const struct tfan_shape shape = TFAN_SHAPE(struct opened, members);
 *
 *	tfan_trace_uprobe(tfan, "/lib/x86_64-linux-gnu/libc.so.6", "open", &shape, handler, NULL, &trace);
 *	tfan_trace_set_enabled(trace, true);
 *	while (tfan_wait(tfan, -1) >= 0 && tfan_dispatch(tfan, 0) >= 0)
 *		;
 *
 * The macros need C11; from C++ the table's members are filled in by name. */

/* A string and where it lay in the traced program or kernel. */
struct tfan_string_address {
	const char *string;
	uint64_t address;
};

enum tfan_member_kind {
	TFAN_MEMBER_UNSIGNED = 1,
	TFAN_MEMBER_SIGNED = 2,
	TFAN_MEMBER_STRING = 3,         /* const char *: NUL-ended, valid until the handler returns */
	TFAN_MEMBER_STRING_ADDRESS = 4, /* struct tfan_string_address: the same, with its address */
	TFAN_MEMBER_GROUP = 5,          /* a structure inside the structure, with a table of its own */
	TFAN_MEMBER_BOOL = 6,           /* true when what was fetched, a byte or TFAN_BITS of it, is not 0 */
};

struct tfan_member {
	/* Given by TFAN_MEMBER and TFAN_GROUP. */
	const char *name; /* of the fetch argument, for conditions; inside a group GROUP_NAME */
	size_t offset, size;
	enum tfan_member_kind kind;
	const struct tfan_member *group;
	size_t group_count;

	/* What is fetched: the kernel's own notation, and $arg1.. as in tfan_trace_create; for a string, the
	 * expression of its address. NULL: the event has a field of this name already (tracepoints); `field`
	 * is its name there where it differs.
	 *
	 * For a group: up to nine expressions, separated by commas, that its members' fetch and condition name
	 * as {1} to {9}; {0} is the group's name. */
	const char *fetch;
	const char *field;
	const char *condition; /* on this member; all conditions of a table must hold */
	bool user_memory;      /* string: of a kernel probe, in the memory of the program that called */
	bool is_big_endian;    /* integer: turned round when it is read. Conditions see it as it lay in memory */
	unsigned char bits_from, bits_width; /* TFAN_BITS; width 0: the whole integer */
};

/* The bits `from` to `to`, both counted, of an integer; 0 is the least. */
#define TFAN_BITS(from, to) .bits_from = (from), .bits_width = (to) - (from) + 1

/* Width and sign come from the member's type; a type that can't be filled is an error of compilation. */
#define TFAN_MEMBER_KIND_(member)                                                                  \
	_Generic((member),                                                                         \
		char: (char)-1 < 0 ? TFAN_MEMBER_SIGNED : TFAN_MEMBER_UNSIGNED,                    \
		_Bool: TFAN_MEMBER_BOOL, unsigned char: TFAN_MEMBER_UNSIGNED,                      \
		unsigned short: TFAN_MEMBER_UNSIGNED, unsigned int: TFAN_MEMBER_UNSIGNED,          \
		unsigned long: TFAN_MEMBER_UNSIGNED, unsigned long long: TFAN_MEMBER_UNSIGNED,     \
		signed char: TFAN_MEMBER_SIGNED, short: TFAN_MEMBER_SIGNED,                        \
		int: TFAN_MEMBER_SIGNED, long: TFAN_MEMBER_SIGNED, long long: TFAN_MEMBER_SIGNED,  \
		const char *: TFAN_MEMBER_STRING,                                                  \
		struct tfan_string_address: TFAN_MEMBER_STRING_ADDRESS)
#define TFAN_MEMBER(type, member)                                                                  \
	.name = #member, .offset = offsetof(type, member), .size = sizeof(((type *)0)->member),    \
	.kind = TFAN_MEMBER_KIND_(((type *)0)->member)
#define TFAN_GROUP(type, member, table)                                                            \
	.name = #member, .offset = offsetof(type, member), .size = sizeof(((type *)0)->member),    \
	.kind = TFAN_MEMBER_GROUP, .group = (table), .group_count = sizeof(table) / sizeof((table)[0])

struct tfan_shape {
	size_t size;        /* of the caller's structure */
	size_t member_size; /* sizeof(struct tfan_member) */
	const struct tfan_member *members;
	size_t member_count;
	const char *condition; /* on the whole event, beside the members' own */
	bool at_return;        /* tfan_trace_kprobe, tfan_trace_uprobe: where the function returns */
};
#define TFAN_SHAPE(type, table)                                                                    \
	{ .size = sizeof(type), .member_size = sizeof(struct tfan_member), .members = (table),     \
	  .member_count = sizeof(table) / sizeof((table)[0]) }

/* `filled` is a structure as the shape says, zero where the event lacks something. Both are valid until the
 * handler returns. A handler may create, change and close traces, its own included, and call tfan_flush; it may
 * not call tfan_next, tfan_dispatch or tfan_close. */
typedef void (*tfan_handler)(void *context, const struct tfan_event *event, const void *filled);

/* Create a typed trace, disabled. The shape and its table are read during the call alone. A wrong place is
 * TFAN_LOCATION, a wrong table or fetch expression TFAN_FETCH_ARG (the message names the member), a wrong
 * condition TFAN_USAGE.
 *
 * tfan_trace_bind: any kind, [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... in the notation of tfan_trace_create. The
 * arguments that stand there are fetched beside the table's; members without `fetch` bind to them, too.
 * tfan_trace_kprobe: `location` is SYMBOL[+OFFSET]; at_return: SYMBOL[+maxactive=N].
 * tfan_trace_uprobe: `file` is a path as it is, nothing escaped; `location` SYMBOL[+OFFSET] or 0xOFFSET. */
int tfan_trace_bind(struct tfan *tfan, const char *place, const struct tfan_shape *shape, tfan_handler handler,
	void *context, struct tfan_trace **ret);
int tfan_trace_kprobe(struct tfan *tfan, const char *location, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret);
int tfan_trace_uprobe(struct tfan *tfan, const char *file, const char *location, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret);

/* Sets what must hold beside the shape's own conditions; NULL or "": nothing. When it is refused, what was
 * set before stays, and tfan_failure has the reason with its position in `condition`. */
int tfan_trace_set_condition(struct tfan_trace *trace, const char *condition);

/* Events of this trace that its handler was given. */
uint64_t tfan_trace_done(const struct tfan_trace *trace);
/* Events of this trace that did not reach it: lost at this connection's ring (the router is asked for that;
 * once it is gone, its last answer stands), or not readable. */
uint64_t tfan_trace_lost(struct tfan_trace *trace);

/* Gives waiting events to their handlers, `most` at a time (0: all that wait). What has no handler, a loss, a mark,
 * the end, an event of an untyped trace, goes to the notice, if there is one. Returns how many were given, 0 when
 * none waits, or a negative errno as tfan_next. When it returned `most`, call again before you wait. */
int tfan_dispatch(struct tfan *tfan, unsigned int most);
void tfan_set_notice(struct tfan *tfan, void (*notice)(void *context, const struct tfan_event *event), void *context);

/* ---- operating a session ----
 *
 * A session's operator (root: the control socket is root's) asks its reader, which answers whether or not
 * there is a router. The rules of the connection above hold; each call waits for its answer. */

struct tfan_operator; /* a connection to a session's control socket */

/* As tfan_open: on failure *ret holds the failure, or is NULL when there is no memory. NULL names the usual
 * session and directory. */
int tfan_operator_open(const char *directory, const char *session, struct tfan_operator **ret);
void tfan_operator_close(struct tfan_operator *control); /* takes NULL */
/* From now on a request that is not answered for so long fails as TFAN_BUSY, and the connection is over. 0, as at first: it waits
 * for as long as it takes. */
void tfan_operator_set_patience(struct tfan_operator *control, unsigned int milliseconds);
/* The reader's process, by the kernel's word: who made the socket. 0: it isn't known. */
int tfan_operator_reader(const struct tfan_operator *control);
const struct tfan_failure *tfan_operator_failure(const struct tfan_operator *control);

struct tfan_operator_status {
	char session[64], instance[64]; /* instance: in tracefs; "" for a recording */
	bool is_text, is_recorded, is_fallback; /* as in struct tfan_session */
	int reader_pid, router_pid; /* router_pid 0: none is connected */
	uint64_t started;           /* ns, CLOCK_MONOTONIC */
	uint64_t buffer_size;       /* bytes per CPU, effective; 0 for a recording */
	uint32_t subbuf_size;       /* bytes, effective */
	uint32_t cpus, probes;
};
int tfan_operator_status(struct tfan_operator *control, struct tfan_operator_status *ret);
/* Moves everything that was committed before now towards the consumers. */
int tfan_operator_flush(struct tfan_operator *control);
/* Ends the session; returns when it has ended. */
int tfan_operator_stop(struct tfan_operator *control);

#ifdef __cplusplus
}
#endif
#endif
