#include "consumers/client/connection.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LIST_MAX          (16U << 20)

void connection_note(struct tfan *tfan, enum tfan_level level, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (!tfan->logger)
		return;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tfan->logger(tfan->logger_context, (int)level, text);
}

/* ---- requests ---- */

int connection_failed(struct tfan *tfan, int rc)
{
	switch (rc) {
	case -ECONNRESET:
	case -EPIPE:
		return failure_set(&tfan->failure, TFAN_FAILED, ECONNRESET, -1,
			"session \"%s\" closed the connection: its router ended or was restarted", tfan->session_name);
	case -EBADMSG:
	case -EMSGSIZE:
	case -EPROTO:
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1,
			"session \"%s\" gave an answer that makes no sense: is its router of another version?",
			tfan->session_name);
	default:
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "can't talk to session \"%s\": %s",
			tfan->session_name, strerror(-rc));
	}
}

#define READER_GONE "session \"%s\"'s reader is gone; start it again with: tracefan session start %s"

bool tfan_is_readerless(const struct tfan *tfan)
{
	return tfan->attached ? ring_reader_is_readerless(&tfan->ring) : tfan->readerless;
}

int connection_need_reader(struct tfan *tfan)
{
	if (!tfan_is_readerless(tfan))
		return 0;
	return failure_set(&tfan->failure, TFAN_MISSING, ENOTCONN, -1, READER_GONE, tfan->session_name, tfan->session_name);
}

void connection_note_reader(struct tfan *tfan)
{
	const bool readerless = tfan_is_readerless(tfan);

	if (readerless && !tfan->readerless_told)
		connection_note(tfan, TFAN_NOTE_WARNING, READER_GONE, tfan->session_name, tfan->session_name);
	tfan->readerless_told = readerless;
}

/* The time of `milliseconds` from now. */
static uint64_t in_ms(const struct tfan *tfan, int milliseconds)
{
	return trace_now(tfan) + (uint64_t)milliseconds * 1000000U;
}

static int wait_here(const struct tfan *tfan, int milliseconds)
{
	struct pollfd fd = { .fd = tfan->socket, .events = POLLIN };
	const uint64_t end = milliseconds < 0 ? UINT64_MAX : in_ms(tfan, milliseconds);
	int n;

	for (;;) {
		const uint64_t now = trace_now(tfan);

		n = poll(&fd, 1, milliseconds < 0 ? -1 : now >= end ? 0 : (int)((end - now) / 1000000U + 1));
		if (n >= 0 || errno != EINTR)
			return n < 0 ? -errno : n;
	}
}

int connection_wait(struct tfan *tfan, int milliseconds)
{
	int rc = tfan->wait ? tfan->wait(tfan->wait_context, tfan->socket, milliseconds, tfan_is_readerless(tfan))
		: wait_here(tfan, milliseconds);

	return rc == 0 ? -EAGAIN : rc < 0 ? rc : 0;
}

int connection_give_up(struct tfan *tfan, int rc)
{
	(void)shutdown(tfan->socket, SHUT_RDWR);
	tfan->no_return = true;
	if (rc != -EAGAIN)
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "the wait for session \"%s\" was given up: %s",
			tfan->session_name, strerror(-rc));
	if (connection_need_reader(tfan))
		return -ETIMEDOUT;
	return failure_set(&tfan->failure, TFAN_BUSY, ETIMEDOUT, -1,
		"session \"%s\" gave no answer for %u ms: its daemons hang or were stopped", tfan->session_name, tfan->patience);
}

/* A failure, which is never 0, for whoever reads this file alone. */
static int certainly(int rc)
{
	return rc < 0 ? rc : -EIO;
}

/* Waits for an answer for as long as the session is heard of: while the kernel keeps the reader from answering, what it
 * sends goes into the ring, and be it the time. */
static int await_reply(struct tfan *tfan)
{
	uint64_t heard, before;
	int rc;

	for (heard = tfan->attached ? ring_reader_published(&tfan->ring) : 0;; heard = before) {
		rc = connection_wait(tfan, tfan->patience ? (int)tfan->patience : -1);
		before = tfan->attached ? ring_reader_published(&tfan->ring) : 0;
		if (rc != -EAGAIN || before == heard)
			return rc;
	}
}

/* The answer to the request that was sent last. A capture's may come before it. */
static int receive_reply(struct tfan *tfan, const struct control_header *request, struct control_message *ret)
{
	int rc;

	for (;;) {
		rc = await_reply(tfan);
		if (rc < 0)
			return certainly(connection_give_up(tfan, rc));
		do
			rc = control_receive(tfan->socket, ret);
		while (rc == -EINTR);
		if (rc <= 0)
			return connection_failed(tfan, rc == 0 ? -ECONNRESET : rc);
		rc = control_check(ret);
		if (rc == 0 && ret->header.type == (CONTROL_CAPTURE | CONTROL_REPLY) &&
			ret->header.cookie != request->cookie) {
			tfan->capture.failed = capture_take(tfan, ret);
			control_message_release(ret);
			continue;
		}
		if (rc == 0 && (ret->header.type != (request->type | CONTROL_REPLY) || ret->header.cookie != request->cookie))
			rc = -EPROTO;
		if (rc == 0)
			return 0;
		control_message_release(ret);
		return connection_failed(tfan, rc);
	}
}

int connection_call(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int fd,
	struct control_message *ret)
{
	int rc;

	if (tfan->socket < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOTCONN, -1, "not connected to a session");
	/* The router would take it for a breach. */
	if (tfan->only_look && type != CONTROL_STATUS && type != CONTROL_LIST)
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1, "this connection only looks: it is not attached");
	if (tfan->comeback.state == COMEBACK_GREETED)
		return failure_set(&tfan->failure, TFAN_BUSY, EAGAIN, -1,
			"the router of session \"%s\" is being started again; try again when it is back",
			tfan->session_name);
	control_header_init(request, type, size, ++tfan->cookie);
	do
		rc = control_send(tfan->socket, request, &fd, fd >= 0 ? 1 : 0);
	while (rc == -EINTR);
	return rc < 0 ? certainly(connection_failed(tfan, rc)) : receive_reply(tfan, request, ret);
}

int connection_ask(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int *ret_fd)
{
	struct control_message reply;
	const struct control_status *status = (const struct control_status *)reply.bytes;
	int rc = connection_call(tfan, type, request, size, -1, &reply);

	if (rc)
		return rc;
	if (status->status != 0)
		rc = failure_take(&tfan->failure, status->status, &status->failure);
	else if (ret_fd && reply.fd_count != 1)
		rc = connection_failed(tfan, -EPROTO);
	else if (ret_fd)
		*ret_fd = TAKE_FD(reply.fds[0]);
	control_message_release(&reply);
	return rc;
}

/* ---- asking ---- */

const struct tfan_failure *tfan_failure(const struct tfan *tfan)
{
	return &tfan->failure.public;
}

const struct tfan_session *tfan_session(const struct tfan *tfan)
{
	return &tfan->session;
}

static void ledger_from(const struct ledger_session *from, const struct ledger_kept *kept, struct tfan_session_ledger *ret)
{
	*ret = (struct tfan_session_ledger){
		.committed = from->committed,
		.decoded = from->decoded,
		.undecodable = from->undecodable,
		.lost_kernel = from->lost_kernel,
		.dropped = from->dropped,
		.kept_away = kept->hits,
		.kept_probes = kept->probes,
		.unkept_probes = kept->others,
		.recording_error = -(int)from->recording_error,
		.unrecorded_known = from->unrecorded != LEDGER_UNKNOWN,
		.unrecorded = from->unrecorded != LEDGER_UNKNOWN ? from->unrecorded : 0,
		.cleared = from->cleared,
	};
}

int tfan_session_ledger(struct tfan *tfan, struct tfan_session_ledger *ret)
{
	struct control_id request = { 0 };
	struct control_message reply;
	const struct control_ledger *ledger = (const struct control_ledger *)reply.bytes;
	const struct ledger_kept nothing = { 0 };
	int rc;

	if (tfan->has_end_ledger) {
		ledger_from(&tfan->end_ledger, &nothing, ret);
		return 0;
	}
	rc = connection_need_reader(tfan);
	if (rc == 0)
		rc = connection_call(tfan, CONTROL_LEDGER, &request, sizeof(request), -1, &reply);
	if (rc)
		return rc;
	if (ledger->status != 0)
		rc = failure_take(&tfan->failure, ledger->status, &ledger->failure);
	else
		ledger_from(&ledger->session, &ledger->kept, ret);
	control_message_release(&reply);
	return rc;
}

int tfan_flush(struct tfan *tfan)
{
	struct control_id request = { 0 };
	int rc = connection_ask(tfan, CONTROL_FLUSH, &request, sizeof(request), NULL);

	if (rc == 0)
		tfan->flushes++;
	return rc;
}

int tfan_list(struct tfan *tfan, const char **ret)
{
	struct control_id request = { 0 };
	CLEANUP_CLOSE int fd = -1;
	void *text = NULL;
	size_t size;
	int rc = connection_ask(tfan, CONTROL_LIST, &request, sizeof(request), &fd);

	if (rc)
		return rc;
	rc = segment_blob_read(fd, LIST_MAX, &text, &size);
	if (rc)
		return connection_failed(tfan, rc);
	free(tfan->list);
	tfan->list = text;
	*ret = tfan->list;
	return 0;
}
