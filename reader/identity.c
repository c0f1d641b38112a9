#include "reader/identity.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The databases say nothing of why they don't answer but by errno, which is 0 or one of several for a name that they don't
 * have. */
static int why_missing(int error)
{
	return error == ENOMEM || error == EMFILE || error == ENFILE || error == EIO ? -error : -ENOENT;
}

static int find_user(const char *name, uid_t *ret)
{
	const struct passwd *user;
	char *end;
	unsigned long number;

	errno = 0;
	user = getpwnam(name);
	if (user) {
		*ret = user->pw_uid;
		return 0;
	}
	if (!isdigit((unsigned char)*name))
		return why_missing(errno);
	number = strtoul(name, &end, 10);
	if (*end || number >= (uid_t)-1)
		return -ENOENT;
	*ret = (uid_t)number;
	return 0;
}

static int resolve_router(
	const struct reader_options *options, uid_t *ret, const char **ret_missing)
{
	/* Without root the router can only be the caller's own. */
	if (geteuid() != 0) {
		*ret = geteuid();
		return 0;
	}
	if (options->router_user) {
		*ret_missing = options->router_user;
		return find_user(options->router_user, ret);
	}
	*ret_missing = "nobody";
	return find_user("tracefan-router", ret) == 0 ? 0 : find_user("nobody", ret);
}

int identity_resolve(const struct reader_options *options, uid_t *ret_router,
	struct policy *ret_policy, const char **ret_missing)
{
	const char *name = options->group ? options->group : "tracefan";
	/* Who isn't root can give a socket to a group only if they are in it, so they have to ask
	 * for one. */
	bool looked = options->group || geteuid() == 0;
	const struct group *group = NULL;
	struct policy policy = { 0 };

	errno = 0;
	if (looked)
		group = getgrnam(name);
	if (!group && options->group) {
		*ret_missing = options->group;
		return why_missing(errno);
	}
	policy.has_group = group != NULL;
	if (group) {
		policy.group = group->gr_gid;
		(void)snprintf(policy.group_name, sizeof(policy.group_name), "%s", name);
	}
	*ret_policy = policy;
	return resolve_router(options, ret_router, ret_missing);
}
