/* How many hits of the session's own probes the kernel kept away, by a filter or because an
 * observer is not to see itself: what its profile counts, before filters, less what it recorded.
 * Known where this router has seen all of a probe's events and none can have been lost; nobody
 * counts the hits of a tracepoint, and those of a uretprobe are counted when a function is entered.
 *
 * The profile is older than what it is compared with, by the time that it takes to tell what was in
 * the kernel's ring. So what is found is the least that it can be, and right once the probe rests.
 */
#ifndef TRACEFAN_ROUTER_KEPT_H
#define TRACEFAN_ROUTER_KEPT_H

#include "router/fanout.h"

struct kept_hits {
	struct route *route;
	uint64_t hits;
};

/* The kernel's profile as of one moment. All zeroes is an empty one. */
struct kept {
	struct kept_hits *at; /* owned */
	size_t count, room;
	uint64_t lost; /* events of any kind that had been lost by then, all in all */
};

/* A probe begins that nobody has had before: `lost` as of the last profile. */
void kept_begin(struct route *route, uint32_t probe_kind, uint64_t lost);
/* Returns 0 or -ENOMEM. */
int kept_add(struct kept *kept, struct route *route, uint64_t hits);
/* Everything that was committed before the profile was read has been told. */
void kept_settle(const struct kept *kept);
void kept_release(struct kept *kept);

/* What is known of all probes that somebody has. */
void kept_sum(const struct fanout *fanout, struct ledger_kept *ret);

#endif
