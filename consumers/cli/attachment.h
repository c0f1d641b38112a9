/* A connection to a session, with the session itself where it is a private one, and the traces that the options ask for. */
#ifndef TRACEFAN_CLI_ATTACHMENT_H
#define TRACEFAN_CLI_ATTACHMENT_H

#include "consumers/cli/options.h"
#include "consumers/cli/private_session.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>

/* Bytes; for who asks and takes no event. */
#define ATTACHMENT_LEAST_RING 65536

struct attachment {
	const struct options *options;
	const struct private_session_config *config; /* NULL: a running session, options->session */
	struct private_session session;
	struct tfan *tfan;
	/* How its answers are waited for (struct tfan_options), and what is readable once the user has had enough. */
	int (*wait)(void *context, int fd, int milliseconds, bool readerless);
	void *wait_context;
	bool returning;  /* its router is being started again: nothing can be asked before tfan_next has come back to it */
	bool unanswered; /* the session was asked and did not answer: no more waiting for it */
};

#define ATTACHMENT_NONE { .session = PRIVATE_SESSION_NONE }

/* Each returns 0 or an exit status, with everything said. Whatever they return, attachment_close() tidies up. */

/* A private session by `config`; without it, options->session, and where that is not given either, a private session of a
 * live kernel, which takes root. */
int attachment_open(struct attachment *attachment, const struct options *options,
	const struct private_session_config *config, bool all_events);

/* All traces, or the first that can't be made is told. They are not enabled. */
int attachment_create(struct attachment *attachment);
/* Says nothing if that is `returning`. */
int attachment_enable(struct attachment *attachment, bool enabled);

/* The session is a recording that is replayed. */
bool attachment_replays(const struct attachment *attachment);

/* Closes the connection and ends a private session. Does nothing the second time. */
int attachment_close(struct attachment *attachment);

/* The state that has to be there before the first event (enum tfan_state_what): what is to be shown, and the processes
 * where each event is to tell of its own. */
unsigned int attachment_state(const struct options *options);

#endif
