/* The models' constants are the code's. */
#include "tests/shm/model/constants.h"

#include "base/checked.h"
#include "shm/ring_abi.h"
#include "tests/shm/pool_pair.h"

#include <errno.h>

#define SLOTS 16

static void rings_are_as_large(void **state)
{
	const struct pool_entry note = { .kind = POOL_SWEEP };
	struct pool_pair pair;
	uint32_t notes = 0;

	(void)state;
	pool_pair_open(&pair, SLOTS, 0);
	assert_int_equal(pair.writer.filled_capacity, MODEL_FILLED_PER_SLOT * SLOTS);
	assert_int_equal(pair.writer.free_capacity, MODEL_FREE_PER_SLOT * SLOTS);
	while (pool_writer_note(&pair.writer, &note) == 0)
		notes++;
	assert_int_equal(pair.writer.filled_capacity - notes, MODEL_KEPT_PER_SLOT * SLOTS);
	pool_pair_close(&pair);
}

static void places_to_go_on(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(((struct ring_head *)NULL)->resume), MODEL_RESUME_PAIRS);
}

static void debts(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(((struct ring_head *)NULL)->debts), MODEL_DEBTS);
}

/* What takeover.pml calls heir, counted and counted_lost: a reader's pool begins with the counts of the router that it
 * found, which goes on counting there what it tells of another pool's slots, and the next router finds that. */
static void counts_pass_from_pool_to_pool(void **state)
{
	const struct pool_counters heir = { .decoded = 7, .undecodable = 1, .lost_reader = 2 }, told = { .decoded = 9, .lost_reader = 2 };
	struct pool_counters found;
	struct pool_pair pair;

	(void)state;
	assert_int_equal(pool_writer_create(SLOTS, POOL_SLOT_SIZE_MIN, &pair.writer), 0);
	assert_int_equal(pool_writer_carry(&pair.writer, &heir), 0);
	pool_pair_attach(&pair);
	found = pool_reader_counters(&pair.reader);
	assert_true(found.decoded == 7 && found.undecodable == 1 && found.lost_reader == 2);
	(void)pool_pair_publish(&pair, 1);
	pool_reader_count(&pair.reader, &told);
	pool_reader_lost(&pair.reader, 3);
	pool_reader_release(&pair.reader);
	assert_int_equal(pool_writer_republish(&pair.writer), 0);
	pool_pair_attach(&pair);
	found = pool_reader_counters(&pair.reader);
	assert_true(found.decoded == 9 && found.lost_reader == 3);
	(void)pool_pair_receive(&pair);
	pool_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_as_large),
		cmocka_unit_test(places_to_go_on),
		cmocka_unit_test(debts),
		cmocka_unit_test(counts_pass_from_pool_to_pool),
	};

	return cmocka_run_group_tests_name("constants", tests, NULL, NULL);
}
