/* What the router gives up before it speaks to anybody. */
#ifndef TRACEFAN_ROUTER_CONFINE_H
#define TRACEFAN_ROUTER_CONFINE_H

#include "base/confine/confine.h"

#include <sys/types.h>

/* Becomes uid and gid for good, without a capability, without any file, and without any system call but those of
 * confine.c's table: what comes later comes by descriptors that are open or are received. Returns 0 or -errno, which has
 * been logged. */
int confine_router(uid_t uid, gid_t gid, enum confine_mode mode);

#endif
