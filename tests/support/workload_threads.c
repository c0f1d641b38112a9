/* workload_threads FIRST: when a byte comes on its standard input, calls getpgid(FIRST) from its first thread and
 * getpgid(FIRST + 1) from another one, and says "called"; when more comes, or its standard input ends, calls
 * getpgid(FIRST + 2) from the first again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *call(void *number)
{
	(void)syscall(SYS_getpgid, *(unsigned long *)number);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long first, second;
	pthread_t other;
	char byte;

	if (argc != 2) {
		fprintf(stderr, "usage: workload_threads FIRST\n");
		return 2;
	}
	first = strtoul(argv[1], NULL, 0);
	second = first + 1;
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	(void)call(&first);
	if (pthread_create(&other, NULL, call, &second) != 0)
		return 1;
	(void)pthread_join(other, NULL);
	puts("called");
	fflush(stdout);
	(void)read(STDIN_FILENO, &byte, 1);
	first += 2;
	(void)call(&first);
	return 0;
}
