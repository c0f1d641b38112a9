#include "shm/pool.h"

#include "base/cleanup.h"
#include "shm/wake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum slot_owner {
	OWNER_SPARE,  /* on the reader's stack */
	OWNER_READER, /* taken: being filled */
	OWNER_ROUTER, /* published */
};

struct pool_slot_state {
	uint64_t sequence;
	uint32_t cpu;
	uint32_t length;
	enum slot_owner owner;
};

static uint32_t power_of_two_from(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

static struct pool_head *writer_head(const struct pool_writer *writer)
{
	return writer->pool.base;
}

static const struct free_head *writer_free_head(const struct pool_writer *writer)
{
	return writer->free.base;
}

static int writer_make_segments(struct pool_writer *writer)
{
	const size_t begin = pool_slots_offset(writer->filled_capacity);
	struct pool_head *head;
	int r;

	r = segment_create("tracefan-pool", SEGMENT_POOL,
		begin + (size_t)writer->slot_count * writer->slot_size, SEGMENT_READ_ONLY,
		&writer->pool);
	if (r < 0)
		return r;
	r = segment_create("tracefan-free", SEGMENT_FREE, pool_free_size(writer->free_capacity),
		SEGMENT_WRITABLE, &writer->free);
	if (r < 0)
		return r;
	r = segment_protect(&writer->free);
	if (r < 0)
		return r;
	head = writer_head(writer);
	head->slot_size = writer->slot_size;
	head->slot_count = writer->slot_count;
	head->filled_capacity = writer->filled_capacity;
	head->free_capacity = writer->free_capacity;
	head->filled_offset = POOL_PAGE;
	head->slots_offset = begin;
	writer->entries = (void *)((uint8_t *)writer->pool.base + POOL_PAGE);
	writer->data = (uint8_t *)writer->pool.base + begin;
	return 0;
}

static int writer_make(struct pool_writer *writer)
{
	int r;

	writer->filled_capacity = power_of_two_from(4 * writer->slot_count);
	writer->free_capacity = power_of_two_from(writer->slot_count);
	r = writer_make_segments(writer);
	if (r < 0)
		return r;
	r = wake_create_lasting(&writer->filled_wait_fd, &writer->filled_fd);
	if (r < 0)
		return r;
	r = wake_create_lasting(&writer->free_fd, &writer->free_signal_fd);
	if (r < 0)
		return r;
	writer->slots = calloc(writer->slot_count, sizeof(*writer->slots));
	writer->spare = calloc(writer->slot_count, sizeof(*writer->spare));
	if (!writer->slots || !writer->spare)
		return -ENOMEM;
	/* The lowest on top: a quiet session touches few pages. */
	for (uint32_t i = 0; i < writer->slot_count; i++)
		writer->spare[i] = writer->slot_count - 1 - i;
	writer->spare_count = writer->slot_count;
	return 0;
}

int pool_writer_create(uint32_t slot_count, uint32_t slot_size, struct pool_writer *ret)
{
	struct pool_writer writer = {
		.pool = SEGMENT_NONE,
		.free = SEGMENT_NONE,
		.slot_count = slot_count,
		.slot_size = slot_size,
		.filled_fd = -1,
		.free_fd = -1,
		.filled_wait_fd = -1,
		.free_signal_fd = -1,
	};
	int r;

	if (!pool_sizes_valid(slot_count, slot_size))
		return -EINVAL;
	r = writer_make(&writer);
	if (r < 0) {
		pool_writer_release(&writer);
		return r;
	}
	*ret = writer;
	return 0;
}

void pool_writer_release(struct pool_writer *writer)
{
	if (!writer)
		return;
	segment_release(&writer->pool);
	segment_release(&writer->free);
	writer->filled_fd = close_fd(writer->filled_fd);
	writer->free_fd = close_fd(writer->free_fd);
	writer->filled_wait_fd = close_fd(writer->filled_wait_fd);
	writer->free_signal_fd = close_fd(writer->free_signal_fd);
	free(writer->slots);
	free(writer->spare);
	free(writer->held);
	writer->held = NULL;
	writer->counted = 0;
	writer->slots = NULL;
	writer->spare = NULL;
	writer->spare_count = 0;
}

int pool_writer_count(struct pool_writer *writer, uint32_t cpus)
{
	uint32_t *held = calloc(cpus ? cpus : 1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	free(writer->held);
	writer->held = held;
	writer->counted = cpus;
	return 0;
}

static void writer_push_spare(struct pool_writer *writer, uint32_t slot)
{
	writer->slots[slot].owner = OWNER_SPARE;
	writer->spare[writer->spare_count++] = slot;
}

/* Takes back what the router returned; true when there was anything. The owner table is what is
 * believed: an index counts only while the router owns that slot, so a doubled one is refused the
 * second time. */
static bool writer_take_back(struct pool_writer *writer)
{
	const struct free_head *head = writer_free_head(writer);
	const uint32_t *ring = (const void *)((const uint8_t *)writer->free.base + POOL_PAGE);
	/* Pairs with the release in pool_reader_return: the indices are there, and the router has
	 * done with the slots' bytes. */
	const uint64_t freed = __atomic_load_n(&head->freed, __ATOMIC_ACQUIRE);

	if (freed == writer->freed)
		return false;
	if (freed - writer->freed > writer->free_capacity) {
		writer->refused++;
		return false;
	}
	for (; writer->freed != freed; writer->freed++) {
		uint32_t slot = __atomic_load_n(
			&ring[writer->freed & (writer->free_capacity - 1)], __ATOMIC_RELAXED);

		if (slot >= writer->slot_count || writer->slots[slot].owner != OWNER_ROUTER) {
			writer->refused++;
			continue;
		}
		if (writer->slots[slot].cpu < writer->counted)
			writer->held[writer->slots[slot].cpu]--;
		writer_push_spare(writer, slot);
	}
	return true;
}

uint32_t pool_writer_take(struct pool_writer *writer)
{
	uint32_t slot;

	(void)writer_take_back(writer);
	if (!writer->spare_count)
		return UINT32_MAX;
	slot = writer->spare[--writer->spare_count];
	writer->slots[slot].owner = OWNER_READER;
	return slot;
}

void pool_writer_put(struct pool_writer *writer, uint32_t slot)
{
	writer_push_spare(writer, slot);
}

uint32_t pool_writer_available(struct pool_writer *writer)
{
	(void)writer_take_back(writer);
	return writer->spare_count;
}

void *pool_writer_slot(const struct pool_writer *writer, uint32_t slot)
{
	return writer->data + (size_t)slot * writer->slot_size;
}

/* Room is the caller's matter. */
static void writer_append(struct pool_writer *writer, const struct pool_entry *entry)
{
	writer->entries[writer->filled & (writer->filled_capacity - 1)] = *entry;
	writer->filled++;
	/* Publishes the entry and the slot's bytes. Pairs with the acquire in reader_load_filled.
	 */
	__atomic_store_n(&writer_head(writer)->filled, writer->filled, __ATOMIC_RELEASE);
}

static void writer_append_data(struct pool_writer *writer, uint32_t slot, uint8_t flags)
{
	const struct pool_slot_state *state = &writer->slots[slot];

	writer_append(writer, &(struct pool_entry){
				      .sequence = state->sequence,
				      .slot = slot,
				      .cpu = state->cpu,
				      .length = state->length,
				      .kind = POOL_DATA,
				      .flags = flags,
			      });
}

void pool_writer_publish(struct pool_writer *writer, uint32_t slot, uint32_t cpu, uint32_t length)
{
	writer->slots[slot] = (struct pool_slot_state){
		.sequence = ++writer->sequence,
		.cpu = cpu,
		.length = length,
		.owner = OWNER_ROUTER,
	};
	if (cpu < writer->counted)
		writer->held[cpu]++;
	/* There is room: the router returns a slot after it has read its entry, so no more than
	 * slot_count data entries are unread, and notes leave that much free. A router that returns
	 * slots whose entries it has not read overwrites its own mail. */
	writer_append_data(writer, slot, 0);
}

/* Loads the router's position once. It may only move forward and not past what was published. */
static uint64_t writer_unread(struct pool_writer *writer)
{
	/* Pairs with the release in pool_reader_next: the router has copied the entries before it.
	 */
	const uint64_t taken = __atomic_load_n(&writer_free_head(writer)->taken, __ATOMIC_ACQUIRE);

	if (taken - writer->taken <= writer->filled - writer->taken)
		writer->taken = taken;
	return writer->filled - writer->taken;
}

int pool_writer_note(struct pool_writer *writer, const struct pool_entry *entry)
{
	struct pool_entry note = *entry;

	if (writer_unread(writer) >= writer->filled_capacity - writer->slot_count)
		return -EAGAIN;
	note.sequence = writer->sequence;
	note.reserved = 0;
	note.reserved1 = 0;
	writer_append(writer, &note);
	return 0;
}

int pool_writer_wake(struct pool_writer *writer)
{
	if (!wake_needed(&writer_free_head(writer)->router_sleeps, &writer->signalled))
		return 0;
	return wake_signal(writer->filled_fd);
}

bool pool_writer_prepare_sleep(struct pool_writer *writer)
{
	wake_prepare_sleep(&writer_head(writer)->reader_sleeps);
	return !writer_take_back(writer);
}

static int compare_sequence(const void *a, const void *b)
{
	const struct pool_slot_state *const *x = a, *const *y = b;

	return (*x)->sequence < (*y)->sequence ? -1 : (*x)->sequence > (*y)->sequence;
}

/* Gives the next router a free ring of its own: the old one may have handed its descriptor on. */
static int writer_renew_free(struct pool_writer *writer, const struct pool_counters *counters)
{
	struct segment fresh = SEGMENT_NONE;
	struct free_head *head;
	int r;

	r = segment_create("tracefan-free", SEGMENT_FREE, pool_free_size(writer->free_capacity),
		SEGMENT_WRITABLE, &fresh);
	if (r < 0)
		return r;
	head = fresh.base;
	head->taken = writer->filled;
	head->freed = writer->freed;
	/* Carried over as they are: the next router knows which of the two holds. */
	memcpy(head->counters, writer_free_head(writer)->counters, sizeof(head->counters));
	if (counters) {
		head->counters[0] = *counters;
		head->counters[0].freed = writer->freed;
	}
	r = segment_protect(&fresh);
	if (r < 0) {
		segment_release(&fresh);
		return r;
	}
	segment_release(&writer->free);
	writer->free = fresh;
	return 0;
}

int pool_writer_republish(struct pool_writer *writer)
{
	CLEANUP_FREE struct pool_slot_state **owned = NULL;
	uint32_t count = 0;
	int r;

	owned = calloc(writer->slot_count, sizeof(struct pool_slot_state *));
	if (!owned)
		return -ENOMEM;
	(void)writer_take_back(writer);
	r = writer_renew_free(writer, NULL);
	if (r < 0)
		return r;
	writer->taken = writer->filled;
	writer->signalled = 0;
	for (uint32_t i = 0; i < writer->slot_count; i++)
		if (writer->slots[i].owner == OWNER_ROUTER)
			owned[count++] = &writer->slots[i];
	qsort(owned, count, sizeof(struct pool_slot_state *), compare_sequence);
	for (uint32_t i = 0; i < count; i++)
		writer_append_data(writer, (uint32_t)(owned[i] - writer->slots), POOL_REPUBLISHED);
	return 0;
}

int pool_writer_carry(struct pool_writer *writer, const struct pool_counters *counters)
{
	return writer_renew_free(writer, counters);
}

int pool_writer_share(const struct pool_writer *writer, int ret_fds[4])
{
	const int fds[4] = { writer->pool.fd, writer->free.fd, writer->filled_wait_fd,
		writer->free_signal_fd };

	return segment_duplicate(fds, ret_fds, 4);
}
