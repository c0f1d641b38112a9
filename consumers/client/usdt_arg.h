/* A static probe's arguments: from the assembler's operands in its note, "-4@%edi 8@-16(%rbp)", to the
 * kernel's fetch arguments. Pure. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_USDT_ARG_H
#define TRACEFAN_CONSUMERS_CLIENT_USDT_ARG_H

#include <stddef.h>
#include <stdint.h>

#define USDT_ARGS_MAX 12 /* sys/sdt.h has no more */

struct usdt_arg {
	char fetch[96];
	char type[8];       /* "s32", ... */
	const char *reason; /* static text: why the kernel can't fetch it; NULL: it can */
};

struct usdt_args {
	size_t count;
	struct usdt_arg rows[USDT_ARGS_MAX];
};

/* Finds a symbol's distance from the probe. Returns 0 or -ENOENT. */
typedef int (*usdt_symbol_fn)(void *context, const char *symbol, int64_t *ret);

/* Reads the note's text for a machine (EM_...). Never fails: an operand that can't be fetched keeps its
 * place, with the reason. Arguments past USDT_ARGS_MAX are not counted. */
void usdt_args_parse(const char *text, unsigned int machine, usdt_symbol_fn symbol, void *context,
	struct usdt_args *ret);

#endif
