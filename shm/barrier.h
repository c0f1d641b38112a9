/* The two fences of the shared-memory protocols, wrapped once. What each use orders, and which line
 * of the other process it pairs with, is said at the use. */
#ifndef TRACEFAN_SHM_BARRIER_H
#define TRACEFAN_SHM_BARRIER_H

/* ThreadSanitizer runs fences but draws no conclusion from them, and gcc warns of it. No data here
 * is handed over by a fence alone: that is what the release/acquire pairs are for. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Orders this process's earlier stores before its later loads, as well as all other pairs. */
static inline void barrier_full(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Orders earlier stores before later stores, for a writer whose reader uses barrier_acquire. */
static inline void barrier_release(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Orders earlier loads before later loads. */
static inline void barrier_acquire(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC diagnostic pop
#endif

#endif
