#include "reader/target_path.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int open_as_named(const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int target_path(int fd, char *path, size_t size, bool *ret_linked)
{
	CLEANUP_CLOSE int again = -1;
	struct stat given, found;
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	path[n] = '\0';
	if (*path != '/')
		return -ESTALE;
	again = open_as_named(path);
	if (again < 0)
		return again == -ENOENT || again == -ELOOP || again == -ENOTDIR || again == -EACCES
			       ? -ESTALE
			       : again;
	if (fstat(fd, &given) < 0 || fstat(again, &found) < 0)
		return -errno;
	if (given.st_dev != found.st_dev || given.st_ino != found.st_ino)
		return -ESTALE;
	*ret_linked = given.st_nlink > 1;
	return 0;
}
