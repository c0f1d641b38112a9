#include "reader/holder.h"

#include "reader/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is looked for: one file, or all below a path that ends with a slash. */
struct wanted {
	struct stat file;
	char below[PATH_MAX];
	size_t below_size;
};

static bool is_wanted(int fds, const char *fd, const struct wanted *wanted)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (!wanted->below_size)
		return !fstatat(fds, fd, &st, 0) && st.st_dev == wanted->file.st_dev &&
		       st.st_ino == wanted->file.st_ino;
	n = readlinkat(fds, fd, target, sizeof(target));
	return n > (ssize_t)wanted->below_size &&
	       !memcmp(target, wanted->below, wanted->below_size);
}

static bool has_open(int proc, const char *pid, const struct wanted *wanted)
{
	char path[64];
	const struct dirent *entry;
	bool found = false;
	DIR *fds;

	(void)snprintf(path, sizeof(path), "%.20s/fd", pid);
	fds = folder_open(proc, path);
	while (fds && !found && (entry = readdir(fds))) {
		found = entry->d_name[0] != '.' && is_wanted(dirfd(fds), entry->d_name, wanted);
	}
	if (fds)
		(void)closedir(fds);
	return found;
}

static bool want(int folder, const char *file, struct wanted *ret)
{
	char self[64];
	ssize_t n;

	ret->below_size = 0;
	if (file)
		return fstatat(folder, file, &ret->file, 0) == 0;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", folder);
	n = readlink(self, ret->below, sizeof(ret->below) - 1);
	if (n <= 0)
		return false;
	ret->below[n] = '/';
	ret->below_size = (size_t)n + 1;
	return true;
}

pid_t holder_find(int folder, const char *file)
{
	const struct dirent *entry;
	pid_t found = 0;
	int saved = errno;
	struct wanted wanted;
	DIR *proc = want(folder, file, &wanted) ? folder_open(AT_FDCWD, "/proc") : NULL;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && has_open(dirfd(proc), entry->d_name, &wanted))
			found = pid;
	}
	if (proc)
		(void)closedir(proc);
	errno = saved;
	return found;
}
