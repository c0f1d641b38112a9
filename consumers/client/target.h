/* A traced file, held open for as long as a trace has a probe in it, so that the probe can be made again by a new
 * router, in the very file that was meant. Traces of one file share it. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_TARGET_H
#define TRACEFAN_CONSUMERS_CLIENT_TARGET_H

#include "consumers/client/tracefan.h"

#include <sys/types.h>

struct target {
	unsigned int references;
	int fd;
	dev_t device;
	ino_t inode;
};

/* A reference to the target that is open as `fd`, which stays the caller's: one that a trace of this connection
 * holds already, or a new one. Returns 0 or -errno. */
int target_get(const struct tfan *tfan, int fd, struct target **ret);
/* Gives the reference back; takes NULL. */
void target_put(struct target *target);

#endif
