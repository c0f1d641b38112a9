/* State records: what was written is read again, and nothing else is taken for a record. */
#include "shm/state.h"
#include "shm/segment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void add_file(struct state_writer *writer, int fd, const char *path, uint32_t size)
{
	struct state_file file = { .record = { .kind = STATE_FILE, .pid = 7, .tid = 7 }, .fd = fd, .path_size = size };

	state_writer_add(writer, &(struct state_piece){
		.record = &file, .size = sizeof(file), .texts = { { path, &file.path_size } },
	});
}

static void *finish(struct state_writer *writer, size_t *ret_size)
{
	void *bytes = NULL;
	int fd = state_writer_finish(writer, 1, 2);

	assert_true(fd >= 0);
	assert_int_equal(segment_blob_read(fd, STATE_BLOB_MAX, &bytes, ret_size), 0);
	assert_int_equal(close(fd), 0);
	state_writer_release(writer);
	return bytes;
}

static void test_what_is_written_is_read(void **state)
{
	const struct state_record *record = NULL;
	struct state_writer writer;
	size_t size, at = 0;
	void *bytes;

	(void)state;
	assert_int_equal(state_writer_open(&writer, "test"), 0);
	/* More than the writer's buffer. */
	for (int i = 0; i < 20000; i++)
		add_file(&writer, i, "/some/path/of/a/file", (uint32_t)(i % 21));
	bytes = finish(&writer, &size);
	for (int i = 0; i < 20000; i++) {
		const struct state_file *file;

		assert_int_equal(state_next(bytes, size, &at, &record), 1);
		file = (const void *)record;
		assert_int_equal(record->kind, STATE_FILE);
		assert_int_equal(file->fd, i);
		assert_int_equal(file->path_size, i % 21);
		assert_memory_equal(state_text(file, sizeof(*file), 0), "/some/path/of/a/file", file->path_size);
	}
	/* The end is found again and again. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(state_next(bytes, size, &at, &record), 0);
		assert_int_equal(record->kind, STATE_END);
		assert_int_equal(((const struct state_end *)(const void *)record)->began, 1);
	}
	free(bytes);
}

static void test_what_is_taken_back_is_gone(void **state)
{
	/* Within the buffer, and past it. */
	static const int counts[] = { 10, 20000 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct state_record *record = NULL;
		struct state_writer writer;
		struct state_mark mark;
		size_t size, at = 0;
		void *bytes;

		assert_int_equal(state_writer_open(&writer, "test"), 0);
		add_file(&writer, 1, "/kept", 5);
		mark = state_writer_mark(&writer);
		for (int k = 0; k < counts[i]; k++)
			add_file(&writer, 2, "/somebody/else's", 16);
		state_writer_undo(&writer, &mark);
		add_file(&writer, 3, "/after", 6);
		bytes = finish(&writer, &size);
		assert_int_equal(state_next(bytes, size, &at, &record), 1);
		assert_int_equal(((const struct state_file *)(const void *)record)->fd, 1);
		assert_int_equal(state_next(bytes, size, &at, &record), 1);
		assert_int_equal(((const struct state_file *)(const void *)record)->fd, 3);
		assert_int_equal(state_next(bytes, size, &at, &record), 0);
		free(bytes);
	}
}

static void test_long_texts_are_cut(void **state)
{
	static char path[STATE_RECORD_MAX];
	const struct state_record *record = NULL;
	struct state_writer writer;
	size_t size, at = 0;
	void *bytes;

	(void)state;
	memset(path, 'x', sizeof(path));
	assert_int_equal(state_writer_open(&writer, "test"), 0);
	add_file(&writer, 1, path, sizeof(path));
	bytes = finish(&writer, &size);
	assert_int_equal(state_next(bytes, size, &at, &record), 1);
	assert_true(record->size <= STATE_RECORD_MAX);
	assert_int_equal(state_next(bytes, size, &at, &record), 0);
	free(bytes);
}

static void test_damage(void **state)
{
	const struct state_record *record = NULL;
	struct state_writer writer;
	struct state_file *file;
	size_t size, at;
	void *bytes;

	(void)state;
	assert_int_equal(state_writer_open(&writer, "test"), 0);
	add_file(&writer, 1, "/a", 2);
	bytes = finish(&writer, &size);
	file = bytes;
	/* Cut off at every place. */
	for (size_t cut = 0; cut < size; cut++) {
		int r;

		at = 0;
		while ((r = state_next(bytes, cut, &at, &record)) == 1)
			;
		assert_int_equal(r, -EBADMSG);
	}
	for (uint32_t wrong = 0; wrong < 200; wrong++) {
		at = 0;
		file->record.size = wrong;
		/* What is longer than it needs to be may be a newer version's. */
		assert_int_equal(state_next(bytes, size, &at, &record) == 1, wrong >= 48 && wrong % 8 == 0 && wrong <= size);
	}
	file->record.size = 48;
	at = 0;
	file->path_size = 9;
	assert_int_equal(state_next(bytes, size, &at, &record), -EBADMSG);
	file->path_size = UINT32_MAX;
	assert_int_equal(state_next(bytes, size, &at, &record), -EBADMSG);
	/* A kind of a newer version is passed over. */
	file->record.kind = 99;
	assert_int_equal(state_next(bytes, size, &at, &record), 0);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_what_is_taken_back_is_gone),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
