#include "consumers/cli/summary.h"

#include "consumers/cli/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t summary_traces(const struct tfan *tfan)
{
	size_t n = 0;

	while (tfan && tfan_trace_at(tfan, n))
		n++;
	return n;
}

/* A gap in the account is told, the first one for all. */
static bool summary_knows(struct tfan *tfan, int r, const char *what, bool *told)
{
	const struct tfan_failure *failure = tfan_failure(tfan);

	if (r == 0)
		return true;
	if (!*told)
		message("the account of %s is not known: %s", what,
			failure && failure->message && *failure->message ? failure->message : strerror(-r));
	*told = true;
	return false;
}

int summary_make(struct tfan *tfan, const struct plan_set *plans, struct summary *ret)
{
	struct summary summary = { .count = summary_traces(tfan) };
	bool told = false;
	int r;

	summary.probes = calloc(summary.count + 1, sizeof(*summary.probes));
	if (!summary.probes)
		return -ENOMEM;
	for (size_t i = 0; i < summary.count; i++) {
		struct tfan_trace *trace = tfan_trace_at(tfan, i);
		const struct plan *plan = plan_find(plans, trace);

		summary.probes[i].name = tfan_trace_name(trace);
		r = tfan_trace_ledger(trace, &summary.probes[i].ledger);
		summary.probes[i].known = summary_knows(tfan, r, summary.probes[i].name, &told);
		summary.probes[i].shown = plan ? plan->shown : 0;
	}
	/* Why there is no session has been said; who asked for nothing yet misses nothing. */
	told = told || !summary.count;
	summary.session_known = tfan && summary_knows(tfan, tfan_session_ledger(tfan, &summary.session), "the session", &told);
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
	if (session && summary->session_known && (summary->session.lost_kernel || summary->session.undecodable || summary->session.cleared))
		return true;
	for (size_t i = 0; i < summary->count; i++) {
		if (summary->probes[i].known && summary->probes[i].ledger.lost_ring)
			return true;
	}
	return false;
}
