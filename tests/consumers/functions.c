/* Which of the kernel's functions a filter names. What becomes of them is seen with a kernel (integration_pushdown). */
#include "consumers/client/functions.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* All names, with a blank behind each. */
static const char *names(const char *text)
{
	static char found[256];
	struct functions_use use;
	size_t at = 0, used = 0;

	found[0] = '\0';
	while (functions_next(text, &at, &use)) {
		assert_true(use.at + use.size <= strlen(text));
		used += (size_t)snprintf(found + used, sizeof(found) - used, "%.*s ", (int)use.size, text + use.at);
	}
	return found;
}

static void names_are_found(void **state)
{
	static const struct {
		const char *filter, *names;
	} rows[] = {
		{ "", "" },
		{ "call_site.function == kfree", "kfree " },
		{ "a.function==b&&c.function != d.isra.0||(e.function\t= mod:f)", "b d.isra.0 mod:f " },
		{ "a.function == 0xffffffff81000010 && pid == 4", "0xffffffff81000010 " },
		{ "a.function == \"b\" && c.function == 'd'", "b d " },
		{ "comm == \"x.function == y\" && a.function == 'b'", "b " },
		{ "comm == \"'\" && a.function == b && comm == '\"'", "b " },
		/* What the router has to say of these is said by the router. */
		{ "a.function", "" },
		{ "a.function ==", "" },
		{ "a.function == \"b", "" },
		{ "a.function == \"\"", "" },
		{ "a.function < b", "" },
		{ "a.functional == b", "" },
		{ "comm == \"a.function == b", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *found = names(rows[i].filter);

		if (strcmp(found, rows[i].names) != 0)
			fail_msg("%s: %s", rows[i].filter, found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names_are_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
