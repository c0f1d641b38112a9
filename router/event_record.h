/* How an event becomes a record: the bytes that stand in a consumer's ring. */
#ifndef TRACEFAN_ROUTER_EVENT_RECORD_H
#define TRACEFAN_ROUTER_EVENT_RECORD_H

#include "shm/past_cache.h"
#include "shm/record_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text_line;

/* What is the same in an event's record for every consumer. Each member is a word: compilers load narrower ones in pairs
 * right after they have stored them one by one, which processors are slow at. */
struct event_view {
	const void *payload;
	const char *comm; /* RECORD_COMM_SIZE bytes */
	uint64_t time;
	uint64_t payload_size; /* as are those below, of no more bits than in the record */
	uint64_t size;
	int64_t pid;
	uint64_t cpu;
	uint64_t flags;
	const struct text_line *line; /* of a text session; NULL */
};

/* Larger payloads are copied by memcpy, as are those whose size is no multiple of 4; for the others, which are most, a
 * call of it costs more than the copy. */
#define EVENT_RECORD_WORDS_MAX 128

/* A member of `size` bytes that begins with the byte `offset` of a word. */
static inline uint64_t event_record_member(uint64_t value, unsigned int offset, unsigned int size)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return value << 8 * (sizeof(uint64_t) - offset - size);
#else
	(void)size;
	return value << 8 * offset;
#endif
}

#define EVENT_RECORD_MEMBER(value, name) \
	event_record_member(value, offsetof(struct record_header, name) % sizeof(uint64_t), sizeof(((struct record_header *)NULL)->name))

static inline __attribute__((always_inline)) void event_record_put(uint64_t *to, uint64_t word, bool past)
{
	if (past)
		past_cache_store(to, word);
	else
		*to = word;
}

static inline __attribute__((always_inline)) void event_record_put_bytes(uint64_t *to, const void *from, bool past)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	event_record_put(to, word, past);
	/* Or the compiler sees that a loop of these is memcpy, and calls it. */
	if (!past)
		__asm__ volatile("");
}

static inline __attribute__((always_inline)) void event_record_write_words(
	uint64_t *to, const struct event_view *view, uint64_t trace_id, bool past)
{
	const uint8_t *from = view->payload, *const end = from + (view->payload_size & ~UINT64_C(7));

	event_record_put(to++, EVENT_RECORD_MEMBER(view->size, size) | EVENT_RECORD_MEMBER(RECORD_EVENT, kind) |
		EVENT_RECORD_MEMBER(view->flags, flags) | EVENT_RECORD_MEMBER(view->cpu, cpu), past);
	event_record_put(to++, view->time, past);
	event_record_put(to++, trace_id, past);
	event_record_put(to++, EVENT_RECORD_MEMBER((uint32_t)view->pid, pid) |
		EVENT_RECORD_MEMBER(view->payload_size, payload_size), past);
	event_record_put_bytes(to++, view->comm, past);
	event_record_put_bytes(to++, view->comm + sizeof(uint64_t), past);
	for (; from != end; from += sizeof(uint64_t))
		event_record_put_bytes(to++, from, past);
	if (view->payload_size & 4) {
		uint32_t half;

		memcpy(&half, from, sizeof(half));
		event_record_put(to, event_record_member(half, 0, sizeof(half)), past);
	}
}

/* Writes the record to `to`, where there is room for it. `past`: past the cache, which pays where the record before in the
 * same ring was the last one that was written at all; the ring's `past_cache`
 * must have been set. */
static inline __attribute__((always_inline)) void event_record_write(
	struct record_header *to, const struct event_view *view, uint64_t trace_id, bool past)
{
	if (__builtin_expect(view->payload_size > EVENT_RECORD_WORDS_MAX || view->payload_size & 3, 0)) {
		*to = (struct record_header){
			.size = (uint32_t)view->size,
			.kind = RECORD_EVENT,
			.flags = (uint8_t)view->flags,
			.cpu = (uint16_t)view->cpu,
			.time = view->time,
			.trace_id = trace_id,
			.pid = (int32_t)view->pid,
			.payload_size = (uint32_t)view->payload_size,
		};
		memcpy(to->comm, view->comm, RECORD_COMM_SIZE);
		memcpy(to + 1, view->payload, view->payload_size);
	} else if (past) {
		event_record_write_words((uint64_t *)(void *)to, view, trace_id, true);
	} else {
		event_record_write_words((uint64_t *)(void *)to, view, trace_id, false);
	}
}

#endif
