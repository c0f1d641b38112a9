/* Who has a file open, for messages. */
#ifndef TRACEFAN_READER_HOLDER_H
#define TRACEFAN_READER_HOLDER_H

#include <sys/types.h>

/* A process other than this one that has the file in the folder open; 0 when none is visible. */
pid_t holder_find(int folder, const char *file);

#endif
