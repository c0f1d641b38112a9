#include "reader/hotplug.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

/* The group in which the kernel itself speaks. */
#define KERNEL_GROUP 1

int hotplug_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	CLEANUP_CLOSE int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

bool hotplug_read(int fd)
{
	bool cpu = false;

	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t size = sizeof(from);
		char text[4096];
		ssize_t n =
			recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &size);

		if (n < 0 && errno == EINTR)
			continue;
		/* Some were lost: any of them may have been a CPU's. */
		if (n < 0 && errno == ENOBUFS) {
			cpu = true;
			continue;
		}
		if (n < 0)
			return cpu;
		text[n] = '\0';
		/* "online@/devices/system/cpu/cpu1"; port 0 is the kernel, anybody else is not
		 * believed. */
		if (size == sizeof(from) && !from.nl_pid && !strncmp(text, "online@", 7) &&
			strstr(text, "/cpu/cpu"))
			cpu = true;
	}
}
