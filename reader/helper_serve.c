/* The helper's own side. It has nobody's bytes to read but the reader's requests and what /proc says. */
#include "reader/helper.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/helper_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long, in seconds, a child may take: a million descriptors take some; a file system that hangs takes for ever. */
#define CHILD_PATIENCE 60

struct child {
	pid_t process; /* 0: none */
	uint64_t number;
	int gate; /* our end of the pipe that it waits at; -1: it has gone through */
};

struct server {
	int fd, signals;
	struct child children[HELPER_PENDING_MAX];
};

static void answer(int fd, uint64_t number, int error, const int *fds)
{
	struct helper_message done = { .kind = HELPER_DONE, .number = number, .error = error };
	int r = helper_send(fd, &done, fds);

	/* The kernel counts how many descriptors of a user's are on their way, and the router's are among them. */
	if (r < 0 && fds) {
		done.error = r;
		r = helper_send(fd, &done, NULL);
	}
	/* Nobody is left to tell who does not hear it. */
	if (r < 0)
		_exit(EXIT_FAILURE);
}

static void work(int fd, uint64_t number, const struct rundown_request *request)
{
	int fds[2] = { -1, -1 };
	int r = rundown_make(request, &fds[0], &fds[1]);

	answer(fd, number, r, r < 0 ? NULL : fds);
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

/* ---- children ---- */

static void child_run(int fd, int gate, uint64_t number, const struct rundown_request *request)
{
	sigset_t alarm_only;
	char go;

	(void)sigemptyset(&alarm_only);
	(void)sigaddset(&alarm_only, SIGALRM);
	(void)signal(SIGALRM, SIG_DFL);
	(void)sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
	(void)alarm(CHILD_PATIENCE);
	if (read(gate, &go, 1) == 1)
		work(fd, number, request);
	_exit(EXIT_SUCCESS);
}

static int child_start(struct server *server, const struct helper_message *message)
{
	struct helper_message started = { .kind = HELPER_STARTED, .number = message->number };
	struct child *child = server->children;
	int ends[2];

	while (child < server->children + HELPER_PENDING_MAX && child->process)
		child++;
	if (child == server->children + HELPER_PENDING_MAX)
		return -EBUSY;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child->process = fork();
	if (child->process == 0) {
		(void)close_fd(ends[1]);
		child_run(server->fd, ends[0], message->number, &message->request);
	}
	(void)close_fd(ends[0]);
	if (child->process < 0) {
		child->process = 0;
		(void)close_fd(ends[1]);
		return -EAGAIN;
	}
	child->number = message->number;
	child->gate = ends[1];
	started.process = child->process;
	return helper_send(server->fd, &started, NULL);
}

static void child_go(struct server *server, uint64_t number)
{
	for (size_t i = 0; i < HELPER_PENDING_MAX; i++) {
		struct child *child = &server->children[i];

		if (!child->process || child->number != number || child->gate < 0)
			continue;
		if (write(child->gate, "", 1) < 0)
			log_debug("a child of the helper is gone: %s", strerror(errno));
		child->gate = close_fd(child->gate);
	}
}

static void reap(struct server *server)
{
	struct signalfd_siginfo info;
	int status;
	pid_t process;

	while (read(server->signals, &info, sizeof(info)) > 0)
		;
	while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < HELPER_PENDING_MAX; i++) {
			struct child *child = &server->children[i];

			if (child->process != process)
				continue;
			child->process = 0;
			child->gate = close_fd(child->gate);
			if (!WIFEXITED(status))
				answer(server->fd, child->number, WTERMSIG(status) == SIGALRM ? -ETIMEDOUT : -ECANCELED, NULL);
		}
	}
}

static void end_children(const struct server *server)
{
	for (size_t i = 0; i < HELPER_PENDING_MAX; i++) {
		if (server->children[i].process)
			(void)kill(server->children[i].process, SIGKILL);
	}
}

/* ---- the helper ---- */

/* Returns false when the reader is gone. */
static bool serve_one(struct server *server)
{
	struct helper_message message;
	int fds[2], r = helper_receive(server->fd, &message, fds);

	if (r == -EINTR)
		return true;
	if (r != 1)
		return false;
	if (message.kind == HELPER_GO) {
		child_go(server, message.number);
		return true;
	}
	r = 0;
	if (message.child)
		r = child_start(server, &message);
	else
		work(server->fd, message.number, &message.request);
	if (r < 0)
		answer(server->fd, message.number, r, NULL);
	return true;
}

/* Keeps the socket, as 3, and where it may complain. */
static int keep_socket(int fd)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0)
		return -errno;
	if (fd != 3 && dup3(fd, 3, O_CLOEXEC) < 0)
		return -errno;
	return syscall(SYS_close_range, 4, ~0U, 0) < 0 ? -errno : 0;
}

/* Returns the descriptor that tells of children's ends. */
static int give_up(uid_t uid, enum confine_mode mode)
{
	sigset_t child;
	int fd, r;

	(void)prctl(PR_SET_NAME, "tracefan-helper");
	/* Its end is that of its socket; whoever ends the reader by a signal to the group means that one. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigaddset(&child, SIGALRM);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0 || chdir("/") < 0)
		return -errno;
	(void)sigdelset(&child, SIGALRM);
	fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = helper_confine(uid, mode);
	return r < 0 ? r : fd;
}

void helper_serve(int fd, uid_t uid, enum confine_mode mode)
{
	struct server server = { .fd = 3 };
	struct pollfd polls[2];
	int r = keep_socket(fd);

	for (size_t i = 0; i < HELPER_PENDING_MAX; i++)
		server.children[i].gate = -1;
	if (r == 0)
		r = server.signals = give_up(uid, mode);
	if (r < 0) {
		log_error("the helper gives up: %s", strerror(-r));
		_exit(EXIT_FAILURE);
	}
	polls[0] = (struct pollfd){ .fd = server.fd, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = server.signals, .events = POLLIN };
	do {
		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			break;
		if (polls[1].revents)
			reap(&server);
	} while (!polls[0].revents || serve_one(&server));
	end_children(&server);
	_exit(EXIT_SUCCESS);
}
