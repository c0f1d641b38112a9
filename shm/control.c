#include "shm/control.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void control_message_release(struct control_message *message)
{
	if (!message)
		return;
	for (unsigned int i = 0; i < message->fd_count; i++)
		message->fds[i] = close_fd(message->fds[i]);
	message->fd_count = 0;
}

void control_header_init(
	struct control_header *header, uint16_t type, uint32_t size, uint64_t cookie)
{
	*header = (struct control_header){
		.type = type,
		.version = CONTROL_VERSION,
		.size = size,
		.cookie = cookie,
	};
}

int control_send(int socket, const void *message, const int *fds, unsigned int fd_count)
{
	const struct control_header *header = message;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CONTROL_FDS_MAX * sizeof(int))];
	} ancillary = { .bytes = { 0 } };
	struct iovec part = { .iov_base = (void *)message, .iov_len = header->size };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (header->size < sizeof(*header) || header->size > CONTROL_SIZE_MAX ||
		fd_count > CONTROL_FDS_MAX)
		return -EINVAL;
	if (fd_count) {
		struct cmsghdr *rights = &ancillary.align;

		packet.msg_control = &ancillary;
		packet.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
	}
	/* A packet goes as a whole or not at all. */
	return sendmsg(socket, &packet, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Takes the descriptors out of a received packet; the kernel delivers no more than there is room
 * for. */
static void take_descriptors(struct msghdr *packet, struct control_message *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(packet); part; part = CMSG_NXTHDR(packet, part)) {
		size_t count;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (message->fd_count < CONTROL_FDS_MAX)
				message->fds[message->fd_count++] = fd;
			else
				(void)close_fd(fd);
		}
	}
}

static int check_packet(
	const struct msghdr *packet, size_t size, const struct control_header *header)
{
	if (packet->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EMSGSIZE;
	if (size < sizeof(*header) || header->size != size || header->version != CONTROL_VERSION)
		return -EBADMSG;
	return 0;
}

int control_receive(int socket, struct control_message *ret)
{
	/* Exactly the descriptors that a message may have: the kernel closes those beyond and says
	 * so. */
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CONTROL_FDS_MAX * sizeof(int))];
	} ancillary;
	struct iovec part = { .iov_base = ret->bytes, .iov_len = sizeof(ret->bytes) };
	struct msghdr packet = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary),
	};
	ssize_t n;
	int r;

	ret->fd_count = 0;
	n = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	take_descriptors(&packet, ret);
	/* An empty packet looks the same as the end. Nobody sends one, and who does is closed. */
	r = n == 0 ? 0 : check_packet(&packet, (size_t)n, &ret->header);
	if (r < 0 || n == 0) {
		control_message_release(ret);
		return r;
	}
	return 1;
}

int control_call(int socket, void *request, const int *fds, unsigned int fd_count,
	struct control_message *ret)
{
	const struct control_header *header = request;
	int r;

	do
		r = control_send(socket, request, fds, fd_count);
	while (r == -EINTR);
	if (r < 0)
		return r == -EPIPE ? -ECONNRESET : r;
	/* A signal must not leave the reply to be taken for that of the next request. */
	do
		r = control_receive(socket, ret);
	while (r == -EINTR);
	if (r <= 0)
		return r == 0 ? -ECONNRESET : r;
	r = control_check(ret);
	if (!r && (ret->header.type != (header->type | CONTROL_REPLY) ||
			  ret->header.cookie != header->cookie))
		r = -EPROTO;
	if (r < 0)
		control_message_release(ret);
	return r;
}

/* The length of text without the character that was cut at its end. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t begin = length;
	unsigned char lead;
	size_t want;

	while (begin && ((unsigned char)text[begin - 1] & 0xc0) == 0x80 && length - begin < 3)
		begin--;
	if (!begin)
		return length;
	lead = (unsigned char)text[begin - 1];
	want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	return want > length - begin + 1 ? begin - 1 : length;
}

void control_failure_set(
	struct control_failure *failure, int error, int position, const char *format, ...)
{
	va_list args;
	int n;

	*failure = (struct control_failure){ .error = error < 0 ? -error : error,
		.position = position };
	va_start(args, format);
	n = vsnprintf(failure->message, sizeof(failure->message), format, args);
	va_end(args);
	if (n >= (int)sizeof(failure->message)) {
		size_t length = whole_characters(failure->message, sizeof(failure->message) - 1);

		memset(failure->message + length, 0, sizeof(failure->message) - length);
	}
}

int control_text(char *array, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(array, text, length);
	memset(array + length, 0, size - length);
	return 0;
}
