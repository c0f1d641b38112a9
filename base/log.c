#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The one piece of process-wide state: a log has no caller that could hand it a context. */
static struct {
	const char *program;
	enum log_level most;
	long long limit; /* bytes of the file that it goes to; 0: none */
} log_state = { "tracefan", LOG_NOTE, 0 };

void log_open(const char *program, enum log_level most)
{
	const char *limit = getenv(LOG_LIMIT);

	log_state.program = program;
	log_state.most = most;
	log_state.limit = limit ? strtoll(limit, NULL, 10) : 0;
}

/* There is nobody to tell when it fails. */
static void put(const char *line, size_t size)
{
	while (write(STDERR_FILENO, line, size) < 0 && errno == EINTR)
		;
}

/* What consumers do is logged, too, and a daemon can't give its log another name: so one that is full begins anew. Of two
 * daemons that find it full at once both may empty it. */
static void keep_limit(size_t more)
{
	struct stat st;
	char line[320];
	int n;

	if (log_state.limit <= 0 || fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
		(long long)st.st_size + (long long)more <= log_state.limit || ftruncate(STDERR_FILENO, 0) < 0)
		return;
	n = snprintf(line, sizeof(line), "%.200s: the log was full, at %lld bytes, and begins anew\n", log_state.program,
		(long long)st.st_size);
	put(line, (size_t)n);
}

/* Bytes that a terminal may take for a command: C0, DEL and both bytes of C1 in UTF-8 (c2 80 to c2 9f).
 * `before` is the byte ahead of c; text ends with a NUL, so c[1] can be looked at. */
static bool is_control(unsigned char before, const unsigned char *c)
{
	if (before == 0xc2 && (c[0] & 0xe0) == 0x80)
		return true;
	return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && (c[1] & 0xe0) == 0x80);
}

/* Writes `text` to `out`, control characters as \xNN, as far as it fits. Returns how many bytes were
 * written; *ret_cut is set when the text's end did not fit. */
static size_t escape(const char *text, char *out, size_t size, bool *ret_cut)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *c = (const unsigned char *)text;
	unsigned char before = 0;
	size_t n = 0;

	for (; *c && n + 4 <= size; before = *c++) {
		if (!is_control(before, c)) {
			out[n++] = (char)*c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = hex[*c >> 4];
		out[n++] = hex[*c & 15];
	}
	*ret_cut = *c != '\0';
	return n;
}

void log_write(enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "error: ", "warning: ", "", "debug: " };
	static const char cut_mark[] = " [cut]";
	char text[2048], line[PIPE_BUF];
	int saved = errno, length;
	bool cut;
	size_t n;
	va_list ap;

	if (level > log_state.most)
		return;
	va_start(ap, format);
	length = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	n = (size_t)snprintf(line, 256, "%.200s: %s", log_state.program, names[level]);
	n += escape(text, line + n, sizeof(line) - n - sizeof(cut_mark), &cut);
	if (cut || length >= (int)sizeof(text)) {
		memcpy(line + n, cut_mark, sizeof(cut_mark) - 1);
		n += sizeof(cut_mark) - 1;
	}
	line[n++] = '\n';
	keep_limit(n);
	/* One write of at most PIPE_BUF bytes, so that the lines of several processes do not mix. */
	put(line, n);
	errno = saved;
}
