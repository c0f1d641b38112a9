#include "base/exit_status.h"
#include "base/log.h"
#include "reader/options.h"
#include "reader/reader.h"

#include <stdio.h>

int main(int argc, char *argv[])
{
	struct reader_options options;
	struct options_error error;

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
	return reader_run(&options);
}
