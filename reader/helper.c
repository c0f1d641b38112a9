#include "reader/helper.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- messages ---- */

int helper_send(int fd, const struct helper_message *message, const int fds[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct helper_message copy = *message;
	struct iovec part = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fds) {
		struct cmsghdr *rights = (struct cmsghdr *)control.bytes;

		packet.msg_control = control.bytes;
		packet.msg_controllen = sizeof(control.bytes);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, 2 * sizeof(int));
	}
	return sendmsg(fd, &packet, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int helper_receive(int fd, struct helper_message *ret, int ret_fds[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec part = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr packet = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	const struct cmsghdr *rights;
	ssize_t n = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);

	ret_fds[0] = ret_fds[1] = -1;
	if (n <= 0)
		return n < 0 ? -errno : 0;
	rights = CMSG_FIRSTHDR(&packet);
	if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(ret_fds, CMSG_DATA(rights), 2 * sizeof(int));
	return n == sizeof(*ret) ? 1 : -EBADMSG;
}

/* ---- the reader's side ---- */

int helper_start(struct helper *helper, uid_t uid, enum confine_mode mode)
{
	int ends[2];
	pid_t process;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	process = fork();
	if (process == 0)
		helper_serve(ends[1], uid, mode);
	(void)close_fd(ends[1]);
	if (process < 0) {
		(void)close_fd(ends[0]);
		return -EAGAIN;
	}
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		(void)close_fd(ends[0]);
		return -errno;
	}
	helper->fd = ends[0];
	helper->process = process;
	return 0;
}

static void finish(struct helper *helper, size_t i, int error, const int fds[2])
{
	const struct helper_asker asker = helper->pending[i].asker;
	pid_t child = helper->pending[i].child;

	helper->pending[i].number = 0;
	helper->pending[i].child = 0;
	if (child > 0)
		helper->child(helper->context, child, true);
	helper->done(helper->context, &asker, error, fds);
}

static void lose(struct helper *helper)
{
	const int none[2] = { -1, -1 };

	log_warning("the helper is gone: the state of processes can't be read any more");
	loop_remove(helper->loop, &helper->watch);
	helper->fd = close_fd(helper->fd);
	for (size_t i = 0; i < HELPER_PENDING_MAX; i++) {
		if (helper->pending[i].number)
			finish(helper, i, -ENOTCONN, none);
	}
}

static void take(struct helper *helper, const struct helper_message *message, const int fds[2])
{
	struct helper_message go = { .kind = HELPER_GO, .number = message->number };

	for (size_t i = 0; i < HELPER_PENDING_MAX; i++) {
		if (!message->number || helper->pending[i].number != message->number)
			continue;
		if (message->kind == HELPER_DONE) {
			finish(helper, i, message->error, fds);
			return;
		}
		helper->pending[i].child = message->process;
		helper->child(helper->context, message->process, false);
		if (helper_send(helper->fd, &go, NULL) < 0)
			log_warning("the helper does not take what it is told");
		return;
	}
}

static void ready(void *context, short revents)
{
	struct helper *helper = context;
	struct helper_message message;
	int fds[2], r;

	(void)revents;
	while ((r = helper_receive(helper->fd, &message, fds)) == 1) {
		take(helper, &message, fds);
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
	}
	if (r == -EAGAIN || r == -EINTR)
		loop_arm(helper->loop, &helper->watch);
	else
		lose(helper);
}

int helper_watch(struct helper *helper, struct loop *loop)
{
	int r;

	if (helper->fd < 0)
		return 0;
	helper->loop = loop;
	helper->watch = (struct loop_watch){ .fd = helper->fd, .events = POLLIN, .ready = ready, .context = helper };
	r = loop_add(loop, &helper->watch);
	if (r == 0)
		loop_arm(loop, &helper->watch);
	return r;
}

int helper_ask(struct helper *helper, const struct rundown_request *request, bool child, const struct helper_asker *asker)
{
	struct helper_message message = { .kind = HELPER_ASK, .child = child, .request = *request };
	const size_t room = child ? HELPER_CHILDREN_MAX : HELPER_PENDING_MAX;
	size_t i = 0;
	int r;

	if (helper->fd < 0)
		return -ENOTCONN;
	while (i < room && helper->pending[i].number)
		i++;
	if (i == room)
		return -EBUSY;
	message.number = ++helper->last_number;
	r = helper_send(helper->fd, &message, NULL);
	if (r < 0)
		return r == -EAGAIN ? -EBUSY : r;
	helper->pending[i].number = message.number;
	helper->pending[i].asker = *asker;
	return 0;
}

void helper_close(struct helper *helper)
{
	if (helper->fd < 0)
		return;
	if (helper->loop)
		loop_remove(helper->loop, &helper->watch);
	helper->fd = close_fd(helper->fd);
}
