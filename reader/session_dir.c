#include "reader/session_dir.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/legacy.h"
#include "reader/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define OPEN_TRIES 10

static const char *const socket_names[] = { "router.sock", "consumers.sock", "control.sock" };

static int fail(struct tracedir_problem *problem, int error, const char *what, const char *name)
{
	(void)snprintf(problem->message, sizeof(problem->message), "%s %.250s: %s", what, name,
		strerror(-error));
	problem->status = error == -EACCES || error == -EPERM ? EXIT_NOT_PERMITTED : EXIT_FAILED;
	return error;
}

/* Returns 1 (made), 0 (it was there) or -errno. */
static int make_folder(int at, const char *path)
{
	int r;

	/* The mode is set by hand, so that no umask closes the way to the sockets. */
	if (mkdirat(at, path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	r = fchmodat(at, path, 0755, 0) < 0 ? -errno : 1;
	if (r < 0)
		(void)unlinkat(at, path, AT_REMOVEDIR);
	return r;
}

static int lock_folder(struct session_dir *dir, bool *ret_made, struct tracedir_problem *problem)
{
	pid_t holder = 0;
	int r;

	for (int i = 0; i < OPEN_TRIES; i++) {
		r = make_folder(dir->parent, dir->name);
		if (r < 0)
			return fail(problem, r, "making of folder", dir->path);
		*ret_made = r;
		dir->dir = openat(
			dir->parent, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir->dir < 0 && errno == ENOENT)
			continue;
		if (dir->dir < 0)
			return fail(problem, -errno, "opening of folder", dir->path);
		r = lock_take(dir->dir, &holder);
		if (r == -EBUSY) {
			problem->status = EXIT_BUSY;
			(void)snprintf(problem->message, sizeof(problem->message),
				"session \"%s\" is held by another reader, process %d", dir->name,
				(int)holder);
			return r;
		}
		if (r < 0)
			return fail(problem, r, "lock of", dir->path);
		/* The holder removes the folder before it lets go of the lock. */
		r = lock_is_of(dir->dir, dir->parent, dir->name);
		if (r < 0)
			return fail(problem, r, "look at", dir->path);
		if (r)
			return 0;
		dir->dir = close_fd(dir->dir);
	}
	return fail(problem, -EAGAIN, "opening of folder", dir->path);
}

void session_dir_release(struct session_dir *dir)
{
	dir->router = close_fd(dir->router);
	dir->consumers = close_fd(dir->consumers);
	dir->control = close_fd(dir->control);
	dir->dir = close_fd(dir->dir);
	dir->parent = close_fd(dir->parent);
}

int session_dir_open(const char *directory, const char *session, struct session_dir *ret,
	struct tracedir_problem *ret_problem)
{
	struct session_dir dir = SESSION_DIR_NONE;
	char real[PATH_MAX];
	bool made = false;
	int n, r = make_folder(AT_FDCWD, directory);

	if (r < 0)
		return fail(ret_problem, r, "making of folder", directory);
	if (!realpath(directory, real))
		return fail(ret_problem, -errno, "folder", directory);
	(void)snprintf(dir.name, sizeof(dir.name), "%s", session);
	n = snprintf(dir.path, sizeof(dir.path), "%s/%s", real, session);
	/* The longest name has to fit into a socket's address. */
	if (n < 0 || (size_t)n + sizeof("/consumers.sock") > sizeof(dir.path))
		return fail(ret_problem, -ENAMETOOLONG, "folder", directory);
	dir.parent = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dir.parent < 0 ? fail(ret_problem, -errno, "opening of folder", real)
			   : lock_folder(&dir, &made, ret_problem);
	if (r < 0) {
		/* Whoever was quicker to lock what was made here is about to use it, and removes it. */
		if (made && r != -EBUSY)
			(void)unlinkat(dir.parent, dir.name, AT_REMOVEDIR);
		session_dir_release(&dir);
		return r;
	}
	*ret = dir;
	return 0;
}

static int listen_one(const struct session_dir *dir, const char *name, uid_t uid, gid_t gid,
	mode_t mode, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int n;

	if (fd < 0)
		return -errno;
	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir->path, name);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (unlinkat(dir->dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1)) < 0)
		return -errno;
	/* Nobody can connect before listen(2), so the modes are right from the first connection on.
	 */
	if (fchmodat(dir->dir, name, mode, 0) < 0)
		return -errno;
	/* After the mode, which is the owner's to change: that leaves one capability less to need. */
	if ((uid != geteuid() || gid != SESSION_DIR_NO_GROUP) &&
		fchownat(dir->dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int session_dir_listen(struct session_dir *dir, const struct session_dir_owners *owners,
	struct tracedir_problem *ret_problem)
{
	mode_t consumers = owners->everybody ? 0666
			 : owners->group == SESSION_DIR_NO_GROUP
				 ? 0600
				 : 0660;
	int r = listen_one(
		dir, socket_names[0], owners->router, SESSION_DIR_NO_GROUP, 0600, &dir->router);

	if (!r && dir->consumers < 0)
		r = listen_one(
			dir, socket_names[1], geteuid(), owners->group, consumers, &dir->consumers);
	if (!r)
		r = listen_one(
			dir, socket_names[2], geteuid(), SESSION_DIR_NO_GROUP, 0600, &dir->control);
	return r < 0 ? fail(ret_problem, r, "sockets in", dir->path) : 0;
}

void session_dir_remove(struct session_dir *dir)
{
	if (dir->dir >= 0) {
		for (size_t i = 0; i < ARRAY_SIZE(socket_names); i++)
			(void)unlinkat(dir->dir, socket_names[i], 0);
		(void)unlinkat(dir->dir, LEGACY_NAME, 0);
		/* While the lock is still held: see lock_is_of(). */
		(void)unlinkat(dir->parent, dir->name, AT_REMOVEDIR);
	}
	session_dir_release(dir);
}
