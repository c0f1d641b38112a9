/* Names of users and groups from the command line. */
#ifndef TRACEFAN_READER_IDENTITY_H
#define TRACEFAN_READER_IDENTITY_H

#include "reader/options.h"
#include "reader/policy.h"

#include <sys/types.h>

/* Looks up who the router runs as, and the session's group. Returns 0, or -ENOENT with *ret_missing
 * the name that doesn't exist. */
int identity_resolve(const struct reader_options *options, uid_t *ret_router,
	struct policy *ret_policy, const char **ret_missing);

#endif
