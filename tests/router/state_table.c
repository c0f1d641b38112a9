/* What a consumer is told of the processes at a place of the stream, out of a snapshot and what was read later. */
#include "router/state_table.h"

#include "base/cleanup.h"
#include "shm/segment.h"
#include "shm/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TICK TASKS_TICK_NS
#define NOW  (100 * TICK)
#define USER 1000

static struct state_process a_process(uint32_t uid, const char *comm, uint64_t time)
{
	struct state_process process = {
		.record = { .kind = STATE_PROCESS, .flags = STATE_IDS | STATE_IDS_PROVEN | STATE_PROVEN, .pid = 10, .tid = 10,
			.start = NOW - TICK, .time = time },
		.parent = 1,
		.ids = { uid, uid, uid, uid, uid },
	};

	memcpy(process.comm, comm, strlen(comm));
	return process;
}

static void make_blob(struct state_process process, void **ret, size_t *ret_size)
{
	struct state_writer writer;
	CLEANUP_CLOSE int fd = -1;

	assert_int_equal(state_writer_open(&writer, "test"), 0);
	state_writer_add(&writer, &(struct state_piece){ .record = &process, .size = sizeof(process) });
	fd = state_writer_finish(&writer, process.record.time, process.record.time);
	state_writer_release(&writer);
	assert_true(fd >= 0);
	assert_int_equal(segment_blob_read(fd, 1U << 20, ret, ret_size), 0);
}

/* The only process that is told. */
static struct state_process told(const struct state_table_of *what)
{
	CLEANUP_CLOSE int fd = state_table_make(what);
	CLEANUP_FREE void *bytes = NULL;
	const struct state_record *record = NULL;
	struct state_process process;
	size_t size, at = 0;

	assert_true(fd >= 0);
	assert_int_equal(segment_blob_read(fd, 1U << 20, &bytes, &size), 0);
	assert_int_equal(state_next(bytes, size, &at, &record), 1);
	assert_int_equal(record->kind, STATE_PROCESS);
	memcpy(&process, record, sizeof(process));
	assert_int_equal(state_next(bytes, size, &at, &record), 0);
	return process;
}

/* Root's at the place, the user's by the time of the reading: root's time is not the user's business. */
static void check_change(bool scoped, uint32_t uid, const char *comm)
{
	CLEANUP_FREE void *before = NULL, *after = NULL;
	struct tasks_snapshot snapshot;
	struct state_table_of what = { .snapshot = &snapshot, .due = NOW + 2, .scoped = scoped, .uid = USER };
	struct state_process process;
	struct tasks tasks;
	size_t size;

	assert_int_equal(tasks_init(&tasks), 0);
	make_blob(a_process(0, "root's", NOW), &before, &size);
	assert_int_equal(state_table_learn(&tasks, before, size, false), 0);
	assert_int_equal(tasks_copy_all(&tasks, NOW + 2, &snapshot), 0);
	assert_int_equal(tasks_exec(&tasks, NOW + 3, 10, 10, "/bin/sh", 7), 0);
	make_blob(a_process(USER, "user's", NOW + 4), &after, &size);
	what.tasks = &tasks;
	what.read = after;
	what.read_size = size;
	process = told(&what);
	assert_int_equal(process.ids.uid, uid);
	assert_string_equal(process.comm, comm);
	tasks_snapshot_release(&snapshot);
	tasks_release(&tasks);
}

static void who_became_the_users_is_told_as_it_was_read(void **state)
{
	(void)state;
	check_change(true, USER, "user's");
}

static void root_sees_who_was_there(void **state)
{
	(void)state;
	check_change(false, 0, "root's");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_became_the_users_is_told_as_it_was_read),
		cmocka_unit_test(root_sees_who_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
