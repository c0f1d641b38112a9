/* Records in a consumer's ring: layout only. Written by the router, read by the consumer.
 *
 *   0      4    5     6     8       16        24     28        32                48        48+payload
 *   +------+----+-----+-----+-------+---------+------+---------+-----------------+---------+----+
 *   | size |kind|flags| cpu | time  | trace id| pid  | payload | comm, NUL padded| payload | pad|
 *   +------+----+-----+-----+-------+---------+------+---------+-----------------+---------+----+
 *
 * `size` covers header, payload and padding and is a multiple of 8. An event's payload is the event as
 * the kernel laid it out (its own byte order; the trace's schema describes it), or, from a text source,
 * as the trace's text schema lays it out. */
#ifndef TRACEFAN_SHM_RECORD_ABI_H
#define TRACEFAN_SHM_RECORD_ABI_H

#include <stdint.h>

enum record_kind {
	RECORD_EVENT = 1,
	RECORD_LOST = 2,    /* struct record_lost. LOST_RING: the header's cpu and pid are the CPU of the last event that was
			     * lost, and how many were lost at that very place of the merged order. LOST_READER: its
			     * trace_id is how many were lost so in all, so that one loss is not taken for two */
	RECORD_STATE = 3,   /* never in a ring: state comes in blobs of its own (shm/state_abi.h) */
	RECORD_GAP = 4,     /* struct record_lost: the router was restarted */
	RECORD_END = 5,     /* struct record_end: the session is over, nothing follows */
	RECORD_FLUSHED = 6, /* struct record_flushed: all up to its time has been delivered */
	RECORD_CLOCK = 7,   /* struct record_clock */
	RECORD_FILTER = 8,  /* struct record_filter: from here on the trace's new filter holds */
	RECORD_THROTTLED = 9, /* struct record_throttled: the trace brought too many events and is disabled */
	RECORD_STACK = 10,  /* struct record_stack and frames: of the event right before it */
};

enum record_flag {
	RECORD_LATE = 1 << 0,    /* arrived after a later event had been delivered */
	RECORD_COMM = 1 << 1,    /* comm is known */
	RECORD_SUSPECT = 1 << 2, /* text source: a string may hold forged parts */
	RECORD_PARTIAL = 1 << 3, /* text source: the line was cut by the kernel */
	RECORD_STACKED = 1 << 5, /* the next record is this event's RECORD_STACK */
	RECORD_PROCESS = 1 << 4, /* behind the payload, at a multiple of 8, stands a struct record_process */
};

#define RECORD_ALIGN      8
#define RECORD_COMM_SIZE  16
#define RECORD_CPU_NONE   0xffff
#define RECORD_SIZE_MAX   (1U << 20)

struct record_header {
	uint32_t size;
	uint8_t kind;  /* enum record_kind */
	uint8_t flags; /* enum record_flag */
	uint16_t cpu;  /* RECORD_CPU_NONE: of no one CPU */
	uint64_t time; /* ns of the session's trace clock (CLOCK_MONOTONIC) */
	uint64_t trace_id;
	int32_t pid;   /* the thread's id, as the kernel's common_pid */
	uint32_t payload_size;
	char comm[RECORD_COMM_SIZE];
};
_Static_assert(sizeof(struct record_header) == 48, "record header");

enum record_process_flag {
	PROCESS_PROVEN = 1 << 0,     /* it is known for sure that the event is this thread's */
	PROCESS_HAS_IDS = 1 << 1,    /* users and groups are known */
	PROCESS_IDS_PROVEN = 1 << 2, /* and for sure */
	PROCESS_KNOWN = 1 << 3,      /* the process is known: what follows says more than nothing */
	PROCESS_IS_KERNEL = 1 << 4,  /* a thread of the kernel */
};

/* Who an event is of, for a consumer that asked for it (ATTACH_PROCESS). */
struct record_process {
	uint32_t flags;  /* enum record_process_flag */
	int32_t pid;     /* the kernel's tgid; -1: not known */
	int32_t parent;  /* -1: not known */
	uint32_t uid, euid, suid, gid, egid;
	uint64_t start;  /* ns, CLOCK_BOOTTIME; 0: not known */
	uint64_t cgroup; /* its id in the unified hierarchy; 0: not known */
	uint32_t exe_size, cgroup_size; /* texts behind this: the executable, the cgroup's path */
};
_Static_assert(sizeof(struct record_process) == 56, "process of an event");

enum lost_source {
	LOST_KERNEL = 1,      /* overrun of the kernel's ring of one CPU: may or may not have been the consumer's */
	LOST_RING = 2,        /* no room in this consumer's ring */
	LOST_UNDECODABLE = 3, /* a damaged sub-buffer */
	LOST_READER = 4,      /* taken out of the kernel by a reader that died before publishing */
	LOST_RECORDING = 5,   /* none of the consumer's: from here on nothing gets into the recording; see the ledger */
};
#define LOST_SOURCES 6 /* one more than the greatest of them */

#define LOST_COUNT_UNKNOWN UINT64_MAX

/* Payload of RECORD_LOST and RECORD_GAP. A lost record never has count 0. */
struct record_lost {
	uint32_t source; /* enum lost_source */
	uint32_t cpu;    /* RECORD_CPU_NONE: of no one CPU */
	uint64_t count;  /* LOST_COUNT_UNKNOWN: at least `at_least` */
	uint64_t at_least;
	uint64_t from; /* ns: no loss before this time */
	uint64_t to;   /* ns: no loss after this time */
};
_Static_assert(sizeof(struct record_lost) == 40, "lost record");

struct record_flushed {
	uint64_t cookie; /* of the consumer's flush request */
};
_Static_assert(sizeof(struct record_flushed) == 8, "flushed record");

struct record_clock {
	uint64_t mono;     /* ns, CLOCK_MONOTONIC */
	uint64_t real;     /* ns since the epoch, CLOCK_REALTIME, read at the same moment */
	uint64_t error;    /* ns: the two readings lie at most this far apart */
};
_Static_assert(sizeof(struct record_clock) == 24, "clock record");

struct record_filter {
	uint64_t cookie; /* of the request that set the filter */
};
_Static_assert(sizeof(struct record_filter) == 8, "filter record");

/* From here on the trace is disabled, until its owner enables it again. */
struct record_throttled {
	uint64_t rate;    /* events per second that the policy allows */
	uint64_t count;   /* that came since `since` */
	uint64_t since;   /* ns */
	uint32_t of_user; /* 1: by all probes of the user, of which this one brought most; 0: by this probe */
	uint32_t reserved;
};
_Static_assert(sizeof(struct record_throttled) == 32, "throttled record");

enum record_stack_kind {
	STACK_KERNEL = 1 << 0,
	STACK_USER = 1 << 1,
};

/* Payload of RECORD_STACK; behind it the frames, 8 bytes each, the innermost first: the kernel's, then the program's. */
struct record_stack {
	uint32_t found;   /* enum record_stack_kind: the kernel wrote it */
	int32_t process;  /* STACK_USER: the kernel's tgid; whose addresses they are */
	uint32_t kernel_count, user_count;
};
_Static_assert(sizeof(struct record_stack) == 16, "stack record");

enum end_reason {
	END_STOPPED = 1,  /* by the operator or the session's owner */
	END_FINISHED = 2, /* a recording was replayed to its end */
	END_ERROR = 3,    /* an error interrupted the session: see the message */
	END_REFUSED = 4,  /* the consumer broke the protocol or policy */
};

/* The session's side of the ledger. committed = decoded + undecodable + lost_kernel, with `committed`
 * from the kernel's own counts. */
struct ledger_session {
	uint64_t committed;
	uint64_t decoded;
	uint64_t undecodable;
	uint64_t lost_kernel;
	uint64_t dropped; /* the kernel refused to write (no room, or recursion): never committed */
	uint64_t unrecorded;      /* of `decoded`, those that a recording should hold and doesn't; LEDGER_UNKNOWN */
	uint32_t recording_error; /* why: an errno; 0: all is recorded that should be */
	uint32_t cleared; /* 1: somebody else cleared the kernel's buffers and counts: of committed, lost_kernel and dropped, so much at least */
};
_Static_assert(sizeof(struct ledger_session) == 56, "session ledger");

struct record_end {
	uint32_t reason; /* enum end_reason */
	uint32_t accounted; /* 1: `session` holds the kernel's counts; 0: nobody was there to ask for them */
	struct ledger_session session;
	char message[128]; /* NUL-terminated */
};
_Static_assert(sizeof(struct record_end) == 192, "end record");

#endif
