/* Who a thread id is, at which time, and what is proven of it. */
#include "router/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CLONE_PARENT_FLAG 0x8000U
#define CLONE_THREAD_FLAG 0x10000U
#define TICK              TASKS_TICK_NS
#define NOW               (100 * TICK)

static int setup(void **state)
{
	struct tasks *tasks = test_malloc(sizeof(*tasks));

	*state = tasks;
	return tasks_init(tasks);
}

static int teardown(void **state)
{
	tasks_release(*state);
	test_free(*state);
	return 0;
}

static void test_set_find_rename(void **state)
{
	struct tasks *tasks = *state;

	assert_null(tasks_find(tasks, 1, NOW));
	assert_int_equal(tasks_set(tasks, 1, "init", 5, false), 0);
	assert_string_equal(tasks_find(tasks, 1, NOW)->comm, "init");
	/* A snapshot that comes later does not undo what an event said. */
	assert_int_equal(tasks_set(tasks, 1, "older", 6, true), 0);
	assert_string_equal(tasks_find(tasks, 1, NOW)->comm, "init");
	assert_int_equal(tasks_set(tasks, 1, "sixteen-bytes-xx", 16, false), 0);
	assert_memory_equal(tasks_find(tasks, 1, NOW)->comm, "sixteen-bytes-xx", 16);
	assert_int_equal(tasks_set(tasks, 1, "a", 2, false), 0);
	assert_memory_equal(tasks_find(tasks, 1, NOW)->comm, "a\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_null(tasks_find(tasks, -1, NOW));
}

static void test_many(void **state)
{
	struct tasks *tasks = *state;

	for (int32_t tid = 1; tid <= 100000; tid++) {
		char comm[RECORD_COMM_SIZE] = { 0 };

		memcpy(comm, &tid, sizeof(tid));
		/* Not NUL-free: only what stands before the first NUL is the name. */
		assert_int_equal(tasks_set(tasks, tid * 3, comm, sizeof(comm), false), 0);
	}
	for (int32_t tid = 1; tid <= 100000; tid++) {
		const struct task *task = tasks_find(tasks, tid * 3, NOW);

		assert_non_null(task);
		assert_int_equal((uint8_t)task->comm[0], tid & 0xff);
		assert_null(tasks_find(tasks, tid * 3 + 1, NOW));
	}
}

static struct task_read a_read(int32_t tid, const char *comm, uint32_t uid, uint64_t time)
{
	struct task_read read = {
		.time = time,
		.tid = tid,
		.pid = tid,
		.parent = 1,
		.start = time - time % TICK - TICK,
		.has_ids = true,
		.ids = { uid, uid, uid, uid, uid },
		.exe = "/bin/shell",
		.exe_size = 10,
	};

	read.process_start = read.start;
	memcpy(read.comm, comm, strlen(comm));
	return read;
}

static void learn(struct tasks *tasks, int32_t tid, const char *comm, uint32_t uid, uint64_t time)
{
	const struct task_read read = a_read(tid, comm, uid, time);

	assert_int_equal(tasks_learn(tasks, &read), 0);
}

static void do_fork(struct tasks *tasks, int32_t creator, int32_t tid, uint64_t flags, uint64_t time)
{
	const struct task_fork fork = {
		.time = time, .creator = creator, .tid = tid, .comm = "child", .comm_size = 6, .flags = flags,
	};

	assert_int_equal(tasks_fork(tasks, &fork), 0);
}

static void test_a_child_has_what_its_parent_had(void **state)
{
	struct tasks *tasks = *state;
	const struct task *task;

	learn(tasks, 10, "shell", 1000, NOW);
	do_fork(tasks, 10, 11, 0, NOW + 1);
	task = tasks_find(tasks, 11, NOW + 1);
	assert_string_equal(task->comm, "child");
	assert_int_equal(task->process->pid, 11);
	assert_int_equal(tasks_parent(tasks, task->process), 10);
	assert_string_equal(task->process->exe->bytes, "/bin/shell");
	assert_true(tasks_owner(tasks, task, NOW + 1, 1000));
	assert_false(tasks_owner(tasks, task, NOW + 1, 0));
	/* Before it began the id was somebody else's, or nobody's. */
	assert_null(tasks_find(tasks, 11, NOW));

	do_fork(tasks, 11, 12, CLONE_THREAD_FLAG, NOW + 2);
	assert_ptr_equal(tasks_find(tasks, 12, NOW + 2)->process, tasks_find(tasks, 11, NOW + 2)->process);
	do_fork(tasks, 12, 13, CLONE_PARENT_FLAG, NOW + 3);
	assert_int_equal(tasks_parent(tasks, tasks_find(tasks, 13, NOW + 3)->process), 10);
}

static void test_a_reused_id_is_another(void **state)
{
	struct tasks *tasks = *state;

	learn(tasks, 10, "shell", 1000, NOW);
	learn(tasks, 20, "other", 0, NOW);
	do_fork(tasks, 10, 11, 0, NOW + 1);
	do_fork(tasks, 11, 30, 0, NOW + 2);
	tasks_exit(tasks, NOW + 3, 11, 1);
	/* Its last events are still its own. */
	assert_string_equal(tasks_find(tasks, 11, NOW + 3)->comm, "child");
	assert_int_equal(tasks_parent(tasks, tasks_find(tasks, 30, NOW + 3)->process), -1);
	do_fork(tasks, 20, 11, 0, NOW + 4);
	assert_true(tasks_owner(tasks, tasks_find(tasks, 11, NOW + 4), NOW + 4, 0));
	assert_int_equal(tasks_parent(tasks, tasks_find(tasks, 11, NOW + 4)->process), 20);
	/* Who has the number of a dead parent is no parent. */
	assert_int_equal(tasks_parent(tasks, tasks_find(tasks, 30, NOW + 4)->process), -1);
}

static void test_executing_makes_ids_doubtful(void **state)
{
	struct tasks *tasks = *state;
	struct task_read read;

	learn(tasks, 10, "shell", 1000, NOW);
	tasks->asks = 1;
	assert_int_equal(tasks_exec(tasks, NOW + 1, 10, 10, "/bin/su", 7), 0);
	assert_false(tasks_owner(tasks, tasks_find(tasks, 10, NOW + 1), NOW + 1, 1000));
	assert_string_equal(tasks_find(tasks, 10, NOW + 1)->process->exe->bytes, "/bin/su");
	assert_int_equal(tasks->query_count, 1);
	assert_int_equal(tasks->queries[0], 10);

	/* Read before the program was executed: says nothing of it. */
	read = a_read(10, "shell", 1000, NOW);
	assert_int_equal(tasks_learn(tasks, &read), 0);
	assert_false(tasks_owner(tasks, tasks_find(tasks, 10, NOW + 1), NOW + 1, 1000));
	/* Read after it: holds from then on, not before. */
	read.time = NOW + 5;
	read.ids.euid = read.ids.suid = 0;
	assert_int_equal(tasks_learn(tasks, &read), 0);
	assert_false(tasks_owner(tasks, tasks_find(tasks, 10, NOW + 6), NOW + 6, 1000));
	assert_true(tasks_ids_proven(tasks, tasks_find(tasks, 10, NOW + 5), NOW + 5));
	assert_false(tasks_ids_proven(tasks, tasks_find(tasks, 10, NOW + 4), NOW + 4));

	/* A system call that changes them. */
	tasks_ids_changed(tasks, NOW + 7, 10);
	assert_false(tasks_ids_proven(tasks, tasks_find(tasks, 10, NOW + 7), NOW + 7));
}

static void test_no_new_ids_survive_executing(void **state)
{
	struct tasks *tasks = *state;
	struct task_read read = a_read(10, "shell", 1000, NOW);

	read.no_new_ids = true;
	assert_int_equal(tasks_learn(tasks, &read), 0);
	do_fork(tasks, 10, 11, 0, NOW + 1);
	assert_int_equal(tasks_exec(tasks, NOW + 2, 11, 11, "/bin/su", 7), 0);
	assert_true(tasks_owner(tasks, tasks_find(tasks, 11, NOW + 2), NOW + 2, 1000));
}

static void test_ids_read_later_are_not_handed_on_to_earlier(void **state)
{
	struct tasks *tasks = *state;

	/* The stream is behind what was read: at the fork its parent may still have been somebody else. */
	learn(tasks, 10, "shell", 1000, NOW);
	do_fork(tasks, 10, 11, 0, NOW - 1);
	assert_false(tasks_owner(tasks, tasks_find(tasks, 11, NOW), NOW, 1000));
}

static void test_doubt(void **state)
{
	struct tasks *tasks = *state;

	learn(tasks, 10, "shell", 1000, NOW);
	learn(tasks, 20, "gone", 1000, NOW);
	tasks_doubt(tasks, NOW + 1);
	assert_true(tasks->query_all);
	assert_false(tasks_is_proven(tasks, tasks_find(tasks, 10, NOW + 2)));
	assert_false(tasks_owner(tasks, tasks_find(tasks, 10, NOW + 2), NOW + 2, 1000));
	/* The same thread, seen again; and one that nobody finds any more. */
	{
		struct task_read read = a_read(10, "shell", 1000, NOW);

		read.time = NOW + 5;
		assert_int_equal(tasks_learn(tasks, &read), 0);
	}
	tasks_forget(tasks, NOW + 4);
	assert_true(tasks_owner(tasks, tasks_find(tasks, 10, NOW + 5), NOW + 5, 1000));
	assert_null(tasks_find(tasks, 20, NOW + 5));
	/* Another thread of the same id: its beginning was lost. */
	{
		struct task_read read = a_read(10, "other", 0, NOW + 3 * TICK);

		assert_int_equal(tasks_learn(tasks, &read), 0);
	}
	assert_string_equal(tasks_find(tasks, 10, NOW + 9 * TICK)->comm, "other");
	assert_null(tasks_find(tasks, 10, NOW + TICK));
}

static void test_a_thread_that_executes_becomes_the_first(void **state)
{
	struct tasks *tasks = *state;

	learn(tasks, 10, "shell", 1000, NOW);
	do_fork(tasks, 10, 12, CLONE_THREAD_FLAG, NOW + 1);
	tasks_exit(tasks, NOW + 2, 10, 0);
	assert_int_equal(tasks_exec(tasks, NOW + 3, 10, 12, "/bin/new", 8), 0);
	assert_null(tasks_find(tasks, 12, NOW + 3));
	assert_int_equal(tasks_find(tasks, 10, NOW + 3)->process->pid, 10);
	assert_int_equal(tasks_find(tasks, 10, NOW + 3)->flags & TASK_DEAD, 0);
	assert_string_equal(tasks_find(tasks, 10, NOW + 3)->process->exe->bytes, "/bin/new");
}

static void test_the_dead_are_forgotten(void **state)
{
	struct tasks *tasks = *state;
	uint64_t time = NOW;

	learn(tasks, 1, "init", 0, time);
	for (int32_t tid = 10; tid < 100000; tid++) {
		do_fork(tasks, 1, tid, 0, ++time);
		tasks_exit(tasks, ++time, tid, 1);
	}
	assert_true(tasks->count <= TASKS_DEAD + 2);
	assert_null(tasks_find(tasks, 10, time));
	assert_non_null(tasks_find(tasks, 99999, time));
	assert_string_equal(tasks_find(tasks, 1, time)->comm, "init");
}

static void test_a_snapshot_stays_as_it_was(void **state)
{
	struct tasks *tasks = *state;
	struct tasks_snapshot snapshot;

	learn(tasks, 10, "shell", 1000, NOW);
	learn(tasks, 20, "root's", 0, NOW);
	do_fork(tasks, 10, 11, 0, NOW + 1);
	tasks_exit(tasks, NOW + 2, 11, 1);
	assert_int_equal(tasks_copy_all(tasks, NOW + 2, &snapshot), 0);
	assert_int_equal(tasks_exec(tasks, NOW + 3, 10, 10, "/bin/su", 7), 0);
	assert_int_equal(snapshot.count, 2);
	assert_null(tasks_snapshot_find(&snapshot, 11));
	assert_true(tasks_owner(tasks, &tasks_snapshot_find(&snapshot, 10)->task, NOW + 2, 1000));
	assert_string_equal(tasks_snapshot_find(&snapshot, 10)->process.exe->bytes, "/bin/shell");
	tasks_snapshot_release(&snapshot);
}

/* Processes that come as others went take nothing of the heap, and hold no pieces of it apart. */
static void test_what_comes_has_the_memory_of_what_went(void **state)
{
	static const char *const programs[] = { "/bin/true", "/usr/bin/env", "/opt/a/longer/name" };
	struct tasks *tasks = *state;
	const struct process *gone;
	uint64_t time = NOW;

	learn(tasks, 1, "init", 0, time);
	for (int32_t tid = 10; tid < 10 + 3 * TASKS_DEAD; tid++) {
		const char *program = programs[tid % 3];

		do_fork(tasks, 1, tid, 0, ++time);
		assert_int_equal(tasks_exec(tasks, ++time, tid, tid, program, strlen(program)), 0);
		if (tid >= 13)
			assert_ptr_equal(tasks_find(tasks, tid, time)->process->exe, tasks_find(tasks, tid - 3, time)->process->exe);
		/* The oldest one's place is the next one's. */
		gone = tid >= 10 + TASKS_DEAD ? tasks_find(tasks, tid - TASKS_DEAD, time)->process : NULL;
		tasks_exit(tasks, ++time, tid, 1);
		assert_int_equal(tasks->spare_count, gone ? 1 : 0);
		assert_ptr_equal(tasks->spare, gone);
	}
}

static void test_who_ends_unseen_is_forgotten(void **state)
{
	struct tasks *tasks = *state;
	const struct task_read init = a_read(1, "init", 0, NOW + 1);

	learn(tasks, 1, "init", 0, NOW);
	for (int32_t tid = 10; tid < 10 + TASKS_UNSEEN; tid++) {
		do_fork(tasks, 1, tid, 0, NOW);
		assert_false(tasks->query_all);
		tasks_unseen(tasks);
	}
	assert_true(tasks->query_all);
	/* What was asked for comes. */
	assert_int_equal(tasks_learn(tasks, &init), 0);
	tasks_forget(tasks, NOW + 1);
	assert_int_equal(tasks->count, 1);
}

static void test_texts_go_with_the_last_that_has_them(void **state)
{
	struct tasks *tasks = *state;
	struct tasks_snapshot snapshot;

	learn(tasks, 10, "shell", 1000, NOW);
	learn(tasks, 11, "shell", 1000, NOW);
	assert_int_equal(tasks_find(tasks, 10, NOW)->process->exe->references, 2);
	assert_int_equal(tasks_copy_all(tasks, NOW, &snapshot), 0);
	assert_int_equal(tasks_exec(tasks, NOW + 1, 10, 10, "/bin/a", 6), 0);
	assert_int_equal(tasks_exec(tasks, NOW + 1, 11, 11, "/bin/b", 6), 0);
	assert_int_equal(tasks_exec(tasks, NOW + 2, 11, 11, "/bin/a", 6), 0);
	/* The table may be gone before the copies are. */
	tasks_release(tasks);
	assert_string_equal(tasks_snapshot_find(&snapshot, 10)->process.exe->bytes, "/bin/shell");
	tasks_snapshot_release(&snapshot);
	assert_int_equal(tasks_init(tasks), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_set_find_rename),
		TEST(test_many),
		TEST(test_a_child_has_what_its_parent_had),
		TEST(test_a_reused_id_is_another),
		TEST(test_executing_makes_ids_doubtful),
		TEST(test_no_new_ids_survive_executing),
		TEST(test_ids_read_later_are_not_handed_on_to_earlier),
		TEST(test_doubt),
		TEST(test_a_thread_that_executes_becomes_the_first),
		TEST(test_the_dead_are_forgotten),
		TEST(test_a_snapshot_stays_as_it_was),
		TEST(test_what_comes_has_the_memory_of_what_went),
		TEST(test_texts_go_with_the_last_that_has_them),
		TEST(test_who_ends_unseen_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
