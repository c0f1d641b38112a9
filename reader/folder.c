#include "reader/folder.h"

#include "base/cleanup.h"

#include <fcntl.h>

DIR *folder_open(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		(void)close_fd(fd);
	return dir;
}
