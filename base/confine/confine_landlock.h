/* What of the file system a process keeps, enforced by landlock: nothing but what was allowed before. With the newer
 * kernels' landlock also no TCP, no abstract socket and no signal to anybody outside of this process. */
#ifndef TRACEFAN_BASE_CONFINE_CONFINE_LANDLOCK_H
#define TRACEFAN_BASE_CONFINE_CONFINE_LANDLOCK_H

#include <stdint.h>

enum confine_access {
	CONFINE_READ = 1 << 0,   /* read files, list folders */
	CONFINE_WRITE = 1 << 1,  /* write and truncate files */
	CONFINE_REMOVE = 1 << 2, /* remove files, sockets and empty folders below */
};

struct confine_landlock {
	int ruleset;
	uint64_t handled; /* the accesses that this kernel's landlock knows of */
};

/* Begins. Returns 0 or -errno; -ENOSYS and -EOPNOTSUPP: this kernel has no landlock. */
int confine_landlock_open(struct confine_landlock *ret);

/* Allows `access` (enum confine_access) to the file, or to all below the folder, `path`, as openat(2) takes it; "": what
 * `at` itself is. What isn't there needs no leave. Returns 0 or -errno. */
int confine_landlock_allow(const struct confine_landlock *landlock, int at, const char *path, unsigned int access);

/* Takes everything else away for good. Needs no-new-privs. Closes *landlock either way. Returns 0 or -errno. */
int confine_landlock_enter(struct confine_landlock *landlock);

#endif
