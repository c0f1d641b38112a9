/* A static probe with a semaphore. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

unsigned short demo_guarded_semaphore __attribute__((section(".probes"), used)) = 0;

__attribute__((noinline)) int guarded(int a);
__attribute__((noinline)) int guarded(int a)
{
	if (demo_guarded_semaphore)
		DTRACE_PROBE1(demo, guarded, a);
	return a;
}

int main(int argc, char **argv)
{
	(void)argv;
	return guarded(argc) < 0;
}
