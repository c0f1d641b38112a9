/* Finds, checks and reads a policy's file. */
#ifndef TRACEFAN_READER_POLICY_FILE_H
#define TRACEFAN_READER_POLICY_FILE_H

#include "reader/policy_parse.h"

/* Read where no other is named, if it is there. */
#define POLICY_FILE_USUAL "/etc/tracefan/policy"

/* Reads the file at `path` into *ret, with the numbers of the users and groups that it names. A
 * file that somebody other than `owner` (or root) owns, or that others may write, is refused.
 * Returns 0, or -errno with *ret_error filled in: -ENOENT (no such file), -EPERM, -EINVAL (its
 * text). */
int policy_file_read(
	const char *path, uid_t owner, struct policy *ret, struct policy_error *ret_error);

#endif
