/* What the fetch arguments of a definition read. Pure. */
#ifndef TRACEFAN_READER_POLICY_FETCH_H
#define TRACEFAN_READER_POLICY_FETCH_H

#include "reader/policy.h"

/* The most that one of the `count` arguments "NAME=FETCH[:TYPE]", each with a NUL, needs. What
 * isn't known to read nothing but registers counts as reading memory. */
enum policy_fetch policy_fetch_needed(const char *fetch, uint32_t count);

#endif
