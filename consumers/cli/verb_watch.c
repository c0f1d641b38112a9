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
		message("nothing to watch is called '%s'; did you mean %s?", message_word(what).text, near.best);
	else
		message("nothing to watch is called '%s'; see tracefan watch --help", message_word(what).text);
	return false;
}

int verb_watch(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	status = verb_watch_knows(options.action) ? observation_run_live(&options, options.action) : EXIT_USAGE;
	options_release(&options);
	return status;
}
