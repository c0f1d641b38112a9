/* The slot pool's two ends. The reader believes nothing that the router writes: an index that comes
 * back is checked against its own table of owners; a counter is clamped. */
#ifndef TRACEFAN_SHM_POOL_H
#define TRACEFAN_SHM_POOL_H

#include "base/checked.h"
#include "shm/pool_abi.h"
#include "shm/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes that both ends compute from the numbers in pool_head. */
static inline bool pool_sizes_valid(uint32_t slot_count, uint32_t slot_size)
{
	return slot_count && slot_count <= POOL_SLOT_COUNT_MAX && slot_size >= POOL_SLOT_SIZE_MIN &&
	       slot_size <= POOL_SLOT_SIZE_MAX && !(slot_size % POOL_PAGE);
}

static inline size_t pool_slots_offset(uint32_t filled_capacity)
{
	return align_up(POOL_PAGE + (size_t)filled_capacity * sizeof(struct pool_entry), POOL_PAGE);
}

static inline size_t pool_free_size(uint32_t free_capacity)
{
	return align_up(POOL_PAGE + (size_t)free_capacity * sizeof(uint32_t), POOL_PAGE);
}

/* ---- the reader's end ---- */
struct pool_slot_state; /* who owns a slot, and what was published in it */

struct pool_writer {
	struct segment
		pool; /* writable; register slots as io_uring buffers from pool_writer_slot */
	struct segment free; /* mapped read-only here */
	struct pool_slot_state *slots;
	uint32_t *spare; /* stack of the reader's own slots: the last returned is taken first (warm
			    cache) */
	uint32_t spare_count;
	uint32_t *held; /* by CPU, below `counted`: slots that the router owns */
	uint32_t counted;
	uint32_t slot_count, slot_size;
	uint32_t filled_capacity, free_capacity;
	struct pool_entry *entries; /* the filled ring */
	uint8_t *data;              /* the slots */
	uint64_t filled;            /* entries published */
	uint64_t taken;             /* last clamped copy of what the router has read */
	uint64_t freed;             /* entries of the free ring taken back */
	uint64_t sequence;
	uint64_t signalled; /* wake_needed's memory for the router */
	int filled_fd;      /* signals the router */
	int free_fd; /* poll it for POLLIN: the router signals it; wake_clear takes it back */
	int filled_wait_fd; /* the router's ends of the two: kept to be shared with the next router,
			       too */
	int free_signal_fd;
	/* What the router broke: returned indices that were out of range or not the router's, and
	 * looks at a counter that had jumped past the ring. After the latter nothing comes back
	 * until a republish. */
	uint64_t refused;
};

/* Makes both segments and both wake-ups (those need /proc). slot_size is a multiple of POOL_PAGE.
 * Returns 0 or -errno. */
int pool_writer_create(uint32_t slot_count, uint32_t slot_size, struct pool_writer *ret);
void pool_writer_release(struct pool_writer *writer);

/* Takes one of the reader's own slots (first taking back what the router returned); UINT32_MAX when
 * there is none. */
uint32_t pool_writer_take(struct pool_writer *writer);
/* Puts back a slot that was taken and not published. */
void pool_writer_put(struct pool_writer *writer, uint32_t slot);
/* Slots that take would find, returned ones included. */
uint32_t pool_writer_available(struct pool_writer *writer);
/* Keeps count, for the CPUs below `cpus`, of the slots that the router owns. Before the first is
 * published. Returns 0 or -ENOMEM. */
int pool_writer_count(struct pool_writer *writer, uint32_t cpus);
/* How many slots with data of `cpu`, which is counted, the router owns. */
static inline uint32_t pool_writer_held(const struct pool_writer *writer, uint32_t cpu)
{
	return writer->held[cpu];
}
void *pool_writer_slot(const struct pool_writer *writer, uint32_t slot);

/* Publishes a taken slot with `length` bytes of `cpu`: the router owns it from here. There is
 * always room. */
void pool_writer_publish(struct pool_writer *writer, uint32_t slot, uint32_t cpu, uint32_t length);
/* Publishes an entry without a slot (any kind but POOL_DATA; sequence and reserved are filled in
 * here). Returns 0, or -EAGAIN when the filled ring keeps its remaining room for data. */
int pool_writer_note(struct pool_writer *writer, const struct pool_entry *entry);
/* Wakes the router if it sleeps: once per batch. Returns 0 or -errno. */
int pool_writer_wake(struct pool_writer *writer);
/* Announces that the reader will wait for free_fd and looks once more. True: nothing has come back
 * since the last look (take, available), so it may wait. */
bool pool_writer_prepare_sleep(struct pool_writer *writer);

/* A new router, before pool_writer_share: starts both rings anew where the old one can't have
 * written and publishes again, in order, every slot that the old one had not returned
 * (POOL_REPUBLISHED). The old router must be gone. Notes that it had not read are gone with it.
 * Returns 0 or -errno. */
int pool_writer_republish(struct pool_writer *writer);

/* The same counters for the first router of a pool as the last one of another pool left, before pool_writer_share.
 * Returns 0 or -errno. */
int pool_writer_carry(struct pool_writer *writer, const struct pool_counters *counters);

/* Descriptors for a router, duplicates owned by the caller: pool, free, filled_fd, free_fd. 0 or
 * -errno. */
int pool_writer_share(const struct pool_writer *writer, int ret_fds[4]);

/* ---- the router's end ---- */
struct pool_reader {
	struct segment pool; /* read-only */
	struct segment free; /* writable */
	uint32_t slot_count, slot_size;
	uint32_t filled_capacity, free_capacity;
	const struct pool_entry *filled;
	const uint8_t *slots;
	uint64_t taken, limit, freed;
	uint64_t signalled; /* wake_needed's memory for the reader */
	int filled_fd; /* poll it for POLLIN: the reader signals it; wake_clear takes it back */
	int free_fd;   /* signals the reader */
};

/* Attaches to the descriptors of pool_writer_share; takes ownership of them on success only.
 * Resumes at free_head.taken and free_head.freed, which the reader reset for a new router. */
int pool_reader_attach(const int fds[4], struct pool_reader *ret);
void pool_reader_release(struct pool_reader *reader);

/* Copies the next entry to *ret. Returns 1, 0 (none now), -EBADMSG (an entry that breaks the
 * layout). */
int pool_reader_next(struct pool_reader *reader, struct pool_entry *ret);
const void *pool_reader_slot(const struct pool_reader *reader, uint32_t slot);
/* The counters that the last router left; zeroes for the first. */
struct pool_counters pool_reader_counters(const struct pool_reader *reader);
/* Changes the counters that hold now, though no slot goes back: of what was told of another pool's slots. */
void pool_reader_count(struct pool_reader *reader, const struct pool_counters *counters);
/* The same for one of them, at once: what was lost with readers that died has been told. */
void pool_reader_lost(struct pool_reader *reader, uint64_t lost_reader);
/* Gives `count` slots back together with the counters that include what they held (`freed` is
 * filled in here): both are visible at once, or neither. */
void pool_reader_return_all(struct pool_reader *reader, const uint32_t *slots, uint32_t count,
	const struct pool_counters *counters);
/* Gives a slot back; visible at once. */
void pool_reader_return(struct pool_reader *reader, uint32_t slot);
/* Wakes the reader if it waits for slots: once per batch. Returns 0 or -errno. */
int pool_reader_wake(struct pool_reader *reader);
/* Announces that the router will wait for filled_fd and looks once more. True: it may wait. */
bool pool_reader_prepare_sleep(struct pool_reader *reader);

#endif
