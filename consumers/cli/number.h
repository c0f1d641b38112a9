/* Numbers to text, by hand: an event has a dozen of them and printf would be most of the work.
 * Each function writes at p, without a NUL, and returns where the text ends. */
#ifndef TRACEFAN_CLI_NUMBER_H
#define TRACEFAN_CLI_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Room that any of these numbers fits in. */
#define NUMBER_SIZE_MAX 24

char *number_unsigned(char *p, uint64_t value);
char *number_signed(char *p, int64_t value);
/* Lower case, without prefix. */
char *number_hex(char *p, uint64_t value);
char *number_octal(char *p, uint64_t value);
/* The last `width` decimal digits, with leading zeroes. */
char *number_padded(char *p, uint64_t value, unsigned int width);

/* How many characters number_unsigned would write. */
unsigned int number_width(uint64_t value);

/* Sign-extends the low `size` bytes (1, 2, 4 or 8) of a value. */
static inline int64_t number_extend(uint64_t value, unsigned int size)
{
	unsigned int shift = size >= 8 ? 0 : 64 - 8 * size;

	return (int64_t)(value << shift) >> shift;
}

/* Keeps the low `size` bytes of a value. */
static inline uint64_t number_cut(uint64_t value, unsigned int size)
{
	return size >= 8 ? value : value & ((1ULL << (8 * size)) - 1);
}

#endif
