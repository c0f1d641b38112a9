/* Control messages over SOCK_SEQPACKET: layout only. One message per packet, fixed size per type, sizes
 * asserted; texts are NUL-terminated inside their arrays and NUL-padded. Descriptors travel beside a
 * message (SCM_RIGHTS) in the number and order given in its comment.
 *
 * Every request has a cookie that its reply repeats. A reply has the request's type + CONTROL_REPLY;
 * status is 0 or one of enum exit_status's numbers (base/exit_status.h), and then `failure` says why.
 * A peer that breaks any of this is closed. */
#ifndef TRACEFAN_SHM_CONTROL_ABI_H
#define TRACEFAN_SHM_CONTROL_ABI_H

#include "shm/record_abi.h"

#include <stdint.h>

#define CONTROL_VERSION  1
#define CONTROL_REPLY    0x8000
#define CONTROL_SIZE_MAX 16384
#define CONTROL_FDS_MAX  8

#define CONTROL_SESSION_MAX 32   /* letters, digits, '_', '-'; begins with a letter; without the NUL */
#define CONTROL_NAME_MAX    64   /* a probe's name, a system's, an event's; with the NUL */
#define CONTROL_SYMBOL_MAX  256
#define CONTROL_PATH_MAX    1024
#define CONTROL_FETCH_MAX   2048
#define CONTROL_FILTER_MAX  4096

enum control_type {
	/* consumer -> router */
	CONTROL_HELLO = 1,       /* control_hello; reply control_welcome */
	CONTROL_ATTACH = 2,      /* control_attach; reply control_attached + fds: ring, cursor, what to poll */
	CONTROL_CREATE = 3,      /* control_create (+ fd: the open target file, for uprobes and USDT); reply control_created */
	CONTROL_SCHEMA = 4,      /* control_id; reply control_status + fd: schema segment; on success failure.message
				  * is the trace's name, for who did not make it itself */
	CONTROL_SET_FILTER = 5,  /* control_set_filter; reply control_status; a RECORD_FILTER marks the place */
	CONTROL_SET_ENABLED = 6, /* control_set_enabled; reply control_status */
	CONTROL_STATS = 7,       /* control_id; reply control_stats */
	CONTROL_CLOSE = 8,       /* control_id; reply control_status: the trace is gone */
	CONTROL_LIST = 9,        /* control_id (id 0); reply control_status + fd: blob, a line per event "system:event" */
	CONTROL_FLUSH = 10,      /* control_id; reply control_status at once; a RECORD_FLUSHED marks the place */
	CONTROL_DETACH = 11,     /* control_id (id 0); reply control_status; then the router closes */
	CONTROL_LEDGER = 12,     /* control_id (id 0); reply control_ledger: the session's side */
	CONTROL_EXPLAIN = 13,    /* control_id; reply control_explained: who does what of the trace's filter */
	CONTROL_ROOM = 15,       /* control_id (id 0); reply control_status: the ring that the router waits for is empty */
	CONTROL_SET_SHARED = 16, /* control_set_filter, reply as CONTROL_SET_FILTER: the text is in part for all traces of
				  * the consumer. A field that only others of their events have makes comparisons
				  * false, one that none has is an error */
	CONTROL_CAPTURE = 17,    /* control_capture; reply control_status + fds: the table, the details (shm/state_abi.h); the
				  * events of traces that were held back begin where the table is of */
	CONTROL_STATUS = 18,     /* control_status_from; reply control_status_page: who is attached, with each trace's side of
				  * the ledger. Root sees all, others what is their own user's */
	CONTROL_RESUMED = 14,    /* control_id (id 0); reply control_status: its traces are all back (ATTACH_RESUME) */

	/* router -> reader */
	CONTROL_ROUTER = 32,        /* control_router_hello; reply control_router_welcome + fds: pool, free, the
				     * ends of two wake-ups, consumers' listening socket, facts blob, names blob */
	CONTROL_PROBE_CREATE = 33,  /* control_create + fds: the consumer's socket, then the target file where there
				     * is one; without any: the router's own, from the reader's short list.
				     * reply control_probe_created + fd: format blob */
	CONTROL_PROBE_ENABLE = 34,  /* control_set_enabled; reply control_status */
	CONTROL_PROBE_FILTER = 35,  /* control_set_filter: the text for the kernel; reply control_status */
	CONTROL_PROBE_CLOSE = 36,   /* control_probe_close: one reference less; reply control_status */
	CONTROL_ACCOUNT = 37,       /* control_id (id 0); puts POOL_ACCOUNT into the stream; reply control_status + fd:
				     * blob of the kernel's stats files */
	CONTROL_READER_FLUSH = 38,  /* control_id (id 0); puts POOL_FLUSH into the stream; reply control_status */
	CONTROL_READER_LIST = 39,   /* control_id (id 0) + fd: the consumer's socket; reply control_status + fd: blob */
	CONTROL_CONSUMER = 40,      /* control_consumer + fd: the consumer's socket: it attached or left; its process is
				     * kept out of the trace; reply control_status */
	CONTROL_RUNDOWN = 41,       /* control_rundown, + fd: the consumer's socket, or none for the router's own table;
				     * reply control_status + fds: the table, the details (shm/state_abi.h), as of now
				     * and as much as the consumer may see */
	CONTROL_PROBE_KEEP = 42,    /* control_probe_keep, to a reader that took over: one reference, and perhaps one
				     * enabling, that the router had from the last one; reply control_status */

	/* reader -> router, on the consumers' socket of a session whose reader died */
	CONTROL_READER = 64,        /* control_id (id 0); reply control_heir + fd: the consumers' listening socket. Then
				     * the router goes on as if it had connected: CONTROL_ROUTER */

	CONTROL_READER_END = 65, /* control_id (id 0), from who removes such a session; reply control_status. Then the router ends
				  * the session, and closes when it is over */

	/* operator -> reader, on the session's control socket */
	CONTROL_SESSION_STATUS = 96, /* control_id; reply control_session_status */
	CONTROL_SESSION_STOP = 97,   /* control_id; reply control_status when the session has ended */
	CONTROL_SESSION_FLUSH = 98,  /* control_id; reply control_status */
};

struct control_header {
	uint16_t type;
	uint16_t version; /* CONTROL_VERSION */
	uint32_t size;    /* of the whole message */
	uint64_t cookie;
};
_Static_assert(sizeof(struct control_header) == 16, "control header");

/* Why a request failed. */
struct control_failure {
	int32_t error;    /* errno, positive; 0 where none fits */
	int32_t position; /* byte in the text that was wrong, -1 where there is none */
	char message[504]; /* for people: names the thing and the mend */
};
_Static_assert(sizeof(struct control_failure) == 512, "control failure");

struct control_status {
	struct control_header header;
	uint32_t status;
	uint32_t reserved;
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_status) == 536, "control status");

struct control_id {
	struct control_header header;
	uint64_t id; /* trace (consumer -> router) or probe (router -> reader) */
};
_Static_assert(sizeof(struct control_id) == 24, "control id");

struct control_hello {
	struct control_header header;
	char program[CONTROL_NAME_MAX]; /* for status only */
};
_Static_assert(sizeof(struct control_hello) == 80, "control hello");

enum control_source {
	SOURCE_RAW = 1,
	SOURCE_TEXT = 2,
};

enum control_session_flag {
	SESSION_RECORDED = 1 << 0, /* the events come from a recording, log or page dump */
	SESSION_FALLBACK = 1 << 1, /* the start-up proof of io_uring failed: poll and read instead */
	SESSION_LASTING = 1 << 2,  /* nobody owns it: when its reader dies, another one may take over */
	SESSION_TAKEN_OVER = 1 << 3, /* this reader did: what the last one had taken out of the kernel and not published is lost */
	SESSION_READERLESS = 1 << 4, /* to consumers: its reader is dead, and the router waits for another */
};

struct control_welcome {
	struct control_header header;
	uint32_t status;
	uint32_t source; /* enum control_source */
	uint32_t flags;  /* enum control_session_flag */
	uint32_t reserved;
	struct control_failure failure;
	char session[CONTROL_NAME_MAX];
};
_Static_assert(sizeof(struct control_welcome) == 608, "control welcome");

enum control_attach_flag {
	ATTACH_ALL_EVENTS = 1 << 0,   /* every event of the session, without a create each (recordings) */
	ATTACH_RESUME = 1 << 2,       /* it was attached to this session's last router, and has seen all up to
				       * the place that it names; CONTROL_RESUMED ends its return */
	ATTACH_INCLUDE_SELF = 1 << 1, /* do not keep this consumer's own process out of the trace */
	ATTACH_HOLD = 1 << 3,         /* traces that are enabled give nothing until the first CONTROL_CAPTURE */
	ATTACH_PROCESS = 1 << 4,      /* events tell of their process: struct record_process */
};

struct control_attach {
	struct control_header header;
	uint64_t ring_capacity; /* bytes; rounded up to a power of two */
	uint32_t overflow;      /* enum ring_overflow */
	uint32_t flags;         /* enum control_attach_flag */
	uint64_t seen_time;     /* ATTACH_RESUME: the place in the merged order (time, then cpu) of the last event that
				 * was seen, or of the enabling where none was. The consumer gets all from that
				 * place on, what lies at it included, and passes over what it knows of it. */
	uint32_t seen_cpu;
	uint32_t reserved0;
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct control_attach) == 64, "control attach");

struct control_attached {
	struct control_header header;
	uint32_t status;
	uint32_t reserved;
	uint64_t ring_capacity; /* the effective one */
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_attached) == 544, "control attached");

enum control_probe_kind {
	PROBE_TRACEPOINT = 1,
	PROBE_KPROBE = 2,
	PROBE_KRETPROBE = 3,
	PROBE_UPROBE = 4,
	PROBE_URETPROBE = 5,
	PROBE_USDT = 6,
	PROBE_EVENT = 7, /* an event probe: a tracepoint, `system` and `event`, with fetch arguments */
};

enum control_create_flag {
	CREATE_LENIENT = 1 << 0, /* a field that the event lacks makes the filter's comparisons false, and is no error: for
				  * who comes back with what CONTROL_SET_SHARED has accepted */
	CREATE_KERNEL_STACK = 1 << 1, /* with each event the kernel's stack, and */
	CREATE_USER_STACK = 1 << 2,   /* the program's */
};

#define CREATE_STACKS ((uint32_t)(CREATE_KERNEL_STACK | CREATE_USER_STACK))

/* What a trace's columns were with routers that died. */
struct ledger_carried {
	uint64_t delivered; /* by the consumer's own count */
	uint64_t filtered, lost_ring; /* of the last router's word: struct ring_columns */
};
_Static_assert(sizeof(struct ledger_carried) == 24, "carried ledger");

#define LEDGER_CARRIED_MAX (UINT64_MAX >> 2)

/* A trace or probe definition. Which members count depends on `kind`; the others are zero. */
struct control_create {
	struct control_header header;
	uint32_t kind;  /* enum control_probe_kind */
	uint32_t flags; /* enum control_create_flag */
	uint64_t offset;     /* uprobes, USDT: in the file, bytes. kprobes: from the symbol, bytes */
	uint64_t trace_id;   /* ATTACH_RESUME: the id that the trace had; else 0: a new one */
	struct ledger_carried carried; /* with trace_id; else zeroes */
	uint64_t ref_offset; /* USDT: the semaphore's offset in the file, 0: none */
	uint32_t maxactive;  /* kretprobe: 0: the kernel's choice */
	uint32_t fetch_count;
	char name[CONTROL_NAME_MAX];   /* the consumer's name for it */
	char system[CONTROL_NAME_MAX]; /* tracepoint, event probe */
	char event[CONTROL_NAME_MAX];  /* tracepoint, event probe */
	char symbol[CONTROL_SYMBOL_MAX]; /* kprobe; uprobes: for the probe's name and messages */
	char path[CONTROL_PATH_MAX];     /* uprobes: for messages only, the descriptor counts */
	char fetch[CONTROL_FETCH_MAX];   /* fetch_count texts "name=fetch[:type]", each NUL-terminated */
	char filter[CONTROL_FILTER_MAX]; /* the trace's condition, may be empty */
};
_Static_assert(sizeof(struct control_create) == 80 + 3 * 64 + 256 + 1024 + 2048 + 4096, "control create");

struct control_created {
	struct control_header header;
	uint32_t status;
	uint32_t reserved;
	uint64_t trace_id;
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_created) == 544, "control created");

/* The owner of what is the router's own. */
#define CONTROL_OWNER_ROUTER UINT32_MAX

/* Whose processes' events an owner may see. */
enum control_scope {
	SCOPE_ALL = 0,
	SCOPE_OWN = 1, /* those of the owner's user alone: the router leaves out all others */
};

struct control_probe_created {
	struct control_header header;
	uint32_t status;
	uint32_t shared; /* 1: another owner has it already */
	uint64_t probe_id;
	uint32_t owner; /* the consumer's user, by the kernel's word; or CONTROL_OWNER_ROUTER */
	uint32_t scope; /* enum control_scope */
	uint32_t rate;       /* events per second that the owner may have of this probe; 0: any number */
	uint32_t owner_rate; /* and of all the owner's probes */
	char system[CONTROL_NAME_MAX]; /* the event's name in tracefs */
	char event[CONTROL_NAME_MAX];
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_probe_created) == 688, "control probe created");

struct control_probe_close {
	struct control_header header;
	uint64_t id;
	uint32_t owner; /* as control_probe_created has it */
	uint32_t reserved;
};
_Static_assert(sizeof(struct control_probe_close) == 32, "control probe close");

/* The state of the host's processes (shm/state_abi.h). */
struct control_capture {
	struct control_header header;
	uint32_t what; /* enum state_what */
	uint32_t reserved;
};
_Static_assert(sizeof(struct control_capture) == 24, "control capture");

#define CONTROL_RUNDOWN_IDS 256

struct control_rundown {
	struct control_header header;
	uint32_t what;     /* enum state_what; of the router's own, processes alone */
	uint32_t id_count; /* threads to read; 0: all */
	int32_t ids[CONTROL_RUNDOWN_IDS];
};
_Static_assert(sizeof(struct control_rundown) == 24 + 4 * CONTROL_RUNDOWN_IDS, "control rundown");

struct control_set_filter {
	struct control_header header;
	uint64_t id;
	char filter[CONTROL_FILTER_MAX]; /* empty: none */
};
_Static_assert(sizeof(struct control_set_filter) == 4120, "control set filter");

struct control_set_enabled {
	struct control_header header;
	uint64_t id;
	uint32_t enabled;
	uint32_t reserved;
};
_Static_assert(sizeof(struct control_set_enabled) == 32, "control set enabled");

#define LEDGER_UNKNOWN UINT64_MAX

/* One consumer's side of the ledger for one trace: decoded = delivered + filtered + lost_ring. Beside it, of its
 * `gave_up`: regular expressions of the filter that stopped at their limit, which counts as no match; and of its
 * probe and all consumers alike, `missed` (return probes that found no free instance, by the kernel's profile) and
 * `kept_away`: hits that the kernel did not record, or LEDGER_UNKNOWN (see router/kept.h). */
struct ledger_trace {
	uint64_t decoded;
	uint64_t delivered;
	uint64_t filtered;
	uint64_t lost_ring;
	uint64_t missed;
	uint64_t kept_away;
	uint64_t gave_up;
};
_Static_assert(sizeof(struct ledger_trace) == 56, "trace ledger");

struct control_stats {
	struct control_header header;
	uint32_t status;
	uint32_t reserved;
	struct ledger_trace trace;
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_stats) == 592, "control stats");

/* Where a page of the status begins: zeroes, or what the page before says. */
struct control_status_from {
	struct control_header header;
	uint64_t consumer;
	uint64_t skip; /* of that consumer's traces */
};
_Static_assert(sizeof(struct control_status_from) == 32, "control status from");

/* A trace; or, with trace_id 0, a consumer that has none. */
struct control_status_row {
	uint64_t consumer; /* the router's number for it */
	uint64_t trace_id;
	struct ledger_trace ledger;
	uint64_t ring_capacity; /* bytes */
	uint64_t ring_used;     /* of them, by the consumer's own word */
	int32_t pid;            /* of who connected, by the kernel's word; 0: not of the router's world */
	uint32_t uid;
	uint32_t overflow; /* enum ring_overflow */
	uint8_t enabled;
	uint8_t own;       /* 1: of the consumer that asks */
	uint16_t reserved;
	char program[CONTROL_NAME_MAX]; /* by its own word */
	char name[2 * CONTROL_NAME_MAX];
};
_Static_assert(sizeof(struct control_status_row) == 296, "control status row");

#define CONTROL_STATUS_ROWS 48

struct control_status_page {
	struct control_header header;
	uint32_t status;
	uint32_t count;         /* of rows; the others are zero */
	uint32_t readerless;    /* 1: the session's reader is dead, and another is waited for */
	uint32_t reserved;
	uint64_t next_consumer; /* where the next page begins; 0: this is the last one */
	uint64_t next_skip;
	struct control_failure failure;
	struct control_status_row rows[CONTROL_STATUS_ROWS];
};
_Static_assert(sizeof(struct control_status_page) == 560 + 296 * CONTROL_STATUS_ROWS, "control status page");

/* Texts that do not fit are cut and end in "...". */
struct control_explained {
	struct control_header header;
	uint32_t status;
	uint32_t exact; /* 1: the kernel accepts nothing that the filter does not */
	struct control_failure failure;
	char kernel[CONTROL_FILTER_MAX]; /* this trace's filter as the kernel can have it; "0": not at all */
	char router[CONTROL_FILTER_MAX]; /* the whole filter, simplified, as the router evaluates it; empty: none */
	char pushed[CONTROL_FILTER_MAX]; /* in the probe's `filter` file now, for all traces; "0": none; empty: others' filters are in it */
};
_Static_assert(sizeof(struct control_explained) == 536 + 3 * 4096, "control explained");

/* What the kernel kept away of all probes that somebody has. */
struct ledger_kept {
	uint64_t hits;
	uint32_t probes; /* of which it is known */
	uint32_t others; /* of which it isn't */
};
_Static_assert(sizeof(struct ledger_kept) == 16, "kept away");

struct control_ledger {
	struct control_header header;
	uint32_t status;
	uint32_t reserved;
	struct ledger_session session;
	struct ledger_kept kept;
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_ledger) == 608, "control ledger");

struct control_router_hello {
	struct control_header header;
};
_Static_assert(sizeof(struct control_router_hello) == 16, "control router hello");

struct control_router_welcome {
	struct control_header header;
	uint32_t status;
	uint32_t source; /* enum control_source */
	uint32_t flags;  /* enum control_session_flag */
	uint32_t cpu_count;
	uint32_t consumers; /* how many were attached to the last router, and will be back */
	uint32_t reserved;
	struct control_failure failure;
	char session[CONTROL_NAME_MAX];
	char group[CONTROL_NAME_MAX]; /* system name of the session's own probes in tracefs */
	char tag[CONTROL_NAME_MAX];   /* random, new in each run: in every probe's name and every marker */
};
_Static_assert(sizeof(struct control_router_welcome) == 744, "control router welcome");

struct control_probe_keep {
	struct control_header header;
	uint64_t id;
	uint64_t consumer; /* whose it is, by a number that CONTROL_CONSUMER told before; 0: the router's own */
	uint32_t enabled;
	uint32_t reserved;
};
_Static_assert(sizeof(struct control_probe_keep) == 40, "control probe keep");

struct control_heir {
	struct control_header header;
	uint32_t status;
	int32_t router_pid;
	uint32_t consumers; /* that are attached */
	uint32_t reserved;
	/* As in struct pool_counters: for the next router, should this one die before it has used the new pool. Until it
	 * does, it tells nothing. */
	uint64_t decoded, undecodable, told_lost, lost_reader;
	struct control_failure failure;
};
_Static_assert(sizeof(struct control_heir) == 576, "control heir");

enum control_consumer_state {
	CONSUMER_ATTACHED = 1,
	CONSUMER_LEFT = 2,
};

struct control_consumer {
	struct control_header header;
	uint32_t state; /* enum control_consumer_state */
	uint32_t flags; /* enum control_attach_flag */
	uint64_t consumer; /* the router's number for it */
	uint64_t ring_capacity; /* bytes, effective */
};
_Static_assert(sizeof(struct control_consumer) == 40, "control consumer");

struct control_session_status {
	struct control_header header;
	uint32_t status;
	uint32_t source;
	int32_t reader_pid;
	int32_t router_pid; /* 0: none is connected */
	uint64_t started;   /* ns, CLOCK_MONOTONIC */
	uint64_t buffer_size; /* bytes per CPU, effective */
	uint32_t subbuf_size; /* bytes, effective */
	uint32_t cpu_count;
	uint32_t probes;
	uint32_t flags; /* enum control_session_flag */
	struct control_failure failure;
	char session[CONTROL_NAME_MAX];
	char instance[CONTROL_NAME_MAX];
};
_Static_assert(sizeof(struct control_session_status) == 704, "control session status");

/* The names blob: what the kernel calls each thread when the session starts. */
struct control_task_name {
	int32_t tid;
	char comm[RECORD_COMM_SIZE];
};
_Static_assert(sizeof(struct control_task_name) == 20, "task name");

/* The facts blob: files of the traced kernel as bytes, each behind one of these. */
enum control_fact {
	FACT_HEADER_PAGE = 1,    /* events/header_page */
	FACT_HEADER_EVENT = 2,   /* events/header_event */
	FACT_PRINTK_FORMATS = 3, /* printk_formats */
	FACT_MACHINE = 4,        /* one byte: 1 big-endian, 0 little-endian */
	FACT_STATS = 5,          /* per_cpu/cpuN/stats; `id` is N (the account blob) */
	FACT_UPROBE_PROFILE = 6, /* uprobe_profile (the account blob) */
	FACT_KPROBE_PROFILE = 7, /* kprobe_profile (the account blob) */
	FACT_STACK_FORMAT = 9,   /* events/ftrace/kernel_stack/format and user_stack's */
	FACT_FORMAT = 8,         /* recordings: system, NUL, the name under which it is shown, NUL, the format file; no
				  * name: the recorded session wanted it for itself */
	FACT_TRACING_ON = 10,    /* tracing_on (the account blob, unless the session is being stopped) */
};

struct control_fact_header {
	uint32_t fact; /* enum control_fact */
	uint32_t id;
	uint64_t size; /* bytes that follow, then padding to a multiple of 8 */
};
_Static_assert(sizeof(struct control_fact_header) == 16, "fact header");

#endif
