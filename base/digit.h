/* Digits of numbers in any base up to 16. */
#ifndef TRACEFAN_BASE_DIGIT_H
#define TRACEFAN_BASE_DIGIT_H

/* 16: it is none. */
static inline unsigned int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned int)(c - 'A') + 10;
	return 16;
}

#endif
