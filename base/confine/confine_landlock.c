#include "base/confine/confine_landlock.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By hand, since the header of the build machine may be older than the kernel that runs this. */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define FS_TRUNCATE  (1ULL << 14) /* version 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* version 5 */

/* Version 1 has the first 13 accesses; later ones added one each. */
static uint64_t known_accesses(int version)
{
	uint64_t known = (1ULL << 13) - 1;

	if (version >= 2)
		known |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		known |= FS_TRUNCATE;
	if (version >= 5)
		known |= FS_IOCTL_DEV;
	return known;
}

int confine_landlock_open(struct confine_landlock *ret)
{
	/* Bits 0 and 1 of both: bind and connect by TCP; abstract sockets and signals. */
	struct ruleset rules = { .net = 3, .scoped = 3 };
	size_t size = sizeof(rules);
	int fd, version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (version < 0)
		return -errno;
	rules.fs = known_accesses(version);
	if (version < 6)
		size = offsetof(struct ruleset, scoped);
	if (version < 4)
		size = offsetof(struct ruleset, net);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
	if (fd < 0)
		return -errno;
	*ret = (struct confine_landlock){ .ruleset = fd, .handled = rules.fs };
	return 0;
}

static uint64_t to_kernel(unsigned int access, bool folder)
{
	uint64_t allowed = 0;

	if (access & CONFINE_READ)
		allowed |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	if (access & CONFINE_WRITE)
		allowed |= LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE;
	if (access & CONFINE_REMOVE)
		allowed |= LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR;
	/* The kernel refuses a rule that gives a file what only a folder can have. */
	return folder ? allowed
		      : allowed & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE);
}

int confine_landlock_allow(const struct confine_landlock *landlock, int at, const char *path, unsigned int access)
{
	struct landlock_path_beneath_attr rule = { 0 };
	CLEANUP_CLOSE int opened = -1;
	struct stat st;

	rule.parent_fd = at;
	if (*path) {
		opened = openat(at, path, O_PATH | O_CLOEXEC);
		if (opened < 0)
			return errno == ENOENT ? 0 : -errno;
		rule.parent_fd = opened;
	}
	if (fstat(rule.parent_fd, &st) < 0)
		return -errno;
	rule.allowed_access = to_kernel(access, S_ISDIR(st.st_mode)) & landlock->handled;
	if (syscall(SYS_landlock_add_rule, landlock->ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int confine_landlock_enter(struct confine_landlock *landlock)
{
	int r = syscall(SYS_landlock_restrict_self, landlock->ruleset, 0) < 0 ? -errno : 0;

	landlock->ruleset = close_fd(landlock->ruleset);
	return r;
}
