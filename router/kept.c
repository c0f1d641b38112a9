#include "router/kept.h"

#include <errno.h>
#include <stdlib.h>

void kept_begin(struct route *route, uint32_t probe_kind, uint64_t lost)
{
	route->counted = probe_kind != PROBE_TRACEPOINT && probe_kind != PROBE_EVENT && probe_kind != PROBE_URETPROBE;
	route->lost_before = lost;
}

int kept_add(struct kept *kept, struct route *route, uint64_t hits)
{
	if (kept->count == kept->room) {
		size_t room = kept->room ? 2 * kept->room : 16;
		struct kept_hits *more = realloc(kept->at, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		kept->at = more;
		kept->room = room;
	}
	kept->at[kept->count++] = (struct kept_hits){ fanout_route_hold(route), hits };
	return 0;
}

void kept_settle(const struct kept *kept)
{
	for (size_t i = 0; i < kept->count; i++) {
		struct route *route = kept->at[i].route;
		uint64_t recorded = route->told + route->unclaimed, hits = kept->at[i].hits;

		if (!route->counted || kept->lost != route->lost_before)
			route->kept = LEDGER_UNKNOWN;
		else
			route->kept = hits > recorded ? hits - recorded : 0;
	}
}

void kept_release(struct kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		fanout_route_let_go(kept->at[i].route);
	free(kept->at);
	*kept = (struct kept){ 0 };
}

void kept_sum(const struct fanout *fanout, struct ledger_kept *ret)
{
	*ret = (struct ledger_kept){ 0 };
	for (size_t i = 0; i < fanout->route_count; i++) {
		const struct route *route = fanout->routes[i];

		if (!route->trace_count)
			continue;
		if (route->kept == LEDGER_UNKNOWN) {
			ret->others++;
			continue;
		}
		ret->hits += route->kept;
		ret->probes++;
	}
}
