/* workload_calls COUNT: calls workload_call(n, text) COUNT times. The i-th call has n = i * WORKLOAD_STEP, which
 * uses all 64 bits, and the text "call i of COUNT". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKLOAD_STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t workload_call(uint64_t n, const char *text);

__attribute__((noinline)) uint64_t workload_call(uint64_t n, const char *text)
{
	/* Keeps the call and both arguments. */
	__asm__ volatile("" : "+r"(n) : "r"(text) : "memory");
	return n ^ (uint64_t)(unsigned char)text[0];
}

int main(int argc, char **argv)
{
	unsigned long count;
	uint64_t sum = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: workload_calls COUNT\n");
		return 2;
	}
	count = strtoul(argv[1], NULL, 0);
	for (unsigned long i = 0; i < count; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "call %lu of %lu", i, count);
		sum += workload_call(i * WORKLOAD_STEP, text);
	}
	return sum == 1;
}
