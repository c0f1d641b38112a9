/* Getting to a session: the socket, the greeting, the ring, the descriptor to poll. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_ATTACH_H
#define TRACEFAN_CONSUMERS_CLIENT_ATTACH_H

#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stdint.h>

/* Connects to the session's socket, in place of an earlier connection, and greets the router without waiting for
 * its answer. Returns 0 or -errno; no failure is set. */
int attach_greet(struct tfan *tfan);

/* Takes the answer. Returns 0, -EAGAIN (without `wait`: there is none yet) or -errno with the failure set. */
int attach_welcomed(struct tfan *tfan, bool wait);

/* Attaches a ring, in place of an earlier one, with these flags beside those of the options. Returns 0 or -errno
 * with the failure set. */
int attach_ring(struct tfan *tfan, uint32_t flags, uint64_t seen_time, uint32_t seen_cpu);

/* Adds a descriptor to those that make tfan_fd readable. Returns 0 or -errno with the failure set. */
int attach_watch(struct tfan *tfan, int fd);

#endif
