#include "router/upstream.h"

#include "base/cleanup.h"
#include "router/router.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Whoever asks for more at a time is sent away: descriptors are few. */
#define WAITING_FDS_MAX 4096

struct upstream_waiting {
	struct upstream_waiting *next;
	int fds[CONTROL_FDS_MAX];
	unsigned int fd_count;
	_Alignas(uint64_t) char bytes[]; /* a message, read by its header */
};

static void copy_free(struct upstream_waiting *copy)
{
	for (unsigned int i = 0; copy && i < copy->fd_count; i++)
		(void)close_fd(copy->fds[i]);
	free(copy);
}

/* Returns 0 or -errno. */
static int copy_make(const void *message, uint32_t size, const int *fds, unsigned int fd_count,
	struct upstream_waiting **ret)
{
	struct upstream_waiting *waiting = malloc(sizeof(*waiting) + size);

	if (!waiting)
		return -ENOMEM;
	waiting->next = NULL;
	waiting->fd_count = 0;
	memcpy(waiting->bytes, message, size);
	/* The caller's may be closed before the message goes. */
	while (waiting->fd_count < fd_count) {
		int fd = fcntl(fds[waiting->fd_count], F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			int error = errno > 0 ? errno : EBADF;

			copy_free(waiting);
			return -error;
		}
		waiting->fds[waiting->fd_count++] = fd;
	}
	*ret = waiting;
	return 0;
}

static int waiting_add(struct upstream *upstream, const void *message, uint32_t size,
	const int *fds, unsigned int fd_count)
{
	struct upstream_waiting *waiting = NULL;
	int r;

	if (fd_count > CONTROL_FDS_MAX || upstream->waiting_fds + fd_count > WAITING_FDS_MAX)
		return -EAGAIN;
	r = copy_make(message, size, fds, fd_count, &waiting);
	if (r < 0)
		return r;
	upstream->waiting_fds += fd_count;
	if (upstream->last_waiting)
		upstream->last_waiting->next = waiting;
	else
		upstream->first_waiting = waiting;
	upstream->last_waiting = waiting;
	return 0;
}

static void waiting_drop_first(struct upstream *upstream)
{
	struct upstream_waiting *first = upstream->first_waiting;

	upstream->first_waiting = first->next;
	if (!first->next)
		upstream->last_waiting = NULL;
	upstream->waiting_fds -= first->fd_count;
	copy_free(first);
}

/* What lies in the socket will be answered, so that an answer always comes after which this can go
 * on. */
static int waiting_send(struct upstream *upstream)
{
	while (upstream->first_waiting) {
		const struct upstream_waiting *first = upstream->first_waiting;
		int r = control_send(upstream->fd, first->bytes, first->fds, first->fd_count);

		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		waiting_drop_first(upstream);
	}
	return 0;
}

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

/* Flushes and accounts have a place in the stream: they are asked for anew, not again. So is what belongs to one
 * take-over. */
static bool is_kept(const struct upstream *upstream, uint16_t type, const struct upstream_request *request)
{
	if (!upstream->lasting || type == CONTROL_ACCOUNT || type == CONTROL_READER_FLUSH || type == CONTROL_PROBE_KEEP)
		return false;
	return request->consumer || type == CONTROL_PROBE_FILTER;
}

static bool is_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

int upstream_send(struct upstream *upstream, void *message, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, const struct upstream_request *request)
{
	struct upstream_waiting *copy = NULL;
	struct upstream_request *place;
	int r;

	if (upstream->fd < 0)
		return -ENOTCONN;
	r = pending_room(upstream);
	if (r < 0)
		return r;
	control_header_init(message, type, size, ++upstream->next_cookie);
	r = upstream->first_waiting ? -EAGAIN : control_send(upstream->fd, message, fds, fd_count);
	if (r == -EAGAIN)
		r = waiting_add(upstream, message, size, fds, fd_count);
	/* One that can't be copied fails with its reader. Where it has just gone, which is about to be heard, the copy is all. */
	if (is_kept(upstream, type, request) && (r == 0 || is_gone(r))) {
		int copied = copy_make(message, size, fds, fd_count, &copy);

		if (is_gone(r))
			r = copied;
	}
	if (r < 0)
		return is_gone(r) ? -ENOTCONN : r;
	if (!upstream->pending_count)
		upstream->heard = router_now();
	place = &upstream->pending[upstream->pending_count++];
	*place = *request;
	place->cookie = upstream->next_cookie;
	place->type = type;
	place->copy = copy;
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
	copy_free(request.copy);
}

int upstream_receive(struct upstream *upstream)
{
	struct control_message answer;
	int r = control_receive(upstream->fd, &answer);

	if (r <= 0)
		return r;
	upstream->heard = router_now();
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
	if (r == 0)
		return -EBADMSG;
	if (r == 1 && waiting_send(upstream) < 0)
		return 0;
	return r;
}

uint64_t upstream_silent(const struct upstream *upstream, uint64_t now)
{
	return upstream->pending_count ? now - upstream->heard : 0;
}

static bool is_of(const struct upstream_request *request, uint16_t type, uint64_t consumer, uint64_t trace)
{
	return request->type == type && request->consumer == consumer && request->trace == trace;
}

struct upstream_request *upstream_find(struct upstream *upstream, uint16_t type, uint64_t consumer, uint64_t trace)
{
	for (size_t i = upstream->pending_count; i--;) {
		if (is_of(&upstream->pending[i], type, consumer, trace))
			return &upstream->pending[i];
	}
	return NULL;
}

void upstream_forgo(struct upstream *upstream, uint16_t type, uint64_t consumer, uint64_t trace)
{
	for (size_t i = 0; i < upstream->pending_count;) {
		struct upstream_request *request = &upstream->pending[i];

		if (!is_of(request, type, consumer, trace)) {
			i++;
			continue;
		}
		copy_free(request->copy);
		request->copy = NULL;
		if (upstream->fd < 0)
			finish(upstream, i, NULL);
		else
			i++;
	}
}

static void disconnect(struct upstream *upstream)
{
	upstream->fd = close_fd(upstream->fd);
	while (upstream->first_waiting)
		waiting_drop_first(upstream);
}

void upstream_cut(struct upstream *upstream)
{
	disconnect(upstream);
	for (size_t i = 0; i < upstream->pending_count;) {
		if (upstream->pending[i].copy)
			i++;
		else
			finish(upstream, i, NULL);
	}
}

int upstream_send_again(struct upstream *upstream)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < upstream->pending_count; i++) {
		const struct upstream_waiting *copy = upstream->pending[i].copy;
		const struct control_header *header;

		if (!copy)
			continue;
		header = (const void *)copy->bytes;
		r = upstream->first_waiting ? -EAGAIN : control_send(upstream->fd, header, copy->fds, copy->fd_count);
		if (r == -EAGAIN)
			r = waiting_add(upstream, header, header->size, copy->fds, copy->fd_count);
	}
	return r;
}

void upstream_lost(struct upstream *upstream)
{
	disconnect(upstream);
	while (upstream->pending_count)
		finish(upstream, 0, NULL);
}
