/* Static probes: one at two places. */
#include <sys/sdt.h>

static int counter;

__attribute__((noinline)) int first(int a, const char *text);
__attribute__((noinline)) int first(int a, const char *text)
{
	DTRACE_PROBE2(demo, twice, a, text);
	return a + counter++;
}

__attribute__((noinline)) int second(long a, const char *text);
__attribute__((noinline)) int second(long a, const char *text)
{
	DTRACE_PROBE2(demo, twice, a, text);
	DTRACE_PROBE1(demo, plain, counter);
	return (int)a + counter++;
}

int main(int argc, char **argv)
{
	return first(argc, argv[0]) + second(argc, argv[0]) < 0;
}
