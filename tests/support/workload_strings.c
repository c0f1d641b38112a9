/* workload_strings [-m] TEXT...: calls workload_string(n, text) once for each text, n counting from
 * 0. With -m each text is the thread's name during its call, too (prctl(PR_SET_NAME)). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

uint64_t workload_string(uint64_t n, const char *text);

__attribute__((noinline)) uint64_t workload_string(uint64_t n, const char *text)
{
	/* Keeps the call and both arguments. */
	__asm__ volatile("" : "+r"(n) : "r"(text) : "memory");
	return n ^ (uint64_t)(unsigned char)text[0];
}

int main(int argc, char **argv)
{
	int named = argc > 1 && !strcmp(argv[1], "-m");
	uint64_t sum = 0;

	if (argc < 2 + named) {
		fprintf(stderr, "usage: workload_strings [-m] TEXT...\n");
		return 2;
	}
	for (int i = 1 + named; i < argc; i++) {
		if (named && prctl(PR_SET_NAME, argv[i], 0, 0, 0) < 0)
			return 1;
		sum += workload_string((uint64_t)(i - 1 - named), argv[i]);
	}
	return sum == 1;
}
