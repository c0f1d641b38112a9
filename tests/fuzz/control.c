/* Any bytes as a packet: sent over a socket, received and checked. The first byte is the number of
 * descriptors that come along. */
#include "base/cleanup.h"
#include "shm/control.h"
#include "tests/support/fuzz.h"
#include "tests/support/packet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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
	if (packet_send_same(sockets[0], bytes + 1, size - 1, sockets[0], bytes[0] % 17) >= 0 &&
		control_receive(sockets[1], message) == 1) {
		if (control_check(message) == 0)
			use(message);
		control_message_release(message);
	}
	free(message);
	(void)close_fd(sockets[0]);
	(void)close_fd(sockets[1]);
}
