/* Who may do what. The identity comes from the kernel, off the consumer's own socket; nothing that
 * the router says about a consumer counts.
 *
 *   root                        may define probes and attach to every event
 *   a member of the session's group   may attach to the kernel's tracepoints
 *   anybody else                may do nothing */
#ifndef TRACEFAN_READER_POLICY_H
#define TRACEFAN_READER_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define POLICY_GROUPS_MAX 256

struct policy {
	bool has_group;
	gid_t group; /* the session's */
	char group_name[64];
	bool file; /* a replayed file: whoever may connect may see all of it */
};

/* A consumer, as the kernel vouches for it. */
struct policy_identity {
	uid_t uid;
	pid_t pid;
	gid_t groups[POLICY_GROUPS_MAX];
	unsigned int group_count;
};

enum policy_action {
	POLICY_ATTACH, /* to a tracepoint of the kernel's */
	POLICY_DEFINE, /* a probe of one's own */
};

/* Reads the identity behind a socket that was accepted at the address `path`. Returns 0, -EPROTO
 * (not such a socket: it proves nothing) or another -errno. */
int policy_identify(int socket, const char *path, struct policy_identity *ret);

/* NULL when it is allowed, else the rule that forbids it, for people. Pure. */
const char *policy_refuses(const struct policy *policy, const struct policy_identity *identity,
	enum policy_action action);

#endif
