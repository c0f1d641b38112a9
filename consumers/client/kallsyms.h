/* The kernel's symbols, as its table of them (/proc/kallsyms) has them. Pure but for memory. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_KALLSYMS_H
#define TRACEFAN_CONSUMERS_CLIENT_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

struct kallsyms_row {
	uint64_t address;
	const char *name;
	const char *module; /* NULL: the kernel itself */
};

struct kallsyms {
	char *text; /* owned; what the rows point into */
	struct kallsyms_row *rows; /* by address */
	size_t count;
};

/* Reads `size` bytes of text, which end in a NUL behind them and become the table's own, whatever is returned: 0 or -ENOMEM.
 * Lines that aren't symbols, and symbols without an address (a reader who may not see them gets 0), are left out. */
int kallsyms_parse(char *text, size_t size, struct kallsyms *ret);
void kallsyms_release(struct kallsyms *kallsyms);

/* The last symbol that does not lie behind the address, or NULL. */
const struct kallsyms_row *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address);
/* The symbol NAME or MODULE:NAME: of several that are called so the kernel's own, and of these the first. NULL: none. */
const struct kallsyms_row *kallsyms_named(const struct kallsyms *kallsyms, const char *name);
/* The last address before the next symbol. Returns 0, or -ENOENT if there is none. */
int kallsyms_end(const struct kallsyms *kallsyms, const struct kallsyms_row *row, uint64_t *ret);

#endif
