#include "consumers/cli/verb.h"

#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"

#include <stddef.h>

int verb_trace(const struct verb *verb, int argc, char **argv)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { 0 };
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	config.options = &options;
	if (!options.session) {
		private_session.source = options.source;
		private_session.interval = options.interval;
		config.private_session = &private_session;
	}
	status = observation_run(&config);
	options_release(&options);
	return status;
}
