/* Waiting and reading by io_uring. */
#include "reader/loop.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_ENTRIES 256

/* user_data: reads have the top bit; a watch is its index and the serial of its arming; requests
 * whose completion nobody waits for are 0; all ones is liburing's own time-out. */
#define DATA_READ  (UINT64_C(1) << 63)
#define DATA_WORK  (UINT64_C(1) << 62)
#define DATA_NONE  UINT64_C(0)
#define DATA_OTHER UINT64_MAX

static uint64_t watch_data(const struct loop_watch *watch)
{
	/* Counted from 1, so that this is never DATA_NONE, though serials go round; the index is small, so never
	 * DATA_READ. */
	return (uint64_t)(watch->index + 1) << 32 | watch->serial;
}

int loop_uring_open(struct loop *loop)
{
	/* Completions run when this process enters the kernel anyway; nobody needs to interrupt it
	 * for them. Older kernels don't know the flag. */
	struct io_uring_params params = { .flags = IORING_SETUP_R_DISABLED |
						   IORING_SETUP_COOP_TASKRUN };
	int r = io_uring_queue_init_params(RING_ENTRIES, &loop->ring, &params);

	if (r == -EINVAL) {
		memset(&params, 0, sizeof(params));
		params.flags = IORING_SETUP_R_DISABLED;
		r = io_uring_queue_init_params(RING_ENTRIES, &loop->ring, &params);
	}
	return r;
}

/* The kernel keeps a worker that has nothing to do for as long as the process lives, and wakes it every five seconds to
 * see whether it may go. It may as soon as the processor that it is on isn't one of its own, so it gets none. Where the
 * kernel does not know this, or refuses, its worker stays. */
static void let_workers_go(struct loop *loop)
{
	const uint64_t no_processor = 0;

	(void)io_uring_register((unsigned int)loop->ring.ring_fd, IORING_REGISTER_IOWQ_AFF, &no_processor, sizeof(no_processor));
}

int loop_uring_lock(
	struct loop *loop, const int *files, uint32_t file_count, void *memory, size_t size)
{
	/* io_uring requests don't pass seccomp, so this list is the ring's own: whoever takes the
	 * process over can't use the ring for more than the process does. */
	static const uint8_t opcodes[] = {
		IORING_OP_READ_FIXED,   /* sub-buffers and text into slots */
		IORING_OP_WRITE,        /* control files, on which the kernel takes its time */
		IORING_OP_READ,         /* control files, for which it may wait for the same locks */
		IORING_OP_OPENAT,       /* control files, for the same reason, and no other than openat(2) may */
		IORING_OP_POLL_ADD,     /* waiting for descriptors */
		IORING_OP_POLL_REMOVE,  /* no longer waiting */
		IORING_OP_ASYNC_CANCEL, /* a read that found its CPU empty */
		IORING_OP_TIMEOUT, /* liburing's way to wait with a time-out before Linux 5.11 */
	};
	struct io_uring_restriction rules[ARRAY_SIZE(opcodes) + 2];
	struct iovec area = { .iov_base = memory, .iov_len = size };
	int r;

	memset(rules, 0, sizeof(rules));
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		rules[i].opcode = IORING_RESTRICTION_SQE_OP;
		rules[i].sqe_op = opcodes[i];
	}
	rules[ARRAY_SIZE(opcodes)].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
	rules[ARRAY_SIZE(opcodes)].sqe_flags =
		IOSQE_FIXED_FILE | IOSQE_IO_LINK | IOSQE_ASYNC;
	/* Newest kernels leave registering free where no rule speaks of it. This one only tells what the
	 * kernel has. */
	rules[ARRAY_SIZE(opcodes) + 1].opcode = IORING_RESTRICTION_REGISTER_OP;
	rules[ARRAY_SIZE(opcodes) + 1].register_op = IORING_REGISTER_PROBE;
	let_workers_go(loop);
	r = file_count ? io_uring_register_files(&loop->ring, files, file_count) : 0;
	if (!r && size)
		r = io_uring_register_buffers(&loop->ring, &area, 1);
	/* By number: Debian 12's liburing declares the two wrappers and does not export them. */
	if (!r)
		r = io_uring_register((unsigned int)loop->ring.ring_fd,
			IORING_REGISTER_RESTRICTIONS, rules, ARRAY_SIZE(rules));
	if (!r)
		r = io_uring_register(
			(unsigned int)loop->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	return r;
}

/* A free submission entry; submits what is queued when the queue is full. */
static struct io_uring_sqe *next_sqe(struct loop *loop)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

	while (!sqe) {
		if (io_uring_submit(&loop->ring) < 0)
			return NULL;
		sqe = io_uring_get_sqe(&loop->ring);
	}
	return sqe;
}

void loop_uring_arm(struct loop *loop, struct loop_watch *watch)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe) {
		/* The owner learns of it as of any error of its descriptor. */
		loop_fire(loop, watch, POLLERR);
		return;
	}
	io_uring_prep_poll_add(sqe, watch->fd, (unsigned int)watch->events);
	io_uring_sqe_set_data64(sqe, watch_data(watch));
}

void loop_uring_disarm(struct loop *loop, struct loop_watch *watch)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return;
	io_uring_prep_poll_remove(sqe, watch_data(watch));
	io_uring_sqe_set_data64(sqe, DATA_NONE);
}

static void complete(struct loop *loop, const struct io_uring_cqe *cqe)
{
	struct loop_watch *watch;
	uint64_t index;

	if (cqe->user_data == DATA_NONE || cqe->user_data == DATA_OTHER)
		return;
	if (cqe->user_data == DATA_WORK) {
		loop->work_result = cqe->res;
		loop->worked = true;
		return;
	}
	if (cqe->user_data & DATA_READ) {
		loop->read_done(loop->read_context, cqe->user_data & ~DATA_READ, cqe->res);
		return;
	}
	index = (cqe->user_data >> 32) - 1;
	watch = index < loop->capacity ? loop->watches[index] : NULL;
	/* Another serial: the answer to an arming that was taken back. */
	if (!watch || !watch->armed || watch->serial != (uint32_t)cqe->user_data)
		return;
	loop_fire(loop, watch, cqe->res < 0 ? POLLERR : (short)cqe->res);
}

static void reap(struct loop *loop)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&loop->ring, &cqe)) {
		complete(loop, cqe);
		io_uring_cqe_seen(&loop->ring, cqe);
	}
}

static int enter(struct loop *loop, unsigned int count, const uint64_t *timeout)
{
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;
	int r;

	if (!timeout) {
		r = io_uring_submit_and_wait(&loop->ring, count);
	} else {
		ts.tv_sec = (long long)(*timeout / 1000000000);
		ts.tv_nsec = (long long)(*timeout % 1000000000);
		r = io_uring_submit_and_wait_timeout(&loop->ring, &cqe, count, &ts, NULL);
	}
	return r < 0 && r != -EINTR && r != -ETIME && r != -EAGAIN && r != -EBUSY ? r : 0;
}

int loop_uring_sleep(struct loop *loop, uint64_t deadline)
{
	uint64_t now, wait;
	int r;

	if (deadline == LOOP_NEVER) {
		r = enter(loop, 1, NULL);
	} else {
		now = loop_now();
		wait = deadline > now ? deadline - now : 0;
		r = wait ? enter(loop, 1, &wait) : enter(loop, 0, NULL);
	}
	if (r < 0)
		return r;
	reap(loop);
	return 0;
}

/* Hands the request to a worker and waits for its end: the kernel has what it names until then, however long that takes. */
static int work(struct loop *loop, struct io_uring_sqe *sqe, loop_meanwhile_fn *meanwhile, void *context)
{
	/* Or a file that can wait is polled, and another that can't is worked on right here. */
	sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data64(sqe, DATA_WORK);
	loop->working = true;
	loop->worked = false;
	while (!loop->worked) {
		uint64_t deadline = meanwhile(context);

		/* Who waits for reads meanwhile finds this request's end, too. */
		if (loop_dispatch(loop, true) || loop->worked)
			deadline = 0;
		(void)loop_uring_sleep(loop, deadline);
	}
	(void)loop_dispatch(loop, true);
	loop->working = false;
	return loop->work_result;
}

ssize_t loop_uring_write(struct loop *loop, int fd, const void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_write(sqe, fd, data, (unsigned int)size, 0);
	return work(loop, sqe, meanwhile, context);
}

ssize_t loop_uring_fetch(struct loop *loop, int fd, void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context)
{
	const uint64_t where_it_is = UINT64_MAX;
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_read(sqe, fd, data, (unsigned int)size, where_it_is);
	return work(loop, sqe, meanwhile, context);
}

int loop_uring_file(struct loop *loop, int folder, const char *path, int flags, loop_meanwhile_fn *meanwhile, void *context)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_openat(sqe, folder, path, flags, 0);
	return work(loop, sqe, meanwhile, context);
}

int loop_read_queue(struct loop *loop, const struct loop_read *read)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_read_fixed(sqe, (int)read->file, read->memory, read->length, 0, 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	if (read->linked)
		sqe->flags |= IOSQE_IO_LINK;
	if (read->worker)
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data64(sqe, DATA_READ | read->token);
	return 0;
}

int loop_read_cancel(struct loop *loop, uint64_t token)
{
	struct io_uring_sqe *sqe = next_sqe(loop);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_cancel64(sqe, DATA_READ | token, 0);
	io_uring_sqe_set_data64(sqe, DATA_NONE);
	return 0;
}

int loop_read_submit(struct loop *loop, unsigned int count, uint64_t timeout)
{
	int r = count ? enter(loop, count, &timeout) : enter(loop, 0, NULL);

	reap(loop);
	return r;
}
