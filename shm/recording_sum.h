/* Sums of a recording's header and frames (shm/recording_abi.h), by which a changed byte is found: the CRC-32 of zlib and
 * RFC 1952, of a frame its lower 24 bits (decision 0039). They are no proof against somebody who wants to change one.
 * Any thread. */
#ifndef TRACEFAN_SHM_RECORDING_SUM_H
#define TRACEFAN_SHM_RECORDING_SUM_H

#include "shm/recording_abi.h"

#include <stddef.h>
#include <stdint.h>

/* Of the header, its own sum left out; never 0. */
uint64_t recording_sum_header(const struct recording_header *header);

/* Of a frame, its own sum left out; `payload` is what stands behind its head, `size` bytes with the padding. */
uint32_t recording_sum_frame(const struct recording_frame *frame, const void *payload, size_t size);

/* The sum that a frame bears, and how it gets one. */
uint32_t recording_sum_of(const struct recording_frame *frame);
void recording_sum_set(struct recording_frame *frame, uint32_t sum);

#endif
