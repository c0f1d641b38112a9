#include "reader/tracedir.h"

#include "base/cleanup.h"
#include "base/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <tracefs.h>
#include <unistd.h>

#define READ_MAX (64U << 20)

static ssize_t read_plain(void *context, int fd, void *data, size_t size)
{
	ssize_t n;

	(void)context;
	do
		n = read(fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int tracedir_read(int folder, const char *path, char **ret_data, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : tracedir_read_by(fd, read_plain, NULL, ret_data, ret_size);
}

int tracedir_read_by(int fd, tracedir_reading *reading, void *context, char **ret_data, size_t *ret_size)
{
	CLEANUP_FREE char *data = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (room - size < 2) {
			char *more;

			room = room ? room * 2 : 8192;
			if (room > READ_MAX)
				return -EFBIG;
			more = realloc(data, room);
			if (!more)
				return -ENOMEM;
			data = more;
		}
		n = reading(context, fd, data + size, room - size - 1);
		if (n < 0)
			return (int)n;
		if (!n)
			break;
		size += (size_t)n;
	}
	data[size] = '\0';
	*ret_data = TAKE_PTR(data);
	if (ret_size)
		*ret_size = size;
	return 0;
}

static int write_once(int folder, const char *path, int flags, const char *text)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_WRONLY | O_CLOEXEC | flags);
	size_t length = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = write(fd, text, length);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EIO;
}

int tracedir_write(int folder, const char *path, const char *text)
{
	return write_once(folder, path, 0, text);
}

int tracedir_append(int folder, const char *path, const char *text)
{
	return write_once(folder, path, O_APPEND, text);
}

int tracedir_clear(int folder, const char *path)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_WRONLY | O_CLOEXEC | O_TRUNC);

	return fd < 0 ? -errno : 0;
}

__attribute__((format(printf, 4, 5))) static int problem(
	struct tracedir_problem *ret, int status, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(ret->message, sizeof(ret->message), format, ap);
	va_end(ap);
	ret->status = status;
	return -error;
}

/* True when the kernel's lockdown is at a level that closes tracefs. */
static bool lockdown_closes(void)
{
	char text[128];
	CLEANUP_CLOSE int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "[confidentiality]") != NULL;
}

static int check(int fd, const char *path, struct tracedir_problem *ret)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || (fs.f_type != TRACEFS_MAGIC && fs.f_type != DEBUGFS_MAGIC))
		return problem(ret, EXIT_MISSING, ENODEV,
			"%s is not tracefs: mount it with \"mount -t tracefs tracefs %s\"", path,
			path);
	if (!faccessat(fd, "instances", W_OK, 0))
		return 0;
	if (errno == EACCES)
		return problem(ret, EXIT_NOT_PERMITTED, EACCES,
			"%s can't be written by uid %u: tracefan-reader needs uid 0", path,
			(unsigned int)geteuid());
	if (lockdown_closes())
		return problem(ret, EXIT_MISSING, EPERM,
			"the kernel is locked down (confidentiality), which closes tracefs: boot "
			"with lockdown=integrity or lower");
	if (errno == ENOENT)
		return problem(ret, EXIT_MISSING, ENOENT,
			"%s has no instances folder: the kernel needs CONFIG_TRACING, and lockdown "
			"must not be \"confidentiality\"",
			path);
	return problem(ret, EXIT_MISSING, errno, "%s can't be used: %s", path, strerror(errno));
}

/* Where tracefs is mounted first. Never mounts anything. */
static bool find_mount(char *path, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;
	bool found = false;

	while (mounts && !found && (mount = getmntent(mounts))) {
		found = !strcmp(mount->mnt_type, "tracefs");
		if (found)
			(void)snprintf(path, size, "%s", mount->mnt_dir);
	}
	if (mounts)
		(void)endmntent(mounts);
	return found;
}

int tracedir_open(const char *path, struct tracedir_problem *ret_problem)
{
	CLEANUP_CLOSE int fd = -1;
	char found[PATH_MAX];
	int r;

	if (!path && find_mount(found, sizeof(found)))
		path = found;
	if (!path) {
		if (lockdown_closes())
			return problem(ret_problem, EXIT_MISSING, EPERM,
				"the kernel is locked down (confidentiality), which closes "
				"tracefs: boot with lockdown=integrity or lower");
		return problem(ret_problem, EXIT_MISSING, ENOENT,
			"tracefs is not mounted: \"mount -t tracefs tracefs /sys/kernel/tracing\"");
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return problem(ret_problem, EXIT_NOT_PERMITTED, EACCES,
			"%s can't be read by uid %u: tracefan-reader needs uid 0", path,
			(unsigned int)geteuid());
	if (fd < 0)
		return problem(ret_problem, EXIT_MISSING, errno, "%s: %s", path, strerror(errno));
	r = check(fd, path, ret_problem);
	if (r < 0)
		return r;
	if (tracefs_set_tracing_dir((char *)path) < 0)
		return problem(
			ret_problem, EXIT_MISSING, EINVAL, "%s: libtracefs does not take it", path);
	return TAKE_FD(fd);
}
