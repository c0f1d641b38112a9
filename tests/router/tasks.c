/* Names of threads. */
#include "router/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_set_find_rename(void **state)
{
	struct tasks tasks;

	(void)state;
	assert_int_equal(tasks_init(&tasks), 0);
	assert_null(tasks_find(&tasks, 1));
	assert_int_equal(tasks_set(&tasks, 1, "init", 5, false), 0);
	assert_string_equal(tasks_find(&tasks, 1)->comm, "init");
	/* A snapshot that comes later does not undo what an event said. */
	assert_int_equal(tasks_set(&tasks, 1, "older", 6, true), 0);
	assert_string_equal(tasks_find(&tasks, 1)->comm, "init");
	assert_int_equal(tasks_set(&tasks, 1, "sixteen-bytes-xx", 16, false), 0);
	assert_memory_equal(tasks_find(&tasks, 1)->comm, "sixteen-bytes-xx", 16);
	assert_int_equal(tasks_set(&tasks, 1, "a", 2, false), 0);
	assert_memory_equal(tasks_find(&tasks, 1)->comm, "a\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_null(tasks_find(&tasks, -1));
	tasks_release(&tasks);
}

static void test_many(void **state)
{
	struct tasks tasks;

	(void)state;
	assert_int_equal(tasks_init(&tasks), 0);
	for (int32_t tid = 1; tid <= 100000; tid++) {
		char comm[RECORD_COMM_SIZE] = { 0 };

		memcpy(comm, &tid, sizeof(tid));
		/* Not NUL-free: only what stands before the first NUL is the name. */
		assert_int_equal(tasks_set(&tasks, tid * 3, comm, sizeof(comm), false), 0);
	}
	for (int32_t tid = 1; tid <= 100000; tid++) {
		const struct task *task = tasks_find(&tasks, tid * 3);

		assert_non_null(task);
		assert_int_equal((uint8_t)task->comm[0], tid & 0xff);
		assert_null(tasks_find(&tasks, tid * 3 + 1));
	}
	tasks_release(&tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_find_rename),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
