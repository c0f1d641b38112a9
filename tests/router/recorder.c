/* When a recording's file is written to, how much of a sub-buffer goes in, and what is missing from a file that takes no
 * more. */
#include "router/recorder.h"

#include "router/page.h"
#include "shm/recording_abi.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096
#define EVENTS 5 /* of a page */

static const struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16, .size = PAGE };

/* As the kernel writes it, with what an earlier use left behind the end. */
static void make_page(uint8_t *page, uint64_t flags)
{
	const uint32_t event[2] = { 1, 7 }; /* four bytes of data */
	uint64_t time = 1, commit = sizeof(event) * EVENTS | flags;

	memset(page, 0xaa, PAGE);
	memcpy(page, &time, sizeof(time));
	memcpy(page + 8, &commit, sizeof(commit));
	for (size_t i = 0; i < EVENTS; i++)
		memcpy(page + 16 + i * sizeof(event), event, sizeof(event));
}

struct file {
	FILE *file;
	int fd; /* the test's own */
	struct recorder recorder;
};

static void begin(struct file *f)
{
	const struct control_router_welcome welcome = { .source = SOURCE_RAW, .cpu_count = 1 };

	f->file = tmpfile();
	assert_non_null(f->file);
	f->fd = fileno(f->file);
	recorder_init(&f->recorder, dup(f->fd));
	recorder_begin(&f->recorder, &welcome, PAGE);
}

static off_t size_of(const struct file *f)
{
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	return st.st_size;
}

static void add_page(struct file *f, uint64_t flags)
{
	const struct pool_entry entry = { .kind = POOL_DATA, .length = PAGE };
	uint8_t page[PAGE];

	make_page(page, flags);
	recorder_entry(&f->recorder, &layout, &entry, page);
}

static void add_note(struct file *f, uint8_t kind)
{
	const struct pool_entry entry = { .kind = kind };

	recorder_entry(&f->recorder, &layout, &entry, NULL);
}

static void test_nothing_before_the_start(void **state)
{
	struct file f;

	(void)state;
	begin(&f);
	/* More than is held of what has started. */
	for (int i = 0; i < 10000; i++)
		add_page(&f, 0);
	add_note(&f, POOL_FLUSH);
	assert_int_equal(size_of(&f), 0);
	assert_int_equal(recorder_finish(&f.recorder), 0);
	assert_int_equal(size_of(&f), 0);
	(void)fclose(f.file);

	begin(&f);
	add_page(&f, 0);
	recorder_start(&f.recorder);
	assert_true(size_of(&f) > 0);
	assert_int_equal(recorder_finish(&f.recorder), 0);
	(void)fclose(f.file);
}

static void test_what_was_committed(void **state)
{
	const off_t head = sizeof(struct recording_header) + sizeof(struct recording_frame) + sizeof(struct pool_entry);
	struct file f;

	(void)state;
	begin(&f);
	recorder_start(&f.recorder);
	add_page(&f, 0);
	recorder_flush(&f.recorder);
	assert_int_equal(size_of(&f), head + 16 + 8L * EVENTS);
	assert_int_equal(recorder_finish(&f.recorder), 0);
	(void)fclose(f.file);

	/* Events were lost, and their count stands behind the data. */
	begin(&f);
	recorder_start(&f.recorder);
	add_page(&f, 3U << 30);
	recorder_flush(&f.recorder);
	assert_int_equal(size_of(&f), head + 16 + 8L * EVENTS + 8);
	assert_int_equal(recorder_finish(&f.recorder), 0);
	(void)fclose(f.file);
}

/* Each event is in the file or counted: of a frame that is there in part, of those behind it, and of all that come later. */
static void test_a_file_that_takes_no_more(void **state)
{
	const off_t frame = sizeof(struct recording_frame) + sizeof(struct pool_entry) + 16 + 8L * EVENTS;
	const rlim_t limit = sizeof(struct recording_header) + 2 * (rlim_t)frame + 1;
	struct rlimit before, less;
	struct file f;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	begin(&f);
	recorder_start(&f.recorder);
	for (int i = 0; i < 10; i++)
		add_page(&f, 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less = before;
	less.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	/* Somebody wants to know. */
	add_note(&f, POOL_FLUSH);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(f.recorder.error, -EFBIG);
	assert_int_equal(f.recorder.unrecorded, 8L * EVENTS);
	add_page(&f, 0);
	assert_int_equal(f.recorder.unrecorded, 9 * EVENTS);
	assert_int_equal(recorder_finish(&f.recorder), -EFBIG);
	assert_int_equal(size_of(&f), limit);
	(void)fclose(f.file);
}

static void test_text_is_not_counted(void **state)
{
	const struct pool_entry entry = { .kind = POOL_DATA, .length = 5 };
	struct recorder recorder;

	(void)state;
	recorder_init(&recorder, dup(STDIN_FILENO));
	recorder.error = -EIO;
	recorder_entry(&recorder, NULL, &entry, "line\n");
	assert_true(recorder.unrecorded == LEDGER_UNKNOWN);
	assert_int_equal(recorder_finish(&recorder), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_the_start),
		cmocka_unit_test(test_what_was_committed),
		cmocka_unit_test(test_a_file_that_takes_no_more),
		cmocka_unit_test(test_text_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
