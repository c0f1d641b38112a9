/* The fuzz preset's driver: hands libFuzzer's inputs to the target. */
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	fuzz_one_input(bytes, size);
	return 0;
}
