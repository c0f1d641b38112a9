/* Names of values, out of the kernel's print format: what __print_symbolic and __print_flags print
 * a field as. Pure; the format is any text. */
#ifndef TRACEFAN_ROUTER_FILTER_SYMBOLS_H
#define TRACEFAN_ROUTER_FILTER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter_symbol {
	const char *name; /* in the format, without a NUL */
	size_t size;
	bool valued; /* `value` is known: it isn't where the format has an enum's name for it */
	uint64_t value;
	uint64_t mask; /* the bits of the field that are printed: (field & mask) == value */
};

/* Calls `symbol` for each name of a value of `field` until it returns true; returns whether it did.
 * What is printed of an expression other than the field, or the field & a constant, is left out. */
bool filter_symbols_each(const char *format, const char *field,
	bool (*symbol)(void *context, const struct filter_symbol *symbol), void *context);

/* Evaluates a C constant expression: numbers, casts, ~ ! - + * / % << >> & ^ | and parentheses. The
 * whole text has to be one. Returns whether it is. */
bool filter_symbols_constant(const char *text, size_t size, uint64_t *ret);

#endif
