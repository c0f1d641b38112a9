#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* The file is opened here, with this user's rights and umask; the router only ever sees the descriptor. */
static int verb_record_to(const struct options *options)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { .options = options, .private_session = &private_session, .hidden = true };
	int status;

	private_session.source = options->source;
	private_session.interval = options->interval;
	/* Before an old recording is overwritten for nothing. */
	if (geteuid() != 0) {
		message("recording needs root: run it with sudo");
		return EXIT_NOT_PERMITTED;
	}
	private_session.record_fd = open(options->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (private_session.record_fd < 0) {
		message("%s: %s", options->file, strerror(errno));
		return EXIT_FAILED;
	}
	status = observation_run(&config);
	(void)close(private_session.record_fd);
	return status;
}

int verb_record(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	status = verb_record_to(&options);
	options_release(&options);
	return status;
}
