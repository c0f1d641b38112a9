/* Both ends of a slot pool in one process, begun at any position. */
#ifndef TRACEFAN_TESTS_SHM_POOL_PAIR_H
#define TRACEFAN_TESTS_SHM_POOL_PAIR_H

#include "shm/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct pool_pair {
	struct pool_writer writer;
	struct pool_reader reader;
	/* The router's page and free ring, as a hostile router may write to them. */
	struct free_head *free_head;
	uint32_t *free_ring;
};

static inline void pool_pair_attach(struct pool_pair *pair)
{
	int fds[4];

	assert_int_equal(pool_writer_share(&pair->writer, fds), 0);
	assert_int_equal(pool_reader_attach(fds, &pair->reader), 0);
	pair->free_head = pair->reader.free.base;
	pair->free_ring = (void *)((uint8_t *)pair->reader.free.base + POOL_PAGE);
}

/* A pool as if `start` entries had gone through both rings. */
static inline void pool_pair_begin_writer(
	struct pool_writer *writer, uint32_t slot_count, uint64_t start)
{
	const uint64_t positions[2] = { start, start };
	struct pool_head *head;

	assert_int_equal(pool_writer_create(slot_count, POOL_SLOT_SIZE_MIN, writer), 0);
	head = writer->pool.base;
	head->filled = start;
	writer->filled = writer->taken = writer->freed = start;
	assert_int_equal(pwrite(writer->free.fd, positions, sizeof(positions),
				 offsetof(struct free_head, taken)),
		sizeof(positions));
}

static inline void pool_pair_open(struct pool_pair *pair, uint32_t slot_count, uint64_t start)
{
	pool_pair_begin_writer(&pair->writer, slot_count, start);
	pool_pair_attach(pair);
}

static inline void pool_pair_close(struct pool_pair *pair)
{
	pool_reader_release(&pair->reader);
	pool_writer_release(&pair->writer);
}

/* Takes, fills and publishes a slot; returns it. */
static inline uint32_t pool_pair_publish(struct pool_pair *pair, uint32_t length)
{
	const uint32_t slot = pool_writer_take(&pair->writer);

	assert_int_not_equal(slot, UINT32_MAX);
	memset(pool_writer_slot(&pair->writer, slot), (int)length, pair->writer.slot_size);
	pool_writer_publish(&pair->writer, slot, 3, length);
	return slot;
}

/* The next entry, which must be data. */
static inline uint32_t pool_pair_receive(struct pool_pair *pair)
{
	struct pool_entry entry;

	assert_int_equal(pool_reader_next(&pair->reader, &entry), 1);
	assert_int_equal(entry.kind, POOL_DATA);
	return entry.slot;
}

#endif
