#include "base/time_namespace.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "monotonic      86400         0", and a line for the other clock: seconds, and nanoseconds that are never negative. */
int64_t time_namespace_ahead(void)
{
	CLEANUP_CLOSE int fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
	long long seconds = 0, nanoseconds = 0;
	char text[256] = { 0 };
	const char *line;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	line = strstr(text, "monotonic ");
	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &nanoseconds) != 2)
		return 0;
	return (int64_t)seconds * 1000000000 + (int64_t)nanoseconds;
}
