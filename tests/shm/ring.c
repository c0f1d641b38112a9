#include "shm/ring.h"

#include "shm/wake.h"
#include "tests/shm/ring_pair.h"
#include "tests/support/fault.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#define CAPACITY ((size_t)RING_CAPACITY_MIN)
#define CHUNK    ((size_t)RING_CHUNK_MIN)
#define NEAR_TOP (UINT64_MAX - 3 * CAPACITY / 2 + 1)

static void only_sensible_rings_are_made(void **state)
{
	struct ring_writer writer;

	(void)state;
	assert_int_equal(ring_writer_create(0, RING_DROP, &writer), -EINVAL);
	assert_int_equal(ring_writer_create(CAPACITY / 2, RING_DROP, &writer), -EINVAL);
	assert_int_equal(ring_writer_create(CAPACITY + 8, RING_DROP, &writer), -EINVAL);
	assert_int_equal(
		ring_writer_create(2 * (size_t)RING_CAPACITY_MAX, RING_DROP, &writer), -EINVAL);
	assert_int_equal(ring_writer_create(CAPACITY, (enum ring_overflow)2, &writer), -EINVAL);
	ring_writer_release(NULL);
	ring_reader_release(NULL);
}

static void batches_appear_whole(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	for (uint64_t n = 0; n < 3; n++)
		assert_true(ring_pair_write(&pair, n, 48 + 8 * (uint32_t)n));
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	assert_int_equal(ring_writer_fill(&pair.writer), 48 + 56 + 64);
	assert_int_equal(ring_writer_used(&pair.writer), 48 + 56 + 64);
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	for (uint64_t n = 0; n < 3; n++) {
		assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
		assert_int_equal(record->time, n);
		assert_true(ring_pair_whole(record));
		assert_int_equal(ring_reader_payload_size(&pair.reader, record), 8 * n);
	}
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	assert_int_equal(ring_writer_fill(&pair.writer), 0);
	assert_int_equal(ring_writer_used(&pair.writer), 0);
	ring_pair_close(&pair);
}

/* Many laps with records of all sizes, so that records lie across the end at every alignment. */
static void check_laps(enum ring_overflow overflow, uint64_t start)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t read = 0;

	ring_pair_open(&pair, CAPACITY, overflow, start);
	for (uint64_t n = 0; n < 5000; n++) {
		assert_true(ring_pair_write(&pair, n, ring_pair_size(n, (uint32_t)CAPACITY / 8)));
		if (n % 3)
			continue;
		assert_int_equal(ring_writer_publish(&pair.writer), 0);
		while (ring_reader_next(&pair.reader, &record) == 1) {
			assert_int_equal(record->time, read++);
			assert_true(ring_pair_whole(record));
		}
	}
	assert_int_equal(read, 4999);
	assert_true(ring_writer_reserved(&pair.writer) < start || start == 0);
	ring_pair_close(&pair);
}

static void records_never_wrap(void **state)
{
	(void)state;
	check_laps(RING_DROP, 0);
	check_laps(RING_DROP, NEAR_TOP);
	check_laps(RING_OVERWRITE, 0);
	check_laps(RING_OVERWRITE, NEAR_TOP);
}

static void check_drop(uint64_t start)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t written = 0;

	ring_pair_open(&pair, CAPACITY, RING_DROP, start);
	while (ring_pair_write(&pair, written, 64))
		written++;
	assert_int_equal(written, CAPACITY / 64);
	assert_false(ring_pair_write(&pair, written, 48));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_false(ring_pair_write(&pair, written, 64));
	assert_int_equal(ring_writer_used(&pair.writer), CAPACITY);
	for (uint64_t n = 0; n < CHUNK / 64; n++) {
		assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
		assert_int_equal(record->time, n);
	}
	/* The last one of the chunk is still in use. */
	ring_reader_release_read(&pair.reader);
	assert_false(ring_pair_write(&pair, written, 64));
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	for (uint64_t n = 0; n < CHUNK / 64; n++)
		assert_true(ring_pair_write(&pair, written + n, 64));
	assert_false(ring_pair_write(&pair, 0, 64));
	assert_true(ring_pair_whole(record));
	assert_int_equal(record->time, CHUNK / 64);
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	for (uint64_t n = CHUNK / 64 + 1; n < written + CHUNK / 64; n++) {
		assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
		assert_int_equal(record->time, n);
		assert_true(ring_pair_whole(record));
	}
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	ring_pair_close(&pair);
}

static void drop_keeps_what_is_unread(void **state)
{
	(void)state;
	check_drop(0);
	check_drop(NEAR_TOP);
}

static void the_cursor_moves_by_itself(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	for (uint64_t n = 0; n < CAPACITY / 64; n++)
		assert_true(ring_pair_write(&pair, n, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	for (uint64_t n = 0; n < CHUNK / 64; n++)
		assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(pair.cursor->consumed, 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(pair.cursor->consumed, CHUNK);
	ring_pair_close(&pair);
}

/* However large the ring, who keeps up has it written to in the same two chunks, which stay in the
 * cache. */
static void who_keeps_up_needs_little_memory(void **state)
{
	const size_t capacity = 64 * CAPACITY, chunk = ring_chunk_size(capacity);
	const struct record_header *record;
	const uint8_t *lowest, *highest;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, capacity, RING_DROP, 0);
	lowest = pair.reader.data + capacity;
	highest = pair.reader.data;
	for (uint64_t n = 0; n < 2 * capacity / 1024; n++) {
		assert_true(ring_pair_write(&pair, n, 1024));
		assert_int_equal(ring_writer_publish(&pair.writer), 0);
		/* One record behind. */
		if (n == 0)
			continue;
		assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
		assert_int_equal(record->time, n - 1);
		assert_true(ring_pair_whole(record));
		lowest = (const uint8_t *)record < lowest ? (const uint8_t *)record : lowest;
		highest = (const uint8_t *)record > highest ? (const uint8_t *)record : highest;
	}
	assert_true((size_t)(highest - lowest) < 2 * chunk);
	/* And all of it is there for who doesn't. */
	for (uint64_t n = 0; n < capacity / 1024 - chunk / 1024; n++)
		assert_true(ring_pair_write(&pair, n, 1024));
	ring_pair_close(&pair);
}

static void room_is_what_can_be_written(void **state)
{
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, NEAR_TOP);
	assert_int_equal(ring_writer_room(&pair.writer), CAPACITY);
	assert_true(ring_pair_write(&pair, 0, 64));
	assert_int_equal(ring_writer_room(&pair.writer), CAPACITY - 64);
	/* Does not fit into the rest of the first chunk, which is given up. */
	assert_true(ring_pair_write(&pair, 1, (uint32_t)CHUNK));
	assert_int_equal(ring_writer_room(&pair.writer), 2 * CHUNK);
	for (uint64_t n = 0; n < 2 * CHUNK / 64; n++)
		assert_true(ring_pair_write(&pair, n, 64));
	assert_int_equal(ring_writer_room(&pair.writer), 0);
	assert_false(ring_pair_write(&pair, 0, 48));
	ring_pair_close(&pair);
}

static void too_large_records_are_refused(void **state)
{
	struct ring_pair pair;

	(void)state;
	for (enum ring_overflow overflow = RING_DROP; overflow <= RING_OVERWRITE; overflow++) {
		ring_pair_open(&pair, CAPACITY, overflow, 0);
		assert_null(ring_writer_reserve(&pair.writer, CAPACITY / 4 + 8));
		assert_null(ring_writer_reserve(&pair.writer, SIZE_MAX & ~(size_t)7));
		assert_non_null(ring_writer_reserve(&pair.writer, CAPACITY / 4));
		ring_pair_close(&pair);
	}
}

/* Whatever the consumer writes to its page, the writer overwrites nothing that it had not been told
 * of before, and goes on as soon as the cursor makes sense again. */
static void a_hostile_cursor_gains_nothing(void **state)
{
	static const uint64_t lies[] = { NEAR_TOP - 1, NEAR_TOP - CAPACITY, NEAR_TOP + CAPACITY + 8,
		NEAR_TOP + (UINT64_C(1) << 63), 0, 1 << 20 };
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, NEAR_TOP);
	for (uint64_t n = 0; n < CAPACITY / 64; n++)
		assert_true(ring_pair_write(&pair, n, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		pair.cursor->consumed = lies[i];
		assert_false(ring_pair_write(&pair, 0, 64));
		assert_int_equal(ring_writer_used(&pair.writer), CAPACITY);
	}
	/* Not the whole chunk. */
	pair.cursor->consumed = NEAR_TOP + CHUNK - 8;
	assert_false(ring_pair_write(&pair, 0, 64));
	pair.cursor->consumed = NEAR_TOP + CHUNK;
	for (uint64_t n = 0; n < CHUNK / 64; n++)
		assert_true(ring_pair_write(&pair, 0, 64));
	/* Back again: it had given that up. */
	pair.cursor->consumed = NEAR_TOP;
	assert_false(ring_pair_write(&pair, 0, 64));
	/* Ahead of what is published, though not of what is reserved. */
	pair.cursor->consumed = NEAR_TOP + CAPACITY + 64;
	assert_false(ring_pair_write(&pair, 0, 64));
	ring_pair_close(&pair);
}

static void the_consumer_wakes_only_from_sleep(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	assert_true(ring_pair_write(&pair, 0, 48));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.wake_fd), -EAGAIN);
	/* A record came in the meantime: no sleep. */
	assert_false(ring_reader_prepare_sleep(&pair.reader));
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	assert_true(ring_reader_prepare_sleep(&pair.reader));
	assert_true(ring_pair_write(&pair, 1, 48));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.wake_fd), 0);
	assert_true(ring_pair_write(&pair, 2, 48));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.wake_fd), -EAGAIN);
	ring_pair_close(&pair);
}

static void nobody_writes_to_the_other_side(void **state)
{
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	assert_true(fault_on_write(pair.reader.head.base));
	assert_true(fault_on_write((uint8_t *)pair.reader.head.base + RING_HEAD));
	assert_true(fault_on_write((uint8_t *)pair.reader.head.base + RING_HEAD + CAPACITY));
	assert_int_equal(mprotect(pair.reader.head.base, RING_HEAD, PROT_READ | PROT_WRITE), -1);
	assert_true(fault_on_write(pair.writer.cursor.base));
	assert_false(fault_on_write(pair.cursor));
	assert_false(fault_on_write(pair.head));
	ring_pair_close(&pair);
}

/* Spoils the record at `position` as a bad writer could, and expects the ring to be over for good.
 */
static void check_broken(enum ring_overflow overflow, uint32_t size, uint32_t payload_size)
{
	const struct record_header *record;
	struct record_header *first, whole;
	struct ring_pair pair;

	ring_pair_open(&pair, CAPACITY, overflow, NEAR_TOP);
	first = ring_writer_reserve(&pair.writer, 64);
	ring_pair_fill(first, 0, 64, RECORD_EVENT);
	assert_true(ring_pair_write(&pair, 1, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	whole = *first;
	first->size = size;
	first->payload_size = payload_size;
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	*first = whole;
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	assert_false(ring_reader_prepare_sleep(&pair.reader));
	ring_pair_close(&pair);
}

static void broken_records_end_the_ring(void **state)
{
	(void)state;
	for (enum ring_overflow overflow = RING_DROP; overflow <= RING_OVERWRITE; overflow++) {
		check_broken(overflow, 0, 0);
		check_broken(overflow, 40, 0);
		check_broken(overflow, 63, 0);
		check_broken(overflow, 136, 0);
		check_broken(overflow, UINT32_MAX & ~7U, 0);
		check_broken(overflow, (uint32_t)CAPACITY / 4 + 8, 0);
		check_broken(overflow, 64, 17);
		check_broken(overflow, 64, UINT32_MAX);
	}
}

static void a_broken_counter_ends_the_ring(void **state)
{
	static const uint64_t lies[] = { NEAR_TOP - 8, NEAR_TOP + CAPACITY + 8, 0 };
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		ring_pair_open(&pair, CAPACITY, RING_DROP, NEAR_TOP);
		/* Records that would pass for good ones, wherever the counter leads. */
		for (uint64_t n = 0; n < CAPACITY / 64; n++)
			assert_true(ring_pair_write(&pair, n, 64));
		pair.head->published = lies[i];
		assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
		assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
		ring_pair_close(&pair);
	}
}

/* A chunk that isn't there, and a rest that is passed over where the chunk goes on. */
static void a_broken_order_ends_the_ring(void **state)
{
	const struct record_header *record;
	struct record_header *second;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, NEAR_TOP);
	assert_true(ring_pair_write(&pair, 0, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	pair.head->order[(NEAR_TOP / CHUNK) % (CAPACITY / CHUNK)] = CAPACITY / CHUNK;
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	ring_pair_close(&pair);

	ring_pair_open(&pair, CAPACITY, RING_DROP, NEAR_TOP);
	assert_true(ring_pair_write(&pair, 0, 64));
	second = ring_writer_reserve(&pair.writer, 64);
	ring_pair_fill(second, 1, 64, RECORD_EVENT);
	second->size = 0;
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EBADMSG);
	ring_pair_close(&pair);
}

/* A writer that enlarges payload_size after the check does not lead the consumer outside. */
static void payloads_stay_inside_the_checked_record(void **state)
{
	const struct record_header *record;
	struct record_header *first;
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	first = ring_writer_reserve(&pair.writer, 64);
	ring_pair_fill(first, 0, 64, RECORD_EVENT);
	assert_true(ring_pair_write(&pair, 1, 64));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	first->payload_size = UINT32_MAX;
	first->size = UINT32_MAX;
	assert_int_equal(ring_reader_payload_size(&pair.reader, record), 16);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(record->time, 1);
	ring_pair_close(&pair);
}

/* ---- attaching ---- */

static int attach(const struct ring_writer *writer, void (*spoil)(int fds[3]))
{
	struct ring_reader reader;
	int fds[3], r;

	assert_int_equal(ring_writer_share(writer, fds), 0);
	if (spoil)
		spoil(fds);
	r = ring_reader_attach(fds, &reader);
	if (r == 0) {
		ring_reader_release(&reader);
	} else {
		/* They stayed the caller's. */
		for (int i = 0; i < 3; i++)
			assert_int_equal(close(fds[i]), 0);
	}
	return r;
}

static void swap_ring_and_cursor(int fds[3])
{
	int fd = fds[0];

	fds[0] = fds[1];
	fds[1] = fd;
}

static void replace_wake_up(int fds[3])
{
	assert_true(dup2(fds[1], fds[2]) >= 0);
}

static void attaching_checks_each_field(void **state)
{
	struct ring_writer writer;
	struct ring_head *head;

	(void)state;
	ring_pair_begin_writer(&writer, 2 * CAPACITY, RING_DROP, NEAR_TOP);
	head = writer.head.base;
	assert_int_equal(attach(&writer, NULL), 0);
	assert_int_equal(attach(&writer, swap_ring_and_cursor), -EINVAL);
	assert_int_equal(attach(&writer, replace_wake_up), -EINVAL);
	head->capacity = CAPACITY;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->capacity = 4 * CAPACITY;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->capacity = 2 * CAPACITY - 8;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->capacity = 0;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->capacity = 2 * CAPACITY;
	head->overflow = 2;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->overflow = RING_OVERWRITE;
	assert_int_equal(attach(&writer, NULL), 0);
	head->overflow = RING_DROP;
	head->reserved0 = 1;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->reserved0 = 0;
	head->published = NEAR_TOP - 8;
	assert_int_equal(attach(&writer, NULL), -EINVAL);
	head->published = NEAR_TOP;
	head->segment.version++;
	assert_int_equal(attach(&writer, NULL), -EPROTO);
	head->segment.version--;
	assert_int_equal(attach(&writer, NULL), 0);
	ring_writer_release(&writer);
}

static void a_ring_of_a_dead_router_hangs_up(void **state)
{
	const struct record_header *record;
	struct pollfd p = { .events = POLLIN };
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	assert_true(ring_pair_write(&pair, 0, 48));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	ring_writer_release(&pair.writer);
	p.fd = pair.reader.wake_fd;
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true(p.revents & POLLHUP);
	/* What it had published is still there to be read. */
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	ring_reader_release(&pair.reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_sensible_rings_are_made),
		cmocka_unit_test(batches_appear_whole),
		cmocka_unit_test(records_never_wrap),
		cmocka_unit_test(drop_keeps_what_is_unread),
		cmocka_unit_test(the_cursor_moves_by_itself),
		cmocka_unit_test(who_keeps_up_needs_little_memory),
		cmocka_unit_test(room_is_what_can_be_written),
		cmocka_unit_test(too_large_records_are_refused),
		cmocka_unit_test(a_hostile_cursor_gains_nothing),
		cmocka_unit_test(the_consumer_wakes_only_from_sleep),
		cmocka_unit_test(nobody_writes_to_the_other_side),
		cmocka_unit_test(broken_records_end_the_ring),
		cmocka_unit_test(a_broken_counter_ends_the_ring),
		cmocka_unit_test(a_broken_order_ends_the_ring),
		cmocka_unit_test(payloads_stay_inside_the_checked_record),
		cmocka_unit_test(attaching_checks_each_field),
		cmocka_unit_test(a_ring_of_a_dead_router_hangs_up),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
