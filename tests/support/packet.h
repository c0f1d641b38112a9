/* Packets as a peer that ignores the rules might send them: any bytes, with any number of descriptors. */
#ifndef TRACEFAN_TESTS_SUPPORT_PACKET_H
#define TRACEFAN_TESTS_SUPPORT_PACKET_H

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel takes 253. */
#define PACKET_FDS_MAX 256

/* Returns as sendmsg. */
static inline ssize_t packet_send(int socket, const void *bytes, size_t size, const int *fds, unsigned int fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
	} ancillary = { .bytes = { 0 } };
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = size };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd_count) {
		packet.msg_control = &ancillary;
		packet.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		ancillary.align.cmsg_level = SOL_SOCKET;
		ancillary.align.cmsg_type = SCM_RIGHTS;
		ancillary.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&ancillary.align), fds, fd_count * sizeof(int));
	}
	return sendmsg(socket, &packet, MSG_NOSIGNAL);
}

/* The same with one descriptor many times. */
static inline ssize_t packet_send_same(int socket, const void *bytes, size_t size, int fd, unsigned int fd_count)
{
	int fds[PACKET_FDS_MAX];

	for (unsigned int i = 0; i < fd_count; i++)
		fds[i] = fd;
	return packet_send(socket, bytes, size, fds, fd_count);
}

#endif
