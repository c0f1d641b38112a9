#include "consumers/cli/summary.h"

#include <errno.h>
#include <stdlib.h>

static size_t summary_traces(const struct tfan *tfan)
{
	size_t n = 0;

	while (tfan && tfan_trace_at(tfan, n))
		n++;
	return n;
}

int summary_make(struct tfan *tfan, const struct plan_set *plans, struct summary *ret)
{
	struct summary summary = { .count = summary_traces(tfan) };

	summary.probes = calloc(summary.count + 1, sizeof(*summary.probes));
	if (!summary.probes)
		return -ENOMEM;
	for (size_t i = 0; i < summary.count; i++) {
		struct tfan_trace *trace = tfan_trace_at(tfan, i);
		const struct plan *plan = plan_find(plans, trace);

		summary.probes[i].name = tfan_trace_name(trace);
		summary.probes[i].known = tfan_trace_ledger(trace, &summary.probes[i].ledger) == 0;
		summary.probes[i].shown = plan ? plan->shown : 0;
	}
	summary.session_known = tfan && tfan_session_ledger(tfan, &summary.session) == 0;
	*ret = summary;
	return 0;
}

void summary_release(struct summary *summary)
{
	free(summary->probes);
	*summary = (struct summary){ 0 };
}

bool summary_lost(const struct summary *summary, bool session)
{
	if (session && summary->session_known && (summary->session.lost_kernel || summary->session.undecodable))
		return true;
	for (size_t i = 0; i < summary->count; i++) {
		if (summary->probes[i].known && summary->probes[i].ledger.lost_ring)
			return true;
	}
	return false;
}
