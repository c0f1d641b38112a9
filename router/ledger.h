/* The kernel's side of the ledger, out of the stats files that the reader sends as bytes. Pure. */
#ifndef TRACEFAN_ROUTER_LEDGER_H
#define TRACEFAN_ROUTER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger_kernel {
	uint64_t read;    /* events that were taken out of the ring */
	uint64_t overrun; /* committed and overwritten before anybody took them */
	uint64_t entries; /* committed and still in the ring */
	uint64_t dropped; /* never committed: no room, or recursion */
	bool off;         /* nothing is committed: somebody switched the buffers off */
};

/* Adds up every FACT_STATS of an account blob (shm/control_abi.h), and looks at FACT_TRACING_ON. Returns 0 or -EBADMSG. */
int ledger_kernel_parse(const void *blob, size_t size, struct ledger_kernel *ret);

/* The kernel's counts from account to account. They only grow, unless somebody clears the buffers of the instance, which
 * sets them to 0: then what had been counted before is known in part. */
struct ledger_counts {
	struct ledger_kernel before; /* of what the kernel has forgotten, so much at least */
	struct ledger_kernel last;   /* as of the last account, with `before` */
	uint32_t cleared;            /* how often that has been found */
};

/* Adds to `kernel` what it has forgotten; `known` events are accounted for that it must have counted as read. Returns whether
 * it has forgotten more since the last account. */
bool ledger_counts_take(struct ledger_counts *counts, uint64_t known, struct ledger_kernel *kernel);

/* What the kernel counted for one dynamic probe, before filters. */
struct ledger_probe {
	const char *event; /* not NUL-terminated */
	size_t event_size;
	uint64_t hits;
	uint64_t missed; /* return probes that found no free instance; kprobe_profile only */
};

/* Calls `take` for each line of every FACT_KPROBE_PROFILE and FACT_UPROBE_PROFILE of an account blob.
 * Returns 0 or -EBADMSG. */
int ledger_probes_parse(const void *blob, size_t size, void (*take)(void *context, const struct ledger_probe *probe),
	void *context);

/* Walks the facts of a blob: *at starts at 0. Returns 1 with the fact, 0 at the end, -EBADMSG. */
struct control_fact_header;
int ledger_fact_next(const void *blob, size_t size, size_t *at, struct control_fact_header *ret, const char **ret_bytes);

#endif
