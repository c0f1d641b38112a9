/* bench_drain FILE...: the cheapest way to take sub-buffers out of the kernel: read(2) of each
 * trace_pipe_raw, with O_NONBLOCK, into one buffer that is used again and again, until all are
 * empty. Prints a line: bytes that the sub-buffers held, sub-buffers, and the nanoseconds of this
 * process's time that it took. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SUBBUF 4096
/* The length in a sub-buffer's second word. */
#define LENGTH_MASK ((1U << 27) - 1)

static uint64_t spent(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void drain(int fd, uint64_t *bytes, uint64_t *count)
{
	static uint64_t buffer[SUBBUF / sizeof(uint64_t)];

	while (read(fd, buffer, sizeof(buffer)) == (ssize_t)sizeof(buffer)) {
		*bytes += buffer[1] & LENGTH_MASK;
		++*count;
	}
}

int main(int argc, char **argv)
{
	uint64_t bytes = 0, count = 0, before;
	int *fds = calloc((size_t)argc, sizeof(*fds));

	if (!fds)
		return 1;
	for (int i = 1; i < argc; i++) {
		fds[i] = open(argv[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fds[i] < 0) {
			perror(argv[i]);
			free(fds);
			return 1;
		}
	}
	before = spent();
	for (int i = 1; i < argc; i++)
		drain(fds[i], &bytes, &count);
	(void)printf("%llu %llu %llu\n", (unsigned long long)bytes, (unsigned long long)count,
		(unsigned long long)(spent() - before));
	free(fds);
	return 0;
}
