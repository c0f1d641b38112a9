/* Stores that pass the caches by, for bytes that this process does not read again and another one reads from another
 * CPU. A store into the cache waits there until the other CPU has given the line up; these wait for nobody, if whole
 * lines are written one after the other. Bytes of a line that is not written in one go, or that is in this CPU's cache
 * because it is written to otherwise too, cost more than by plain stores.
 *
 * Such stores may become visible after later plain ones, even release stores: past_cache_fence stands between. */
#ifndef TRACEFAN_SHM_PAST_CACHE_H
#define TRACEFAN_SHM_PAST_CACHE_H

#include <stdint.h>

#ifdef __x86_64__
#include <emmintrin.h>

static inline void past_cache_store(uint64_t *to, uint64_t value)
{
	_mm_stream_si64((long long *)(void *)to, (long long)value);
}

/* Orders the stores above before all later ones. */
static inline void past_cache_fence(void)
{
	_mm_sfence();
}
#else
/* Plain stores, which a release store orders by itself. */
static inline void past_cache_store(uint64_t *to, uint64_t value)
{
	*to = value;
}

static inline void past_cache_fence(void)
{
}
#endif

#endif
