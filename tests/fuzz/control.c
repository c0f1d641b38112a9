/* Any bytes as a packet: sent over a socket, received and checked. The first byte is the number of
 * descriptors that come along. */
#include "base/cleanup.h"
#include "shm/control.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int send_packet(int socket, const uint8_t *bytes, size_t size, unsigned int fd_count)
{
	char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = size };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd_count) {
		struct cmsghdr *rights = (void *)control;

		packet.msg_control = control;
		packet.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (unsigned int i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(rights) + i * sizeof(int), &socket, sizeof(int));
	}
	return sendmsg(socket, &packet, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What every receiver relies on after control_check. */
static void use(const struct control_message *message)
{
	const struct control_create *create = (const void *)message->bytes;
	const char *text = create->fetch;

	if (message->header.size > sizeof(message->bytes) || message->fd_count > CONTROL_FDS_MAX)
		abort();
	if (message->header.type != CONTROL_CREATE)
		return;
	if (strlen(create->name) >= sizeof(create->name) ||
		strlen(create->filter) >= sizeof(create->filter))
		abort();
	for (uint32_t i = 0; i < create->fetch_count; i++)
		text += strlen(text) + 1;
	if (text > create->fetch + sizeof(create->fetch))
		abort();
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct control_message *message;
	int sockets[2];

	if (size < 1 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0)
		return;
	/* On the heap, so that what was not received is known to be uninitialised or out of bounds. */
	message = malloc(sizeof(*message));
	if (!message)
		abort();
	if (send_packet(sockets[0], bytes + 1, size - 1, bytes[0] % 17) == 0 &&
		control_receive(sockets[1], message) == 1) {
		if (control_check(message) == 0)
			use(message);
		control_message_release(message);
	}
	free(message);
	(void)close_fd(sockets[0]);
	(void)close_fd(sockets[1]);
}
