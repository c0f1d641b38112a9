/* What a run comes to: the session's ledger, and each probe's. */
#ifndef TRACEFAN_CLI_SUMMARY_H
#define TRACEFAN_CLI_SUMMARY_H

#include "consumers/cli/plan.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct summary_probe {
	const char *name;
	bool known; /* false: the router could not be asked */
	struct tfan_ledger ledger;
	uint64_t shown; /* events that this program wrote */
};

struct summary {
	bool session_known;
	struct tfan_session_ledger session;
	struct summary_probe *probes;
	size_t count;
	bool only_busy; /* in text, of the probes those that something became of */
	bool unshown; /* writing failed: what is counted as shown may not have been written */
};

/* Asks for the ledgers of the connection and its traces; `plans` knows what was shown. Names stay the
 * connection's: valid until it is closed. Returns 0 or -ENOMEM. */
int summary_make(struct tfan *tfan, const struct plan_set *plans, struct summary *ret);
void summary_release(struct summary *summary);

/* Whether any event of the probes is known to have been lost; with `session`, of the session as a whole. */
bool summary_lost(const struct summary *summary, bool session);

#endif
