/* How one session is: what `tracefan status` finds out and shows. */
#ifndef TRACEFAN_CLI_STATUS_H
#define TRACEFAN_CLI_STATUS_H

#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>

enum status_state {
	STATUS_RUNNING = 0,
	STATUS_READER_DEAD, /* the router holds its place */
	STATUS_DEAD,        /* only its folder is there */
	STATUS_SILENT,      /* a daemon does not answer: `silent` */
};

/* The operator's side is root's, the ledger and the consumers are for whoever may attach. */
struct status {
	const char *name;
	enum status_state state;
	const char *silent; /* "reader" or "router" */
	int silent_pid;     /* 0: not known */
	bool operated, looked, attached;
	struct tfan_operator_status operator_status;
	bool is_text, is_recorded, is_fallback;
	struct tfan *tfan; /* owned; holds the consumers */
	const struct tfan_consumer *consumers;
	size_t consumer_count;
	struct tfan_session_ledger ledger;
};

/* There is nothing to show: the session is others', or has ended just now. */
#define STATUS_NOT_OURS (-1)
#define STATUS_GONE     (-2)

/* Asks both daemons, and waits for neither for ever. Returns 0 (however the session is), one of these, or
 * an exit status with everything said. `quiet`: what this user may not see, or is gone, is no news. status_release() in every case. */
int status_ask(struct status *status, const char *name, const char *directory, bool quiet);
void status_release(struct status *status);

void status_text(struct writer *writer, const struct status *status);
void status_json(struct writer *writer, const struct status *status);

#endif
