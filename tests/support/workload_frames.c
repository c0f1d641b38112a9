/* Frames that are known: main calls outer, outer calls middle, middle calls inner, and inner makes a system call. It does
 * so COUNT times, says that it has, and stays until its standard input ends, so that it can be asked for its mappings. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not at the end of a function, where a call would be a jump, and not put into the caller. */
#define FRAME __attribute__((noinline))
#define AFTER() __asm__ volatile("" ::: "memory")

FRAME long workload_inner(long n);
FRAME long workload_middle(long n);
FRAME long workload_outer(long n);

FRAME long workload_inner(long n)
{
	long r;

	AFTER();
#if defined(__x86_64__)
	/* By itself: the C library's function may have no frame pointer. */
	__asm__ volatile("syscall" : "=a"(r) : "0"((long)SYS_getppid) : "rcx", "r11", "memory");
#else
	r = syscall(SYS_getppid);
#endif
	return r + n;
}

FRAME long workload_middle(long n)
{
	long r = workload_inner(n + 1);

	AFTER();
	return r;
}

FRAME long workload_outer(long n)
{
	long r = workload_middle(n + 1);

	AFTER();
	return r;
}

int main(int argc, char **argv)
{
	long sum = 0;
	char byte;

	for (long i = 0; argc > 1 && i < atol(argv[1]); i++)
		sum += workload_outer(i);
	(void)printf("done %ld\n", sum);
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
