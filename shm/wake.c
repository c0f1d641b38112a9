#include "shm/wake.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Room for this many signals that nobody took back. One would do; a page is the least that there
 * is. */
#define WAKE_ROOM 4096

int wake_create(int *ret_wait, int *ret_signal)
{
	int ends[2];

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	/* Only saves memory, so a refusal does not matter. */
	(void)fcntl(ends[1], F_SETPIPE_SZ, WAKE_ROOM);
	*ret_wait = ends[0];
	*ret_signal = ends[1];
	return 0;
}

/* Opens the pipe behind fd once more, for reading and writing, with flags of its own. */
static int open_again(int fd)
{
	char path[32];
	int again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

int wake_create_lasting(int *ret_wait, int *ret_signal)
{
	CLEANUP_CLOSE int read_end = -1;
	CLEANUP_CLOSE int write_end = -1;
	CLEANUP_CLOSE int wait = -1;
	CLEANUP_CLOSE int signal = -1;
	int r;

	r = wake_create(&read_end, &write_end);
	if (r < 0)
		return r;
	wait = open_again(read_end);
	if (wait < 0)
		return wait;
	signal = open_again(read_end);
	if (signal < 0)
		return signal;
	*ret_wait = TAKE_FD(wait);
	*ret_signal = TAKE_FD(signal);
	return 0;
}

int wake_signal(int fd)
{
	static const char one = 1;

	if (write(fd, &one, 1) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

int wake_clear(int fd)
{
	char signals[WAKE_ROOM];
	ssize_t n;

	n = read(fd, signals, sizeof(signals));
	if (n < 0)
		return -errno;
	return n == 0 ? -EPIPE : 0;
}
