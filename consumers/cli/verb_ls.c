#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/message.h"
#include "consumers/cli/options.h"
#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A pattern is of the whole name, SYSTEM:EVENT, or of the event's alone; without wildcards it may stand anywhere in the
 * line. */
static bool ls_matches(const char *pattern, const char *line)
{
	char name[512];
	const char *colon;

	if (!pattern)
		return true;
	if (!strpbrk(pattern, "*?["))
		return strstr(line, pattern) != NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, " "), line);
	colon = strchr(name, ':');
	return fnmatch(pattern, name, 0) == 0 || (colon && fnmatch(pattern, colon + 1, 0) == 0);
}

/* Writes the lines of `list` that match. Returns how many. */
static size_t ls_write(struct writer *writer, const char *list, const char *pattern)
{
	size_t count = 0;
	char name[512];

	while (*list) {
		size_t length = strcspn(list, "\n");

		(void)snprintf(name, sizeof(name), "%.*s", (int)length, list);
		if (length > 0 && ls_matches(pattern, name)) {
			(void)escape_plain(writer, name, strlen(name));
			writer_end_line(writer);
			count++;
		}
		list += length + (list[length] == '\n');
	}
	return count;
}

static int ls_show(struct tfan *tfan, const struct options *options)
{
	struct writer writer;
	const char *list;
	size_t count;
	int status;

	if (tfan_list(tfan, &list) < 0)
		return message_failure(tfan_failure(tfan), NULL);
	if (writer_open(&writer, STDOUT_FILENO) < 0) {
		message("standard output can't be written");
		return EXIT_FAILED;
	}
	count = ls_write(&writer, list, options->pattern);
	status = message_output(writer_flush(&writer));
	writer_close(&writer);
	if (count > 0 || status != EXIT_DONE)
		return status;
	if (options->pattern)
		message("no event matches '%s'", message_word(options->pattern).text);
	else
		message("this session has no event that you may trace");
	return EXIT_LOCATION;
}

int verb_ls(const struct verb *verb, int argc, char **argv)
{
	struct attachment attachment = ATTACHMENT_NONE;
	struct options options;
	int status, closed;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	options.ring_size = ATTACHMENT_LEAST_RING;
	status = attachment_open(&attachment, &options, NULL, false);
	if (status == 0)
		status = ls_show(attachment.tfan, &options);
	closed = attachment_close(&attachment);
	options_release(&options);
	return status ? status : closed;
}
