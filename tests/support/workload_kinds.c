/* workload_kinds: calls workload_kinds_call(value, bytes, text) once for each line that it prints: the value in
 * hexadecimal, a blank, the text in hexadecimal digits. The values stand at the limits of each width, the texts are of
 * each kind that is printed by other means; the bytes are always 00 80 ff 7f 01 fe 55 aa. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

uint64_t workload_kinds_call(uint64_t value, const uint8_t *bytes, const char *text);

__attribute__((noinline)) uint64_t workload_kinds_call(uint64_t value, const uint8_t *bytes, const char *text)
{
	/* Keeps the call and its arguments. */
	__asm__ volatile("" : "+r"(value) : "r"(bytes), "r"(text) : "memory");
	return ~value;
}

static const uint8_t bytes[] = { 0, 0x80, 0xff, 0x7f, 1, 0xfe, 0x55, 0xaa };

static const uint64_t values[] = { 0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
	0xffffffff, 0x100000000, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, 0x0123456789abcdef };

static const char *const texts[] = { "", "plain", "two words", "a \"quoted\" word", "\"", "tab\tand\nnewline", "\n", "x=1 y=\"2\"",
	"\xc3\xa4 \xff\x80 not UTF-8", "back\\slash", "\x01\x7f", "ends in a blank ", "(fault)" };

int main(void)
{
	static char longest[1500];
	uint64_t sum = 0;

	memset(longest, 'l', sizeof(longest) - 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const char *text = i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : longest + i;

		sum += workload_kinds_call(values[i], bytes, text);
		printf("%llx ", (unsigned long long)values[i]);
		for (const char *p = text; *p; p++)
			printf("%02x", (unsigned int)(unsigned char)*p);
		putchar('\n');
	}
	return sum == 1;
}
