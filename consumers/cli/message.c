#include "consumers/cli/message.h"

#include "base/exit_status.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longer ones are cut: the ends of messages are hints. */
#define MESSAGE_SIZE 2048

static void message_line(struct writer *writer, const char *before, const char *text)
{
	writer_text(writer, before);
	(void)escape_plain(writer, text, strlen(text));
	writer_end_line(writer);
}

void message(const char *format, ...)
{
	struct writer writer;
	char text[MESSAGE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (writer_open(&writer, STDERR_FILENO) < 0)
		return;
	message_line(&writer, "tracefan: ", text);
	(void)writer_flush(&writer);
	writer_close(&writer);
}

void message_at(const char *text, int position, const char *what)
{
	struct writer writer;
	size_t columns;

	if (writer_open(&writer, STDERR_FILENO) < 0)
		return;
	message_line(&writer, "tracefan: ", what);
	if (position >= 0 && (size_t)position <= strlen(text)) {
		writer_text(&writer, "    ");
		/* The mark counts what is shown, not bytes. */
		columns = escape_plain(&writer, text, (size_t)position);
		(void)escape_plain(&writer, text + position, strlen(text + position));
		writer_end_line(&writer);
		writer_text(&writer, "    ");
		for (size_t i = 0; i < columns; i++)
			writer_char(&writer, ' ');
		writer_char(&writer, '^');
		writer_end_line(&writer);
	}
	(void)writer_flush(&writer);
	writer_close(&writer);
}

int message_failure(const struct tfan_failure *failure, const char *text)
{
	if (!failure) {
		message("out of memory");
		return EXIT_FAILED;
	}
	/* Who gave it up knows. */
	if (failure->error == ECANCELED)
		return EXIT_FAILED;
	message_at(text ? text : "", text ? failure->position : -1,
		failure->message && *failure->message ? failure->message : strerror(failure->error));
	/* The library's classes are the exit statuses. */
	return failure->category >= TFAN_FAILED && failure->category <= TFAN_BUSY ? (int)failure->category : EXIT_FAILED;
}

int message_output(int error)
{
	if (error == 0 || error == -EPIPE)
		return EXIT_DONE;
	message("writing to standard output: %s", strerror(-error));
	return EXIT_FAILED;
}
