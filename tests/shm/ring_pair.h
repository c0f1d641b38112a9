/* Both ends of a record ring in one process, begun at any position. */
#ifndef TRACEFAN_TESTS_SHM_RING_PAIR_H
#define TRACEFAN_TESTS_SHM_RING_PAIR_H

#include "shm/ring.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct ring_pair {
	struct ring_writer writer;
	struct ring_reader reader;
	/* The writer's page and the consumer's, both writable: what a hostile peer could do to its
	 * own. */
	struct ring_head *head;
	struct ring_cursor *cursor;
};

/* A fresh writer as if `start` bytes, which end with a chunk, had been written and read already. */
static inline void ring_pair_begin_writer(
	struct ring_writer *writer, size_t capacity, enum ring_overflow overflow, uint64_t start)
{
	struct ring_head *head;

	assert_int_equal(ring_writer_create(capacity, overflow, writer), 0);
	head = writer->head.base;
	head->published = start;
	head->resume[0].position = start;
	writer->top = writer->published = writer->announced = writer->consumed = writer->oldest =
		writer->returned = start;
	assert_int_equal(pwrite(writer->cursor.fd, &start, sizeof(start),
				 offsetof(struct ring_cursor, consumed)),
		sizeof(start));
}

static inline void ring_pair_open(
	struct ring_pair *pair, size_t capacity, enum ring_overflow overflow, uint64_t start)
{
	int fds[3];

	ring_pair_begin_writer(&pair->writer, capacity, overflow, start);
	assert_int_equal(ring_writer_share(&pair->writer, fds), 0);
	assert_int_equal(ring_reader_attach(fds, &pair->reader), 0);
	pair->head = pair->writer.head.base;
	pair->cursor = pair->reader.cursor.base;
}

static inline void ring_pair_close(struct ring_pair *pair)
{
	ring_reader_release(&pair->reader);
	ring_writer_release(&pair->writer);
}

/* The size of record number n, all sizes from the smallest to about `most`. */
static inline uint32_t ring_pair_size(uint64_t n, uint32_t most)
{
	uint64_t hash = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t payload = (uint32_t)((hash >> 33) % (most - sizeof(struct record_header) + 1));

	return (uint32_t)sizeof(struct record_header) + payload / 8 * 8;
}

/* Fills a record whose every byte says which one it is. By atomic words, because an overtaken
 * consumer may be copying them at this moment, which it then finds out. */
static inline void ring_pair_fill(
	struct record_header *record, uint64_t n, uint32_t size, uint8_t kind)
{
	struct record_header header = {
		.size = size,
		.kind = kind,
		.cpu = (uint16_t)n,
		.time = n,
		.trace_id = ~n,
		.payload_size = size - (uint32_t)sizeof(header),
	};
	uint64_t words[sizeof(header) / 8];
	uint64_t *to = (void *)record;

	memcpy(words, &header, sizeof(header));
	for (size_t i = 0; i < size / 8; i++)
		__atomic_store_n(
			&to[i], i < sizeof(header) / 8 ? words[i] : n * 31 + i, __ATOMIC_RELAXED);
}

/* Whether all of a record belongs together. */
static inline bool ring_pair_whole(const struct record_header *record)
{
	const uint64_t *words = (const void *)record;
	const uint64_t n = record->time;

	if (record->trace_id != ~n || record->cpu != (uint16_t)n ||
		record->payload_size != record->size - sizeof(*record))
		return false;
	for (size_t i = sizeof(*record) / 8; i < record->size / 8; i++)
		if (words[i] != n * 31 + i)
			return false;
	return true;
}

/* Reserves and fills record n; false when there is no room. */
static inline bool ring_pair_write(struct ring_pair *pair, uint64_t n, uint32_t size)
{
	struct record_header *record = ring_writer_reserve(&pair->writer, size);

	if (record)
		ring_pair_fill(record, n, size, RECORD_EVENT);
	return record != NULL;
}

#endif
