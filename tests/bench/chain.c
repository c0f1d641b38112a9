/* bench_chain COUNT FILE...: the least that an event takes through three processes which sleep until
 * they are woken. The first waits by poll(2) for the trace_pipe_raw files, reads a sub-buffer and
 * passes on its first event's time; the second passes it on to the third, which prints how old COUNT
 * of them were when they came, in nanoseconds of CLOCK_MONOTONIC. Nobody does anything else. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SUBBUF    4096
#define FILES_MAX 1024

static uint64_t now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* An event's header has its kind in the low five bits and above the nanoseconds since the one before. */
static uint64_t first_time(const uint64_t *subbuf)
{
	const uint32_t *event = (const uint32_t *)(subbuf + 2);

	if ((*event & 31) == 30)
		return subbuf[0] + (event[0] >> 5) + ((uint64_t)event[1] << 27) + (event[2] >> 5);
	return subbuf[0] + (*event >> 5);
}

static void take_out(struct pollfd *files, nfds_t count, int next)
{
	static uint64_t buffer[SUBBUF / sizeof(uint64_t)];
	uint64_t time;

	while (poll(files, count, -1) > 0) {
		for (nfds_t i = 0; i < count; i++) {
			if (!(files[i].revents & POLLIN) || read(files[i].fd, buffer, sizeof(buffer)) != sizeof(buffer))
				continue;
			time = first_time(buffer);
			if (write(next, &time, sizeof(time)) != sizeof(time))
				return;
		}
	}
}

static void pass_on(int from, int next)
{
	uint64_t time;

	while (read(from, &time, sizeof(time)) == sizeof(time)) {
		if (write(next, &time, sizeof(time)) != sizeof(time))
			return;
	}
}

/* True in a new process that ends with this one. */
static int in_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid == 0;
}

static int show_ages(int from, unsigned long count)
{
	uint64_t *ages = calloc(count, sizeof(*ages)), time;

	if (!ages)
		return 1;
	for (unsigned long i = 0; i < count; i++) {
		if (read(from, &time, sizeof(time)) != sizeof(time)) {
			free(ages);
			return 1;
		}
		ages[i] = now() - time;
	}
	for (unsigned long i = 0; i < count; i++)
		(void)printf("%llu\n", (unsigned long long)ages[i]);
	free(ages);
	return 0;
}

int main(int argc, char **argv)
{
	static struct pollfd files[FILES_MAX];
	const unsigned long count = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	int first[2], second[2];

	if (!count || argc - 2 > FILES_MAX)
		return 2;
	for (int i = 2; i < argc; i++) {
		files[i - 2] = (struct pollfd){ .fd = open(argv[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC), .events = POLLIN };
		if (files[i - 2].fd < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	if (pipe(first) < 0 || pipe(second) < 0)
		return 1;
	if (in_child()) {
		take_out(files, (nfds_t)(argc - 2), first[1]);
		_exit(1);
	}
	if (in_child()) {
		pass_on(first[0], second[1]);
		_exit(1);
	}
	(void)close(second[1]);
	(void)puts("ready");
	(void)fflush(stdout);
	return show_ages(second[0], count);
}
