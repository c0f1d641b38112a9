/* Numbers by hand against printf. */
#include "consumers/cli/number.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *expected, const char *buffer, const char *end)
{
	assert_int_equal(end - buffer, strlen(expected));
	assert_memory_equal(expected, buffer, strlen(expected));
}

static void check_all_forms(uint64_t value)
{
	char expected[64], buffer[NUMBER_SIZE_MAX];

	(void)snprintf(expected, sizeof(expected), "%" PRIu64, value);
	check(expected, buffer, number_unsigned(buffer, value));
	assert_int_equal(number_width(value), strlen(expected));
	(void)snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)value);
	check(expected, buffer, number_signed(buffer, (int64_t)value));
	(void)snprintf(expected, sizeof(expected), "%" PRIx64, value);
	check(expected, buffer, number_hex(buffer, value));
	(void)snprintf(expected, sizeof(expected), "%" PRIo64, value);
	check(expected, buffer, number_octal(buffer, value));
	(void)snprintf(expected, sizeof(expected), "%09" PRIu64, value % 1000000000);
	check(expected, buffer, number_padded(buffer, value, 9));
}

static void numbers_of_every_length(void **state)
{
	uint64_t power = 1;

	(void)state;
	check_all_forms(0);
	check_all_forms(INT64_MAX);
	check_all_forms((uint64_t)INT64_MIN);
	check_all_forms(UINT64_MAX);
	for (int i = 0; i < 20; i++, power *= 10) {
		check_all_forms(power - 1);
		check_all_forms(power);
		check_all_forms(0 - power);
	}
	for (int i = 0; i < 64; i++)
		check_all_forms(0x9e3779b97f4a7c15ULL >> i);
}

static void narrow_fields_keep_their_sign(void **state)
{
	(void)state;
	assert_int_equal(number_extend(0xff, 1), -1);
	assert_int_equal(number_extend(0x7f, 1), 127);
	assert_int_equal(number_extend(0xffffffff8000ULL, 2), INT16_MIN);
	assert_int_equal(number_extend(0xfffffffeULL, 4), -2);
	assert_int_equal(number_extend(UINT64_MAX, 8), -1);
	assert_int_equal(number_cut(UINT64_MAX, 1), 0xff);
	assert_int_equal(number_cut(UINT64_MAX, 4), UINT32_MAX);
	assert_true(number_cut(UINT64_MAX, 8) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_length),
		cmocka_unit_test(narrow_fields_keep_their_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
