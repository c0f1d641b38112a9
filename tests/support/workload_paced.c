/* workload_paced CPU FIRST EXTRA: waits for a byte on its standard input, then calls getpgid(FIRST), getpgid(FIRST + 1), ..., and between them getpgid of the
 * numbers EXTRA to EXTRA + WORKLOAD_EXTRAS - 1 in turn, until more comes or its standard input ends; then prints how
 * many calls of the first kind it made. It rests after each few, so that it can go on for long without filling any ring. */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKLOAD_EXTRAS 64
#define WORKLOAD_PIECE  16

static void piece(unsigned long first, unsigned long extra, unsigned long from)
{
	for (unsigned long i = from; i < from + WORKLOAD_PIECE; i++) {
		(void)syscall(SYS_getpgid, first + i);
		(void)syscall(SYS_getpgid, extra + i % WORKLOAD_EXTRAS);
	}
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned long first, extra, count = 0;
	cpu_set_t cpus;
	char byte;

	if (argc != 4) {
		fprintf(stderr, "usage: workload_paced CPU FIRST EXTRA\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(strtoul(argv[1], NULL, 0), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0) {
		perror("workload_paced");
		return 1;
	}
	first = strtoul(argv[2], NULL, 0);
	extra = strtoul(argv[3], NULL, 0);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	do {
		piece(first, extra, count);
		count += WORKLOAD_PIECE;
	} while (poll(&input, 1, 1) == 0);
	printf("%lu\n", count);
	return 0;
}
