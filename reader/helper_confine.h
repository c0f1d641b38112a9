/* What the helper gives up, and keeps, before it serves. */
#ifndef TRACEFAN_READER_HELPER_CONFINE_H
#define TRACEFAN_READER_HELPER_CONFINE_H

#include "base/confine/confine.h"

#include <sys/types.h>

/* Becomes another user with two capabilities and the system calls of the table. Returns 0 or -errno, which has been
 * logged. */
int helper_confine(uid_t uid, enum confine_mode mode);

#endif
