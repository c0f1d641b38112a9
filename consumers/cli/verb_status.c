#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/options.h"
#include "consumers/cli/session_list.h"
#include "consumers/cli/status.h"
#include "consumers/cli/writer.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static void status_show(struct writer *writer, const struct status *status, const struct options *options)
{
	if (options->format == OPTIONS_JSON)
		status_json(writer, status);
	else
		status_text(writer, status);
	(void)writer_flush(writer);
}

/* Of a session that was named: whether it runs. */
static int status_exit(const struct status *status)
{
	switch (status->state) {
	case STATUS_RUNNING:
		return EXIT_DONE;
	case STATUS_SILENT:
		return EXIT_FAILED;
	default:
		return EXIT_MISSING;
	}
}

static int status_named(struct writer *writer, const struct options *options)
{
	struct status status;
	int result = status_ask(&status, options->session, options->directory, false);

	if (result == 0 || status.operated || status.looked)
		status_show(writer, &status, options);
	if (result == 0)
		result = status_exit(&status);
	status_release(&status);
	return result;
}

/* One that is dead is told, and no failure; one that does not answer is. */
static int status_one(struct writer *writer, const char *name, const char *directory, const struct options *options,
	size_t *others)
{
	struct status status;
	int result = status_ask(&status, name, directory, true);

	if (result == 0 || status.operated || status.looked)
		status_show(writer, &status, options);
	if (result == STATUS_NOT_OURS)
		++*others;
	if (result == 0 && status.state == STATUS_SILENT)
		result = EXIT_FAILED;
	status_release(&status);
	return result < 0 ? EXIT_DONE : result;
}

static int status_all(struct writer *writer, const struct options *options)
{
	const char *directory = options->directory ? options->directory : SESSION_LIST_DIRECTORY;
	struct session_list list;
	int status = EXIT_DONE;
	size_t others = 0;
	int r = session_list_read(directory, &list);

	if (r < 0) {
		message("%s: %s", directory, strerror(-r));
		return EXIT_FAILED;
	}
	if (list.count == 0 && options->format == OPTIONS_TEXT)
		message("no session is running");
	for (size_t i = 0; i < list.count; i++) {
		int one = status_one(writer, list.names[i], directory, options, &others);

		status = status ? status : one;
	}
	if (others)
		message("not shown: %zu %s that this user may not attach to", others, others == 1 ? "session" : "sessions");
	session_list_release(&list);
	return status;
}

int verb_status(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	struct writer writer;
	int status, written;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	if (writer_open(&writer, STDOUT_FILENO) < 0) {
		message("standard output can't be written");
		return EXIT_FAILED;
	}
	status = options.session ? status_named(&writer, &options) : status_all(&writer, &options);
	written = message_output(writer_flush(&writer));
	writer_close(&writer);
	options_release(&options);
	return written ? written : status;
}
