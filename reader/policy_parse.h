/* The text of a policy's file, as tracefan-policy(5) describes it. Pure. */
#ifndef TRACEFAN_READER_POLICY_PARSE_H
#define TRACEFAN_READER_POLICY_PARSE_H

#include "reader/policy.h"

/* What is wrong, where, and what would be right. */
struct policy_error {
	unsigned int line; /* 0: of the file as a whole */
	char message[256];
};

/* Reads a file's bytes into *ret; `path` is for messages and must outlive it. Numbers of users and
 * groups that are given by name are still to be found (policy_resolve). Returns 0, -EINVAL with
 * *ret_error filled in, or -ENOMEM; on failure *ret holds nothing. */
int policy_parse(const char *path, const char *bytes, size_t size, struct policy *ret,
	struct policy_error *ret_error);

/* Frees what policy_parse made; takes a policy without a file. */
void policy_release(struct policy *policy);

#endif
