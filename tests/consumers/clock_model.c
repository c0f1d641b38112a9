/* Wall time after a suspend and after the clock was set, for events in time and late ones. */
#include "consumers/client/clock_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define EPOCH  (UINT64_C(1700000000) * SECOND)
#define KEPT   ((uint64_t)CLOCK_MODEL_READINGS)

static void none_yet(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	assert_int_equal(clock_model_wall(&model, 5), 0);
}

static void a_suspend_of_a_minute(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	clock_model_add(&model, 100 * SECOND, EPOCH, 50);
	clock_model_add(&model, 101 * SECOND, EPOCH + SECOND, 50);
	clock_model_add(&model, 102 * SECOND, EPOCH + 62 * SECOND, 50);
	assert_int_equal(clock_model_wall(&model, 102 * SECOND + 5), EPOCH + 62 * SECOND + 5);
	assert_int_equal(clock_model_wall(&model, 101 * SECOND + 5), EPOCH + SECOND + 5);
	/* Before the first reading, the first holds; also where the sum is before it. */
	assert_int_equal(clock_model_wall(&model, 99 * SECOND), EPOCH - SECOND);
	assert_int_equal(clock_model_wall(&model, 0), EPOCH - 100 * SECOND);
}

static void the_clock_is_set_back(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	clock_model_add(&model, 100 * SECOND, EPOCH, 50);
	clock_model_add(&model, 101 * SECOND, EPOCH - 4 * SECOND, 50);
	assert_int_equal(clock_model_wall(&model, 101 * SECOND), EPOCH - 4 * SECOND);
	assert_int_equal(clock_model_wall(&model, 100 * SECOND), EPOCH);
	/* An older one that comes late changes nothing. */
	clock_model_add(&model, 100 * SECOND, EPOCH + 1000 * SECOND, 50);
	assert_int_equal(clock_model_wall(&model, 101 * SECOND), EPOCH - 4 * SECOND);
}

static void real_time_before_monotonic_time(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	clock_model_add(&model, 100 * SECOND, SECOND, 50);
	assert_int_equal(clock_model_wall(&model, 103 * SECOND), 4 * SECOND);
}

static void a_sloppy_reading(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	clock_model_add(&model, 100 * SECOND, EPOCH, 50);
	/* The process was interrupted between the two clocks: 3 ms off, and it says 4 ms. */
	clock_model_add(&model, 101 * SECOND, EPOCH + SECOND + 3000000, 4000000);
	assert_int_equal(clock_model_wall(&model, 101 * SECOND), EPOCH + SECOND);
	/* As sloppy, but further off than its error allows: the clock was set. */
	clock_model_add(&model, 102 * SECOND, EPOCH + 7 * SECOND, 4000000);
	assert_int_equal(clock_model_wall(&model, 102 * SECOND), EPOCH + 7 * SECOND);
	/* A better one refines it. */
	clock_model_add(&model, 103 * SECOND, EPOCH + 8 * SECOND + 1000, 50);
	assert_int_equal(clock_model_wall(&model, 103 * SECOND), EPOCH + 8 * SECOND + 1000);
}

static void more_readings_than_are_kept(void **state)
{
	struct clock_model model = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 3 * KEPT; i++)
		clock_model_add(&model, i * SECOND, EPOCH + 2 * i * SECOND, 50);
	for (uint64_t i = 2 * KEPT; i < 3 * KEPT; i++)
		assert_int_equal(clock_model_wall(&model, i * SECOND + 7), EPOCH + 2 * i * SECOND + 7);
	/* What held then is forgotten: the oldest that is known stands in. */
	assert_int_equal(clock_model_wall(&model, SECOND), EPOCH + SECOND + 2 * KEPT * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_yet), cmocka_unit_test(a_suspend_of_a_minute),
		cmocka_unit_test(the_clock_is_set_back), cmocka_unit_test(real_time_before_monotonic_time),
		cmocka_unit_test(a_sloppy_reading), cmocka_unit_test(more_readings_than_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
