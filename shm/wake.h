/* Sleeping and waking between two processes without a system call while data flows.
 *
 * The sleeper raises `sleeps` in the page that it may write, then looks once more for data, and only
 * then waits for its eventfd. The waker publishes data, then looks at `sleeps`, and signals when the
 * value is another than the one that it signalled for last. Both sides put a full barrier between
 * their store and their load, so at least one of them sees the other's store: either the sleeper finds
 * the data, or the waker finds the sleeper. (Store buffering; both barriers are needed.) */
#ifndef TRACEFAN_SHM_WAKE_H
#define TRACEFAN_SHM_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeper: call before the last look. Pairs with the fence in wake_needed. */
static inline void wake_prepare_sleep(uint64_t *sleeps)
{
	__atomic_store_n(sleeps, __atomic_load_n(sleeps, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Waker: call after publishing. True when the eventfd has to be signalled; *signalled is the waker's
 * private memory of the last value. Pairs with the fence in wake_prepare_sleep. */
static inline bool wake_needed(const uint64_t *sleeps, uint64_t *signalled)
{
	uint64_t now;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	now = __atomic_load_n(sleeps, __ATOMIC_RELAXED);
	if (now == *signalled)
		return false;
	*signalled = now;
	return true;
}

/* Makes a non-blocking eventfd. Returns the descriptor, owned by the caller, or -errno. */
int wake_create(void);
/* Signals it; never blocks (a full counter has woken the peer already). Returns 0 or -errno. */
int wake_signal(int fd);
/* Takes the signal back after waking up. Returns 0 or -errno (-EAGAIN: there was none). */
int wake_clear(int fd);

#endif
