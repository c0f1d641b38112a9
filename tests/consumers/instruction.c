/* Lengths of instructions: single encodings, and everything that the disassembler of this machine finds in its
 * C library. */
#include "consumers/client/instruction.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t read_hex(const char *text, uint8_t *out, size_t room)
{
	size_t n = 0;

	while (n < room) {
		char *end;
		unsigned long byte = strtoul(text, &end, 16);

		if (end != text + 2)
			break;
		out[n++] = (uint8_t)byte;
		text = *end == ' ' ? end + 1 : end;
	}
	return n;
}

static void encodings(void **state)
{
	static const char *const rows[] = {
		"90", "c3", "55", "41 57", "48 89 e5", "8b 05 10 20 30 40", "48 8b 04 25 28 00 00 00",
		"64 48 8b 04 25 28 00 00 00", "48 83 ec 18", "48 81 ec 00 01 00 00", "66 81 f9 34 12", "e8 00 00 00 00",
		"74 05", "0f 84 00 01 00 00", "48 b8 01 02 03 04 05 06 07 08", "b8 01 00 00 00", "66 b8 01 00",
		"c8 10 00 00", "c2 08 00", "f6 c1 01", "f6 d1", "f7 c1 01 00 00 00", "48 f7 d9", "66 f7 c1 01 00",
		"a1 01 02 03 04 05 06 07 08", "67 a1 01 02 03 04", "f3 0f 1e fa", "66 0f 1f 84 00 00 00 00 00",
		"66 2e 0f 1f 84 00 00 00 00 00", "f2 0f 10 44 24 08", "0f 20 c0", "0f a2", "0f ba e0 05", "0f c8",
		"66 0f 3a 0f c1 08", "66 0f 38 00 c1", "f0 48 0f b1 0f", "c5 f8 77", "c5 fd 6f 04 24",
		"c4 e2 7d 18 05 00 00 00 00", "c4 e3 7d 19 c1 01", "62 f1 fe 48 6f 07", "62 f3 75 48 25 c2 ff",
		"62 f1 7c 48 28 44 24 01", "8f 00", "8f e8 78 c0 c1 05", "48 8d 44 05 00", "48 8d 04 ed 00 00 00 00",
		"8d 04 05 00 00 00 00", "c7 45 fc 01 00 00 00", "66 c7 45 fc 01 00", "0f 0b", "cd 80", "68 01 02 03 04",
		"6a 01", "69 c1 01 02 03 04", "6b c1 05", "e3 10", "48 0f c7 0f", "d9 05 00 00 00 00", "0f 0f c1 9e",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t bytes[INSTRUCTION_MAX + 1] = { 0 };
		size_t size = read_hex(rows[i], bytes, sizeof(bytes));

		if (instruction_length(bytes, sizeof(bytes)) != size)
			print_error("%s: %u\n", rows[i], instruction_length(bytes, sizeof(bytes)));
		assert_int_equal(instruction_length(bytes, sizeof(bytes)), size);
		assert_int_equal(instruction_length(bytes, size), size);
		/* Not whole. */
		for (size_t cut = 0; cut < size; cut++)
			assert_true(instruction_length(bytes, cut) < size);
	}
}

static void what_is_no_instruction(void **state)
{
	static const char *const rows[] = { "06", "27", "60", "82 00", "9a", "ce", "d4 0a", "ea", "0f 04", "0f 24", "c4 e0 00 00 c0" };
	uint8_t prefixes[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t bytes[INSTRUCTION_MAX] = { 0 };

		(void)read_hex(rows[i], bytes, sizeof(bytes));
		assert_int_equal(instruction_length(bytes, sizeof(bytes)), 0);
	}
	memset(prefixes, 0x66, sizeof(prefixes));
	assert_int_equal(instruction_length(prefixes, sizeof(prefixes)), 0);
}

/* Every instruction of a library, as objdump tells them. */
static void a_whole_library(void **state)
{
	static const char command[] =
		"for f in /lib/x86_64-linux-gnu/libc.so.6 /lib64/libc.so.6 /usr/lib/libc.so.6; do "
		"test -e $f && exec objdump -d --insn-width=16 -j .text $f 2>/dev/null; done";
	char line[512];
	size_t compared = 0, differ = 0;
	FILE *pipe;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	pipe = popen(command, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		uint8_t bytes[INSTRUCTION_MAX + 1];
		char *tab = strchr(line, '\t'), *text = tab ? strchr(tab + 1, '\t') : NULL;
		size_t size;

		if (!text || strstr(text, "(bad)"))
			continue;
		size = read_hex(tab + 1, bytes, sizeof(bytes));
		/* A prefix that objdump shows alone belongs to what follows. */
		if (size == 0 || (size == 1 && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", bytes[0])))
			continue;
		compared++;
		if (instruction_length(bytes, size) != size && differ++ < 10)
			print_error("%u: %s", instruction_length(bytes, size), tab + 1);
	}
	(void)pclose(pipe);
	if (compared == 0)
		skip();
	assert_true(compared > 100000);
	assert_int_equal(differ, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodings), cmocka_unit_test(what_is_no_instruction), cmocka_unit_test(a_whole_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
