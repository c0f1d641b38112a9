#include "reader/proc_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* More than the tables of a million sockets take. */
#define FILE_MAX (512UL << 20)

static int read_some(int fd, char *buffer, size_t room)
{
	size_t size = 0;

	while (size < room) {
		ssize_t n = read(fd, buffer + size, room - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	return (int)size;
}

int proc_file_peek(int folder, const char *path, char *buffer, size_t room)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, buffer, room);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

int proc_file_read(int folder, const char *path, char **ret_text, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP_FREE char *text = NULL;
	size_t size = 0, room = 0;
	int n;

	if (fd < 0)
		return -errno;
	do {
		char *more;

		room = room ? 2 * room : 16384;
		more = room > FILE_MAX ? NULL : realloc(text, room + 1);
		if (!more)
			return room > FILE_MAX ? -EFBIG : -ENOMEM;
		text = more;
		n = read_some(fd, text + size, room - size);
		if (n < 0)
			return n;
		size += (size_t)n;
	} while (size == room);
	text[size] = '\0';
	*ret_text = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

int proc_file_link(int folder, const char *path, char *buffer, size_t room)
{
	ssize_t n = readlinkat(folder, path, buffer, room);

	return n < 0 ? -errno : (int)n;
}
