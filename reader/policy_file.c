#include "reader/policy_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int fail(struct policy_error *error, int r, const char *message)
{
	*error = (struct policy_error){ .line = 0 };
	(void)snprintf(error->message, sizeof(error->message), "%s", message);
	return r;
}

static int check_file(int fd, uid_t owner, struct policy_error *error)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(error, -errno, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(error, -EINVAL, "not a regular file");
	if (st.st_uid != owner && st.st_uid != 0)
		return fail(error, -EPERM,
			"it must belong to root, or its owner could allow anything: chown root");
	if (st.st_mode & 022)
		return fail(error, -EPERM,
			"others than its owner may write to it, and could allow anything: chmod "
			"go-w");
	return 0;
}

static int read_all(int fd, char *bytes, size_t room, size_t *ret_size)
{
	size_t size = 0;
	ssize_t n = 1;

	while (n && size < room) {
		n = read(fd, bytes + size, room - size);
		if (n < 0 && errno != EINTR)
			return -errno;
		size += n > 0 ? (size_t)n : 0;
	}
	*ret_size = size;
	return 0;
}

static int find_subject(struct policy_subject *subject)
{
	const struct passwd *user;
	const struct group *group;

	/* A number was taken as it stands. */
	if (!subject->name || (*subject->name >= '0' && *subject->name <= '9'))
		return 0;
	if (subject->kind == POLICY_USER) {
		user = getpwnam(subject->name);
		subject->id = user ? user->pw_uid : 0;
		return user ? 0 : -ENOENT;
	}
	group = getgrnam(subject->name);
	subject->id = group ? group->gr_gid : 0;
	return group ? 0 : -ENOENT;
}

static int find_subjects(struct policy *policy, struct policy_error *error)
{
	struct policy_subject *missing = NULL;
	unsigned int line = 0;

	for (size_t i = 0; i < policy->rule_count && !missing; i++) {
		line = policy->rules[i].line;
		if (find_subject(&policy->rules[i].subject) < 0)
			missing = &policy->rules[i].subject;
	}
	for (size_t i = 0; i < policy->limit_count && !missing; i++) {
		line = policy->limits[i].line;
		if (find_subject(&policy->limits[i].subject) < 0)
			missing = &policy->limits[i].subject;
	}
	if (!missing)
		return 0;
	error->line = line;
	(void)snprintf(error->message, sizeof(error->message),
		"no %s \"%.60s\" on this machine: make it, or take the line out",
		missing->kind == POLICY_USER ? "user" : "group", missing->name);
	return -EINVAL;
}

int policy_file_read(
	const char *path, uid_t owner, struct policy *ret, struct policy_error *ret_error)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	/* One byte more tells a file that is too large from one that just fits. */
	CLEANUP_FREE char *bytes = malloc(POLICY_TEXT_MAX + 1);
	struct policy policy;
	size_t size = 0;
	int r;

	if (fd < 0)
		return fail(ret_error, -errno, strerror(errno));
	if (!bytes)
		return fail(ret_error, -ENOMEM, strerror(ENOMEM));
	r = check_file(fd, owner, ret_error);
	if (r < 0)
		return r;
	r = read_all(fd, bytes, POLICY_TEXT_MAX + 1, &size);
	if (r < 0)
		return fail(ret_error, r, strerror(-r));
	r = policy_parse(path, bytes, size, &policy, ret_error);
	if (r == -ENOMEM)
		return fail(ret_error, r, strerror(ENOMEM));
	if (r < 0)
		return r;
	r = find_subjects(&policy, ret_error);
	if (r < 0) {
		policy_release(&policy);
		return r;
	}
	*ret = policy;
	return 0;
}
