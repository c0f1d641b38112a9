/* The reader process: one session from start to end. */
#ifndef TRACEFAN_READER_READER_H
#define TRACEFAN_READER_READER_H

#include "reader/flow.h"
#include "reader/helper.h"
#include "reader/instance.h"
#include "reader/legacy.h"
#include "reader/live.h"
#include "reader/loop.h"
#include "reader/options.h"
#include "reader/peer.h"
#include "reader/policy.h"
#include "reader/provider.h"
#include "reader/recorded.h"
#include "reader/session_dir.h"
#include "reader/source.h"
#include "reader/users.h"
#include "shm/pool.h"

#include <stdbool.h>
#include <stdint.h>

#define READER_OPERATORS_MAX 4

enum reader_state {
	READER_RUNNING,
	READER_STOPPING, /* no more events; what is there is being published */
	READER_ENDED,    /* POOL_END is published; the router still asks */
	READER_DONE,
};

struct reader {
	const struct reader_options *options;
	struct session_dir dir;
	char consumers_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct instance instance; /* live sessions only */
	struct flow flow;         /* while the session runs */
	bool has_instance;
	struct legacy legacy;     /* for the reader that takes over from this one */
	bool adopted;         /* this one took over from another */
	int inherited;        /* then, until the loop has it: the connection to the router */
	pid_t inherited_pid;
	struct pool_counters inherited_counters;
	struct live live;
	struct replay *replay; /* of files only */
	struct recorded recorded;
	struct provider *provider;
	struct policy policy;
	struct users users;
	uid_t router_uid;
	struct pool_writer pool;
	bool has_pool;
	struct loop loop;
	struct source *source;
	uint32_t flags; /* enum control_session_flag */

	struct helper helper; /* live sessions only */

	struct peer router;
	uint64_t routers; /* that said hello so far */
	bool router_ready;  /* it said hello */
	bool router_seen;   /* there was one before */
	uint32_t consumers; /* attached to the router now, or to the last one when it went */
	uint32_t missing;   /* attached to an earlier router, and not back yet */
	struct peer operators[READER_OPERATORS_MAX];
	int notify; /* the readiness socket, until it has been told */
	struct loop_watch router_listener, control_listener, signals, owner;

	enum reader_state state;
	int status;       /* enum exit_status of the process */
	int end_reason;   /* enum end_reason */
	uint64_t started; /* ns, CLOCK_MONOTONIC */
	uint64_t grace;   /* when what a dead router left behind goes; LOOP_NEVER: nothing to go */
	uint64_t last_call;   /* after the end: how long the router is waited for */
	uint64_t freed;       /* slots that had come back when last_call was set */
	uint32_t probes_left; /* and the probes that there were */
	bool end_noted;
	uint64_t refusals_since; /* ns: what the log was told since */
	unsigned int refusals;
};

/* Runs a session to its end. Returns the process's exit status. */
int reader_run(const struct reader_options *options);

/* Removes what a killed reader of the session left behind. Returns the process's exit status. */
int reader_remove(const struct reader_options *options);

/* Begins the end; more than one call is one. */
void reader_stop(struct reader *reader, int reason, const char *why);

#endif
