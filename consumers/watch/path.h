/* Paths as texts. Pure. */
#ifndef TRACEFAN_WATCH_PATH_H
#define TRACEFAN_WATCH_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* `name` as it is meant in the folder `base`, without `.`, `..` and doubled slashes; `..` takes away what stands before it,
 * whatever it is. `base` is not needed for an absolute name. The caller's to free; NULL: no memory, or no base. */
char *path_resolve(const char *base, const char *name);

/* Whether it is the folder or in it; both as path_resolve leaves them. */
bool path_inside(const char *folder, const char *path);

#endif
