#include "reader/holder.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static DIR *open_folder(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		(void)close_fd(fd);
	return dir;
}

static bool has_open(int proc, const char *pid, const struct stat *file)
{
	char path[64];
	const struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *fds;

	(void)snprintf(path, sizeof(path), "%.20s/fd", pid);
	fds = open_folder(proc, path);
	while (fds && !found && (entry = readdir(fds))) {
		if (entry->d_name[0] != '.' && !fstatat(dirfd(fds), entry->d_name, &st, 0))
			found = st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	}
	if (fds)
		(void)closedir(fds);
	return found;
}

pid_t holder_find(int folder, const char *file)
{
	const struct dirent *entry;
	pid_t found = 0;
	int saved = errno;
	struct stat st;
	DIR *proc = fstatat(folder, file, &st, 0) < 0 ? NULL : open_folder(AT_FDCWD, "/proc");

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && has_open(dirfd(proc), entry->d_name, &st))
			found = pid;
	}
	if (proc)
		(void)closedir(proc);
	errno = saved;
	return found;
}
