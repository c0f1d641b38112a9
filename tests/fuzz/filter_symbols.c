/* A print format as a recording may hold it: names of values are looked for in it. */
#include "router/filter_symbols.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

static bool check(void *context, const struct filter_symbol *symbol)
{
	const char *format = context;

	if (symbol->name < format || symbol->size > strlen(format) ||
		(size_t)(symbol->name - format) > strlen(format) - symbol->size)
		abort();
	return false;
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	char *format = malloc(size + 1);
	uint64_t value;

	if (!format)
		abort();
	memcpy(format, bytes, size);
	format[size] = '\0';
	(void)filter_symbols_each(format, "vec", check, format);
	(void)filter_symbols_constant(format, strlen(format), &value);
	free(format);
}
