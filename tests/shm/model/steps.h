/* Included before each source of the program `steps`: every atomic access notes itself before it is made; a store, behind it, too. */
#ifndef TRACEFAN_TESTS_SHM_MODEL_STEPS_H
#define TRACEFAN_TESTS_SHM_MODEL_STEPS_H

void steps_note(const char *what, const volatile void *at);
void steps_stored(void);

/* Within its own expansion each name means the compiler's. */
#define __atomic_store_n(at, value, order) (steps_note("STORE", at), __atomic_store_n(at, value, order), steps_stored())
#define __atomic_load_n(at, order)         (steps_note("LOAD", at), __atomic_load_n(at, order))
#define __atomic_compare_exchange_n(at, expected, desired, weak, success, failure) \
	(steps_note("EXCHANGE", at), __atomic_compare_exchange_n(at, expected, desired, weak, success, failure))
#define __atomic_thread_fence(order) \
	((order) == __ATOMIC_SEQ_CST ? steps_note("FENCE", 0) : (void)0, __atomic_thread_fence(order))

#endif
