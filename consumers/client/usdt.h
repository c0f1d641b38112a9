/* Static probes (sys/sdt.h): the notes of .note.stapsdt. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_USDT_H
#define TRACEFAN_CONSUMERS_CLIENT_USDT_H

#include "consumers/client/elf.h"
#include "consumers/client/usdt_arg.h"

#include <stddef.h>
#include <stdint.h>

/* One place of a static probe; a probe that was inlined has several. */
struct usdt_site {
	uint64_t offset;     /* in the file */
	uint64_t ref_offset; /* of the semaphore in the file, 0: it has none */
	struct usdt_args args;
};

/* All places of provider:name. *ret_sites is the caller's to free. Failure: TFAN_LOCATION, with near names. */
int usdt_find(const struct elf_file *file, const char *provider, const char *name, struct usdt_site **ret_sites,
	size_t *ret_count, struct failure *failure);

#endif
