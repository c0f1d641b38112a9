/* The first half of a reader's start: folder, instance or files, pool, loop and source. */
#ifndef TRACEFAN_READER_READER_START_H
#define TRACEFAN_READER_READER_START_H

#include "reader/reader.h"

/* Opens all that the session works on. Returns 0 or -errno; what was opened by then is the caller's
 * to undo. A failure has been logged, and its exit status is in the reader. */
int reader_start(struct reader *reader);

/* Logs what failed, sets the exit status and returns `error`. */
int reader_fail(struct reader *reader, int status, int error, const char *what);

#endif
