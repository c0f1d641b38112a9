/* workload_rate CPU FIRST RATE: pins itself to CPU, says "going", and calls getpgid(FIRST), getpgid(FIRST + 1), ..., RATE of
 * them a second, until its standard input ends; then prints how many calls it made. What it was kept from doing in time
 * it makes up for. */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 1000000L

static long ns_since(const struct timespec *start)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - start->tv_sec) * 1000000000L + now.tv_nsec - start->tv_nsec;
}

int main(int argc, char **argv)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned long first, rate, count = 0;
	struct timespec start;
	cpu_set_t cpus;

	if (argc != 4) {
		fprintf(stderr, "usage: workload_rate CPU FIRST RATE\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(strtoul(argv[1], NULL, 0), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0) {
		perror("workload_rate");
		return 1;
	}
	first = strtoul(argv[2], NULL, 0);
	rate = strtoul(argv[3], NULL, 0);
	puts("going");
	(void)fflush(stdout);
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	while (poll(&input, 1, 0) == 0) {
		unsigned long due = (unsigned long)((double)ns_since(&start) / 1e9 * (double)rate);

		for (; count < due; count++)
			(void)syscall(SYS_getpgid, first + count);
		(void)nanosleep(&tick, NULL);
	}
	printf("%lu\n", count);
	return 0;
}
