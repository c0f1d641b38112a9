/* A session that this program starts. A private one is its own: the same reader and router as when deployed, started from the folder that this
 * program lies in, in a directory of sockets of their own. They end when the last holder of the owner's pipe is gone:
 * at private_session_stop(), and just as well when this program is killed. */
#ifndef TRACEFAN_CLI_PRIVATE_SESSION_H
#define TRACEFAN_CLI_PRIVATE_SESSION_H

#include "consumers/cli/daemon.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct private_session_config {
	const char *source, *interval; /* live; NULL: the reader's choice */
	const char *input_option;      /* "--replay", "--text", "--pages"; NULL: live */
	const char *input;
	int record_fd;                 /* where the router writes a recording; -1: none */
	const char *name;              /* of a session that outlives this program; NULL: a private one, with a name of its own */
	const char *policy;            /* its file, with a name; NULL: the reader's choice */
	const char *directory;         /* of its sockets, with a name; NULL: the usual place */
	const char *config;            /* the reader's configuration, a file; NULL: none */
	int errors;                    /* where the daemons' messages go; -1: standard error */
};

#define PRIVATE_SESSION_LIVE { .record_fd = -1, .errors = -1 }

struct private_session {
	struct daemon reader, router;
	int owner; /* our end of the pipe */
	int interrupt; /* readable once the user has had enough; -1: nobody looks */
	size_t probes; /* that have to go at the end */
	char name[33];
	char directory[PATH_MAX];
};

#define PRIVATE_SESSION_NONE { .reader = DAEMON_NONE, .router = DAEMON_NONE, .owner = -1, .interrupt = -1 }

/* The path of one of tracefan's programs: beside this one in the build folder, in sbin or libexec once installed. Returns 0,
 * -ENOENT, or another negative errno. */
int private_session_program(const char *name, char *path, size_t size);

/* Returns 0 or an exit status, with everything said and nothing left behind. */
int private_session_start(struct private_session *session, const struct private_session_config *config);

/* Whether the reader has ended in failure; says how. (The router's end is seen by the connection to it.) */
bool private_session_broken(struct private_session *session);

/* Lets go of a session that shall run on without us. */
void private_session_leave(struct private_session *session);

/* Ends both and waits for them; removes what a reader that was killed could not. Returns 0 or the exit status of the
 * one that failed. Does nothing for a session that was not started. `hangs`: it has been waited for in vain. */
int private_session_stop(struct private_session *session, bool hangs);

/* Removes what a session whose reader is dead left behind, its router included. Within `patience` ns. Returns 0 or an exit
 * status, with its reason said. */
int private_session_remove(const char *name, const char *directory, uint64_t patience);

#endif
