/* The router process: its one context, and what its parts owe each other.
 *
 *   router.c    start-up, the event loop, the end
 *   stream.c    what comes out of the filled ring, in order
 *   consumer.c  what consumers ask for
 *   upstream.c  what the reader is asked for
 *   state.c     who the host's processes are
 *   takeover.c  what becomes of the session when the reader dies
 *   recorder.c  the copy of the stream that becomes a recording */
#ifndef TRACEFAN_ROUTER_ROUTER_H
#define TRACEFAN_ROUTER_ROUTER_H

#include "base/confine/confine.h"
#include "router/budget.h"
#include "router/consumer.h"
#include "router/fanout.h"
#include "router/merge.h"
#include "router/recorder.h"
#include "router/state.h"
#include "router/stream.h"
#include "router/takeover.h"
#include "router/upstream.h"
#include "shm/pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ROUTER_DIRECTORY_USUAL "/run/tracefan"

struct router_options {
	const char *session;
	const char *directory; /* of the sessions' folders */
	uid_t uid;             /* what the router becomes */
	gid_t gid;
	int record_fd;         /* -1: no recording */
	enum confine_mode confinement;
};

struct router {
	struct router_options options;
	int epoll_fd, signal_fd, listen_fd, notify_fd;
	struct upstream upstream;
	struct control_router_welcome welcome;
	struct pool_reader pool;
	struct catalog *catalog;
	struct page_layout layout;
	struct fanout fanout;
	struct stream stream;
	struct budget budget;
	struct recorder recorder;
	struct state state;
	struct takeover takeover;
	struct consumer *consumers;   /* list */
	uint64_t next_consumer;
	uint64_t columns_due; /* ns: consumer_keep_columns */
	uint64_t last_trace_id;
	/* A router that takes over leaves the stream alone until its predecessor's consumers are back, so that
	 * nothing goes by while nobody has a trace for it; the kernel's rings hold what comes meanwhile. */
	uint32_t awaited;             /* consumers that have not come back yet */
	uint64_t await_deadline;      /* ns, CLOCK_MONOTONIC: those that are not back by then have left */
	uint64_t accept_again; /* ns, when it is tried again */
	bool knows_processes;         /* the processes of the host were read at the start, and are followed since */
	bool signalled;               /* the reader's signal has come, and was not taken back yet */
	bool paused_accept;           /* out of descriptors: the listener is out of the loop until one is free */
	bool ending;                  /* the stream has ended: consumers are told, then the router goes */
	bool ended;                   /* they have been told */
	uint64_t end_deadline;        /* ns, CLOCK_MONOTONIC: consumers that have not left by then are cut off */
	int status;                   /* enum exit_status */
	bool stop;
	bool sweep;                   /* consumers are gone and wait to be freed */
	struct record_end end;
};

/* Runs until the session ends or SIGTERM. Returns an enum exit_status; logs why. */
int router_run(const struct router_options *options);

/* ns, CLOCK_MONOTONIC: the sessions' trace clock. */
uint64_t router_now(void);

/* A number that was never given before on this host since it started: microseconds of CLOCK_BOOTTIME,
 * made strictly increasing. */
uint64_t router_new_id(struct router *router);

/* The stream is over; `end` goes to every consumer. */
void router_end(struct router *router, const struct record_end *end);

/* A consumer of the last router has all its traces back. */
void router_returned(struct router *router);
/* The account that was asked for at the end has come; NULL: it can't be had. */
void router_accounted(struct router *router, const struct ledger_session *session);

static inline bool router_recorded(const struct router *router)
{
	return router->welcome.flags & SESSION_RECORDED;
}

static inline bool router_text(const struct router *router)
{
	return router->welcome.source == SOURCE_TEXT;
}

#endif
