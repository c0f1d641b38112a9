/* The COMMAND of `trace -- COMMAND`: made before the probes are live, let go once they are. */
#ifndef TRACEFAN_CLI_COMMAND_H
#define TRACEFAN_CLI_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int pidfd;    /* readable once it has ended */
	int gate;     /* it waits for one byte here; end of file: it gives up */
	int failure;  /* its errno when it could not be executed; end of file: it could */
	bool ended;
	int status;   /* as a shell tells it: 128 + signal when one killed it */
};

#define COMMAND_NONE { .pid = -1, .pidfd = -1, .gate = -1, .failure = -1 }

/* Forks; the child waits at the gate. `mask` is the signal mask that it shall run with. Returns 0 or -errno. */
int command_start(struct command *command, char **argv, const sigset_t *mask);
void command_release_gate(struct command *command);
/* Sends a signal unless it has ended. */
void command_signal(const struct command *command, int signal);
/* Takes its status when pidfd is readable; waits for it otherwise. Returns 0, or the errno (positive) with which it could not be
 * executed; `status` is then 126 or 127, as env(1) has it. */
int command_collect(struct command *command);
/* Gives up on it: a command that still waits at the gate ends, one that runs is left alone. */
void command_close(struct command *command);

#endif
