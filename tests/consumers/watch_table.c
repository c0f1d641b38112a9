/* The observers' table: bounded, forgets the oldest, releases each once. */
#include "consumers/watch/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct item {
	struct table_entry entry;
	int *released;
};

static void item_release(struct table_entry *entry)
{
	(*((struct item *)entry)->released)++;
	free(entry);
}

static void put(struct table *table, uint64_t key, int *released)
{
	struct item *item = calloc(1, sizeof(*item));

	assert_non_null(item);
	item->released = released;
	table_put(table, key, &item->entry);
}

static void the_oldest_goes(void **state)
{
	struct table table;
	int released = 0;

	(void)state;
	assert_int_equal(table_init(&table, 100, item_release), 0);
	for (uint64_t key = 0; key < 250; key++)
		put(&table, key * 0x100000000ULL, &released);
	assert_int_equal(released, 150);
	assert_int_equal(table.count, 100);
	for (uint64_t key = 0; key < 250; key++)
		assert_int_equal(table_find(&table, key * 0x100000000ULL) != NULL, key >= 150);
	table_free(&table);
	assert_int_equal(released, 250);
}

static void one_of_a_key(void **state)
{
	struct table table;
	int first = 0, second = 0, other = 0;

	(void)state;
	assert_int_equal(table_init(&table, 2, item_release), 0);
	put(&table, 7, &first);
	put(&table, 8, &other);
	/* The same key takes no other's room, and is the newest again. */
	put(&table, 7, &second);
	assert_int_equal(first, 1);
	assert_int_equal(other, 0);
	put(&table, 9, &other);
	assert_null(table_find(&table, 8));
	assert_non_null(table_find(&table, 7));
	table_remove(&table, 7);
	table_remove(&table, 7);
	assert_int_equal(second, 1);
	assert_null(table_find(&table, 7));
	table_clear(&table);
	assert_int_equal(other, 2);
	assert_int_equal(table.count, 0);
	put(&table, 1, &other);
	assert_non_null(table_find(&table, 1));
	table_free(&table);
	table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_goes),
		cmocka_unit_test(one_of_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
