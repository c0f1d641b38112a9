/* Names of addresses: of a process's by what it has mapped and the symbols of those files, of the kernel's by
 * /proc/kallsyms. What this process may not read has no name. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_SYMBOLS_H
#define TRACEFAN_CONSUMERS_CLIENT_SYMBOLS_H

#include "consumers/client/tracefan.h"

#include <stdint.h>

struct symbols;

/* Returns 0 or -ENOMEM. */
int symbols_make(struct symbols **ret);
/* Takes NULL. */
void symbols_free(struct symbols *symbols);

/* Fills in what is known of an address; `is_return`: it is the one behind a call. Texts are valid until the next call. */
void symbols_of_process(struct symbols *symbols, int process, uint64_t address, bool is_return, struct tfan_frame *ret);
void symbols_of_kernel(struct symbols *symbols, uint64_t address, bool is_return, struct tfan_frame *ret);
/* All of the kernel's symbols that this process may see: none, if it may not. Returns 0 or -ENOMEM; *ret is the caller's. */
struct kallsyms;
int symbols_read_kernel(struct kallsyms *ret);

#endif
