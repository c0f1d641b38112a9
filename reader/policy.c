#include "reader/policy.h"

#include <errno.h>
#include <stddef.h>
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

const char *policy_refuses(const struct policy *policy, const struct policy_identity *identity,
	enum policy_action action)
{
	if (policy->file || identity->uid == 0)
		return NULL;
	if (action == POLICY_DEFINE)
		return "rule \"define: root\": only root may define probes in this session; ask "
		       "for a tracepoint, or run as root";
	if (!policy->has_group)
		return "rule \"attach: root\": the session has no group, so only root may attach";
	if (!in_group(identity, policy->group))
		return "rule \"attach: group\": only members of the session's group may attach; "
		       "ask to be added to it";
	return NULL;
}
