#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void powers_of_two(void **state)
{
	(void)state;
	assert_false(is_power_of_two(0));
	assert_true(is_power_of_two(1));
	assert_true(is_power_of_two(UINT64_C(1) << 63));
	assert_false(is_power_of_two(3));
	assert_false(is_power_of_two(UINT64_MAX));
}

static void alignment(void **state)
{
	(void)state;
	assert_int_equal(align_up(0, 8), 0);
	assert_int_equal(align_up(1, 8), 8);
	assert_int_equal(align_up(8, 8), 8);
	assert_int_equal(align_up((UINT64_C(1) << 40) + 1, 4096), (UINT64_C(1) << 40) + 4096);
}

/* The sums that would wrap are the ones a hostile peer sends. */
static void ranges(void **state)
{
	(void)state;
	assert_true(range_inside(0, 0, 0));
	assert_true(range_inside(10, 0, 10));
	assert_true(range_inside(2, 8, 10));
	assert_false(range_inside(2, 9, 10));
	assert_false(range_inside(11, 0, 10));
	assert_false(range_inside(8, UINT64_MAX, 10));
	assert_false(range_inside(UINT64_MAX, 8, 10));
	assert_true(range_inside(UINT64_MAX, 0, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(powers_of_two),
		cmocka_unit_test(alignment),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
