/* The operands in a static probe's note; the first byte chooses the machine. */
#include "consumers/client/usdt_arg.h"
#include "tests/support/fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static int symbol(void *context, const char *name, int64_t *ret)
{
	(void)context;
	*ret = strlen(name);
	return 0;
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct usdt_args args;
	char *text;

	if (size == 0)
		return;
	text = malloc(size);
	memcpy(text, bytes + 1, size - 1);
	text[size - 1] = '\0';
	usdt_args_parse(text, bytes[0] & 1 ? EM_X86_64 : EM_AARCH64, symbol, NULL, &args);
	for (size_t i = 0; i < args.count; i++)
		if (!args.rows[i].reason && (!args.rows[i].fetch[0] || !args.rows[i].type[0]))
			abort();
	free(text);
}
