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

/* Bytes of a chunk: small enough that two of them stay in the cache of a core. */
static inline uint64_t ring_chunk_size(uint64_t capacity)
{
	uint64_t size = capacity / RING_CHUNKS;

	if (size > RING_CHUNK_GOOD)
		size = RING_CHUNK_GOOD;
	if (size < RING_CHUNK_MIN)
		size = RING_CHUNK_MIN;
	return size < capacity / RING_CHUNKS_MAX ? capacity / RING_CHUNKS_MAX : size;
}

/* Bytes of the largest record that a ring takes. */
static inline uint64_t ring_record_max(uint64_t capacity)
{
	return ring_chunk_size(capacity);
}

/* ---- the router's end ---- */
struct ring_writer {
	/* Where the next record goes, and how far there is room without a break. */
	uint8_t *at, *end;
	uint64_t top;          /* the position of `end` */
	bool past_cache;       /* something was written past the cache (shm/past_cache.h) since the last fence */
	struct segment head;   /* all of SEGMENT_RING: the page and the data twice */
	struct segment cursor; /* SEGMENT_CURSOR, RING_DROP: mapped read-only */
	uint8_t *data;         /* the first of the two mappings of the data */
	uint64_t capacity;
	uint64_t record_max; /* bytes of the largest record */
	uint64_t published; /* last value stored in ring_head.published */
	uint64_t announced; /* `published` when it was last looked whether the consumer sleeps */
	uint64_t consumed;  /* last clamped copy of the consumer's cursor */
	uint64_t oldest;    /* RING_OVERWRITE: first record that is still whole */
	uint64_t oldest_events; /* RING_OVERWRITE: events that began before it */
	uint64_t signalled;     /* wake_needed's memory */
	uint16_t *spare; /* RING_DROP: stack of the chunks that hold nothing, the last returned on
			    top */
	uint32_t spare_count;
	uint64_t returned; /* RING_DROP: the chunks before this position have come back */
	uint64_t columns_serial;
	enum ring_overflow overflow;
	/* RING_OVERWRITE: told of each record that is overwritten unread, while it is still whole; may be
	 * NULL. It must not write to the ring. */
	void (*gone)(void *context, const struct record_header *record);
	void *gone_context;
	int wake_fd; /* signals the consumer */
	int wait_fd; /* what the consumer polls; kept to be shared, never read here */
};

/* Makes both segments and the wake-up. capacity: a power of two between RING_CAPACITY_MIN and
 * RING_CAPACITY_MAX. Returns 0 or -errno. The writer is owned by the caller: ring_writer_release.
 */
int ring_writer_create(size_t capacity, enum ring_overflow overflow, struct ring_writer *ret);
void ring_writer_release(struct ring_writer *writer);

/* The position behind the last record, published or not. */
static inline uint64_t ring_writer_reserved(const struct ring_writer *writer)
{
	return writer->top - (uint64_t)(writer->end - writer->at);
}

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
	uint8_t *record = writer->at;

	if (size > (size_t)(writer->end - record) || size > writer->record_max)
		return ring_writer_reserve_slow(writer, size);
	writer->at = record + size;
	return (struct record_header *)(void *)record;
}

/* RING_OVERWRITE: sees to it that the next records, up to `size` bytes of them, push out nothing. */
void ring_writer_make_room(struct ring_writer *writer, size_t size);

/* Makes all reserved records visible, to a consumer that looks. Whoever wrote one past the cache has set `past_cache`: a
 * fence for each of many rings would have each wait for the cache line of the one before. */
void ring_writer_show(struct ring_writer *writer);
/* Before ring_writer_show: what no record tells of once that is shown. Serial and position are filled in here. */
void ring_writer_owe(struct ring_writer *writer, const struct ring_debt *debt);

/* The columns that are not in use, to be filled in, and made to count. They cost nothing while they are left alone. */
struct ring_columns *ring_writer_columns_begin(struct ring_writer *writer);
void ring_writer_columns_end(struct ring_writer *writer, struct ring_columns *columns);

/* Wakes the consumer if it sleeps and something was made visible since the last call. Before the
 * writer itself sleeps this must follow ring_writer_show. Returns 1 (signalled), 0 (no need) or -errno. */
int ring_writer_wake(struct ring_writer *writer);

/* Both. Returns 0 or -errno. */
int ring_writer_publish(struct ring_writer *writer);

/* Bytes that are visible and that a sleeping consumer was not woken for. */
static inline uint64_t ring_writer_unannounced(const struct ring_writer *writer)
{
	return writer->published - writer->announced;
}

/* Bytes that are published or reserved and not consumed, by the clamped cursor. */
uint64_t ring_writer_used(struct ring_writer *writer);

/* The same for whoever only looks: nothing is taken from the cursor. At most the ring's capacity. */
uint64_t ring_writer_fill(const struct ring_writer *writer);

/* RING_DROP: bytes in the chunk in use and in those that hold nothing, after a look at the cursor.
 * Small records find that much room, up to one that no longer fits at the end of each chunk. */
uint64_t ring_writer_room(struct ring_writer *writer);

/* Says whether the router waits for room. The caller looks at ring_writer_room once more behind it.
 */
void ring_writer_wait(struct ring_writer *writer, bool waits);

/* Says whether the session has a reader, and wakes the consumer to see it. */
void ring_writer_tell_reader(struct ring_writer *writer, bool has_one);

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
	/* RING_DROP: the next record, and how far records can be read without a look at the
	 * writer's page. RING_OVERWRITE: always equal. */
	const uint8_t *at, *end;
	uint64_t top;          /* the position of `end` */
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

/* The position of the next record. */
static inline uint64_t ring_reader_position(const struct ring_reader *reader)
{
	return reader->top - (uint64_t)(reader->end - reader->at);
}

/* True when the record's sizes hold together and it is no larger than `room`. The sizes were loaded
 * once by the caller: the bytes themselves may change under a bad writer. */
static inline bool ring_record_plausible(uint32_t size, uint32_t payload_size, uint64_t room)
{
	return size >= sizeof(struct record_header) && !(size % RECORD_ALIGN) && size <= room &&
	       payload_size <= size - sizeof(struct record_header);
}

/* The next record when it can be had without a look at the writer's page; false: ask
 * ring_reader_next. For a caller whose own fast case must not pay for the other. */
static inline bool ring_reader_next_fast(
	struct ring_reader *reader, const struct record_header **ret)
{
	const struct record_header *record = (const void *)reader->at;
	const size_t room = (size_t)(reader->end - reader->at);
	uint32_t size, payload_size;

	if (room < sizeof(*record))
		return false;
	size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
	payload_size = __atomic_load_n(&record->payload_size, __ATOMIC_RELAXED);
	if (!ring_record_plausible(size, payload_size, room))
		return false;
	reader->at += size;
	reader->current_size = size;
	*ret = record;
	return true;
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
 * does it by itself behind each chunk (RING_OVERWRITE: each record) and when it finds no more. */
void ring_reader_release_read(struct ring_reader *reader);

/* Announces sleep (wake_prepare_sleep) and looks once more. Returns true when the caller may wait
 * for reader->wake_fd to become readable, false when a record came in the meantime. */
bool ring_reader_prepare_sleep(struct ring_reader *reader);

/* After ring_reader_prepare_sleep: whether the router waits for room and has to be told. */
bool ring_reader_is_awaited(const struct ring_reader *reader);

/* The columns of the writer, which is gone; false: it had none. */
bool ring_reader_columns(const struct ring_reader *reader, struct ring_columns *ret);

/* Grows with whatever the writer makes visible. */
uint64_t ring_reader_published(const struct ring_reader *reader);

/* Whether the writer said that the session's reader is dead. */
bool ring_reader_is_readerless(const struct ring_reader *reader);

/* What the writer, which is gone, had not told yet of what is lost; false: nothing. All of the ring has been read. */
bool ring_reader_debt(const struct ring_reader *reader, struct ring_debt *ret);

#endif
