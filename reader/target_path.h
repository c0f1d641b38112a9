/* Under which name a policy may know an open file. */
#ifndef TRACEFAN_READER_TARGET_PATH_H
#define TRACEFAN_READER_TARGET_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the path of an open file and proves it: opened anew in this process's own view of the file
 * system, without a symbolic link on the way, it is the same file. So a name of another mount
 * namespace, a name that was deleted, and one that a mount or a rename has covered since prove
 * nothing. `path` has PATH_MAX bytes; *ret_linked tells that the file has other names, too. Returns
 * 0, -ESTALE (no name that holds) or another -errno. */
int target_path(int fd, char *path, size_t size, bool *ret_linked);

#endif
