#include "reader/identity.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool find_user(const char *name, uid_t *ret)
{
	const struct passwd *user = getpwnam(name);
	char *end;
	unsigned long number;

	if (user) {
		*ret = user->pw_uid;
		return true;
	}
	if (!isdigit((unsigned char)*name))
		return false;
	number = strtoul(name, &end, 10);
	if (*end || number >= (uid_t)-1)
		return false;
	*ret = (uid_t)number;
	return true;
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
		return find_user(options->router_user, ret) ? 0 : -ENOENT;
	}
	*ret_missing = "nobody";
	return find_user("tracefan-router", ret) || find_user("nobody", ret) ? 0 : -ENOENT;
}

int identity_resolve(const struct reader_options *options, uid_t *ret_router,
	struct policy *ret_policy, const char **ret_missing)
{
	const char *name = options->group ? options->group : "tracefan";
	/* Who isn't root can give a socket to a group only if they are in it, so they have to ask
	 * for one. */
	const struct group *group = options->group || geteuid() == 0 ? getgrnam(name) : NULL;
	struct policy policy = { .has_group = group != NULL };

	if (!group && options->group) {
		*ret_missing = options->group;
		return -ENOENT;
	}
	if (group) {
		policy.group = group->gr_gid;
		(void)snprintf(policy.group_name, sizeof(policy.group_name), "%s", name);
	}
	*ret_policy = policy;
	return resolve_router(options, ret_router, ret_missing);
}
