#include "reader/loop.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t loop_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int loop_open(bool uring, uint32_t watches, struct loop *ret)
{
	struct loop loop = { .uring = uring, .capacity = watches };
	int r = 0;

	loop.watches = calloc(watches, sizeof(struct loop_watch *));
	loop.poll = calloc(watches, sizeof(*loop.poll));
	if (!loop.watches || !loop.poll)
		r = -ENOMEM;
	if (!r && uring)
		r = loop_uring_open(&loop);
	if (r < 0) {
		free(loop.watches);
		free(loop.poll);
		return r;
	}
	*ret = loop;
	return 0;
}

void loop_close(struct loop *loop)
{
	if (!loop->watches)
		return;
	if (loop->uring)
		io_uring_queue_exit(&loop->ring);
	for (uint32_t i = 0; i < loop->capacity; i++) {
		if (loop->watches[i])
			loop->watches[i]->added = loop->watches[i]->armed = false;
	}
	free(loop->watches);
	free(loop->poll);
	memset(loop, 0, sizeof(*loop));
}

int loop_lock(struct loop *loop, const int *files, uint32_t file_count, void *memory, size_t size)
{
	return loop->uring ? loop_uring_lock(loop, files, file_count, memory, size) : 0;
}

int loop_add(struct loop *loop, struct loop_watch *watch)
{
	for (uint32_t i = 0; i < loop->capacity; i++) {
		if (loop->watches[i])
			continue;
		loop->watches[i] = watch;
		watch->index = i;
		watch->added = true;
		watch->armed = false;
		watch->fired = 0;
		return 0;
	}
	return -ENOSPC;
}

void loop_remove(struct loop *loop, struct loop_watch *watch)
{
	if (!watch->added)
		return;
	loop_disarm(loop, watch);
	loop->watches[watch->index] = NULL;
	watch->added = false;
}

void loop_arm(struct loop *loop, struct loop_watch *watch)
{
	if (!watch->added || watch->armed || watch->fired)
		return;
	watch->armed = true;
	watch->serial = ++loop->serial;
	if (loop->uring)
		loop_uring_arm(loop, watch);
}

void loop_disarm(struct loop *loop, struct loop_watch *watch)
{
	if (watch->fired)
		loop->fired--;
	watch->fired = 0;
	if (!watch->armed)
		return;
	watch->armed = false;
	if (loop->uring)
		loop_uring_disarm(loop, watch);
}

void loop_fire(struct loop *loop, struct loop_watch *watch, short revents)
{
	if (!watch->armed)
		return;
	watch->armed = false;
	watch->fired = revents ? revents : POLLERR;
	loop->fired++;
}

/* A callback may remove its own watch or another's, so each is looked up anew. */
bool loop_dispatch(struct loop *loop, bool flowing)
{
	bool any = false;

	for (uint32_t i = 0; loop->fired && i < loop->capacity; i++) {
		struct loop_watch *watch = loop->watches[i];
		short revents;

		if (!watch || !watch->fired || (flowing && !watch->flows))
			continue;
		any = true;
		revents = watch->fired;
		watch->fired = 0;
		loop->fired--;
		watch->ready(watch->context, revents);
	}
	return any;
}

ssize_t loop_write(struct loop *loop, int fd, const void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context)
{
	ssize_t n;

	if (loop->uring && !loop->working)
		return loop_uring_write(loop, fd, data, size, meanwhile, context);
	do
		n = write(fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t loop_fetch(struct loop *loop, int fd, void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context)
{
	ssize_t n;

	if (loop->uring && !loop->working)
		return loop_uring_fetch(loop, fd, data, size, meanwhile, context);
	do
		n = read(fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int loop_file(struct loop *loop, int folder, const char *path, int flags, loop_meanwhile_fn *meanwhile, void *context)
{
	int fd;

	if (loop->uring && !loop->working)
		return loop_uring_file(loop, folder, path, flags, meanwhile, context);
	fd = openat(folder, path, flags);
	return fd < 0 ? -errno : fd;
}

int loop_wait(struct loop *loop, uint64_t deadline)
{
	int r;

	/* What fired while reads were waited for is due now. */
	if (loop->fired)
		deadline = 0;
	r = loop->uring ? loop_uring_sleep(loop, deadline) : loop_poll_sleep(loop, deadline);
	if (r < 0)
		return r;
	(void)loop_dispatch(loop, false);
	return 0;
}
