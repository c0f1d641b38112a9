/* The file for the reader that takes over: what of it counts, wherever its writer died. */
#include "reader/legacy.h"

#include "reader/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[32];
static int dir;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/legacy-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(dir, LEGACY_NAME, 0);
	(void)close(dir);
	return rmdir(folder);
}

static const struct legacy_session session = { .source = SOURCE_TEXT, .flags = SESSION_FALLBACK, .tag = "01234567" };

static struct probe probe_of(uint64_t id)
{
	struct probe probe = { .id = id, .kind = PROBE_UPROBE, .references = 3, .offset = 100 + id, .inode = 7 };

	(void)snprintf(probe.event, sizeof(probe.event), "event_%d", (int)id);
	return probe;
}

/* The ids that a reader finds, as decimal digits; each record must be whole. */
static unsigned int found(void)
{
	struct legacy_session read;
	struct legacy legacy;
	struct probe probe;
	uint32_t at = 0;
	unsigned int ids = 0;
	int r;

	assert_int_equal(legacy_take(dir, &read, &legacy), 0);
	assert_memory_equal(&read, &session, sizeof(session));
	while ((r = legacy_next(&legacy, &at, &probe)) == 1) {
		struct probe wanted = probe_of(probe.id);

		assert_string_equal(probe.event, wanted.event);
		assert_true(probe.offset == wanted.offset);
		ids = 10 * ids + (unsigned int)probe.id;
	}
	assert_int_equal(r, 0);
	legacy_close(&legacy);
	return ids;
}

static void test_what_is_there_is_found(void **state)
{
	struct probe probes[4];
	struct legacy legacy;
	struct stat st;

	(void)state;
	assert_int_equal(legacy_make(dir, &session, &legacy), 0);
	assert_int_equal(found(), 0);
	for (uint64_t i = 0; i < 3; i++) {
		probes[i] = probe_of(i + 1);
		assert_int_equal(legacy_add(&legacy, &probes[i]), 0);
	}
	assert_int_equal(found(), 123);
	legacy_drop(&legacy, &probes[1]);
	assert_int_equal(found(), 13);
	/* The free place is the next one's. */
	probes[3] = probe_of(4);
	assert_int_equal(legacy_add(&legacy, &probes[3]), 0);
	assert_int_equal(found(), 143);
	legacy_close(&legacy);
	assert_int_equal(fstatat(dir, LEGACY_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Whoever takes over goes on in the same file. */
static void test_the_next_reader_goes_on(void **state)
{
	struct probe first = probe_of(1), second = probe_of(2), third = probe_of(3), read;
	struct legacy_session ignored;
	struct legacy legacy;
	uint32_t at = 0;

	(void)state;
	assert_int_equal(legacy_make(dir, &session, &legacy), 0);
	assert_int_equal(legacy_add(&legacy, &first), 0);
	assert_int_equal(legacy_add(&legacy, &second), 0);
	legacy_close(&legacy);
	assert_int_equal(legacy_take(dir, &ignored, &legacy), 0);
	assert_int_equal(legacy_next(&legacy, &at, &read), 1);
	legacy_drop(&legacy, &read);
	assert_int_equal(legacy_next(&legacy, &at, &read), 1);
	assert_int_equal(legacy_next(&legacy, &at, &read), 0);
	assert_int_equal(legacy_add(&legacy, &third), 0);
	assert_int_equal(found(), 32);
	legacy_close(&legacy);
}

/* Cut anywhere, it holds the records before; a record without its id is none. */
static void test_a_half_written_record_is_none(void **state)
{
	struct probe first = probe_of(1), second = probe_of(2);
	const uint64_t none = 0;
	struct legacy legacy;
	struct stat one, two;

	(void)state;
	assert_int_equal(legacy_make(dir, &session, &legacy), 0);
	assert_int_equal(legacy_add(&legacy, &first), 0);
	assert_int_equal(fstat(legacy.fd, &one), 0);
	assert_int_equal(legacy_add(&legacy, &second), 0);
	assert_int_equal(fstat(legacy.fd, &two), 0);
	assert_int_equal(found(), 12);
	assert_int_equal(pwrite(legacy.fd, &none, sizeof(none), one.st_size), sizeof(none));
	assert_int_equal(found(), 1);
	assert_int_equal(pwrite(legacy.fd, &second.id, sizeof(second.id), one.st_size), sizeof(none));
	for (off_t size = two.st_size - 1; size >= one.st_size; size -= 97) {
		assert_int_equal(ftruncate(legacy.fd, size), 0);
		assert_int_equal(found(), 1);
	}
	legacy_close(&legacy);
}

static void test_other_files_are_refused(void **state)
{
	struct legacy_session ignored;
	struct legacy legacy;
	int fd;

	(void)state;
	assert_int_equal(legacy_take(dir, &ignored, &legacy), -ENOENT);
	assert_int_equal(legacy_make(dir, &session, &legacy), 0);
	assert_int_equal(ftruncate(legacy.fd, 40), 0);
	legacy_close(&legacy);
	assert_int_equal(legacy_take(dir, &ignored, &legacy), -EBADMSG);
	fd = openat(dir, LEGACY_NAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	for (int i = 0; i < 40; i++)
		assert_int_equal(write(fd, "something", 9), 9);
	(void)close(fd);
	assert_int_equal(legacy_take(dir, &ignored, &legacy), -EBADMSG);
	/* Not through a link that somebody left there. */
	assert_int_equal(unlinkat(dir, LEGACY_NAME, 0), 0);
	assert_int_equal(symlinkat("/dev/null", dir, LEGACY_NAME), 0);
	assert_int_equal(legacy_take(dir, &ignored, &legacy), -ELOOP);
	assert_int_equal(legacy_make(dir, &session, &legacy), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_there_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_next_reader_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_half_written_record_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_files_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
