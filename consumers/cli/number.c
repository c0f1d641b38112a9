#include "consumers/cli/number.h"

#include <string.h>

static const char number_pairs[] = "00010203040506070809"
				   "10111213141516171819"
				   "20212223242526272829"
				   "30313233343536373839"
				   "40414243444546474849"
				   "50515253545556575859"
				   "60616263646566676869"
				   "70717273747576777879"
				   "80818283848586878889"
				   "90919293949596979899";

unsigned int number_width(uint64_t value)
{
	unsigned int width = 1;

	while (value >= 10000) {
		value /= 10000;
		width += 4;
	}
	return width + (value >= 10) + (value >= 100) + (value >= 1000);
}

char *number_padded(char *p, uint64_t value, unsigned int width)
{
	unsigned int at = width;

	while (at >= 2) {
		at -= 2;
		memcpy(p + at, number_pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	if (at)
		p[0] = (char)('0' + value % 10);
	return p + width;
}

char *number_unsigned(char *p, uint64_t value)
{
	if (value < 10) {
		*p = (char)('0' + value);
		return p + 1;
	}
	return number_padded(p, value, number_width(value));
}

char *number_signed(char *p, int64_t value)
{
	if (value >= 0)
		return number_unsigned(p, (uint64_t)value);
	*p = '-';
	/* Negated as unsigned, so that the least number has a positive, too. */
	return number_unsigned(p + 1, 0 - (uint64_t)value);
}

static char *number_radix(char *p, uint64_t value, unsigned int bits)
{
	unsigned int digits = 1;

	for (uint64_t rest = value >> bits; rest; rest >>= bits)
		digits++;
	for (unsigned int i = digits; i-- > 0; value >>= bits)
		p[i] = "0123456789abcdef"[value & ((1U << bits) - 1)];
	return p + digits;
}

char *number_hex(char *p, uint64_t value)
{
	return number_radix(p, value, 4);
}

char *number_octal(char *p, uint64_t value)
{
	return number_radix(p, value, 3);
}
