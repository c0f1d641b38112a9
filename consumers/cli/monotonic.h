/* CLOCK_MONOTONIC in nanoseconds, and waits that end at a time of it. */
#ifndef TRACEFAN_CLI_MONOTONIC_H
#define TRACEFAN_CLI_MONOTONIC_H

#include <poll.h>
#include <stdint.h>

#define MONOTONIC_SECOND 1000000000ULL
#define MONOTONIC_NEVER  UINT64_MAX

uint64_t monotonic_now(void);

/* poll(2) until `deadline`. Returns what poll does, -errno in place of -1; 0 once the deadline has passed. */
int monotonic_poll(struct pollfd *fds, unsigned int count, uint64_t deadline);

#endif
