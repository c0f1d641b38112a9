#include "router/answer.h"

#include "base/exit_status.h"
#include "base/log.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void answer_send(struct router *router, struct consumer *consumer, void *message, uint16_t type, uint32_t size,
	uint64_t cookie, const int *fds, unsigned int fd_count)
{
	int r;

	if (consumer->state == CONSUMER_GONE)
		return;
	control_header_init(message, type + CONTROL_REPLY, size, cookie);
	r = control_send(consumer->fd, message, fds, fd_count);
	if (r == 0) {
		consumer_answered(router, consumer);
	} else {
		/* Many close without waiting for the answer to their detach. */
		if (r == -EAGAIN)
			log_note("consumer %" PRIu64 " does not take its answers", consumer->number);
		else if (r != -EPIPE && r != -ECONNRESET)
			log_warning("an answer can't be sent to consumer %" PRIu64 ", which has to go: %s", consumer->number, strerror(-r));
		consumer_close(router, consumer);
	}
}

void answer_status(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie,
	uint32_t status, const struct control_failure *failure)
{
	struct control_status message = { .status = status };

	if (failure)
		message.failure = *failure;
	else
		message.failure.position = -1;
	answer_send(router, consumer, &message, type, sizeof(message), cookie, NULL, 0);
}

void answer_failed(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie, int error, const char *what)
{
	struct control_failure failure = { .position = -1 };

	control_failure_set(&failure, -error, -1, "%s: %s", what, strerror(-error));
	answer_status(router, consumer, type, cookie, error == -EBUSY ? EXIT_BUSY : EXIT_FAILED, &failure);
}

uint32_t answer_from_reader(const struct control_message *reply, struct control_failure *ret)
{
	const struct control_status *status;

	if (!reply) {
		control_failure_set(ret, ENOTCONN, -1, "the session's reader is gone or is being started again: try again");
		return EXIT_MISSING;
	}
	status = (const struct control_status *)reply->bytes;
	*ret = status->failure;
	return status->status;
}

void answer_nobody(void *context, const struct upstream_request *request, struct control_message *reply)
{
	const struct control_status *status = reply ? (const struct control_status *)reply->bytes : NULL;

	(void)context;
	if (status && status->status)
		log_warning("request %u to the reader: %s", request->type, status->failure.message);
}
