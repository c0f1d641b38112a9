/* Whether a session runs, for whoever asks: no right to attach is needed, only a way to its folder. */
#include "consumers/client/tracefan.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/run/tracefan"
#define DEFAULT_SESSION   "default"

static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ECONNREFUSED;
}

/* Who listens, be it that the queue is full or that this user is not let in, is there. */
static int knock(int folder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/consumers.sock", folder);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN || errno == EACCES)
		return 1;
	return is_absent(errno) ? 0 : -errno;
}

int tfan_is_running(const char *directory, const char *session)
{
	CLEANUP_CLOSE int top = -1, folder = -1;
	const char *name = session ? session : DEFAULT_SESSION;

	if (!*name || *name == '.' || strchr(name, '/'))
		return -EINVAL;
	top = open(directory ? directory : DEFAULT_DIRECTORY, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return is_absent(errno) ? 0 : -errno;
	folder = openat(top, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return is_absent(errno) ? 0 : -errno;
	return knock(folder);
}
