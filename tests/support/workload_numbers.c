/* workload_numbers CPU FIRST COUNT: pins itself to CPU and calls getpgid(FIRST), getpgid(FIRST + 1), ..., COUNT
 * times. The call is cheap, harmless whatever its argument is, and rare elsewhere, so that the numbers in
 * syscalls:sys_enter_getpgid tell which events came. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long first, count;
	cpu_set_t cpus;

	if (argc != 4) {
		fprintf(stderr, "usage: workload_numbers CPU FIRST COUNT\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(strtoul(argv[1], NULL, 0), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0) {
		fprintf(stderr, "workload_numbers: CPU %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	first = strtoul(argv[2], NULL, 0);
	count = strtoul(argv[3], NULL, 0);
	for (unsigned long i = 0; i < count; i++)
		(void)syscall(SYS_getpgid, first + i);
	return 0;
}
