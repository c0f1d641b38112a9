/* bench_lines COUNT: how old the lines of standard input are when they come.
 *
 * A line's time is its first number of the form SECONDS.MICROSECONDS with a colon behind it, as
 * ftrace prints it, or else the number that it begins with, in nanoseconds; both of
 * CLOCK_MONOTONIC. Prints the ages of COUNT such lines in nanoseconds. A pipe is read to its end
 * before: whoever writes to it must not find it closed. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct ages {
	uint64_t *ns;
	unsigned long count, room;
};

static uint64_t now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The line is ended by a NUL. */
static bool line_time(const char *line, uint64_t *ret)
{
	const char *dot = line;
	char *end;

	while ((dot = strchr(dot + 1, '.'))) {
		const char *begin = dot;

		while (begin > line && isdigit((unsigned char)begin[-1]))
			begin--;
		if (begin == dot || strspn(dot + 1, "0123456789") != 6 || dot[7] != ':')
			continue;
		*ret = strtoull(begin, NULL, 10) * 1000000000 + strtoull(dot + 1, NULL, 10) * 1000;
		return true;
	}
	*ret = strtoull(line, &end, 10);
	return end != line && *end == '\0';
}

static void take_lines(struct ages *ages, char *text, size_t *used, uint64_t came)
{
	char *line = text, *newline;

	while ((newline = memchr(line, '\n', *used - (size_t)(line - text)))) {
		uint64_t time;

		*newline = '\0';
		if (line_time(line, &time) && ages->count < ages->room)
			ages->ns[ages->count++] = came > time ? came - time : 0;
		line = newline + 1;
	}
	*used -= (size_t)(line - text);
	memmove(text, line, *used);
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int main(int argc, char **argv)
{
	struct ages ages = { .room = argc == 2 ? strtoul(argv[1], NULL, 10) : 0 };
	static char text[64 << 10];
	size_t used = 0;

	ages.ns = calloc(ages.room ? ages.room : 1, sizeof(*ages.ns));
	if (!ages.ns || !ages.room)
		return 2;
	while (ages.count < ages.room || is_pipe(STDIN_FILENO)) {
		ssize_t n = read(STDIN_FILENO, text + used, sizeof(text) - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
		take_lines(&ages, text, &used, now());
	}
	for (unsigned long i = 0; i < ages.count; i++)
		(void)printf("%llu\n", (unsigned long long)ages.ns[i]);
	free(ages.ns);
	return 0;
}
