/* The record ring's two ends. One writer process, one reader process; neither trusts the other: the
 * writer clamps the consumer's cursor, the reader checks every size before it follows it. */
#ifndef TRACEFAN_SHM_RING_H
#define TRACEFAN_SHM_RING_H

#include "base/checked.h"
#include "shm/record_abi.h"
#include "shm/ring_abi.h"
#include "shm/segment.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ring_capacity_valid(uint64_t capacity)
{
	return is_power_of_two(capacity) && capacity >= RING_CAPACITY_MIN &&
	       capacity <= RING_CAPACITY_MAX;
}

/* Bytes of the largest record that a ring takes. */
static inline uint64_t ring_record_max(uint64_t capacity)
{
	return capacity / 4 < RECORD_SIZE_MAX ? capacity / 4 : RECORD_SIZE_MAX;
}

/* No ring refuses a record of this size for its size. */
#define RING_RECORD_SURE (RING_CAPACITY_MIN / 4)

/* ---- the router's end ---- */
struct ring_writer {
	struct segment head;   /* all of SEGMENT_RING: the page and the data twice */
	struct segment cursor; /* SEGMENT_CURSOR, mapped read-only */
	uint8_t *data;         /* the first of the two mappings of the data */
	uint64_t capacity;
	uint64_t record_max; /* bytes of the largest record */
	uint64_t reserved;   /* end of what has been written, published or not */
	uint64_t floor;     /* what begins before this may be overwritten: `consumed` or `oldest` */
	uint64_t published; /* last value stored in ring_head.published */
	uint64_t announced; /* `published` when it was last looked whether the consumer sleeps */
	uint64_t consumed;  /* last clamped copy of the consumer's cursor */
	uint64_t oldest;    /* RING_OVERWRITE: first record that is still whole */
	uint64_t oldest_events; /* RING_OVERWRITE: events that began before it */
	uint64_t signalled;     /* wake_needed's memory */
	enum ring_overflow overflow;
	int wake_fd; /* signals the consumer */
	int wait_fd; /* what the consumer polls; kept to be shared, never read here */
};

/* Makes both segments and the wake-up. capacity: a power of two between RING_CAPACITY_MIN and
 * RING_CAPACITY_MAX. Returns 0 or -errno. The writer is owned by the caller: ring_writer_release.
 */
int ring_writer_create(size_t capacity, enum ring_overflow overflow, struct ring_writer *ret);
void ring_writer_release(struct ring_writer *writer);

/* The part of ring_writer_reserve that looks at the cursor or pushes the oldest records out. */
struct record_header *ring_writer_reserve_slow(struct ring_writer *writer, size_t size);

/* Room for a record of `size` bytes (a multiple of RECORD_ALIGN, at most writer->record_max), or
 * NULL when there is none (RING_DROP only: RING_OVERWRITE always finds room) or the record is too
 * large. What is returned is contiguous and is the caller's to fill completely before the next
 * call; it becomes visible with publish. The cost of the cursor's cache line is paid only when the
 * last known cursor leaves no room. RING_OVERWRITE publishes by itself when a batch is larger than
 * the ring. */
static inline struct record_header *ring_writer_reserve(struct ring_writer *writer, size_t size)
{
	const uint64_t position = writer->reserved;

	if (size > writer->capacity - (position - writer->floor) || size > writer->record_max)
		return ring_writer_reserve_slow(writer, size);
	writer->reserved = position + size;
	return (struct record_header *)(void *)(writer->data + (position & (writer->capacity - 1)));
}

/* Bytes that ring_writer_reserve gives without a further look at anything. */
static inline uint64_t ring_writer_room(const struct ring_writer *writer)
{
	return writer->capacity - (writer->reserved - writer->floor);
}

/* The same for a record of at most RING_RECORD_SURE bytes when the caller knows that there is room. */
static inline struct record_header *ring_writer_take(struct ring_writer *writer, size_t size)
{
	const uint64_t position = writer->reserved;

	writer->reserved = position + size;
	return (struct record_header *)(void *)(writer->data + (position & (writer->capacity - 1)));
}

/* Makes all reserved records visible, to a consumer that looks. */
void ring_writer_show(struct ring_writer *writer);

/* Wakes the consumer if it sleeps and something was made visible since the last call. Before the
 * writer itself sleeps this must follow ring_writer_show. Returns 0 or -errno. */
int ring_writer_wake(struct ring_writer *writer);

/* Both. */
int ring_writer_publish(struct ring_writer *writer);

/* Bytes that are visible and that a sleeping consumer was not woken for. */
static inline uint64_t ring_writer_unannounced(const struct ring_writer *writer)
{
	return writer->published - writer->announced;
}

/* Bytes that are published or reserved and not consumed, by the clamped cursor. */
uint64_t ring_writer_used(struct ring_writer *writer);

/* Says whether the router waits for room. The caller looks at ring_writer_used once more behind it. */
void ring_writer_wait(struct ring_writer *writer, bool waits);

/* Descriptors for the consumer, duplicates owned by the caller: ring, cursor, what to poll.
 * Returns 0 or -errno. */
int ring_writer_share(const struct ring_writer *writer, int ret_fds[3]);

/* ---- the consumer's end ---- */
struct ring_reader {
	struct segment head;   /* read-only: the page and the data twice */
	struct segment cursor; /* writable */
	const uint8_t *data;
	uint64_t capacity;
	uint64_t record_max;
	uint64_t position;     /* of the next record */
	uint64_t limit;        /* acquire-loaded copy of published */
	uint64_t released;     /* last value stored in the cursor */
	uint32_t current_size; /* checked size of the record that the caller holds, 0: none */
	enum ring_overflow overflow;
	bool broken;   /* the writer broke the layout */
	int wake_fd;   /* poll it for POLLIN; hangs up when the router is gone */
	uint8_t *copy; /* RING_OVERWRITE: the record is copied here and then proved whole */
	size_t copy_size;
	uint64_t overwritten; /* bytes that were overwritten before they could be read, in all */
	uint64_t events;      /* RING_OVERWRITE: events read or overwritten so far */
	uint64_t lost_events; /* RING_OVERWRITE: the overwritten ones among them */
};

/* Attaches to the descriptors of ring_writer_share; takes ownership of them on success only. A ring
 * is attached to once: the count of lost events starts with it. */
int ring_reader_attach(const int fds[3], struct ring_reader *ret);
void ring_reader_release(struct ring_reader *reader);

/* The part of ring_reader_next that looks at the writer's page, or copies. */
int ring_reader_next_slow(struct ring_reader *reader, const struct record_header **ret);

/* True when the record's sizes hold together and it ends before the reader's limit. `size` and
 * `payload_size` were loaded once by the caller: the bytes themselves may change under a bad
 * writer. */
static inline bool ring_reader_plausible(
	const struct ring_reader *reader, uint32_t size, uint32_t payload_size)
{
	return size >= sizeof(struct record_header) && !(size % RECORD_ALIGN) &&
	       size <= reader->record_max && size <= reader->limit - reader->position &&
	       payload_size <= size - sizeof(struct record_header);
}

/* Hands out the record at `position` in place. Returns 1, or -EBADMSG when it breaks the layout. */
static inline int ring_reader_take(struct ring_reader *reader, const struct record_header **ret)
{
	const struct record_header *record =
		(const void *)(reader->data + (reader->position & (reader->capacity - 1)));
	const uint32_t size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
	const uint32_t payload_size = __atomic_load_n(&record->payload_size, __ATOMIC_RELAXED);

	if (!ring_reader_plausible(reader, size, payload_size))
		return -EBADMSG;
	reader->position += size;
	reader->current_size = size;
	*ret = record;
	return 1;
}

/* The next record when it can be had without a look at the writer's page; false: ask
 * ring_reader_next. For a caller whose own fast case must not pay for the other. */
static inline bool ring_reader_next_fast(
	struct ring_reader *reader, const struct record_header **ret)
{
	return reader->overflow == RING_DROP && reader->position != reader->limit &&
	       reader->position - reader->released < reader->capacity / 8 &&
	       ring_reader_take(reader, ret) > 0;
}

/* The next record, valid until the next call on this reader. Returns 1, 0 (none now), or
 * -EBADMSG (the writer broke the layout: the ring can't be read further),
 * -EOVERFLOW (RING_OVERWRITE: records were overwritten, `lost_events` says how many were events;
 * reading goes on at the oldest whole one). RING_DROP hands out the shared bytes themselves: a
 * caller that does not trust the writer takes sizes from ring_reader_payload_size and loads every
 * other field once. */
static inline int ring_reader_next(struct ring_reader *reader, const struct record_header **ret)
{
	return ring_reader_next_fast(reader, ret) ? 1 : ring_reader_next_slow(reader, ret);
}

/* Payload bytes of the record that ring_reader_next returned last, never more than the record that
 * was checked, whatever the shared bytes say by now. */
static inline uint32_t ring_reader_payload_size(
	const struct ring_reader *reader, const struct record_header *record)
{
	const uint32_t size = __atomic_load_n(&record->payload_size, __ATOMIC_RELAXED);
	const uint32_t most = reader->current_size - (uint32_t)sizeof(*record);

	return size < most ? size : most;
}

/* Tells the writer that everything before the current record may be overwritten. ring_reader_next
 * does it by itself each time an eighth of the ring has been read and when it finds no more. */
void ring_reader_release_read(struct ring_reader *reader);

/* Announces sleep (wake_prepare_sleep) and looks once more. Returns true when the caller may wait
 * for reader->wake_fd to become readable, false when a record came in the meantime. */
bool ring_reader_prepare_sleep(struct ring_reader *reader);

/* After ring_reader_prepare_sleep: whether the router waits for room and has to be told. */
bool ring_reader_is_awaited(const struct ring_reader *reader);

#endif
