/* The kernel's table of symbols as text. */
#include "consumers/client/kallsyms.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void symbols_are_found_by_address(void **state)
{
	struct kallsyms table;
	char *text = strdup("ffffffff81000100 T later\n"
			    "0000000000001000 A per_cpu_thing\n"
			    "ffffffff81000000 T first\n"
			    "ffffffff81000000 t alias\n"
			    "0000000000000000 T hidden\n"
			    "ffffffffc0000000 t in_module\t[some_module]\n"
			    "no line of a symbol\n"
			    "ffffffff81000200 T \n"
			    "ffffffff81000300 T last");

	(void)state;
	assert_non_null(text);
	assert_int_equal(kallsyms_parse(text, strlen(text), &table), 0);
	assert_int_equal(table.count, 5);
	assert_null(kallsyms_find(&table, 0xffffffff80ffffff));
	/* Of two names the first. */
	assert_string_equal(kallsyms_find(&table, 0xffffffff81000000)->name, "first");
	assert_string_equal(kallsyms_find(&table, 0xffffffff810000ff)->name, "first");
	assert_string_equal(kallsyms_find(&table, 0xffffffff81000100)->name, "later");
	assert_null(kallsyms_find(&table, 0xffffffff81000100)->module);
	assert_string_equal(kallsyms_find(&table, 0xffffffff81000300)->name, "last");
	assert_string_equal(kallsyms_find(&table, UINT64_MAX)->name, "in_module");
	assert_string_equal(kallsyms_find(&table, UINT64_MAX)->module, "some_module");
	kallsyms_release(&table);
	assert_null(kallsyms_find(&table, 1));
}

static void symbols_are_found_by_name(void **state)
{
	struct kallsyms table;
	char *text = strdup("ffffffff81000000 T first\n"
			    "ffffffff81000000 t alias\n"
			    "ffffffff81000100 t twice\n"
			    "ffffffff81000200 t twice\n"
			    "ffffffff80000000 t twice\t[low]\n"
			    "ffffffffc0000000 t in_module\t[some_module]\n"
			    "ffffffffc0000010 t twice\t[some_module]");
	uint64_t end = 0;

	(void)state;
	assert_non_null(text);
	assert_int_equal(kallsyms_parse(text, strlen(text), &table), 0);
	assert_int_equal(kallsyms_named(&table, "alias")->address, 0xffffffff81000000);
	assert_int_equal(kallsyms_end(&table, kallsyms_named(&table, "first"), &end), 0);
	assert_int_equal(end, 0xffffffff810000ff);
	/* The kernel's own, though a module's lies below; of two the first. */
	assert_int_equal(kallsyms_named(&table, "twice")->address, 0xffffffff81000100);
	assert_int_equal(kallsyms_named(&table, "low:twice")->address, 0xffffffff80000000);
	assert_int_equal(kallsyms_named(&table, "some_module:twice")->address, 0xffffffffc0000010);
	assert_int_equal(kallsyms_named(&table, "in_module")->address, 0xffffffffc0000000);
	assert_null(kallsyms_named(&table, "some:twice"));
	assert_null(kallsyms_named(&table, "some_module:first"));
	assert_null(kallsyms_named(&table, "twic"));
	assert_null(kallsyms_named(&table, ""));
	assert_int_equal(kallsyms_end(&table, kallsyms_named(&table, "some_module:twice"), &end), -ENOENT);
	kallsyms_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_are_found_by_address),
		cmocka_unit_test(symbols_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
