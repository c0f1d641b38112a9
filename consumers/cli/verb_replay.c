#include "consumers/cli/verb.h"

#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"

#include <stddef.h>

int verb_replay(const struct verb *verb, int argc, char **argv)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { .private_session = &private_session };
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	if (options.text) {
		private_session.input_option = "--text";
		private_session.input = options.text;
	} else if (options.pages) {
		private_session.input_option = "--pages";
		private_session.input = options.pages;
	} else {
		private_session.input_option = "--replay";
		private_session.input = options.file;
	}
	config.options = &options;
	config.all_events = options.event_count == 0;
	status = observation_run(&config);
	options_release(&options);
	return status;
}
