#include "shm/pool.h"

#include "shm/wake.h"
#include "tests/shm/pool_pair.h"
#include "tests/support/fault.h"

#include <errno.h>
#include <sys/mman.h>

#define SLOTS    8U
#define NEAR_TOP (UINT64_MAX - 19)

static void only_sensible_pools_are_made(void **state)
{
	struct pool_writer writer;

	(void)state;
	assert_int_equal(pool_writer_create(0, 4096, &writer), -EINVAL);
	assert_int_equal(pool_writer_create(POOL_SLOT_COUNT_MAX + 1, 4096, &writer), -EINVAL);
	assert_int_equal(pool_writer_create(8, 2048, &writer), -EINVAL);
	assert_int_equal(pool_writer_create(8, 4096 + 8, &writer), -EINVAL);
	assert_int_equal(pool_writer_create(8, 2 * POOL_SLOT_SIZE_MAX, &writer), -EINVAL);
	pool_writer_release(NULL);
	pool_reader_release(NULL);
	/* A count that is no power of two has rings that are. */
	assert_int_equal(pool_writer_create(5, 8192, &writer), 0);
	assert_int_equal(writer.filled_capacity, 32);
	assert_int_equal(writer.free_capacity, 8);
	assert_int_equal(pool_writer_available(&writer), 5);
	pool_writer_release(&writer);
}

static void slots_go_round(void **state)
{
	struct pool_entry entry;
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	assert_int_equal(pool_reader_next(&pair.reader, &entry), 0);
	for (uint32_t n = 1; n <= 10 * SLOTS; n++) {
		uint32_t slot = pool_pair_publish(&pair, n);

		assert_int_equal(pool_reader_next(&pair.reader, &entry), 1);
		assert_int_equal(entry.kind, POOL_DATA);
		assert_int_equal(entry.slot, slot);
		assert_int_equal(entry.cpu, 3);
		assert_int_equal(entry.length, n);
		assert_int_equal(entry.sequence, n);
		assert_int_equal(entry.flags, 0);
		assert_int_equal(((const uint8_t *)pool_reader_slot(&pair.reader, slot))[4095], n);
		pool_reader_return(&pair.reader, slot);
	}
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS);
	assert_int_equal(pair.writer.refused, 0);
	assert_true(pair.reader.taken < NEAR_TOP);
	pool_pair_close(&pair);
}

static void the_last_returned_is_taken_first(void **state)
{
	struct pool_pair pair;
	uint32_t a, b, c;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	a = pool_pair_publish(&pair, 1);
	b = pool_pair_publish(&pair, 2);
	c = pool_pair_publish(&pair, 3);
	for (int i = 0; i < 3; i++)
		(void)pool_pair_receive(&pair);
	pool_reader_return(&pair.reader, c);
	pool_reader_return(&pair.reader, a);
	assert_int_equal(pool_writer_take(&pair.writer), a);
	pool_reader_return(&pair.reader, b);
	assert_int_equal(pool_writer_take(&pair.writer), b);
	assert_int_equal(pool_writer_take(&pair.writer), c);
	pool_writer_put(&pair.writer, a);
	assert_int_equal(pool_writer_take(&pair.writer), a);
	pool_pair_close(&pair);
}

static void what_the_router_holds_is_counted(void **state)
{
	struct pool_pair pair;
	uint32_t slot;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	assert_int_equal(pool_writer_count(&pair.writer, 4), 0);
	assert_int_equal(pool_writer_held(&pair.writer, 3), 0);
	slot = pool_pair_publish(&pair, 1);
	(void)pool_pair_publish(&pair, 2);
	assert_int_equal(pool_writer_held(&pair.writer, 3), 2);
	assert_int_equal(pool_writer_held(&pair.writer, 2), 0);
	pool_reader_return(&pair.reader, slot);
	/* A doubled index is nobody's. */
	pool_reader_return(&pair.reader, slot);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pool_writer_held(&pair.writer, 3), 1);
	pool_pair_close(&pair);
}

static void an_empty_pool_gives_nothing(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	for (uint32_t i = 0; i < SLOTS; i++)
		(void)pool_pair_publish(&pair, i);
	assert_int_equal(pool_writer_take(&pair.writer), UINT32_MAX);
	assert_int_equal(pool_writer_available(&pair.writer), 0);
	pool_reader_return(&pair.reader, pool_pair_receive(&pair));
	assert_int_equal(pool_writer_available(&pair.writer), 1);
	pool_pair_close(&pair);
}

static void notes_leave_room_for_data(void **state)
{
	const struct pool_entry note = {
		.kind = POOL_SWEEP, .time = 77, .sequence = 99, .reserved = 1
	};
	struct pool_entry entry;
	struct pool_pair pair;
	int notes = 0, data = 0;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	(void)pool_pair_publish(&pair, 0);
	while (pool_writer_note(&pair.writer, &note) == 0)
		notes++;
	assert_int_equal(notes, 3 * SLOTS - 1);
	while (pool_writer_available(&pair.writer)) {
		(void)pool_pair_publish(&pair, 1);
		assert_int_equal(pool_writer_note(&pair.writer, &note), -EAGAIN);
	}
	for (notes = data = 0; pool_reader_next(&pair.reader, &entry) == 1;) {
		if (entry.kind == POOL_DATA) {
			data++;
			continue;
		}
		notes++;
		assert_int_equal(entry.kind, POOL_SWEEP);
		assert_int_equal(entry.time, 77);
		/* Which data it follows. */
		assert_int_equal(entry.sequence, 1);
		assert_int_equal(entry.reserved, 0);
	}
	assert_int_equal(data, SLOTS);
	assert_int_equal(notes, 3 * SLOTS - 1);
	assert_int_equal(pool_writer_note(&pair.writer, &note), 0);
	pool_pair_close(&pair);
}

/* ---- a hostile router ---- */

static void hostile_indices_are_refused(void **state)
{
	struct pool_pair pair;
	uint32_t taken, published;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	taken = pool_writer_take(&pair.writer);
	published = pool_pair_publish(&pair, 1);
	pool_reader_return(&pair.reader, SLOTS);
	pool_reader_return(&pair.reader, UINT32_MAX);
	/* Being filled at this moment: reader's own. */
	pool_reader_return(&pair.reader, taken);
	/* Spare. */
	pool_reader_return(&pair.reader, SLOTS - 1);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 2);
	assert_int_equal(pair.writer.refused, 4);
	/* Once rightly, then twice more. */
	for (int i = 0; i < 3; i++)
		pool_reader_return(&pair.reader, published);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pair.writer.refused, 6);
	pool_pair_close(&pair);
}

/* A counter that jumps would make us read the same entries over and over. */
static void a_jump_of_the_counter_is_refused(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	(void)pool_pair_publish(&pair, 1);
	pair.free_head->freed = NEAR_TOP + SLOTS + 1;
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pair.writer.refused, 1);
	pair.free_head->freed = NEAR_TOP - 1;
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pair.writer.refused, 2);
	assert_int_equal(pair.writer.freed, NEAR_TOP);
	/* Within the ring, but with nothing behind it. */
	for (uint32_t i = 0; i < SLOTS; i++)
		pair.free_ring[i] = UINT32_MAX;
	pair.free_head->freed = NEAR_TOP + SLOTS;
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pair.writer.refused, 2 + SLOTS);
	pool_pair_close(&pair);
}

static void a_hostile_position_is_clamped(void **state)
{
	const struct pool_entry note = { .kind = POOL_FLUSH };
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	while (pool_writer_note(&pair.writer, &note) == 0)
		continue;
	pair.free_head->taken = pair.writer.filled + 1;
	assert_int_equal(pool_writer_note(&pair.writer, &note), -EAGAIN);
	pair.free_head->taken = NEAR_TOP - 1;
	assert_int_equal(pool_writer_note(&pair.writer, &note), -EAGAIN);
	pair.free_head->taken = NEAR_TOP + 2;
	assert_int_equal(pool_writer_note(&pair.writer, &note), 0);
	assert_int_equal(pool_writer_note(&pair.writer, &note), 0);
	pair.free_head->taken = NEAR_TOP;
	assert_int_equal(pool_writer_note(&pair.writer, &note), -EAGAIN);
	pool_pair_close(&pair);
}

static void nobody_writes_to_the_other_side(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	assert_true(fault_on_write(pair.reader.pool.base));
	assert_true(fault_on_write(pair.reader.filled));
	assert_true(fault_on_write(pair.reader.slots));
	assert_int_equal(mprotect(pair.reader.pool.base, POOL_PAGE, PROT_READ | PROT_WRITE), -1);
	assert_true(fault_on_write(pair.writer.free.base));
	assert_true(fault_on_write((uint8_t *)pair.writer.free.base + POOL_PAGE));
	assert_false(fault_on_write(pool_writer_slot(&pair.writer, 0)));
	assert_false(fault_on_write(pair.free_head));
	pool_pair_close(&pair);
}

/* ---- the router's checks ---- */

static void check_entry(struct pool_entry spoilt)
{
	struct pool_entry entry;
	struct pool_pair pair;

	pool_pair_open(&pair, SLOTS, 0);
	(void)pool_pair_publish(&pair, 1);
	pair.writer.entries[0] = spoilt;
	assert_int_equal(pool_reader_next(&pair.reader, &entry), -EBADMSG);
	assert_int_equal(pair.free_head->taken, 0);
	pool_pair_close(&pair);
}

static void broken_entries_are_refused(void **state)
{
	struct pool_entry entry;
	struct pool_pair pair;
	struct pool_head *head;

	(void)state;
	check_entry((struct pool_entry){ .kind = 0 });
	check_entry((struct pool_entry){ .kind = POOL_CLEARED + 1 });
	check_entry((struct pool_entry){ .kind = POOL_DATA, .slot = SLOTS });
	check_entry((struct pool_entry){ .kind = POOL_DATA, .length = POOL_SLOT_SIZE_MIN + 1 });
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	head = pair.writer.pool.base;
	head->filled = NEAR_TOP + 4 * (uint64_t)SLOTS + 1;
	assert_int_equal(pool_reader_next(&pair.reader, &entry), -EBADMSG);
	assert_int_equal(pool_reader_next(&pair.reader, &entry), -EBADMSG);
	head->filled = NEAR_TOP - 1;
	pair.reader.limit = NEAR_TOP;
	assert_int_equal(pool_reader_next(&pair.reader, &entry), -EBADMSG);
	pool_pair_close(&pair);
}

static int attach(const struct pool_writer *writer)
{
	struct pool_reader reader;
	int fds[4], r;

	assert_int_equal(pool_writer_share(writer, fds), 0);
	r = pool_reader_attach(fds, &reader);
	if (r == 0)
		pool_reader_release(&reader);
	else
		for (int i = 0; i < 4; i++)
			assert_int_equal(close(fds[i]), 0);
	return r;
}

static void attaching_checks_each_field(void **state)
{
	struct pool_writer writer;
	struct pool_head *head, good;
	int fds[4];

	(void)state;
	assert_int_equal(pool_writer_create(SLOTS, 8192, &writer), 0);
	head = writer.pool.base;
	good = *head;
	assert_int_equal(attach(&writer), 0);
#define CHECK_SPOILT(member, value)                                                                \
	do {                                                                                       \
		head->member = (value);                                                            \
		assert_int_equal(attach(&writer), -EINVAL);                                        \
		*head = good;                                                                      \
	} while (0)
	CHECK_SPOILT(slot_size, 0);
	CHECK_SPOILT(slot_size, 4096 + 64);
	CHECK_SPOILT(slot_size, 16384);
	CHECK_SPOILT(slot_size, 2 * POOL_SLOT_SIZE_MAX);
	CHECK_SPOILT(slot_count, 0);
	CHECK_SPOILT(slot_count, SLOTS + 1);
	CHECK_SPOILT(slot_count, UINT32_MAX);
	CHECK_SPOILT(filled_capacity, 2 * SLOTS);
	CHECK_SPOILT(filled_capacity, 4 * SLOTS + 1);
	CHECK_SPOILT(filled_capacity, 1U << 31);
	CHECK_SPOILT(free_capacity, SLOTS / 2);
	CHECK_SPOILT(free_capacity, SLOTS + 1);
	CHECK_SPOILT(free_capacity, 1U << 31);
	CHECK_SPOILT(filled_offset, 0);
	CHECK_SPOILT(filled_offset, (uint64_t)2 * POOL_PAGE);
	CHECK_SPOILT(slots_offset, 0);
	CHECK_SPOILT(slots_offset, good.slots_offset + 8);
	CHECK_SPOILT(slots_offset, good.slots_offset + POOL_PAGE);
	CHECK_SPOILT(slots_offset, UINT64_MAX - POOL_PAGE + 1);
	CHECK_SPOILT(segment.magic, 1);
#undef CHECK_SPOILT
	assert_int_equal(attach(&writer), 0);
	/* Segments where the ends of the wake-ups belong. */
	assert_int_equal(pool_writer_share(&writer, fds), 0);
	assert_int_equal(dup2(fds[0], fds[3]), fds[3]);
	assert_int_equal(pool_reader_attach(fds, &(struct pool_reader){ 0 }), -EINVAL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(close(fds[i]), 0);
	pool_writer_release(&writer);
}

/* ---- sleeping ---- */

static void the_router_wakes_only_from_sleep(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	(void)pool_pair_publish(&pair, 1);
	assert_int_equal(pool_writer_wake(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.filled_fd), -EAGAIN);
	assert_false(pool_reader_prepare_sleep(&pair.reader));
	(void)pool_pair_receive(&pair);
	assert_true(pool_reader_prepare_sleep(&pair.reader));
	(void)pool_pair_publish(&pair, 1);
	assert_int_equal(pool_writer_wake(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.filled_fd), 0);
	assert_int_equal(pool_writer_wake(&pair.writer), 0);
	assert_int_equal(wake_clear(pair.reader.filled_fd), -EAGAIN);
	pool_pair_close(&pair);
}

static void the_reader_wakes_when_slots_come_back(void **state)
{
	struct pool_pair pair;
	uint32_t slot;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	slot = pool_pair_publish(&pair, 1);
	(void)pool_pair_receive(&pair);
	pool_reader_return(&pair.reader, slot);
	assert_int_equal(pool_reader_wake(&pair.reader), 0);
	assert_int_equal(wake_clear(pair.writer.free_fd), -EAGAIN);
	/* It came back since the last look. */
	assert_false(pool_writer_prepare_sleep(&pair.writer));
	assert_true(pool_writer_prepare_sleep(&pair.writer));
	slot = pool_pair_publish(&pair, 1);
	pool_reader_return(&pair.reader, slot);
	assert_int_equal(pool_reader_wake(&pair.reader), 0);
	assert_int_equal(wake_clear(pair.writer.free_fd), 0);
	pool_pair_close(&pair);
}

static void a_dead_router_does_no_harm(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	assert_true(pool_reader_prepare_sleep(&pair.reader));
	pool_reader_release(&pair.reader);
	(void)pool_pair_publish(&pair, 1);
	assert_int_equal(pool_writer_wake(&pair.writer), 0);
	pool_pair_close(&pair);
}

static void a_dead_reader_does_no_harm(void **state)
{
	struct pool_pair pair;
	uint32_t slot;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	slot = pool_pair_publish(&pair, 9);
	assert_true(pool_writer_prepare_sleep(&pair.writer));
	pool_writer_release(&pair.writer);
	assert_int_equal(pool_pair_receive(&pair), slot);
	assert_int_equal(*(const uint8_t *)pool_reader_slot(&pair.reader, slot), 9);
	pool_reader_return(&pair.reader, slot);
	assert_int_equal(pool_reader_wake(&pair.reader), 0);
	assert_true(pool_reader_prepare_sleep(&pair.reader));
	assert_int_equal(wake_clear(pair.reader.filled_fd), -EAGAIN);
	pool_reader_release(&pair.reader);
}

/* ---- a new router ---- */

static void check_republish(uint64_t start)
{
	struct pool_entry entry;
	struct pool_pair pair;
	uint32_t slots[SLOTS];

	pool_pair_open(&pair, SLOTS, start);
	/* Slots that aren't taken in the order of their numbers. */
	for (uint32_t i = 0; i < SLOTS; i++)
		slots[i] = pool_writer_take(&pair.writer);
	for (uint32_t i = 0; i < SLOTS; i++)
		pool_writer_put(&pair.writer, slots[i ^ 3]);
	for (uint32_t i = 0; i < 6; i++)
		slots[i] = pool_pair_publish(&pair, 10 + i);
	/* The old router had read four and returned two, not in order. */
	for (int i = 0; i < 4; i++)
		(void)pool_pair_receive(&pair);
	pool_reader_return(&pair.reader, slots[2]);
	pool_reader_return(&pair.reader, slots[0]);
	pool_reader_release(&pair.reader);

	assert_int_equal(pool_writer_republish(&pair.writer), 0);
	pool_pair_attach(&pair);
	for (uint32_t i = 0; i < 6; i++) {
		if (i == 0 || i == 2)
			continue;
		assert_int_equal(pool_reader_next(&pair.reader, &entry), 1);
		assert_int_equal(entry.slot, slots[i]);
		assert_int_equal(entry.sequence, 1 + i);
		assert_int_equal(entry.cpu, 3);
		assert_int_equal(entry.length, 10 + i);
		assert_int_equal(entry.flags, POOL_REPUBLISHED);
	}
	assert_int_equal(pool_reader_next(&pair.reader, &entry), 0);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 4);
	(void)pool_pair_publish(&pair, 1);
	assert_int_equal(pool_reader_next(&pair.reader, &entry), 1);
	assert_int_equal(entry.sequence, 7);
	assert_int_equal(entry.flags, 0);
	for (uint32_t i = 3; i < 6; i++)
		pool_reader_return(&pair.reader, slots[i]);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 2);
	assert_int_equal(pair.writer.refused, 0);
	pool_pair_close(&pair);
}

static void a_new_router_resumes(void **state)
{
	(void)state;
	check_republish(0);
	check_republish(NEAR_TOP);
}

/* Whoever still holds the old router's mapping talks to nobody. */
static void the_old_router_has_no_say(void **state)
{
	struct pool_pair pair;
	struct pool_reader old;
	uint32_t slot;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	slot = pool_pair_publish(&pair, 1);
	old = pair.reader;
	assert_int_equal(pool_writer_republish(&pair.writer), 0);
	pool_pair_attach(&pair);
	pool_reader_return(&old, slot);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	pool_reader_return(&old, 12345);
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS - 1);
	assert_int_equal(pair.writer.refused, 0);
	pool_reader_release(&old);
	pool_pair_close(&pair);
}

/* After nonsense a new router begins with a clean slate. */
static void a_broken_counter_is_left_behind(void **state)
{
	struct pool_pair pair;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		(void)pool_pair_publish(&pair, i);
	pair.free_head->freed = 1 << 20;
	pair.free_head->taken = 1 << 20;
	assert_int_equal(pool_writer_available(&pair.writer), 0);
	pool_reader_release(&pair.reader);
	assert_int_equal(pool_writer_republish(&pair.writer), 0);
	pool_pair_attach(&pair);
	for (uint32_t i = 0; i < SLOTS; i++)
		pool_reader_return(&pair.reader, pool_pair_receive(&pair));
	assert_int_equal(pool_writer_available(&pair.writer), SLOTS);
	pool_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_sensible_pools_are_made),
		cmocka_unit_test(slots_go_round),
		cmocka_unit_test(the_last_returned_is_taken_first),
		cmocka_unit_test(what_the_router_holds_is_counted),
		cmocka_unit_test(an_empty_pool_gives_nothing),
		cmocka_unit_test(notes_leave_room_for_data),
		cmocka_unit_test(hostile_indices_are_refused),
		cmocka_unit_test(a_jump_of_the_counter_is_refused),
		cmocka_unit_test(a_hostile_position_is_clamped),
		cmocka_unit_test(nobody_writes_to_the_other_side),
		cmocka_unit_test(broken_entries_are_refused),
		cmocka_unit_test(attaching_checks_each_field),
		cmocka_unit_test(the_router_wakes_only_from_sleep),
		cmocka_unit_test(the_reader_wakes_when_slots_come_back),
		cmocka_unit_test(a_dead_router_does_no_harm),
		cmocka_unit_test(a_dead_reader_does_no_harm),
		cmocka_unit_test(a_new_router_resumes),
		cmocka_unit_test(the_old_router_has_no_say),
		cmocka_unit_test(a_broken_counter_is_left_behind),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
