/* The kernel's word that a CPU came online. */
#ifndef TRACEFAN_READER_HOTPLUG_H
#define TRACEFAN_READER_HOTPLUG_H

#include <stdbool.h>

/* Opens the kernel's uevent socket (netlink). Returns the descriptor, owned by the caller, or
 * -errno: in a container there may be none, and then a late CPU is found by the next sweep. */
int hotplug_open(void);

/* Takes all waiting uevents; true when one of them, or one that was lost, tells of a CPU. */
bool hotplug_read(int fd);

#endif
