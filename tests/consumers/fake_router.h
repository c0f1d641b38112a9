/* A router for tests: answers a client's requests by the same shm library, from a thread of the test, and
 * lets the test write records into the client's ring. */
#ifndef TRACEFAN_TESTS_CONSUMERS_FAKE_ROUTER_H
#define TRACEFAN_TESTS_CONSUMERS_FAKE_ROUTER_H

#include "shm/control.h"
#include "shm/ring.h"
#include "shm/schema.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_SESSION "fake"
#define FAKE_LOG_MAX 64

struct fake_router {
	char directory[64];
	int listener, socket;
	pthread_t thread;
	pthread_cond_t changed;
	bool down, stopping; /* down: it died, and its successor is not there yet */
	/* Guards everything below: the thread holds it while it answers, the test while it writes. */
	pthread_mutex_t lock;
	struct ring_writer ring;
	bool attached;
	uint64_t next_id;
	/* What the test wants answered: `refuse_type` is answered by this status and failure. */
	uint16_t refuse_type;
	unsigned int refuse_after; /* that many are served first */
	uint32_t refuse_status;
	struct control_failure refuse;
	uint16_t die_at;    /* hangs up instead of answering this */
	bool swallow_flush; /* answers, and writes no record */
	void *schema; /* of every trace; owned */
	size_t schema_size;
	const char *list;
	uint32_t welcome_flags, source;
	struct ledger_trace stats; /* of each trace */
	uint16_t cpu;              /* of records */
	uint8_t flags;             /* of records, beside RECORD_COMM */
	/* What came. */
	struct control_create create;
	char target[256]; /* what the descriptor beside it names */
	struct control_attach attach;
	struct control_set_filter set_filter;
	uint16_t log[FAKE_LOG_MAX]; /* types of requests */
	uint64_t log_ids[FAKE_LOG_MAX];
	size_t log_count;
};

/* The payload of the default schema, as a kernel would lay it out. */
struct fake_payload {
	uint16_t common_type;
	uint8_t common_flags, common_preempt_count;
	int32_t common_pid;
	int32_t n;
	uint32_t path_word; /* __data_loc */
	uint64_t address;
	int8_t small;
	uint8_t bytes[7];
	char path[16];
};

void fake_router_start(struct fake_router *router);
/* Closes the connection, as a router that dies does; the test may go on reading. Who connects then waits. */
void fake_router_hang_up(struct fake_router *router);
/* Its successor: serves who waits, with a ring of its own, and an empty log of requests. */
void fake_router_succeed(struct fake_router *router);
void fake_router_stop(struct fake_router *router);

/* Makes the default schema's bytes; with `big_endian` the payload's numbers are. */
void fake_schema(bool big_endian, void **ret, size_t *ret_size);
struct fake_payload fake_payload(int32_t n, const char *path);

/* Writes one record (not yet visible) and makes all written records visible. */
void fake_router_record(struct fake_router *router, uint8_t kind, uint64_t trace_id, uint64_t time,
	const void *payload, size_t size);
/* An event and, right behind it, as a router gives both: the record of its stacks. */
void fake_router_stacked(struct fake_router *router, uint64_t trace_id, uint64_t time, int32_t n, const void *stack, size_t size);
void fake_router_event(struct fake_router *router, uint64_t trace_id, uint64_t time, int32_t n);
void fake_router_publish(struct fake_router *router);

/* How many requests of a type came. */
size_t fake_router_requests(struct fake_router *router, uint16_t type);

#endif
