/* Who holds what: a session's folder and its instance are held by an flock(2), which ends with its
 * holder, however that dies. */
#ifndef TRACEFAN_READER_LOCK_H
#define TRACEFAN_READER_LOCK_H

#include <sys/types.h>

/* Takes the lock of an open file or folder without waiting. Returns 0; -EBUSY with the holder's
 * process id in *ret_holder (0: not visible from here); or another -errno. */
int lock_take(int fd, pid_t *ret_holder);

/* Whether `path` below `folder` still stands for what was locked: before that, another may have removed it,
 * and made it anew. Returns 1, 0 or -errno. */
int lock_is_of(int fd, int folder, const char *path);

#endif
