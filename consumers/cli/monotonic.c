#include "consumers/cli/monotonic.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

uint64_t monotonic_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MONOTONIC_SECOND + (uint64_t)now.tv_nsec;
}

int monotonic_poll(struct pollfd *fds, unsigned int count, uint64_t deadline)
{
	struct timespec left = { 0 };
	int r;

	if (deadline != MONOTONIC_NEVER) {
		uint64_t now = monotonic_now();
		uint64_t rest = deadline > now ? deadline - now : 0;

		left.tv_sec = (time_t)(rest / MONOTONIC_SECOND);
		left.tv_nsec = (long)(rest % MONOTONIC_SECOND);
	}
	r = ppoll(fds, count, deadline == MONOTONIC_NEVER ? NULL : &left, NULL);
	return r < 0 ? -errno : r;
}
