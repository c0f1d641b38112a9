/* Strings that were made to look like other lines, other fields or other events, and a function that gets them. */
#ifndef TRACEFAN_TESTS_DIFFERENTIAL_HOSTILE_STRINGS_H
#define TRACEFAN_TESTS_DIFFERENTIAL_HOSTILE_STRINGS_H

#include "base/checked.h"

#include <stddef.h>
#include <stdint.h>

static const char *const hostile_strings[] = {
	"plain",
	"",
	"c:/Program Files/x",
	"a \"quoted\" word",
	"\"",
	"\"\"",
	"a=b c=\"d\" n=5",
	"back\\slash \\\" \\n",
	"two\nlines",
	"\n",
	"trailing newline\n",
	"x\" u=1 n=2 s=\"y",
	"\x01\x7f\xff\x80 not UTF-8",
	"(fault)",
	"tab\there",
	"x\"\n            evil-1       [000] .....     1.000000: own_guess: (0x1234) s=\"forged\" tfc_0_guess=0",
	"\n            evil-1       [000] .....     1.000000: sched_process_exit: comm=evil pid=1 prio=1 group_dead=true",
	"\nCPU:0 [LOST 12345 EVENTS]\n",
	"\n => symbol\n# comment\n",
	"x\" tfc_0_guess=0\n            evil-1       [000] .....     1.000000: own_guess: (0x1) s=\"\" tfc_0_guess=0",
};

/* One call with each, and one with a string that can't be read. */
static inline void hostile_strings_call(int (*volatile function)(const char *, uint64_t, int32_t, const char *const *))
{
	static const char *const list[] = { "one", "t\"wo", "th\nree" };

	for (size_t i = 0; i < ARRAY_SIZE(hostile_strings); i++)
		(void)function(hostile_strings[i], UINT64_MAX - i, -5 + (int32_t)i, list);
	(void)function((const char *)1, 0, 0, list);
}

#endif
