#include "reader/peer.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Messages taken in one go, so that a chatty peer doesn't hold up the drain. */
#define MESSAGES_MAX 8

int peer_accept(int listener, uid_t user, uid_t other, pid_t *ret_pid)
{
	CLEANUP_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	if (credentials.uid != user && credentials.uid != other)
		return -EACCES;
	*ret_pid = credentials.pid;
	return TAKE_FD(fd);
}

/* A message that there was no room for. */
struct peer_unsent {
	struct control_message message;
	struct peer_unsent *next;
};

static void forget_first(struct peer *peer)
{
	struct peer_unsent *first = peer->unsent;

	peer->unsent = first->next;
	control_message_release(&first->message);
	free(first);
}

void peer_close(struct peer *peer)
{
	if (peer->fd < 0)
		return;
	loop_remove(peer->loop, &peer->watch);
	peer->fd = close_fd(peer->fd);
	while (peer->unsent)
		forget_first(peer);
	peer->stop_waits = false;
	if (peer->gone)
		peer->gone(peer->context, peer);
}

bool peer_is_gone(const struct peer *peer)
{
	struct pollfd state = { .fd = peer->fd, .events = POLLRDHUP };

	return peer->fd < 0 || (poll(&state, 1, 0) > 0 && state.revents & (POLLHUP | POLLRDHUP));
}

static int receive(struct peer *peer)
{
	struct control_message message;
	int r = control_receive(peer->fd, &message);

	if (r == -EAGAIN || r == -EINTR)
		return -EAGAIN;
	if (!r)
		return -ECONNRESET;
	if (r < 0)
		return r;
	r = control_check(&message);
	if (!r)
		r = peer->handle(peer->context, peer, &message);
	control_message_release(&message);
	return r;
}

static int flush(struct peer *peer)
{
	int r = 0;

	while (!r && peer->unsent) {
		const struct control_message *message = &peer->unsent->message;

		r = control_send(peer->fd, message->bytes, message->fds, message->fd_count);
		if (!r)
			forget_first(peer);
	}
	return r;
}

static void ready(void *context, short revents)
{
	struct peer *peer = context;
	int r = peer->unsent ? flush(peer) : 0;

	(void)revents;
	for (int i = 0; !r && !peer->unsent && i < MESSAGES_MAX; i++)
		r = receive(peer);
	if (r < 0 && r != -EAGAIN) {
		if (r != -ECONNRESET && r != -EPIPE)
			log_warning("connection of process %d closed: %s", (int)peer->pid,
				strerror(-r));
		peer_close(peer);
		return;
	}
	peer->watch.events = peer->unsent ? POLLOUT : POLLIN;
	loop_arm(peer->loop, &peer->watch);
}

int peer_open(struct peer *peer, struct loop *loop, int fd, pid_t pid)
{
	int r;

	peer->watch =
		(struct loop_watch){ .fd = fd, .events = POLLIN, .ready = ready, .context = peer };
	r = loop_add(loop, &peer->watch);
	if (r < 0)
		return r;
	peer->loop = loop;
	peer->fd = fd;
	peer->pid = pid;
	peer->unsent = NULL;
	peer->stop_waits = false;
	loop_arm(loop, &peer->watch);
	return 0;
}

static int keep(struct peer *peer, const void *message, const int *fds, unsigned int fd_count)
{
	const struct control_header *header = message;
	struct peer_unsent *unsent = calloc(1, sizeof(*unsent)), **last = &peer->unsent;

	if (!unsent)
		return -ENOMEM;
	memcpy(unsent->message.bytes, message, header->size);
	for (unsigned int i = 0; i < fd_count; i++) {
		unsent->message.fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (unsent->message.fds[i] < 0) {
			int error = -errno;

			control_message_release(&unsent->message);
			free(unsent);
			return error;
		}
		unsent->message.fd_count++;
	}
	while (*last)
		last = &(*last)->next;
	*last = unsent;
	return 0;
}

int peer_reply(struct peer *peer, const void *message, const int *fds, unsigned int fd_count)
{
	int r = peer->unsent ? -EAGAIN : control_send(peer->fd, message, fds, fd_count);

	return r == -EAGAIN ? keep(peer, message, fds, fd_count) : r;
}

int peer_reply_late(struct peer *peer, const void *message, const int *fds, unsigned int fd_count)
{
	int r = peer_reply(peer, message, fds, fd_count);

	if (r < 0 || !peer->unsent || peer->watch.events == POLLOUT)
		return r;
	loop_disarm(peer->loop, &peer->watch);
	peer->watch.events = POLLOUT;
	loop_arm(peer->loop, &peer->watch);
	return 0;
}

int peer_status(struct peer *peer, const struct control_header *request, int status,
	const struct control_failure *failure)
{
	struct control_status reply = { .status = (uint32_t)status };

	control_header_init(
		&reply.header, request->type | CONTROL_REPLY, sizeof(reply), request->cookie);
	if (failure && status)
		reply.failure = *failure;
	return peer_reply(peer, &reply, NULL, 0);
}
