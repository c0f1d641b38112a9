/* Checks of what stands in a recording. Pure: the file may come from anywhere. */
#ifndef TRACEFAN_READER_RECORDING_FRAME_H
#define TRACEFAN_READER_RECORDING_FRAME_H

#include "shm/recording_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when this reader can replay a file with this header, else why not, for people. `size` is what the
 * file holds of it, the rest zeros. *ret_damaged: it is a recording's, and not as it was written. */
const char *recording_header_refused(const struct recording_header *header, size_t size, bool *ret_damaged);

/* `left` is what the file holds from the frame's head on. Returns 0 with *ret_size the whole
 * frame's size, padding included; -ENODATA (the file was cut off in it), -EOPNOTSUPP (it must not be
 * skipped, and isn't known) or -EBADMSG. */
int recording_frame_check(const struct recording_frame *frame, uint64_t left, uint64_t *ret_size);
bool recording_frame_known(const struct recording_frame *frame);

/* `size` is the frame's. Return 0 or -EBADMSG. */
int recording_format_check(const struct recording_format *format, uint64_t size);
int recording_entry_check(const struct pool_entry *entry, uint64_t size, uint32_t slot_size);
/* How many of a good entry's bytes stand in its frame. */
uint32_t recording_entry_stored(const struct pool_entry *entry, uint64_t size);

/* False for entries that belonged to the recorded session's own conversations. */
bool recording_entry_played(const struct pool_entry *entry);

#endif
