#include "router/upstream.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void upstream_init(struct upstream *upstream, void *context)
{
	memset(upstream, 0, sizeof(*upstream));
	upstream->fd = -1;
	upstream->context = context;
}

void upstream_release(struct upstream *upstream)
{
	upstream_lost(upstream);
	free(upstream->pending);
	upstream->pending = NULL;
	upstream->pending_room = 0;
}

static int pending_room(struct upstream *upstream)
{
	size_t room = upstream->pending_room ? 2 * upstream->pending_room : 32;
	struct upstream_request *pending;

	if (upstream->pending_count < upstream->pending_room)
		return 0;
	pending = realloc(upstream->pending, room * sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	upstream->pending = pending;
	upstream->pending_room = room;
	return 0;
}

int upstream_send(struct upstream *upstream, void *message, uint16_t type, uint32_t size, const int *fds,
	unsigned int fd_count, const struct upstream_request *request)
{
	struct upstream_request *place;
	int r;

	if (upstream->fd < 0)
		return -ENOTCONN;
	r = pending_room(upstream);
	if (r < 0)
		return r;
	control_header_init(message, type, size, ++upstream->next_cookie);
	r = control_send(upstream->fd, message, fds, fd_count);
	if (r < 0)
		return r;
	place = &upstream->pending[upstream->pending_count++];
	*place = *request;
	place->cookie = upstream->next_cookie;
	place->type = type;
	return 0;
}

static void finish(struct upstream *upstream, size_t i, struct control_message *answer)
{
	struct upstream_request request = upstream->pending[i];

	/* Order is kept, so that answers in order are found at the front. */
	memmove(&upstream->pending[i], &upstream->pending[i + 1],
		(upstream->pending_count - i - 1) * sizeof(request));
	upstream->pending_count--;
	request.done(upstream->context, &request, answer);
	free(request.extra);
}

int upstream_receive(struct upstream *upstream)
{
	struct control_message answer;
	int r = control_receive(upstream->fd, &answer);

	if (r <= 0)
		return r;
	r = control_check(&answer);
	for (size_t i = 0; r == 0 && i < upstream->pending_count; i++) {
		const struct upstream_request *request = &upstream->pending[i];

		if (request->cookie != answer.header.cookie)
			continue;
		if (answer.header.type == request->type + CONTROL_REPLY) {
			finish(upstream, i, &answer);
			r = 1;
		} else {
			r = -EBADMSG;
		}
		break;
	}
	control_message_release(&answer);
	return r == 0 ? -EBADMSG : r;
}

void upstream_lost(struct upstream *upstream)
{
	upstream->fd = close_fd(upstream->fd);
	while (upstream->pending_count)
		finish(upstream, 0, NULL);
}
