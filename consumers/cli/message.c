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
/* Bytes of what the user gave: as many are shown whole, of more those around a place. */
#define MESSAGE_WHOLE  256
#define MESSAGE_AROUND 80

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

/* The beginning of the character that the byte at `at` belongs to, if that is one. */
static size_t message_character(const char *text, size_t at)
{
	size_t begin = at;

	while (begin > 0 && at - begin < 3 && ((unsigned char)text[begin] & 0xc0) == 0x80)
		begin--;
	return begin;
}

/* The text, or what of it is around `position`, and the mark below that. */
static void message_place(struct writer *writer, const char *text, size_t position)
{
	static const char more[] = "... ";
	size_t size = strlen(text), from = 0, to = size, columns;

	if (size > MESSAGE_WHOLE && position > MESSAGE_AROUND)
		from = message_character(text, position - MESSAGE_AROUND);
	if (size > MESSAGE_WHOLE && size - position > MESSAGE_AROUND)
		to = message_character(text, position + MESSAGE_AROUND);
	writer_text(writer, "    ");
	writer_text(writer, from > 0 ? more : "");
	/* The mark counts what is shown, not bytes. */
	columns = (from > 0 ? strlen(more) : 0) + escape_plain(writer, text + from, position - from);
	(void)escape_plain(writer, text + position, to - position);
	writer_text(writer, to < size ? " ..." : "");
	if (size > MESSAGE_WHOLE) {
		writer_number(writer, " (", size);
		writer_text(writer, " bytes)");
	}
	writer_end_line(writer);
	writer_text(writer, "    ");
	for (size_t i = 0; i < columns; i++)
		writer_char(writer, ' ');
	writer_char(writer, '^');
	writer_end_line(writer);
}

void message_at(const char *text, int position, const char *what)
{
	struct writer writer;

	if (writer_open(&writer, STDERR_FILENO) < 0)
		return;
	message_line(&writer, "tracefan: ", what);
	/* Nothing but blanks shows no place. */
	if (position >= 0 && (size_t)position <= strlen(text) && text[strspn(text, " \t\r\n")])
		message_place(&writer, text, (size_t)position);
	(void)writer_flush(&writer);
	writer_close(&writer);
}

struct message_word message_word(const char *word)
{
	struct message_word shown;
	size_t size = strlen(word);

	if (size <= MESSAGE_WHOLE)
		(void)snprintf(shown.text, sizeof(shown.text), "%s", word);
	else
		(void)snprintf(shown.text, sizeof(shown.text), "%.*s... (%zu bytes)", (int)message_character(word, MESSAGE_AROUND),
			word, size);
	return shown;
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
