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

/* The line of the event that has the pattern as its whole name; NULL: there is none. Of a place that a policy lets probes be
 * defined at there are no fields. */
static const char *ls_event_line(const char *list, const char *pattern)
{
	size_t size = pattern ? strlen(pattern) : 0;

	if (!size || !strchr(pattern, ':') || strchr(pattern, '/') || strncmp(pattern, "kprobe:", strlen("kprobe:")) == 0 ||
		strncmp(pattern, "kretprobe:", strlen("kretprobe:")) == 0)
		return NULL;
	while (*list && (strncmp(list, pattern, size) != 0 || !strchr(" \n", list[size]))) {
		list += strcspn(list, "\n");
		list += *list == '\n';
	}
	return *list ? list : NULL;
}

/* Writes the event's own fields, as filters and output call them. */
static void ls_fields(struct writer *writer, const struct tfan_trace *trace)
{
	struct tfan_field field;
	size_t width = 0;

	for (size_t i = 0; tfan_field_at(trace, i, &field) == 0; i++) {
		if (!field.is_common && strlen(field.name) > width)
			width = strlen(field.name);
	}
	for (size_t i = 0; tfan_field_at(trace, i, &field) == 0; i++) {
		size_t used;

		if (field.is_common)
			continue;
		writer_text(writer, "  ");
		used = escape_plain(writer, field.name, strlen(field.name));
		for (; used < width + 2; used++)
			writer_char(writer, ' ');
		(void)escape_plain(writer, field.type, strlen(field.type));
		writer_end_line(writer);
	}
}

/* One event's line, and below it what it has. */
static int ls_event(struct tfan *tfan, struct writer *writer, const char *line, const char *name)
{
	struct tfan_trace *trace;
	char probe[600];

	(void)escape_plain(writer, line, strcspn(line, "\n"));
	writer_end_line(writer);
	(void)snprintf(probe, sizeof(probe), "tracepoint:%s", name);
	if (tfan_trace_create(tfan, probe, &trace) < 0)
		return message_failure(tfan_failure(tfan), NULL);
	ls_fields(writer, trace);
	return EXIT_DONE;
}

static int ls_show(struct tfan *tfan, const struct options *options)
{
	int status = EXIT_DONE, written;
	const char *list, *event;
	struct writer writer;
	size_t count = 1;

	if (tfan_list(tfan, &list) < 0)
		return message_failure(tfan_failure(tfan), NULL);
	if (writer_open(&writer, STDOUT_FILENO) < 0) {
		message("standard output can't be written");
		return EXIT_FAILED;
	}
	event = ls_event_line(list, options->pattern);
	if (event)
		status = ls_event(tfan, &writer, event, options->pattern);
	else
		count = ls_write(&writer, list, options->pattern);
	written = message_output(writer_flush(&writer));
	writer_close(&writer);
	if (count > 0 || written != EXIT_DONE)
		return written ? written : status;
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
