#include "reader/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static pid_t find_holder(int fd)
{
	char line[256];
	struct stat st;
	pid_t holder = 0;
	FILE *locks;

	if (fstat(fd, &st) < 0)
		return 0;
	locks = fopen("/proc/locks", "re");
	if (!locks)
		return 0;
	while (!holder && fgets(line, sizeof(line), locks)) {
		unsigned long inode;
		unsigned int major_number, minor_number;
		int pid;

		/* "1: FLOCK  ADVISORY  WRITE 1234 00:0b:1057 0 EOF"; waiters have "->" before the
		 * kind. */
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major_number,
			    &minor_number, &inode) != 4)
			continue;
		if (inode == st.st_ino && major_number == major(st.st_dev) &&
			minor_number == minor(st.st_dev) && pid > 0)
			holder = pid;
	}
	(void)fclose(locks);
	return holder;
}

int lock_is_of(int fd, int folder, const char *path)
{
	struct stat held, named;

	if (fstat(fd, &held) < 0)
		return -errno;
	if (fstatat(folder, path, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

int lock_take(int fd, pid_t *ret_holder)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return -errno;
	*ret_holder = find_holder(fd);
	return -EBUSY;
}
