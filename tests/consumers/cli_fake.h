/* A libtracefan for the command line's tests: the same interface, made-up events, no daemons. What a
 * connection does is decided by the name of its session:
 *
 *   NAME           meaning
 *   plain          three events of each trace, then nothing more
 *   burst-N        N events of each trace, then nothing more
 *   endless        events without end
 *   hostile        strings and names of every kind of byte
 *   lossy          events, and between them losses of every kind
 *   gap            a gap in which nothing was lost
 *   finished, stopped, error, refused    three events, then the session's end
 *   reset          three events, then the router is gone
 *   denied         can't be attached to
 *   deaf           enabling fails
 *   ledgerless     the router can't be asked for ledgers
 *   private-...    as plain (what a private session is called)
 *   routerless     as plain, but the operator is told that no router is connected
 *
 * The operator's side is the same by name: denied can't be reached, deaf gives no answer, others do.
 *
 * A probe whose text holds "nosuch" has no such location, one that holds "badarg" a bad argument. */
#ifndef TESTS_CONSUMERS_CLI_FAKE_H
#define TESTS_CONSUMERS_CLI_FAKE_H

#include "consumers/client/tracefan.h"

#include <stddef.h>
#include <stdint.h>

#define FAKE_VALUES 12

/* One field's value in one event. */
struct fake_value {
	int error;         /* -errno: reading fails */
	uint64_t number;   /* TFAN_INTEGER */
	const void *bytes; /* the others */
	size_t size;
};

struct tfan_event {
	enum tfan_kind kind;
	struct tfan_trace *trace;
	uint64_t time, wall;
	int cpu, pid;
	const char *comm;
	bool late, suspect, partial;
	struct fake_value values[FAKE_VALUES];
	struct tfan_lost lost;
	enum tfan_end_reason reason;
	const char *message;
	const struct tfan_process *process; /* NULL: not known */
	const struct tfan_state *state;
};

struct tfan_trace {
	struct tfan *tfan;
	uint64_t id;
	char name[256], filter[256];
	const struct tfan_field *fields;
	size_t field_count;
	bool enabled;
	struct tfan_ledger ledger;
};

#endif
