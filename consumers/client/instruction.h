/* How long an x86-64 instruction is: as much of its encoding as is needed to know where the next one begins. Pure. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_INSTRUCTION_H
#define TRACEFAN_CONSUMERS_CLIENT_INSTRUCTION_H

#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_MAX 15 /* bytes; the processor takes no longer one */

/* The length of the instruction at `bytes`, of which `size` may be read. 0: there is none that is known, or it
 * is not whole. */
unsigned int instruction_length(const uint8_t *bytes, size_t size);

#endif
