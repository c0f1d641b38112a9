/* What a fuzz target offers: one function that takes any bytes and must neither crash, hang, leak nor read
 * outside them. The bytes lie in a block of exactly `size` bytes, so that AddressSanitizer sees a step past
 * either end. */
#ifndef TRACEFAN_TESTS_SUPPORT_FUZZ_H
#define TRACEFAN_TESTS_SUPPORT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

void fuzz_one_input(const uint8_t *bytes, size_t size);

#endif
