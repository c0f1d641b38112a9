/* Who has a file open, for messages. */
#ifndef TRACEFAN_READER_HOLDER_H
#define TRACEFAN_READER_HOLDER_H

#include <sys/types.h>

/* A process other than this one that has the file in the folder open, or with NULL any file below
 * the folder; 0 when none is visible. Leaves errno as it is. */
pid_t holder_find(int folder, const char *file);

#endif
