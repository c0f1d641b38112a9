/* What a consumer wants, put before the policy. */
#ifndef TRACEFAN_READER_ADMISSION_H
#define TRACEFAN_READER_ADMISSION_H

#include "reader/facts.h"
#include "reader/policy.h"

/* May the user have the probe of this definition? `target` is the file that came with it, -1: none.
 * Returns an enum exit_status with *ret_failure filled in. */
int admission_probe(const struct policy *policy, const struct policy_identity *identity,
	const struct control_create *create, int target, struct policy_grant *ret,
	struct control_failure *ret_failure);

/* Of the events' names (the provider's), a blob with those that the user may attach to, and the
 * places where the user may define probes, as the policy's lines name them. Returns its descriptor
 * or -errno. */
int admission_list(const struct policy *policy, const struct policy_identity *identity,
	const struct facts *events);

#endif
