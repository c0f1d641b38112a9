#include "base/exit_status.h"
#include "base/log.h"
#include "base/process.h"
#include "reader/config.h"
#include "reader/options.h"
#include "reader/reader.h"

#include <stdio.h>
#include <unistd.h>

/* Also without a file: options can contradict each other, too. */
static int configure(struct reader_options *options, struct config *config)
{
	struct config_error error = { 0 };
	const char *path = options->config;
	int r = path ? config_read(path, geteuid(), config, &error) : 0;

	if (!r)
		r = config_apply(config, options, &error);
	if (r < 0 && error.line > 0)
		log_error("%s: line %d: %s", path, error.line, error.message);
	else if (r < 0)
		log_error("%s%s%s", path ? path : "", path ? ": " : "", error.message);
	return r;
}

static int run(struct reader_options *options)
{
	struct config config = { 0 };
	int r = configure(options, &config);
	int status = r < 0 ? options_file_status(r) : reader_run(options);

	config_release(&config);
	return status;
}

int main(int argc, char *argv[])
{
	struct reader_options options;
	struct options_error error;

	if (process_fill_standard() < 0)
		return EXIT_FAILED;
	log_open("tracefan-reader", LOG_NOTE);
	if (options_parse(argc, argv, &options, &error) < 0) {
		log_error("%s", error.message);
		return EXIT_USAGE;
	}
	if (options.verbose)
		log_open("tracefan-reader", LOG_DEBUG);
	switch (options.action) {
	case OPTIONS_HELP:
		return fputs(options_usage, stdout) < 0 || fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
	case OPTIONS_VERSION:
		return printf("tracefan-reader %s\n", TRACEFAN_VERSION) < 0 || fflush(stdout)
			       ? EXIT_FAILED
			       : EXIT_DONE;
	case OPTIONS_REMOVE:
		return reader_remove(&options);
	case OPTIONS_RUN:
		break;
	}
	return run(&options);
}
