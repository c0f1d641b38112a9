/* The kernel's own list of its functions (/proc/kallsyms): which have the name that a kprobe is placed by, and which have
 * one like it. Anybody may read the names; the addresses are no matter here. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_KERNEL_SYMBOLS_H
#define TRACEFAN_CONSUMERS_CLIENT_KERNEL_SYMBOLS_H

#include "consumers/client/near.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define KERNEL_SYMBOLS_MODULES 8
#define KERNEL_SYMBOL_MAX      128

struct kernel_symbols {
	char module[KERNEL_SYMBOL_MAX]; /* empty: wherever it is */
	char name[KERNEL_SYMBOL_MAX];
	size_t count;                   /* functions of this name */
	size_t module_count;            /* of those, in modules; the first of them: */
	char modules[KERNEL_SYMBOLS_MODULES][KERNEL_SYMBOL_MAX];
	struct near near;               /* of functions of other names */
};

/* `wanted` is SYMBOL or MODULE:SYMBOL. */
void kernel_symbols_init(struct kernel_symbols *symbols, const char *wanted);
/* Looks at each line of such a list. Names that are alike are looked for only with `alike`, which takes longer. */
void kernel_symbols_read(struct kernel_symbols *symbols, FILE *list, bool alike);
/* The running kernel's. A list that can't be read is as good as an empty one. */
void kernel_symbols_find(struct kernel_symbols *symbols, const char *wanted, bool alike);

#endif
