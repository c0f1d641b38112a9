/* workload_long LENGTH: calls workload_long_call() with a text of LENGTH bytes, "abc...xyzabc..." */
#include <stdio.h>
#include <stdlib.h>

void workload_long_call(const char *text);

__attribute__((noinline)) void workload_long_call(const char *text)
{
	/* Keeps the call and its argument. */
	__asm__ volatile("" : : "r"(text) : "memory");
}

int main(int argc, char **argv)
{
	size_t length;
	char *text;

	if (argc != 2) {
		fprintf(stderr, "usage: workload_long LENGTH\n");
		return 2;
	}
	length = strtoul(argv[1], NULL, 0);
	text = malloc(length + 1);
	if (!text) {
		fprintf(stderr, "workload_long: no memory for %zu bytes\n", length);
		return 1;
	}
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + i % 26);
	text[length] = '\0';
	workload_long_call(text);
	free(text);
	return 0;
}
