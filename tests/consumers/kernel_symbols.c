/* The kernel's list of its functions. */
#include "consumers/client/kernel_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char list[] = "ffffffff81000000 T _text\n"
			   "0000000000000000 t t_next\n"
			   "ffffffff81000010 t t_next\n"
			   "ffffffff81000020 d t_next\n"
			   "ffffffff81000030 T vfs_read\n"
			   "ffffffff81000040 W vfs_write\n"
			   "ffffffffc0000000 t t_next\t[ext4]\n"
			   "ffffffffc0000010 t ext4_read\t[ext4]\n"
			   "ffffffffc0000020 t t_next\t[btrfs]\n"
			   "not a line\n\n";

static struct kernel_symbols find(const char *wanted)
{
	struct kernel_symbols symbols;
	char copy[sizeof(list)];
	FILE *file;

	memcpy(copy, list, sizeof(copy));
	file = fmemopen(copy, sizeof(copy) - 1, "r");

	assert_non_null(file);
	kernel_symbols_init(&symbols, wanted);
	kernel_symbols_read(&symbols, file, true);
	(void)fclose(file);
	return symbols;
}

/* Data of the same name is no function. */
static void functions_of_one_name(void **state)
{
	struct kernel_symbols symbols = find("t_next");

	(void)state;
	assert_int_equal(symbols.count, 4);
	assert_int_equal(symbols.module_count, 2);
	assert_string_equal(symbols.modules[0], "ext4");
	assert_string_equal(symbols.modules[1], "btrfs");
	symbols = find("ext4:t_next");
	assert_int_equal(symbols.count, 1);
	symbols = find("vfs_write");
	assert_int_equal(symbols.count, 1);
	assert_int_equal(symbols.module_count, 0);
	symbols = find("ext4:vfs_read");
	assert_int_equal(symbols.count, 0);
}

static void names_that_are_alike(void **state)
{
	struct kernel_symbols symbols = find("vfs_raed");
	char words[200];

	(void)state;
	assert_int_equal(symbols.count, 0);
	assert_string_equal(near_text(&symbols.near, words, sizeof(words)), "; did you mean vfs_read?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_one_name),
		cmocka_unit_test(names_that_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
