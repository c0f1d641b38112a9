#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/observation.h"
#include "consumers/cli/options.h"
#include "consumers/cli/output_file.h"

#include <stddef.h>
#include <unistd.h>

/* The file is opened here, with this user's rights and umask; the router only ever sees the descriptor. */
static int verb_record_to(const struct options *options)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { .options = options, .private_session = &private_session, .hidden = true };
	struct output_file file = OUTPUT_FILE_NONE;
	int status;

	private_session.source = options->source;
	private_session.interval = options->interval;
	if (geteuid() != 0) {
		message("recording needs root: run it with sudo");
		return EXIT_NOT_PERMITTED;
	}
	status = output_file_open(&file, options->file);
	if (status != 0)
		return status;
	private_session.record_fd = file.fd;
	config.recording = &file;
	status = observation_run(&config);
	output_file_close(&file);
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
