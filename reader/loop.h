/* The reader's one place to sleep: waits for descriptors and for a deadline, and moves sub-buffers
 * by io_uring. One ring carries all of it. Where io_uring is missing, or the start-up proof has
 * shown that it can't be trusted here, the same interface works by ppoll(2) (loop_poll.c); reads
 * are then the caller's own read(2). */
#ifndef TRACEFAN_READER_LOOP_H
#define TRACEFAN_READER_LOOP_H

#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOOP_NEVER UINT64_MAX

/* A descriptor that is waited for. Fires once per loop_arm: whoever handles it arms it again. The
 * owner keeps the struct in place from loop_add to loop_remove; the descriptor stays the owner's.
 */
struct loop_watch {
	int fd;
	short events;
	void (*ready)(void *context, short revents);
	void *context;
	bool flows; /* goes on being dispatched while loop_write, loop_fetch and loop_file wait for the kernel */
	/* The loop's own. */
	bool added;
	bool armed;
	short fired;
	uint32_t index;
	uint32_t serial; /* tells a completion of this arming from one of an earlier arming */
};

/* A finished read: `result` is the length or -errno. */
typedef void loop_read_fn(void *context, uint64_t token, int result);

struct loop {
	bool uring;
	struct io_uring ring;
	struct loop_watch **watches;
	uint32_t capacity;
	uint32_t serial;
	uint32_t fired;      /* watches that fired and were not dispatched yet */
	struct pollfd *poll; /* loop_poll.c's scratch */
	bool working, worked; /* loop_write, loop_fetch, loop_file: one is under way; it is complete */
	int work_result;
	loop_read_fn *read_done;
	void *read_context;
};

/* Makes a loop for up to `watches` watches; `uring` false: by ppoll. The ring takes no request
 * before loop_lock. Returns 0 or -errno (-EPERM, -ENOSYS: no io_uring here). */
int loop_open(bool uring, uint32_t watches, struct loop *ret);
void loop_close(struct loop *loop);

/* Registers the files that loop_read names by index and the memory that it reads into, restricts
 * the ring to the few opcodes that the reader uses, and lets it start. Once. Returns 0 or -errno.
 */
int loop_lock(struct loop *loop, const int *files, uint32_t file_count, void *memory, size_t size);

/* CLOCK_MONOTONIC in ns. */
uint64_t loop_now(void);

int loop_add(struct loop *loop, struct loop_watch *watch);
void loop_remove(struct loop *loop, struct loop_watch *watch);
void loop_arm(struct loop *loop, struct loop_watch *watch);
void loop_disarm(struct loop *loop, struct loop_watch *watch);

/* Sleeps until a watch fires, a read finishes or `deadline` (CLOCK_MONOTONIC ns, LOOP_NEVER) has
 * passed, then calls the watches that fired. Returns 0 or -errno. */
int loop_wait(struct loop *loop, uint64_t deadline);

/* ---- reads; loop->uring only ---- */

/* Queues a fixed read of `length` bytes from registered file `file`. `linked`: the next queued one
 * starts only when this one is complete, and not if it has failed or was short. `worker`: hand it to
 * a worker at once, for a file that blocks. */
struct loop_read {
	uint32_t file;
	void *memory;
	uint32_t length;
	uint64_t token;
	bool linked;
	bool worker;
};
int loop_read_queue(struct loop *loop, const struct loop_read *read);
/* Asks for the end of the read with this token: it completes with -ECANCELED or with its data. */
int loop_read_cancel(struct loop *loop, uint64_t token);
/* Does what is due and returns when something is due again at the latest. */
typedef uint64_t loop_meanwhile_fn(void *context);

/* write(2) by a worker, to a file on which the kernel may take its time, or hang: meanwhile the watches that flow
 * are dispatched, and `meanwhile` is called after each wake-up. What else fires is kept for loop_wait. Not from within
 * itself: then, and without a ring, it is a plain write(2). Returns its result or -errno. */
ssize_t loop_write(struct loop *loop, int fd, const void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context);

/* read(2) in the same way. */
ssize_t loop_fetch(struct loop *loop, int fd, void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context);

/* openat(2) in the same way, for files that the kernel clears then. Returns the descriptor, owned by the caller, or -errno. */
int loop_file(struct loop *loop, int folder, const char *path, int flags, loop_meanwhile_fn *meanwhile, void *context);

/* Submits what is queued, waits until at least `count` requests are complete or `timeout` ns have
 * passed, and calls read_done for each finished read. Watches that fire meanwhile are kept for
 * loop_wait. */
int loop_read_submit(struct loop *loop, unsigned int count, uint64_t timeout);

/* ---- between loop.c and its two ways of waiting ---- */
int loop_uring_open(struct loop *loop);
int loop_uring_lock(
	struct loop *loop, const int *files, uint32_t file_count, void *memory, size_t size);
void loop_uring_arm(struct loop *loop, struct loop_watch *watch);
void loop_uring_disarm(struct loop *loop, struct loop_watch *watch);
int loop_uring_sleep(struct loop *loop, uint64_t deadline);
int loop_poll_sleep(struct loop *loop, uint64_t deadline);
void loop_fire(struct loop *loop, struct loop_watch *watch, short revents);
ssize_t loop_uring_write(struct loop *loop, int fd, const void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context);
ssize_t loop_uring_fetch(struct loop *loop, int fd, void *data, size_t size, loop_meanwhile_fn *meanwhile, void *context);
int loop_uring_file(struct loop *loop, int folder, const char *path, int flags, loop_meanwhile_fn *meanwhile, void *context);
/* The watches that fired; `flowing`: of those only the ones that flow. Returns whether there were any. */
bool loop_dispatch(struct loop *loop, bool flowing);

#endif
