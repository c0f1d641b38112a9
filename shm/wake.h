/* Sleeping and waking between two processes without a system call while data flows.
 *
 * The sleeper raises `sleeps` in the page that it may write, then looks once more for data, and
 * only then waits for its descriptor. The waker publishes data, then looks at `sleeps`, and signals
 * when the value is another than the one that it signalled for last. Both sides put a full barrier
 * between their store and their load, so at least one of them sees the other's store: either the
 * sleeper finds the data, or the waker finds the sleeper. (Store buffering; both barriers are
 * needed.)
 *
 * The descriptors are the ends of a small pipe and not one eventfd: an eventfd has one open file
 * description, so the peer could clear its O_NONBLOCK and fill its counter, and the next signal
 * would block the waker for ever. The flags of each end of a pipe belong to its holder. */
#ifndef TRACEFAN_SHM_WAKE_H
#define TRACEFAN_SHM_WAKE_H

#include "shm/barrier.h"

#include <stdbool.h>
#include <stdint.h>

/* Sleeper: call before the last look. Pairs with the fence in wake_needed. */
static inline void wake_prepare_sleep(uint64_t *sleeps)
{
	__atomic_store_n(sleeps, __atomic_load_n(sleeps, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	barrier_full();
}

/* Waker: call after publishing. True when the peer has to be signalled; *signalled is the waker's
 * private memory of the last value. Pairs with the fence in wake_prepare_sleep. */
static inline bool wake_needed(const uint64_t *sleeps, uint64_t *signalled)
{
	uint64_t now;

	barrier_full();
	now = __atomic_load_n(sleeps, __ATOMIC_RELAXED);
	if (now == *signalled)
		return false;
	*signalled = now;
	return true;
}

/* Makes a wake-up: *ret_wait is for the sleeper (poll it for POLLIN), *ret_signal for the waker;
 * both are non-blocking, close-on-exec and owned by the caller. A waker that keeps *ret_wait open,
 * too, gets no SIGPIPE when the sleeper dies. When the last *ret_signal is closed, *ret_wait hangs
 * up, and then stays readable: whoever outlives its waker must stop to poll it. Returns 0 or
 * -errno. */
int wake_create(int *ret_wait, int *ret_signal);

/* The same where both sides must outlive each other: each descriptor is an end of its own that
 * reads and writes, so neither hangs up nor raises SIGPIPE when the peer dies. Needs /proc while it
 * is made. */
int wake_create_lasting(int *ret_wait, int *ret_signal);

/* Signals; never blocks (a full pipe has woken the peer already). Returns 0 or -errno. */
int wake_signal(int fd);

/* Takes all signals back after waking up. Returns 0, -EAGAIN (there was none), -EPIPE (none, and no
 * waker is left) or another -errno. */
int wake_clear(int fd);

#endif
