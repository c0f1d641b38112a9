/* A daemon that this program starts, waits for and outlives: tracefan-reader, tracefan-router. */
#ifndef TRACEFAN_CLI_DAEMON_H
#define TRACEFAN_CLI_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon {
	const char *name;
	pid_t pid;  /* 0: not started */
	int pidfd;  /* readable once it has ended */
	bool ended;
	int status; /* exit status, or 128 + signal */
	bool told;  /* the user of such a signal */
};

#define DAEMON_NONE { .pidfd = -1 }

/* The number under which a daemon finds the one descriptor that it is handed. */
#define DAEMON_KEPT_FD 3

/* Two descriptors that a daemon gets; the caller's stay the caller's. */
struct daemon_fds {
	int keep;   /* found as DAEMON_KEPT_FD; -1: none */
	int errors; /* its standard error; -1: ours */
};

/* Starts argv[0], a path: with standard input and output at /dev/null, in a session of its own (so that the
 * terminal's ^C is not for it), without our environment, and with no descriptor but those. Returns 0 or -errno. */
int daemon_spawn(struct daemon *daemon, const char *name, char *const argv[], struct daemon_fds fds);

/* The same, and waits until it says READY=1 (sd_notify(3)); not for ever once `interrupt` is readable (-1: none). Returns 0; a positive exit status when it ended before,
 * and has said why; or -errno when it could not be executed. */
int daemon_start(struct daemon *daemon, const char *name, char *const argv[], struct daemon_fds fds, int interrupt);

/* Waits until it has ended, at most until `deadline` (ns, CLOCK_MONOTONIC); then kills it, unless it waits in the kernel for
 * what no signal ends. Returns its status. */
int daemon_finish(struct daemon *daemon, uint64_t deadline);

/* Lets go of one that shall run on without us. */
void daemon_leave(struct daemon *daemon);

/* Takes its status if it has ended; true, too, for one that was never started. */
bool daemon_ended(struct daemon *daemon);

#endif
