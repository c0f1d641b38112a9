/* One attachment to a session, from its traces' making to its summary: what trace, record and replay share. */
#ifndef TRACEFAN_CLI_OBSERVATION_H
#define TRACEFAN_CLI_OBSERVATION_H

#include "consumers/cli/options.h"
#include "consumers/cli/output_file.h"
#include "consumers/cli/private_session.h"

#include <stdbool.h>

struct observation_config {
	const struct options *options;
	const struct private_session_config *private_session; /* NULL: attach to options->session */
	struct output_file *recording; /* what the session is recorded to; NULL: it isn't */
	const char *watch; /* an observer's kind; NULL: the options' own probes */
	bool all_events; /* a recording, without a choice of events */
	bool hidden;     /* take events, show none: they are recorded elsewhere */
};

/* Returns the exit status. */
int observation_run(const struct observation_config *config);
/* Of the running kernel: in the options' session, or in a private one. `watch` as above. */
int observation_run_live(const struct options *options, const char *watch);

#endif
