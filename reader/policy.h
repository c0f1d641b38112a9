/* Who may do what. The identity comes from the kernel, off the consumer's own socket; nothing that
 * the router says about a consumer counts. Root may do everything. For the others the first line of
 * the policy's file that speaks of user and place decides; without a file
 *
 *   a member of the session's group   may attach to the kernel's tracepoints
 *   anybody else                      may do nothing */
#ifndef TRACEFAN_READER_POLICY_H
#define TRACEFAN_READER_POLICY_H

#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define POLICY_GROUPS_MAX 256
#define POLICY_RULES_MAX  4096
#define POLICY_TEXT_MAX   (256U << 10) /* bytes of a file */
#define POLICY_LINE_MAX   2048
#define POLICY_SHOWN_MAX  160 /* of a rule in a message, with the NUL */

enum policy_subject_kind {
	POLICY_EVERYONE,
	POLICY_USER,
	POLICY_GROUP,
};

/* Of whom a line speaks. */
struct policy_subject {
	enum policy_subject_kind kind;
	const char *name; /* as written, until policy_resolve has found the number */
	uint32_t id;
};

enum policy_place {
	POLICY_TRACEPOINT, /* "SYSTEM:EVENT" */
	POLICY_KPROBE,     /* "SYMBOL"; kretprobes, too */
	POLICY_UPROBE,     /* a path; uretprobes, too */
	POLICY_USDT,       /* a path */
};

/* What the arguments of a definition may read. */
enum policy_fetch {
	POLICY_FETCH_NONE,
	POLICY_FETCH_REGISTERS, /* and what is computed from them alone */
	POLICY_FETCH_MEMORY,
};

struct policy_rule {
	unsigned int line;
	char shown[POLICY_SHOWN_MAX]; /* the line itself */
	bool allow;
	struct policy_subject subject;
	enum policy_place place;
	const char *pattern;
	enum policy_fetch fetch;
	bool semaphore; /* USDT: the kernel may count up a word of the probed file's processes */
	bool addresses; /* the kernel's stacks, too, which are its addresses */
	bool own;       /* sees its own user's processes only */
	uint32_t rate;  /* events per second of one probe; 0: any number */
};

/* What one user may hold at once. */
struct policy_limits {
	unsigned int line; /* 0: the usual ones */
	char shown[POLICY_SHOWN_MAX];
	struct policy_subject subject;
	uint32_t consumers;
	uint32_t probes;
	uint64_t ring; /* bytes of all its rings */
	uint32_t rate; /* events per second of all its probes; 0: any number */
};

/* What holds for whom no line limits. */
#define POLICY_LIMITS_USUAL                                                                        \
	{                                                                                          \
		.consumers = 64, .probes = 256, .ring = UINT64_C(32) << 30                        \
	}

struct policy {
	bool has_group;
	gid_t group; /* the session's */
	char group_name[64];
	const char *session, *directory; /* as they are given on a command line; NULL: need not be */
	bool replay; /* whoever may connect may see all of a replayed file */
	/* A policy file's; `path` is NULL without one. */
	const char *path;
	char *text; /* what the rules point into */
	struct policy_rule *rules;
	size_t rule_count;
	struct policy_limits *limits;
	size_t limit_count;
};

/* A consumer, as the kernel vouches for it. */
struct policy_identity {
	uid_t uid;
	pid_t pid;
	gid_t groups[POLICY_GROUPS_MAX];
	unsigned int group_count;
};

/* A probe that somebody asks for. */
struct policy_wish {
	enum policy_place place;
	const char *name;        /* of the place, as patterns name it; a path is the real one */
	bool linked;             /* the file has other names, too */
	bool offset;             /* kernel probes: not at the symbol itself */
	bool semaphore;          /* USDT: it has one */
	bool addresses;          /* the kernel's stack is asked for */
	enum policy_fetch fetch; /* what its arguments need */
};

/* What a probe is allowed under. */
struct policy_grant {
	bool own;
	uint32_t rate;
};

/* Reads the identity behind a socket that was accepted at the address `path`. Returns 0, -EPROTO
 * (not such a socket: it proves nothing) or another -errno. */
int policy_identify(int socket, const char *path, struct policy_identity *ret);

/* All that follows is pure. Both return an enum exit_status: EXIT_DONE, or EXIT_NOT_PERMITTED with
 * the rule that forbids it, its line, and what to do, in *ret_failure. */

/* May the user attach to the session at all? */
int policy_admit(const struct policy *policy, const struct policy_identity *identity,
	struct control_failure *ret_failure);
/* May the user have this probe? */
int policy_decide(const struct policy *policy, const struct policy_identity *identity,
	const struct policy_wish *wish, struct policy_grant *ret,
	struct control_failure *ret_failure);

/* The line of the file that decides, or NULL when none speaks of user and place. */
const struct policy_rule *policy_find(const struct policy *policy,
	const struct policy_identity *identity, const struct policy_wish *wish);

/* What the user may hold at once. */
const struct policy_limits *policy_limits_of(
	const struct policy *policy, const struct policy_identity *identity);

/* True when a line speaks of the user. */
bool policy_concerns(const struct policy_subject *subject, const struct policy_identity *identity);

#endif
