/* What each user may hold. */
#include "reader/users.h"

#include "base/exit_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct policy_limits lines[] = {
	{ .line = 3,
		.shown = "limit user=1000 ...",
		.subject = { .kind = POLICY_USER, .id = 1000 },
		.consumers = 2,
		.probes = 3,
		.ring = 1000 },
};
static const struct policy policy = { .path = "/p", .limits = lines, .limit_count = 1 };
static const struct policy_identity limited = { .uid = 1000 }, other = { .uid = 1001 },
				    root = { 0 };

static void refused(int status, const struct control_failure *failure, const char *words)
{
	assert_int_equal(status, EXIT_NOT_PERMITTED);
	if (!strstr(failure->message, words) || !strstr(failure->message, "/p, line 3"))
		fail_msg("%s", failure->message);
}

static void test_consumers_and_rings(void **state)
{
	struct users users = { 0 };
	struct control_failure failure;

	(void)state;
	assert_int_equal(users_attach(&users, &policy, &limited, 1, 600, &failure), EXIT_DONE);
	refused(users_attach(&users, &policy, &limited, 2, 401, &failure), &failure, "600 bytes");
	refused(users_attach(&users, &policy, &limited, 2, UINT64_MAX, &failure), &failure,
		"600 bytes");
	/* The same number is nobody else's. */
	assert_int_equal(users_attach(&users, &policy, &other, 1, 1, &failure), EXIT_FAILED);
	assert_int_equal(users_attach(&users, &policy, &limited, 2, 400, &failure), EXIT_DONE);
	refused(users_attach(&users, &policy, &limited, 3, 0, &failure), &failure, "2 consumers");
	/* Another user's are counted apart. */
	assert_int_equal(users_attach(&users, &policy, &other, 3, 5000, &failure), EXIT_DONE);
	assert_int_equal(users_attach(&users, &policy, &root, 4, UINT64_MAX, &failure), EXIT_DONE);
	assert_false(users_leave(&users, 9));
	assert_true(users_leave(&users, 1));
	assert_false(users_leave(&users, 1));
	assert_int_equal(users_attach(&users, &policy, &limited, 1, 600, &failure), EXIT_DONE);
	users_forget(&users);
	assert_int_equal(users_attach(&users, &policy, &limited, 1, 1000, &failure), EXIT_DONE);
	users_forget(&users);
}

static void test_probes(void **state)
{
	struct users users = { 0 };
	struct control_failure failure;

	(void)state;
	assert_int_equal(users_room(&users, &policy, &limited, &failure), EXIT_DONE);
	/* The same probe twice is two. */
	assert_int_equal(users_own(&users, 1000, 7), 0);
	assert_int_equal(users_own(&users, 1000, 7), 0);
	assert_int_equal(users_own(&users, 1001, 8), 0);
	assert_int_equal(users_room(&users, &policy, &limited, &failure), EXIT_DONE);
	assert_int_equal(users_own(&users, 1000, 9), 0);
	refused(users_room(&users, &policy, &limited, &failure), &failure, "3 probes");
	assert_int_equal(users_room(&users, &policy, &other, &failure), EXIT_DONE);
	/* Nobody gives back what is another's. */
	assert_false(users_disown(&users, 1001, 7));
	assert_false(users_disown(&users, 1000, 8));
	assert_true(users_disown(&users, 1000, 7));
	assert_int_equal(users_room(&users, &policy, &limited, &failure), EXIT_DONE);
	assert_true(users_disown(&users, 1000, 7));
	assert_false(users_disown(&users, 1000, 7));
	users_forget(&users);
	assert_false(users_disown(&users, 1000, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consumers_and_rings),
		cmocka_unit_test(test_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
