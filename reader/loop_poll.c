/* Waiting by ppoll(2), for kernels and containers without io_uring. */
#include "reader/loop.h"

#include <errno.h>
#include <poll.h>

int loop_poll_sleep(struct loop *loop, uint64_t deadline)
{
	uint64_t now = deadline == LOOP_NEVER ? 0 : loop_now();
	uint64_t wait = deadline > now ? deadline - now : 0;
	struct timespec timeout = { .tv_sec = (time_t)(wait / 1000000000),
		.tv_nsec = (long)(wait % 1000000000) };
	nfds_t count = 0;
	int r;

	for (uint32_t i = 0; i < loop->capacity; i++) {
		const struct loop_watch *watch = loop->watches[i];

		if (!watch || !watch->armed)
			continue;
		loop->poll[count].fd = watch->fd;
		loop->poll[count].events = watch->events;
		loop->poll[count].revents = 0;
		count++;
	}
	r = ppoll(loop->poll, count, deadline == LOOP_NEVER ? NULL : &timeout, NULL);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	count = 0;
	for (uint32_t i = 0; r > 0 && i < loop->capacity; i++) {
		struct loop_watch *watch = loop->watches[i];

		if (!watch || !watch->armed)
			continue;
		if (loop->poll[count].revents)
			loop_fire(loop, watch, loop->poll[count].revents);
		count++;
	}
	return 0;
}
