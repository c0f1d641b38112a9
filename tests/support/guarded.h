/* A copy of some bytes whose end is followed by a page that can't be touched: a read past it is a crash in
 * every build, not only under a sanitizer. */
#ifndef TRACEFAN_TESTS_SUPPORT_GUARDED_H
#define TRACEFAN_TESTS_SUPPORT_GUARDED_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct guarded {
	uint8_t *map;
	size_t room; /* usable bytes; an untouchable page lies before and behind them */
};

#define GUARDED_PAGE 4096U

static inline void guarded_create(struct guarded *guarded, size_t room)
{
	size_t whole;
	int r;

	guarded->room = (room + GUARDED_PAGE - 1) / GUARDED_PAGE * GUARDED_PAGE;
	whole = guarded->room + 2 * (size_t)GUARDED_PAGE;
	guarded->map = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(guarded->map != MAP_FAILED);
	r = mprotect(guarded->map + GUARDED_PAGE, guarded->room, PROT_READ | PROT_WRITE);
	assert(!r);
	(void)r;
}

static inline void guarded_release(struct guarded *guarded)
{
	(void)munmap(guarded->map, guarded->room + 2 * (size_t)GUARDED_PAGE);
}

/* The copy ends at the untouchable page; it is good until the next one. */
static inline const uint8_t *guarded_copy(struct guarded *guarded, const void *bytes, size_t size)
{
	uint8_t *at = guarded->map + GUARDED_PAGE + guarded->room - size;

	assert(size <= guarded->room);
	if (size)
		memcpy(at, bytes, size);
	return at;
}

#endif
