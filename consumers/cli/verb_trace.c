#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"

#include <stddef.h>
#include <unistd.h>

int verb_trace(const struct verb *verb, int argc, char **argv)
{
	struct private_session_config private_session = { .record_fd = -1 };
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
	if (!options.session && geteuid() != 0) {
		message("a session of one's own needs root: run it with sudo, or attach to a running session with --session NAME");
		status = EXIT_NOT_PERMITTED;
	} else {
		status = observation_run(&config);
	}
	options_release(&options);
	return status;
}
