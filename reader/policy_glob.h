/* The patterns of a policy's places. Pure. */
#ifndef TRACEFAN_READER_POLICY_GLOB_H
#define TRACEFAN_READER_POLICY_GLOB_H

#include <stdbool.h>

/* True when all of `name` matches: '?' is one character and '*' any number of them, neither a '/';
 * "**" is any number of any. Everything else stands for itself. Takes at most |pattern| * |name|
 * steps. */
bool policy_glob(const char *pattern, const char *name);

/* True when the pattern names one place only. */
bool policy_glob_is_exact(const char *pattern);

#endif
