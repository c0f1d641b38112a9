/* A consumer's connection: its messages, its ring, its traces. */
#ifndef TRACEFAN_ROUTER_CONSUMER_H
#define TRACEFAN_ROUTER_CONSUMER_H

#include "router/outlet.h"
#include "shm/control.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct router;
struct route;
struct trace;

enum consumer_state {
	CONSUMER_NEW = 1 << 0,
	CONSUMER_GREETED = 1 << 1,
	CONSUMER_ATTACHING = 1 << 2, /* the reader has been asked */
	CONSUMER_READY = 1 << 3,
	CONSUMER_GONE = 1 << 4,      /* waits to be freed at the end of the loop's round */
};

struct consumer {
	struct consumer *next;
	uint64_t number;
	int fd;
	enum consumer_state state;
	uint32_t flags; /* enum control_attach_flag */
	uint64_t attach_cookie;
	uid_t uid;
	pid_t pid; /* of who connected */
	bool unanswered, paused; /* a request is under way: no other is read meanwhile */
	/* What waits for a reader; owned, NULL: nothing does. */
	struct control_message *kept;
	bool vouched; /* the reader knows that it is attached, or about to be */
	size_t ring_capacity; /* what the ring will have */
	enum ring_overflow overflow;
	bool has_outlet;
	struct outlet outlet;
	uint32_t flushes; /* under way */
	uint64_t seen_time; /* ATTACH_RESUME: the place up to which it has seen everything */
	uint32_t seen_cpu;
	char program[CONTROL_NAME_MAX];
};

/* Takes a new connection (ownership of fd). Returns 0 or -errno; on failure fd is closed. */
int consumer_accept(struct router *router, int fd);
/* It has been given its answer: the next request may be read. */
void consumer_answered(struct router *router, struct consumer *consumer);
/* Its socket is readable or closed. */
void consumer_readable(struct router *router, struct consumer *consumer);
/* From time to time, and when the router is about to sleep: consumers' columns, for its successor. */
void consumer_keep_columns(struct router *router, bool sleeps);
/* The session's reader is dead, or there is one again. */
void consumer_tell_reader(struct router *router, bool has_one);
/* There is a reader again: what waited for it is dealt with. */
void consumer_go_on(struct router *router);
/* Ends it: traces, ring, socket. The struct itself goes with consumer_sweep. */
void consumer_close(struct router *router, struct consumer *consumer);
/* Frees those that are gone. */
void consumer_sweep(struct router *router);
struct consumer *consumer_find(struct router *router, uint64_t number);

/* A mark of the stream is due. */
void consumer_flushed(struct router *router, uint64_t number, uint64_t cookie, uint64_t time);
void consumer_accounted(struct router *router, uint64_t number, uint64_t cookie, const struct ledger_session *session);
/* The stream has reached the place from which a trace's next filter is complete. */
void consumer_filter_due(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie, uint64_t time);
/* It can't be found out where that is: the old filter stays. */
void consumer_filter_failed(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie, int error);
/* The kernel's counts of a trace's probe are fresh, or can't be had: its ledger is due. */
void consumer_stats_due(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie);
/* Gives the consumers of all events a trace on a route that they haven't met. */
void consumer_unseen(void *router, struct route *route);

#endif
