/* Any bytes as instructions of x86-64: a length is at most what there is, and the same however much follows. */
#include "consumers/client/instruction.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		unsigned int length = instruction_length(bytes + at, size - at);

		if (length > size - at || length > INSTRUCTION_MAX)
			abort();
		if (length > 0 && instruction_length(bytes + at, length) != length)
			abort();
		at += length ? length : 1;
	}
}
