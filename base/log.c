#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The one piece of process-wide state: a log has no caller that could hand it a context. */
static struct {
	const char *program;
	enum log_level most;
} log_state = { "tracefan", LOG_NOTE };

void log_open(const char *program, enum log_level most)
{
	log_state.program = program;
	log_state.most = most;
}

static size_t escape(const char *text, char *out, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *text && n + 5 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != 0x7f) {
			out[n++] = *text;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	return n;
}

void log_write(enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "error: ", "warning: ", "", "debug: " };
	char text[2048], line[4096];
	int saved = errno, head;
	size_t n;
	va_list ap;

	if (level > log_state.most)
		return;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	head = snprintf(line, 256, "%.200s: %s", log_state.program, names[level]);
	n = (size_t)head;
	n += escape(text, line + n, sizeof(line) - n - 1);
	line[n++] = '\n';
	/* One write, so that the lines of several processes on one terminal do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		errno = saved;
	errno = saved;
}
