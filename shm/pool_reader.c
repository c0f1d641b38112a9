#include "shm/pool.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "shm/wake.h"

#include <errno.h>
#include <sys/stat.h>

static struct free_head *reader_free_head(const struct pool_reader *reader)
{
	return reader->free.base;
}

static int reader_check_heads(struct pool_reader *reader)
{
	const struct pool_head *head = reader->pool.base;
	const uint64_t filled_offset = head->filled_offset, slots_offset = head->slots_offset;

	reader->slot_count = head->slot_count;
	reader->slot_size = head->slot_size;
	reader->filled_capacity = head->filled_capacity;
	reader->free_capacity = head->free_capacity;
	if (!pool_sizes_valid(reader->slot_count, reader->slot_size))
		return -EINVAL;
	if (!is_power_of_two(reader->filled_capacity) ||
		reader->filled_capacity < 4 * reader->slot_count ||
		!is_power_of_two(reader->free_capacity) ||
		reader->free_capacity < reader->slot_count)
		return -EINVAL;
	if (filled_offset != POOL_PAGE || slots_offset % POOL_PAGE ||
		slots_offset < pool_slots_offset(reader->filled_capacity) ||
		!range_inside(slots_offset, (uint64_t)reader->slot_count * reader->slot_size,
			reader->pool.size) ||
		reader->free.size < pool_free_size(reader->free_capacity))
		return -EINVAL;
	reader->filled = (const void *)((const uint8_t *)reader->pool.base + filled_offset);
	reader->slots = (const uint8_t *)reader->pool.base + slots_offset;
	reader->taken = reader_free_head(reader)->taken;
	reader->limit = reader->taken;
	reader->freed = reader_free_head(reader)->freed;
	return 0;
}

static int reader_make(const int fds[4], struct pool_reader *reader)
{
	struct stat st;
	int r;

	for (unsigned int i = 2; i < 4; i++) {
		if (fstat(fds[i], &st) < 0)
			return -errno;
		if (!S_ISFIFO(st.st_mode))
			return -EINVAL;
	}
	r = segment_attach(fds[0], SEGMENT_POOL, POOL_PAGE, SIZE_MAX / 2, false, &reader->pool);
	if (r < 0)
		return r;
	r = segment_attach(fds[1], SEGMENT_FREE, POOL_PAGE, SIZE_MAX / 2, true, &reader->free);
	if (r < 0)
		return r;
	return reader_check_heads(reader);
}

int pool_reader_attach(const int fds[4], struct pool_reader *ret)
{
	struct pool_reader reader = {
		.pool = SEGMENT_NONE, .free = SEGMENT_NONE, .filled_fd = -1, .free_fd = -1
	};
	int r;

	r = reader_make(fds, &reader);
	if (r < 0) {
		/* The descriptors stay the caller's. */
		reader.pool.fd = -1;
		reader.free.fd = -1;
		pool_reader_release(&reader);
		return r;
	}
	reader.filled_fd = fds[2];
	reader.free_fd = fds[3];
	*ret = reader;
	return 0;
}

void pool_reader_release(struct pool_reader *reader)
{
	if (!reader)
		return;
	segment_release(&reader->pool);
	segment_release(&reader->free);
	reader->filled_fd = close_fd(reader->filled_fd);
	reader->free_fd = close_fd(reader->free_fd);
	reader->filled = NULL;
	reader->slots = NULL;
}

static uint64_t reader_load_filled(const struct pool_reader *reader)
{
	const struct pool_head *head = reader->pool.base;

	/* Pairs with the release in writer_append: the entries before it and their slots' bytes are
	 * there. */
	return __atomic_load_n(&head->filled, __ATOMIC_ACQUIRE);
}

static bool entry_valid(const struct pool_reader *reader, const struct pool_entry *entry)
{
	if (entry->kind < POOL_DATA || entry->kind > POOL_CLEARED)
		return false;
	return entry->kind != POOL_DATA ||
	       (entry->slot < reader->slot_count && entry->length <= reader->slot_size);
}

int pool_reader_next(struct pool_reader *reader, struct pool_entry *ret)
{
	struct pool_entry entry;

	if (reader->taken == reader->limit) {
		reader->limit = reader_load_filled(reader);
		if (reader->taken == reader->limit)
			return 0;
	}
	if (reader->limit - reader->taken > reader->filled_capacity)
		return -EBADMSG;
	entry = reader->filled[reader->taken & (reader->filled_capacity - 1)];
	if (!entry_valid(reader, &entry))
		return -EBADMSG;
	reader->taken++;
	/* The entry has been copied and may be overwritten. Pairs with the acquire in
	 * writer_unread. */
	__atomic_store_n(&reader_free_head(reader)->taken, reader->taken, __ATOMIC_RELEASE);
	*ret = entry;
	return 1;
}

const void *pool_reader_slot(const struct pool_reader *reader, uint32_t slot)
{
	return reader->slots + (size_t)slot * reader->slot_size;
}

static void put_free(const struct pool_reader *reader, uint64_t at, uint32_t slot)
{
	uint32_t *ring = (void *)((uint8_t *)reader->free.base + POOL_PAGE);

	__atomic_store_n(&ring[at & (reader->free_capacity - 1)], slot, __ATOMIC_RELAXED);
}

struct pool_counters pool_reader_counters(const struct pool_reader *reader)
{
	const struct free_head *head = reader_free_head(reader);
	struct pool_counters none = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(head->counters); i++) {
		if (head->counters[i].freed == reader->freed)
			return head->counters[i];
	}
	return none;
}

void pool_reader_count(struct pool_reader *reader, const struct pool_counters *counters)
{
	struct free_head *head = reader_free_head(reader);

	struct pool_counters *holds = &head->counters[head->counters[0].freed != reader->freed];

	/* Each by itself: who looks after this process died finds the old or the new one. */
	__atomic_store_n(&holds->undecodable, counters->undecodable, __ATOMIC_RELAXED);
	__atomic_store_n(&holds->told_lost, counters->told_lost, __ATOMIC_RELAXED);
	__atomic_store_n(&holds->lost_reader, counters->lost_reader, __ATOMIC_RELAXED);
	__atomic_store_n(&holds->decoded, counters->decoded, __ATOMIC_RELAXED);
}

void pool_reader_lost(struct pool_reader *reader, uint64_t lost_reader)
{
	struct free_head *head = reader_free_head(reader);

	for (size_t i = 0; i < ARRAY_SIZE(head->counters); i++)
		__atomic_store_n(&head->counters[i].lost_reader, lost_reader, __ATOMIC_RELAXED);
}

void pool_reader_return_all(struct pool_reader *reader, const uint32_t *slots, uint32_t count,
	const struct pool_counters *counters)
{
	struct free_head *head = reader_free_head(reader);
	/* The one that does not hold now. */
	struct pool_counters *next = &head->counters[head->counters[0].freed == reader->freed];

	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++)
		put_free(reader, reader->freed + i, slots[i]);
	*next = *counters;
	next->freed = reader->freed + count;
	reader->freed += count;
	/* Publishes the slots and the counters; pairs with the acquire in the writer's look at
	 * `freed`. */
	__atomic_store_n(&head->freed, reader->freed, __ATOMIC_RELEASE);
}

void pool_reader_return(struct pool_reader *reader, uint32_t slot)
{
	put_free(reader, reader->freed, slot);
	reader->freed++;
	/* Publishes the index, and that the slot's bytes have been read. Pairs with the acquire in
	 * writer_take_back. */
	__atomic_store_n(&reader_free_head(reader)->freed, reader->freed, __ATOMIC_RELEASE);
}

int pool_reader_wake(struct pool_reader *reader)
{
	const struct pool_head *head = reader->pool.base;

	if (!wake_needed(&head->reader_sleeps, &reader->signalled))
		return 0;
	return wake_signal(reader->free_fd);
}

bool pool_reader_prepare_sleep(struct pool_reader *reader)
{
	if (reader->taken != reader->limit)
		return false;
	wake_prepare_sleep(&reader_free_head(reader)->router_sleeps);
	return reader_load_filled(reader) == reader->taken;
}
