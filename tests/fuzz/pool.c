/* A slot pool with a bad peer. The first byte picks the side under test.
 *
 * A bad router (0): commands of five bytes each make the reader take, publish, note and put back,
 * and the router write anything into its page and free ring; no slot may be handed out twice. A bad
 * reader (else): the bytes are the pool's page behind the segment's header, and then its filled
 * ring. */
#include "shm/pool.h"
#include "tests/support/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 5
#define HEAD  (sizeof(struct pool_head) - sizeof(struct segment_header))

struct bad_router {
	struct pool_writer *writer;
	struct free_head *head;
	uint32_t *ring;
	bool held[SLOTS];      /* taken and not given up */
	bool published[SLOTS]; /* the router's */
};

static void take(struct bad_router *test, bool publish)
{
	const uint32_t slot = pool_writer_take(test->writer);

	if (slot == UINT32_MAX)
		return;
	if (slot >= SLOTS || test->held[slot])
		abort();
	/* Whatever it was: it has come back to the reader. */
	test->published[slot] = false;
	if (publish) {
		memset(pool_writer_slot(test->writer, slot), 1, test->writer->slot_size);
		pool_writer_publish(test->writer, slot, 0, 1);
		test->published[slot] = true;
	} else {
		test->held[slot] = true;
	}
}

static void put(struct bad_router *test, uint32_t slot)
{
	if (slot < SLOTS && test->held[slot]) {
		test->held[slot] = false;
		pool_writer_put(test->writer, slot);
	}
}

static void command(struct bad_router *test, uint8_t what, uint32_t value)
{
	const struct pool_entry note = { .kind = POOL_SWEEP };

	switch (what % 8) {
	case 0:
		take(test, true);
		break;
	case 1:
		take(test, false);
		break;
	case 2:
		put(test, value % SLOTS);
		break;
	case 3:
		(void)pool_writer_note(test->writer, &note);
		break;
	case 4:
		test->ring[test->head->freed & (test->writer->free_capacity - 1)] = value;
		test->head->freed++;
		break;
	case 5:
		test->head->freed += (uint64_t)(int64_t)(int32_t)value;
		break;
	case 6:
		test->head->taken += (uint64_t)(int64_t)(int32_t)value;
		break;
	default:
		test->head->router_sleeps = value;
		(void)pool_writer_wake(test->writer);
	}
}

static void bad_router(struct pool_writer *writer, const uint8_t *bytes, size_t size)
{
	struct bad_router test = { .writer = writer };
	uint32_t value, available;

	test.head = mmap(
		NULL, writer->free.size, PROT_READ | PROT_WRITE, MAP_SHARED, writer->free.fd, 0);
	if (test.head == MAP_FAILED)
		return;
	test.ring = (void *)((uint8_t *)test.head + POOL_PAGE);
	for (; size >= 5; bytes += 5, size -= 5) {
		memcpy(&value, bytes + 1, sizeof(value));
		command(&test, bytes[0], value);
		available = pool_writer_available(writer);
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			available += test.held[slot];
		if (available > SLOTS || writer->filled - writer->taken > UINT32_MAX)
			abort();
	}
	(void)munmap(test.head, writer->free.size);
	if (pool_writer_republish(writer) < 0)
		abort();
}

static void bad_reader(struct pool_writer *writer, const uint8_t *bytes, size_t size)
{
	const size_t head = size < HEAD ? size : HEAD;
	const size_t ring = writer->filled_capacity * sizeof(struct pool_entry);
	struct pool_reader reader;
	struct pool_entry entry;
	int fds[4];

	memcpy((uint8_t *)writer->pool.base + sizeof(struct segment_header), bytes, head);
	memcpy(writer->entries, bytes + head, size - head < ring ? size - head : ring);
	if (pool_writer_share(writer, fds) < 0)
		return;
	if (pool_reader_attach(fds, &reader) < 0) {
		for (int i = 0; i < 4; i++)
			(void)close(fds[i]);
		return;
	}
	for (uint32_t i = 0;
		i < 2 * reader.filled_capacity && pool_reader_next(&reader, &entry) == 1; i++) {
		volatile uint8_t sum = 0;
		const uint8_t *slot;

		if (entry.kind != POOL_DATA)
			continue;
		slot = pool_reader_slot(&reader, entry.slot);
		for (uint32_t k = 0; k < entry.length; k++)
			sum = (uint8_t)(sum + slot[k]);
		pool_reader_return(&reader, entry.slot);
	}
	(void)pool_reader_prepare_sleep(&reader);
	(void)pool_reader_wake(&reader);
	pool_reader_release(&reader);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct pool_writer writer;

	if (size < 1 || pool_writer_create(SLOTS, POOL_SLOT_SIZE_MIN, &writer) < 0)
		return;
	if (bytes[0])
		bad_reader(&writer, bytes + 1, size - 1);
	else
		bad_router(&writer, bytes + 1, size - 1);
	pool_writer_release(&writer);
}
