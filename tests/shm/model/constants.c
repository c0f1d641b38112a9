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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_as_large),
		cmocka_unit_test(places_to_go_on),
		cmocka_unit_test(debts),
	};

	return cmocka_run_group_tests_name("constants", tests, NULL, NULL);
}
