#include "consumers/cli/status.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ms, of a daemon that runs and hangs. The kernel's grace periods take their time when a consumer attaches. */
#define STATUS_PATIENCE 20000U

static void status_be_silent(struct status *status, const char *daemon, int pid)
{
	status->state = STATUS_SILENT;
	status->silent = daemon;
	status->silent_pid = pid;
}

/* Such a one is not waited for. */
static bool status_is_stopped(int pid)
{
	char path[32], text[512], *end;
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	text[n] = '\0';
	/* Its name may hold anything. */
	end = strrchr(text, ')');
	return end && (strncmp(end, ") T", 3) == 0 || strncmp(end, ") t", 3) == 0);
}

/* The session's folder is gone, or its daemons have left meanwhile. */
static bool status_has_ended(const struct tfan_failure *failure)
{
	return failure->error == ENOENT || failure->error == ECONNRESET;
}

/* Who doesn't answer is no failure of this program: it is what there is to tell. Returns 0 or an exit status. */
static int status_reader_failed(struct status *status, const struct tfan_operator *control, bool quiet)
{
	const struct tfan_failure *failure = control ? tfan_operator_failure(control) : NULL;

	if (failure && failure->error == ETIMEDOUT)
		status_be_silent(status, "reader", tfan_operator_reader(control));
	else if (failure && failure->error == EAGAIN)
		status_be_silent(status, "reader", 0);
	else if (failure && failure->error == ECONNREFUSED)
		status->state = STATUS_READER_DEAD;
	else if (failure && status_has_ended(failure) && quiet)
		return STATUS_GONE;
	else if (!failure || failure->category != TFAN_NOT_PERMITTED)
		return message_failure(failure, NULL);
	return 0;
}

/* Not being root is no failure: there is less to tell. */
static int status_operate(struct status *status, const char *directory, bool quiet)
{
	struct tfan_operator *control;
	int result = 0, rc = tfan_operator_open(directory, status->name, &control);

	if (rc == 0 && status_is_stopped(tfan_operator_reader(control))) {
		status_be_silent(status, "reader", tfan_operator_reader(control));
		tfan_operator_close(control);
		return 0;
	}
	if (rc == 0) {
		tfan_operator_set_patience(control, STATUS_PATIENCE);
		rc = tfan_operator_status(control, &status->operator_status);
	}
	if (rc < 0) {
		result = status_reader_failed(status, control, quiet);
	} else {
		status->operated = true;
		status->is_text = status->operator_status.is_text;
		status->is_recorded = status->operator_status.is_recorded;
		status->is_fallback = status->operator_status.is_fallback;
	}
	tfan_operator_close(control);
	return result;
}

static int status_open(const struct status *status, const char *directory, bool only_look, struct tfan **ret)
{
	struct tfan_options options = TFAN_OPTIONS;

	options.session = status->name;
	options.directory = directory;
	options.program = "tracefan";
	options.ring_size = ATTACHMENT_LEAST_RING;
	options.patience = STATUS_PATIENCE;
	options.only_look = only_look;
	return tfan_open(&options, ret);
}

/* Returns 0, STATUS_NOT_OURS or an exit status. */
static int status_router_failed(struct status *status, const struct tfan_failure *failure, bool quiet)
{
	if (failure && failure->error == ETIMEDOUT)
		status_be_silent(status, "router", status->operator_status.router_pid);
	else if (failure && (failure->error == ECONNREFUSED || failure->error == ECONNRESET) && !status->operated)
		status->state = STATUS_DEAD;
	else if (failure && failure->category == TFAN_NOT_PERMITTED && quiet && !status->operated)
		return STATUS_NOT_OURS;
	else if (failure && status_has_ended(failure) && quiet)
		return STATUS_GONE;
	else
		return message_failure(failure, NULL);
	return 0;
}

/* The consumers, which the router tells whether or not it has a reader. */
static int status_look(struct status *status, const char *directory, bool quiet)
{
	const struct tfan_session *session;
	bool readerless = false;

	/* Nobody would answer. */
	if (status->operated && status->operator_status.router_pid == 0)
		return 0;
	if (status->operated && status_is_stopped(status->operator_status.router_pid)) {
		status_be_silent(status, "router", status->operator_status.router_pid);
		return 0;
	}
	if (status_open(status, directory, true, &status->tfan) < 0 ||
		tfan_consumers(status->tfan, &status->consumers, &status->consumer_count, &readerless) < 0)
		return status_router_failed(status, status->tfan ? tfan_failure(status->tfan) : NULL, quiet);
	session = tfan_session(status->tfan);
	status->looked = true;
	status->is_text = session->is_text;
	status->is_recorded = session->is_recorded;
	status->is_fallback = session->is_fallback;
	if (readerless)
		status->state = STATUS_READER_DEAD;
	return 0;
}

/* The kernel's counts, which take both daemons. */
static int status_attach(struct status *status, const char *directory, bool quiet)
{
	struct tfan *tfan = NULL;
	int result = 0;

	if (!status->looked || status->state != STATUS_RUNNING)
		return 0;
	if (status_open(status, directory, false, &tfan) < 0 || tfan_session_ledger(tfan, &status->ledger) < 0) {
		/* The router has answered just now. */
		if (tfan && tfan_failure(tfan)->error == ETIMEDOUT)
			status_be_silent(status, "reader", status->operator_status.reader_pid);
		else
			result = status_router_failed(status, tfan ? tfan_failure(tfan) : NULL, quiet);
	} else {
		status->attached = true;
	}
	tfan_close(tfan);
	return result;
}

int status_ask(struct status *status, const char *name, const char *directory, bool quiet)
{
	int result;

	*status = (struct status){ .name = name };
	result = status_operate(status, directory, quiet);
	if (result == 0)
		result = status_look(status, directory, quiet);
	if (result == 0)
		result = status_attach(status, directory, quiet);
	return result;
}

void status_release(struct status *status)
{
	tfan_close(status->tfan);
	status->tfan = NULL;
}
