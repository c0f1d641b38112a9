/* What comes out of the filled ring: data into the merge (or, for text, line by line), marks to whom they
 * are due, and the end. */
#ifndef TRACEFAN_ROUTER_STREAM_H
#define TRACEFAN_ROUTER_STREAM_H

#include "router/kept.h"
#include "router/ledger.h"
#include "router/merge.h"
#include "router/text_join.h"
#include "shm/pool_abi.h"
#include "shm/record_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct router;

#define STREAM_MARKS_MAX 256

enum mark_kind {
	MARK_FLUSH,  /* for a consumer */
	MARK_FILTER, /* a flush for a trace's next filter */
	MARK_COUNTS, /* an account: for a trace's ledger, or for the session's */
	MARK_LOOK,   /* an account: of what a dead reader took with it */
	MARK_STATE,  /* a flush for what was read of the host's state (router/state.h) */
	MARK_TOLD,   /* the flush after it: what had been counted has been told by then */
};

/* A flush or an account that is under way. */
struct stream_mark {
	enum mark_kind kind;
	uint64_t reader_cookie;   /* of our request to the reader; its mark in the stream repeats it */
	uint64_t consumer, consumer_cookie;
	uint64_t trace;           /* 0: for none of them; MARK_STATE: not a trace, but the work's number */
	bool seen;                /* its mark came by */
	uint64_t time;            /* a flush: due once the merged stream is complete up to here */
	bool answered;            /* an account: the kernel's counts have come */
	struct ledger_kernel kernel;
	uint64_t decoded, undecodable, unrecorded; /* an account: our side at its mark */
	struct kept kept;              /* from the answer on */
	struct ledger_session session; /* MARK_TOLD */
};

struct stream {
	struct merge merge;
	struct text_join text;
	struct stream_mark marks[STREAM_MARKS_MAX];
	uint32_t mark_count;
	struct record_clock clock; /* the last one; mono 0: none yet */
	bool stalled;              /* a replay waits for a consumer's room */
	bool over;                 /* its end has come by: all of it has been told */
	struct ledger_counts counts;
	bool off;                  /* somebody switched the kernel's buffers off, and it has been logged */
	uint64_t accounted;        /* when (ns) the kernel's counts were last looked at; 0: not by this router, but by an earlier one */
	uint64_t lost;             /* events that anybody knows to be lost, as of the last account */
	bool undecodable;          /* some of it was, and consumers were told where */
	uint64_t strays;           /* lines of text that are nothing, and follow no event that they could be part of */
	uint64_t told_lost;        /* counted kernel losses that the pages told of */
	/* Slots whose events have all been copied: they go back once the copies are published, so that a router
	 * that dies in between leaves its successor the slots of everything that nobody saw. */
	uint32_t *done;
	uint32_t done_count;
	uint32_t asleep;           /* bytes taken since everybody who slept was last woken */
	uint64_t lost_told;        /* of counters.lost_reader, what has been published */
	struct pool_counters counters; /* of all slots that went back, this router's and its predecessors' */
};

/* Returns 0 or -errno. */
int stream_init(struct router *router);
void stream_release(struct router *router);

/* Takes what is there, up to a batch, and tells it on. Returns 1 when more may be there, 0 when the ring was
 * empty, -EBADMSG when the reader broke the layout. */
int stream_take(struct router *router);
/* Tells each consumer that events between two times were lost in the kernel, nobody knows how many. */
void stream_cleared(struct router *router, uint64_t from, uint64_t to);
/* Says once, to the log and in each consumer's stream, that nothing more gets into the recording, if so. */
void stream_check_recording(struct router *router);
/* Wakes everybody who sleeps and has something to read, or a slot to fill. Has to come before the router sleeps;
 * while it works, stream_take sees to it from time to time. Returns when (ns) it has to be called again, for those whose
 * turn has not come; UINT64_MAX: there are none. */
uint64_t stream_wake(struct router *router);

/* Text: what may go on in the next line is taken as it is. */
void stream_finish_line(struct router *router);

/* Recordings: bytes that the events of one slot can come to in a ring. */
size_t stream_slot_room(const struct router *router);

/* Flush and account for a consumer (consumer 0: the router's own account at the end). 0 or -errno
 * (-EBUSY: too many are under way). */
int stream_flush(struct router *router, uint64_t consumer, uint64_t cookie);
/* Calls consumer_filter_due once everything that was committed before now has been told. 0 or -errno. */
int stream_filter(struct router *router, uint64_t consumer, uint64_t trace_id, uint64_t cookie);
/* Calls state_due with this number once everything that was committed before now has been told. 0 or -errno. */
int stream_state(struct router *router, uint64_t work);
int stream_account(struct router *router, uint64_t consumer, uint64_t cookie);
/* Calls takeover_accounted once the kernel's counts can be compared with ours. 0 or -errno. */
int stream_look(struct router *router);
/* Another reader has taken over: what the last one was asked and has not answered is asked again. */
void stream_ask_again(struct router *router);
/* Calls consumer_stats_due once the kernel's counts of its probes are fresh. 0 or -errno. */
int stream_stats(struct router *router, uint64_t consumer, uint64_t trace_id, uint64_t cookie);

#endif
