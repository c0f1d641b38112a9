/* Near names: distances, and which names are worth showing. */
#include "consumers/client/near.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned int distance(const char *a, const char *b, unsigned int limit)
{
	return near_distance(a, strlen(a), b, strlen(b), limit);
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int limit, distance;
	} rows[] = {
		{ "", "", 3, 0 }, { "a", "", 3, 1 }, { "", "abc", 3, 3 }, { "abc", "abc", 3, 0 },
		{ "abc", "axc", 3, 1 }, { "abc", "acb", 3, 1 }, { "abc", "abcd", 3, 1 }, { "kitten", "sitting", 3, 3 },
		{ "kitten", "sitting", 2, 3 }, { "abcdefgh", "zyxwvuts", 4, 5 }, { "abcd", "badc", 4, 2 },
	};
	char longest[NEAR_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(distance(rows[i].a, rows[i].b, rows[i].limit), rows[i].distance);
		assert_int_equal(distance(rows[i].b, rows[i].a, rows[i].limit), rows[i].distance);
	}
	memset(longest, 'x', sizeof(longest));
	longest[NEAR_NAME_MAX] = '\0';
	assert_int_equal(distance(longest, longest, 8), 9);
	longest[NEAR_NAME_MAX - 1] = '\0';
	assert_int_equal(distance(longest, longest, 8), 0);
}

static const char *offer(const char *wanted, const char *const *names, size_t count)
{
	static char arg_text[512];
	struct near near;

	near_init(&near, wanted);
	for (size_t i = 0; i < count; i++)
		near_offer(&near, names[i]);
	return near_text(&near, arg_text, sizeof(arg_text));
}

static void the_nearest_are_shown_in_order(void **state)
{
	static const char *const names[] = {
		"sched:sched_wakeup", "sched:sched_switch", "sched:sched_swap", "irq:softirq_entry", "sched:sched_swtch",
		"sched:sched_switch", "",
	};

	(void)state;
	assert_string_equal(offer("sched:sched_switch", names, ARRAY_SIZE(names)),
		"; did you mean sched:sched_switch, sched:sched_swtch or sched:sched_swap?");
	assert_string_equal(offer("sched:sched_swich", names, 2), "; did you mean sched:sched_switch?");
	assert_string_equal(offer("zzz", names, ARRAY_SIZE(names)), "");
}

static void a_part_of_a_name_finds_it(void **state)
{
	static const char *const names[] = { "do_sys_openat2", "vfs_read" };

	(void)state;
	assert_string_equal(offer("openat", names, 2), "; did you mean do_sys_openat2?");
	/* Three letters are part of too many. */
	assert_string_equal(offer("ope", names, 2), "");
}

static void a_text_that_is_too_small(void **state)
{
	struct near near;
	char text[10];

	(void)state;
	near_init(&near, "abcd");
	near_offer(&near, "abce");
	assert_int_equal(strlen(near_text(&near, text, sizeof(text))), sizeof(text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances), cmocka_unit_test(the_nearest_are_shown_in_order),
		cmocka_unit_test(a_part_of_a_name_finds_it), cmocka_unit_test(a_text_that_is_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
