#include "consumers/cli/output_file.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int output_file_refused(const char *path, int error)
{
	message("%s: %s", path, strerror(error));
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return EXIT_USAGE;
	case EACCES:
	case EPERM:
	case EROFS:
		return EXIT_NOT_PERMITTED;
	default:
		return EXIT_FAILED;
	}
}

int output_file_open(struct output_file *file, const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_EXCL, 0666);

	*file = (struct output_file){ .path = path, .fd = fd, .made = fd >= 0 };
	if (fd < 0 && errno == EEXIST)
		file->fd = open(path, flags, 0666);
	if (file->fd >= 0)
		return EXIT_DONE;
	return output_file_refused(path, errno);
}

int output_file_begin(struct output_file *file)
{
	if (file->fd < 0)
		return EXIT_DONE;
	file->begun = true;
	/* EINVAL: what can't be truncated, a pipe or a device. */
	if (ftruncate(file->fd, 0) == 0 || errno == EINVAL)
		return EXIT_DONE;
	message("%s: %s", file->path, strerror(errno));
	return EXIT_FAILED;
}

void output_file_close(struct output_file *file)
{
	if (file->fd < 0)
		return;
	if (file->made && !file->begun)
		(void)unlink(file->path);
	(void)close(file->fd);
	file->fd = -1;
}
