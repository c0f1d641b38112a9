/* Blobs for the router: files of the kernel as bytes. Nothing in them is parsed here. */
#ifndef TRACEFAN_READER_FACTS_H
#define TRACEFAN_READER_FACTS_H

#include "reader/instance.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
struct facts {
	char *data;
	size_t size, room;
	int error; /* the first failure; later additions are ignored */
};

void facts_release(struct facts *facts);
/* Adds one fact with its header and padding. */
void facts_add(struct facts *facts, uint32_t fact, uint32_t id, const void *data, size_t size);
/* Adds bytes as they are. */
void facts_append(struct facts *facts, const void *data, size_t size);
/* Makes a sealed memfd of it. Returns the descriptor, owned by the caller, or -errno. */
int facts_blob(const struct facts *facts, const char *name);

/* What the router has to know of the traced kernel. Returns a blob's descriptor or -errno. */
int facts_of_kernel(const struct instance *instance);
/* The kernel's counts, now. */
int facts_of_account(const struct instance *instance);
/* The events that a consumer may ask for, a line each, without the probes of tracefan sessions: 0 or
 * -errno; *ret is the caller's to release. */
int facts_of_events(const struct instance *instance, struct facts *ret);

#endif
