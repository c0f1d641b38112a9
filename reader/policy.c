#include "reader/policy.h"

#include "base/exit_status.h"
#include "reader/policy_glob.h"
#include "shm/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The router could pass any socket that it can get hold of, also one whose other end is root: only
 * the session's own consumers' socket makes those that carry its address. */
static int check_socket(int socket, const char *path)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	int type = 0, listening = 1;
	socklen_t type_size = sizeof(type), listening_size = sizeof(listening);

	memset(&address, 0, sizeof(address));
	if (getsockname(socket, (struct sockaddr *)&address, &size) < 0)
		return errno == ENOTSOCK ? -EPROTO : -errno;
	if (size <= offsetof(struct sockaddr_un, sun_path) || address.sun_family != AF_UNIX ||
		strncmp(address.sun_path, path, sizeof(address.sun_path)) != 0)
		return -EPROTO;
	if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_size) < 0 ||
		getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_size) < 0)
		return -errno;
	/* A listening socket's credentials are those of whoever listens. */
	return type == SOCK_SEQPACKET && !listening ? 0 : -EPROTO;
}

int policy_identify(int socket, const char *path, struct policy_identity *ret)
{
	struct policy_identity identity = { 0 };
	struct ucred credentials;
	socklen_t size = sizeof(credentials), groups = sizeof(identity.groups) - sizeof(gid_t);
	int r = check_socket(socket, path);

	if (r < 0)
		return r;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	identity.uid = credentials.uid;
	identity.pid = credentials.pid;
	identity.groups[0] = credentials.gid;
	identity.group_count = 1;
	/* Who is in more groups than there is room for counts with the first one only: less, never
	 * more. */
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, identity.groups + 1, &groups))
		identity.group_count += groups / (socklen_t)sizeof(gid_t);
	*ret = identity;
	return 0;
}

static bool in_group(const struct policy_identity *identity, gid_t group)
{
	for (unsigned int i = 0; i < identity->group_count; i++) {
		if (identity->groups[i] == group)
			return true;
	}
	return false;
}

static const struct policy_limits usual_limits = POLICY_LIMITS_USUAL;
/* Root's: it could write to tracefs itself. */
static const struct policy_limits no_limits = {
	.consumers = UINT32_MAX,
	.probes = UINT32_MAX,
	.ring = UINT64_MAX,
};

static const char *const place_names[] = {
	[POLICY_TRACEPOINT] = "tracepoint",
	[POLICY_KPROBE] = "kprobe",
	[POLICY_UPROBE] = "uprobe",
	[POLICY_USDT] = "usdt",
};

bool policy_concerns(const struct policy_subject *subject, const struct policy_identity *identity)
{
	switch (subject->kind) {
	case POLICY_USER:
		return identity->uid == subject->id;
	case POLICY_GROUP:
		return in_group(identity, subject->id);
	default:
		return true;
	}
}

__attribute__((format(printf, 3, 4))) static int refuse(struct control_failure *failure,
	const struct policy_identity *identity, const char *format, ...)
{
	char why[400];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	control_failure_set(failure, EPERM, -1, "user %u: %s", (unsigned int)identity->uid, why);
	return EXIT_NOT_PERMITTED;
}

/* ---- without a file ---- */

static int admit_members(const struct policy *policy, const struct policy_identity *identity,
	struct control_failure *failure)
{
	if (!policy->has_group)
		return refuse(failure, identity,
			"rule \"attach: root\": the session has no group, so only root may attach; root makes one with "
			"\"groupadd --system tracefan\", or names one with --group, and starts it again");
	if (!in_group(identity, policy->group))
		return refuse(failure, identity,
			"rule \"attach: group\": only members of the session's group may attach; "
			"ask to be added to it");
	return EXIT_DONE;
}

static int decide_usually(const struct policy *policy, const struct policy_identity *identity,
	const struct policy_wish *wish, struct control_failure *failure)
{
	if (wish->place == POLICY_TRACEPOINT)
		return admit_members(policy, identity, failure);
	return refuse(failure, identity,
		"rule \"define: root\": only root may define probes in this session; ask for a "
		"tracepoint, run as root, or have a policy allow it (tracefan-policy(5))");
}

/* ---- with one ---- */

int policy_admit(const struct policy *policy, const struct policy_identity *identity,
	struct control_failure *ret_failure)
{
	if (policy->replay || identity->uid == 0)
		return EXIT_DONE;
	if (!policy->path)
		return admit_members(policy, identity, ret_failure);
	for (size_t i = 0; i < policy->rule_count; i++) {
		if (policy->rules[i].allow && policy_concerns(&policy->rules[i].subject, identity))
			return EXIT_DONE;
	}
	return refuse(ret_failure, identity,
		"no line of %.160s allows this user or one of the user's groups anything; ask for "
		"one to be added",
		policy->path);
}

const struct policy_rule *policy_find(const struct policy *policy,
	const struct policy_identity *identity, const struct policy_wish *wish)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct policy_rule *rule = &policy->rules[i];

		if (rule->place == wish->place && policy_concerns(&rule->subject, identity) &&
			policy_glob(rule->pattern, wish->name))
			return rule;
	}
	return NULL;
}

/* What an allowing rule doesn't cover; NULL: nothing. */
static const char *beyond(const struct policy_rule *rule, const struct policy_wish *wish)
{
	if (wish->fetch > rule->fetch && rule->fetch == POLICY_FETCH_NONE)
		return "it allows no fetch arguments; leave them out, or ask for fetch=registers";
	if (wish->fetch > rule->fetch)
		return "it allows no argument that reads memory (+N(...), @, strings); fetch "
		       "registers only, or ask for fetch=memory";
	if (wish->semaphore && !rule->semaphore)
		return "the probe has a semaphore, which the kernel would write into the traced "
		       "programs; ask for semaphore=yes";
	if (wish->addresses && !rule->addresses)
		return "the kernel's stack holds the kernel's addresses; leave out stack, or ask for "
		       "kernel-addresses=yes";
	/* A pattern that could name the file by one name might not by another. */
	if (wish->linked && !policy_glob_is_exact(rule->pattern) &&
		strcmp(rule->pattern, "**") != 0)
		return "the file has other names, too (hard links), which the pattern may not "
		       "cover; ask for a line that names the file itself";
	/* The place could lie in any later function. */
	if (wish->offset && strcmp(rule->pattern, "*") != 0 && strcmp(rule->pattern, "**") != 0)
		return "an offset could lead into another function; probe the symbol itself, or "
		       "ask for kprobe:*";
	return NULL;
}

int policy_decide(const struct policy *policy, const struct policy_identity *identity,
	const struct policy_wish *wish, struct policy_grant *ret,
	struct control_failure *ret_failure)
{
	const struct policy_rule *rule;
	const char *lack;

	*ret = (struct policy_grant){ .own = false };
	if (policy->replay || identity->uid == 0)
		return EXIT_DONE;
	if (!policy->path)
		return decide_usually(policy, identity, wish, ret_failure);
	rule = policy_find(policy, identity, wish);
	if (!rule)
		return refuse(ret_failure, identity,
			"no line of %.120s allows %s:%.160s; see tracefan ls%s%s%s%.120s for what is allowed",
			policy->path, place_names[wish->place], wish->name,
			policy->session ? " --session " : "", policy->session ? policy->session : "",
			policy->directory ? " --directory " : "",
			policy->directory ? policy->directory : "");
	lack = rule->allow ? beyond(rule, wish) : "";
	if (lack)
		return refuse(ret_failure, identity, "%.100s, line %u: \"%s\"%s%s", policy->path,
			rule->line, rule->shown, *lack ? ": " : " denies it", lack);
	*ret = (struct policy_grant){ .own = rule->own, .rate = rule->rate };
	return EXIT_DONE;
}

const struct policy_limits *policy_limits_of(
	const struct policy *policy, const struct policy_identity *identity)
{
	if (policy->replay || identity->uid == 0)
		return &no_limits;
	for (size_t i = 0; i < policy->limit_count; i++) {
		if (policy_concerns(&policy->limits[i].subject, identity))
			return &policy->limits[i];
	}
	return &usual_limits;
}
