#include "consumers/cli/verb.h"

#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"

#include <stddef.h>

int verb_trace(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	status = observation_run_live(&options, NULL);
	options_release(&options);
	return status;
}
