#include "consumers/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_NOT_EXECUTABLE 126
#define COMMAND_NOT_FOUND      127

static void command_close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* The child's side: only async-signal-safe calls would be needed in a program with threads; this has none. */
__attribute__((noreturn)) static void command_child(char **argv, int gate, int failure, const sigset_t *mask)
{
	char go;
	ssize_t n;
	int error;

	do
		n = read(gate, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(COMMAND_NOT_EXECUTABLE);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)!write(failure, &error, sizeof(error));
	_exit(error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE);
}

int command_start(struct command *command, char **argv, const sigset_t *mask)
{
	int gate[2] = { -1, -1 }, failure[2] = { -1, -1 };
	int error;

	*command = (struct command)COMMAND_NONE;
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(failure, O_CLOEXEC) < 0)
		goto fail;
	command->pid = fork();
	if (command->pid < 0)
		goto fail;
	if (command->pid == 0) {
		(void)close(gate[1]);
		command_child(argv, gate[0], failure[1], mask);
	}
	(void)close(gate[0]);
	(void)close(failure[1]);
	command->gate = gate[1];
	command->failure = failure[0];
	command->pidfd = (int)syscall(SYS_pidfd_open, command->pid, 0);
	if (command->pidfd < 0) {
		error = -errno;
		command_close(command);
		return error;
	}
	return 0;
fail:
	error = -errno;
	command_close_fd(&gate[0]);
	command_close_fd(&gate[1]);
	command_close_fd(&failure[0]);
	command_close_fd(&failure[1]);
	return error;
}

void command_release_gate(struct command *command)
{
	/* A child that was killed at the gate makes this EPIPE; its end is seen by the pidfd. */
	(void)!write(command->gate, "", 1);
	command_close_fd(&command->gate);
}

void command_signal(const struct command *command, int signal)
{
	if (!command->ended)
		(void)syscall(SYS_pidfd_send_signal, command->pidfd, signal, NULL, 0);
}

int command_collect(struct command *command)
{
	int status, error = 0;

	if (command->ended)
		return 0;
	while (waitpid(command->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return 0;
	}
	command->ended = true;
	command->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (read(command->failure, &error, sizeof(error)) != sizeof(error))
		return 0;
	return error;
}

void command_close(struct command *command)
{
	bool waits = command->gate >= 0;

	command_close_fd(&command->gate);
	if (waits)
		(void)command_collect(command);
	command_close_fd(&command->failure);
	command_close_fd(&command->pidfd);
}
