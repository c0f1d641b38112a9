#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/near_name.h"
#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"
#include "consumers/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Before a session is started for nothing. */
static bool verb_watch_knows(const char *what)
{
	struct near_name near;

	near_name_init(&near, what);
	for (size_t i = 0; watch_kind_at(i); i++) {
		if (strcmp(watch_kind_at(i), what) == 0)
			return true;
		near_name_offer(&near, watch_kind_at(i));
	}
	if (near.best)
		message("nothing to watch is called '%s'; did you mean %s?", what, near.best);
	else
		message("nothing to watch is called '%s'; see tracefan watch --help", what);
	return false;
}

int verb_watch(const struct verb *verb, int argc, char **argv)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { 0 };
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	if (!verb_watch_knows(options.action)) {
		options_release(&options);
		return EXIT_USAGE;
	}
	config.options = &options;
	config.watch = options.action;
	if (!options.session) {
		private_session.source = options.source;
		private_session.interval = options.interval;
		config.private_session = &private_session;
	}
	status = observation_run(&config);
	options_release(&options);
	return status;
}
