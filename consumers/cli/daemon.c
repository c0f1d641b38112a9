#include "consumers/cli/daemon.h"

#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above any number that the child's fixed ones use, so that moving one can't overwrite another. */
#define DAEMON_FD_FLOOR 16
/* Bytes that a file of their messages may have (LOG_LIMIT of base/log.h), so that nobody fills the file system by it. */
#define DAEMON_LOG_LIMIT "TRACEFAN_LOG_LIMIT=1048576"
/* For one that is to be ready, when the user has had enough. */
#define DAEMON_PATIENCE (20 * MONOTONIC_SECOND)

/* What the child needs to know, made before the fork. */
struct daemon_plan {
	char *const *argv;
	struct daemon_fds fds;
	int failure; /* where it writes its errno */
	char notify[64];
};

static int daemon_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* A socket for sd_notify(3)'s protocol, under a name that the kernel picks. */
static int daemon_notify_socket(int *ret_fd, char *name, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(sa_family_t);
	int on = 1;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
		bind(fd, (struct sockaddr *)&address, length) < 0)
		goto fail;
	length = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		goto fail;
	(void)snprintf(name, size, "NOTIFY_SOCKET=@%.*s", (int)(length - offsetof(struct sockaddr_un, sun_path) - 1),
		address.sun_path + 1);
	*ret_fd = fd;
	return 0;
fail:
	(void)daemon_close(fd);
	return -errno;
}

/* Puts descriptors where the daemon expects them and closes all others, of whoever started this program, too. */
static int daemon_child_fds(const struct daemon_plan *plan, int *ret_failure)
{
	int null = open("/dev/null", O_RDWR);
	int failure = fcntl(plan->failure, F_DUPFD_CLOEXEC, DAEMON_FD_FLOOR);
	int keep = plan->fds.keep < 0 ? -1 : fcntl(plan->fds.keep, F_DUPFD_CLOEXEC, DAEMON_FD_FLOOR);

	if (null < 0 || failure < 0 || (plan->fds.keep >= 0 && keep < 0))
		return -1;
	if (plan->fds.errors >= 0 && dup2(plan->fds.errors, STDERR_FILENO) < 0)
		return -1;
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	if (keep >= 0 && dup2(keep, DAEMON_KEPT_FD) < 0)
		return -1;
	if (dup3(failure, DAEMON_KEPT_FD + 1, O_CLOEXEC) < 0)
		return -1;
	if (keep < 0)
		(void)close(DAEMON_KEPT_FD);
	/* Kernels before 5.9 lack the call; there the others' descriptors stay, ours are close-on-exec. */
	(void)syscall(SYS_close_range, DAEMON_KEPT_FD + 2, ~0U, 0);
	*ret_failure = DAEMON_KEPT_FD + 1;
	return 0;
}

__attribute__((noreturn)) static void daemon_child(const struct daemon_plan *plan)
{
	char *const limit = plan->fds.errors >= 0 ? (char *)DAEMON_LOG_LIMIT : NULL;
	char *const environment[] = { *plan->notify ? (char *)plan->notify : limit, *plan->notify ? limit : NULL, NULL };
	int failure = plan->failure;
	sigset_t none;
	int error;

	(void)setsid();
	/* What came for our caller while this was its process is not the daemon's. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	if (daemon_child_fds(plan, &failure) == 0)
		(void)execve(plan->argv[0], plan->argv, environment);
	/* What fcntl(2) says of a number that the limit of open files doesn't allow. */
	error = errno == EINVAL ? EMFILE : errno;
	(void)!write(failure, &error, sizeof(error));
	_exit(EXIT_FAILURE);
}

/* Whether what lies at the socket is READY=1 from the daemon itself: anybody may send to an abstract name. */
static bool daemon_is_ready(const struct daemon *daemon, int notify)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char text[256];
	struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr header = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *cmsg;
	struct ucred sender;
	ssize_t n = recvmsg(notify, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	text[n] = '\0';
	cmsg = CMSG_FIRSTHDR(&header);
	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(cmsg), sizeof(sender));
	return sender.pid == daemon->pid && (strcmp(text, "READY=1") == 0 || strncmp(text, "READY=1\n", 8) == 0 ||
		       strstr(text, "\nREADY=1"));
}

bool daemon_ended(struct daemon *daemon)
{
	int status;

	if (daemon->pid == 0 || daemon->ended)
		return true;
	if (waitpid(daemon->pid, &status, WNOHANG) != daemon->pid)
		return false;
	daemon->ended = true;
	daemon->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

/* One that is about to be ready is not stopped halfway: it could not tidy up as well. */
static int daemon_wait_ready(struct daemon *daemon, int notify, int failure, int interrupt)
{
	struct pollfd fds[] = {
		{ .fd = notify, .events = POLLIN },
		{ .fd = daemon->pidfd, .events = POLLIN },
		{ .fd = interrupt, .events = POLLIN },
	};
	uint64_t deadline = MONOTONIC_NEVER;
	int error = 0;

	for (;;) {
		int r = monotonic_poll(fds, 3, deadline);

		if (r < 0 && r != -EINTR)
			return r;
		if (r == 0) {
			(void)kill(daemon->pid, SIGKILL);
			deadline = MONOTONIC_NEVER;
		} else if (fds[2].revents) {
			fds[2].fd = -1;
			deadline = monotonic_now() + DAEMON_PATIENCE;
		}
		if ((fds[0].revents & POLLIN) && daemon_is_ready(daemon, notify))
			return 0;
		if (daemon_ended(daemon))
			break;
	}
	if (read(failure, &error, sizeof(error)) == sizeof(error))
		return -error;
	return daemon->status > 0 ? daemon->status : EXIT_FAILURE;
}

static int daemon_fork(struct daemon *daemon, const struct daemon_plan *plan)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		daemon_child(plan);
	daemon->pid = pid;
	daemon->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return daemon->pidfd < 0 ? -errno : 0;
}

/* *ret_failure: where the child tells the errno of an execve that failed; end of file when it did not. */
static int daemon_launch(struct daemon *daemon, struct daemon_plan *plan, int *ret_failure)
{
	int failure[2];
	int r;

	if (pipe2(failure, O_CLOEXEC) < 0)
		return -errno;
	plan->failure = failure[1];
	r = daemon_fork(daemon, plan);
	(void)daemon_close(failure[1]);
	*ret_failure = failure[0];
	return r;
}

int daemon_spawn(struct daemon *daemon, const char *name, char *const argv[], struct daemon_fds fds)
{
	struct daemon_plan plan = { .argv = argv, .fds = fds };
	int failure = -1, error = 0;
	int r;

	*daemon = (struct daemon){ .name = name, .pidfd = -1 };
	r = daemon_launch(daemon, &plan, &failure);
	if (r == 0 && read(failure, &error, sizeof(error)) == sizeof(error))
		r = -error;
	(void)daemon_close(failure);
	return r;
}

int daemon_start(struct daemon *daemon, const char *name, char *const argv[], struct daemon_fds fds, int interrupt)
{
	struct daemon_plan plan = { .argv = argv, .fds = fds };
	int notify = -1, failure = -1;
	int r;

	*daemon = (struct daemon){ .name = name, .pidfd = -1 };
	r = daemon_notify_socket(&notify, plan.notify, sizeof(plan.notify));
	if (r == 0)
		r = daemon_launch(daemon, &plan, &failure);
	if (r == 0)
		r = daemon_wait_ready(daemon, notify, failure, interrupt);
	(void)daemon_close(failure);
	(void)daemon_close(notify);
	return r;
}

void daemon_leave(struct daemon *daemon)
{
	daemon->pidfd = daemon_close(daemon->pidfd);
	*daemon = (struct daemon)DAEMON_NONE;
}

/* Whether a thread is in state D. */
static bool daemon_thread_is_held(int threads, const char *name)
{
	char path[NAME_MAX + sizeof("/stat")], text[512];
	const char *state;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/stat", name);
	fd = openat(threads, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	/* Behind its name, which may hold anything. */
	state = strrchr(text, ')');
	return state && strncmp(state, ") D", 3) == 0;
}

/* Whether it waits in the kernel for what no signal ends. */
static bool daemon_is_held(const struct daemon *daemon)
{
	const struct dirent *entry;
	bool held = false;
	char path[32];
	DIR *threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)daemon->pid);
	threads = opendir(path);
	while (threads && !held && (entry = readdir(threads)))
		held = entry->d_name[0] != '.' && daemon_thread_is_held(dirfd(threads), entry->d_name);
	if (threads)
		(void)closedir(threads);
	return held;
}

/* One that is held would not end any sooner for being killed, and then could not tidy up. */
int daemon_finish(struct daemon *daemon, uint64_t deadline)
{
	struct pollfd fd = { .fd = daemon->pidfd, .events = POLLIN };
	bool told = false;

	while (!daemon_ended(daemon)) {
		if (monotonic_poll(&fd, 1, deadline) != 0)
			continue;
		if (daemon_is_held(daemon)) {
			if (!told)
				message("%s waits for the kernel, and is waited for", daemon->name);
			told = true;
			deadline = monotonic_now() + MONOTONIC_SECOND;
		} else {
			(void)kill(daemon->pid, SIGKILL);
			deadline = MONOTONIC_NEVER;
		}
	}
	daemon->pidfd = daemon_close(daemon->pidfd);
	return daemon->status;
}
