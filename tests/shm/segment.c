#include "shm/segment.h"

#include "tests/support/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>

#define PAGE  ((size_t)4096)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* A memfd as a peer might make it: of any size, with any header and seals. */
static int foreign_segment(size_t size, const struct segment_header *header, int seals)
{
	int fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (header)
		assert_int_equal(pwrite(fd, header, sizeof(*header), 0), sizeof(*header));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct segment_header good_header(size_t size)
{
	return (struct segment_header){ .magic = SEGMENT_MAGIC,
		.kind = SEGMENT_RING,
		.version = SEGMENT_VERSION,
		.size = size };
}

static int attach_foreign(const struct segment_header *header, int seals)
{
	struct segment segment = SEGMENT_NONE;
	int fd = foreign_segment(PAGE, header, seals);
	int r = segment_attach(fd, SEGMENT_RING, PAGE, 4 * PAGE, false, &segment);

	if (r == 0) {
		assert_int_equal(segment.fd, fd);
		segment_release(&segment);
	} else {
		/* Nothing was written, and the descriptor is still the caller's. */
		assert_null(segment.base);
		assert_int_equal(close(fd), 0);
	}
	return r;
}

static void created_and_attached(void **state)
{
	struct segment made = SEGMENT_NONE, seen = SEGMENT_NONE;
	int fd;

	(void)state;
	assert_int_equal(
		segment_create("test", SEGMENT_POOL, 2 * PAGE, SEGMENT_READ_ONLY, &made), 0);
	assert_true(made.writable);
	assert_int_equal(made.size, 2 * PAGE);
	assert_int_equal(fcntl(made.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	fd = fcntl(made.fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(segment_attach(fd, SEGMENT_POOL, PAGE, 2 * PAGE, false, &seen), 0);
	((uint8_t *)made.base)[5000] = 42;
	assert_int_equal(((uint8_t *)seen.base)[5000], 42);
	assert_int_equal(((struct segment_header *)seen.base)->size, 2 * PAGE);
	segment_release(&seen);
	assert_null(seen.base);
	assert_int_equal(seen.fd, -1);
	segment_release(&seen);
	segment_release(&made);
	segment_release(NULL);
}

static void bad_sizes_are_not_made(void **state)
{
	struct segment made = SEGMENT_NONE;

	(void)state;
	assert_int_equal(segment_create("test", SEGMENT_POOL, 0, SEGMENT_WRITABLE, &made), -EINVAL);
	assert_int_equal(
		segment_create("test", SEGMENT_POOL, PAGE + 1, SEGMENT_WRITABLE, &made), -EINVAL);
	assert_int_equal(segment_create_repeated(
				 "test", SEGMENT_POOL, PAGE, 2 * PAGE, SEGMENT_WRITABLE, &made),
		-EINVAL);
	assert_int_equal(
		segment_create_repeated("test", SEGMENT_POOL, PAGE, 8, SEGMENT_WRITABLE, &made),
		-EINVAL);
	assert_null(made.base);
}

static void only_the_maker_writes(void **state)
{
	struct segment made = SEGMENT_NONE, seen = SEGMENT_NONE;
	int fd;

	(void)state;
	assert_int_equal(segment_create("test", SEGMENT_POOL, PAGE, SEGMENT_READ_ONLY, &made), 0);
	fd = fcntl(made.fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(segment_attach(fd, SEGMENT_POOL, PAGE, PAGE, true, &seen), -EPERM);
	assert_int_equal(segment_attach(fd, SEGMENT_POOL, PAGE, PAGE, false, &seen), 0);
	assert_true(fault_on_write((uint8_t *)seen.base + 100));
	assert_int_equal(mprotect(seen.base, seen.size, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(pwrite(seen.fd, "x", 1, 100), -1);
	/* The maker, for comparison. */
	assert_false(fault_on_write((uint8_t *)made.base + 100));
	assert_int_equal(ftruncate(seen.fd, 0), -1);
	assert_int_equal(ftruncate(seen.fd, (off_t)(2 * PAGE)), -1);
	segment_release(&seen);
	segment_release(&made);
}

static void a_peer_may_write_where_it_is_meant_to(void **state)
{
	struct segment made = SEGMENT_NONE, seen = SEGMENT_NONE;
	int fd;

	(void)state;
	assert_int_equal(segment_create("test", SEGMENT_CURSOR, PAGE, SEGMENT_WRITABLE, &made), 0);
	fd = fcntl(made.fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(segment_attach(fd, SEGMENT_CURSOR, PAGE, PAGE, true, &seen), 0);
	assert_true(seen.writable);
	((uint8_t *)seen.base)[100] = 7;
	assert_int_equal(((uint8_t *)made.base)[100], 7);
	assert_int_equal(segment_protect(&made), 0);
	assert_false(made.writable);
	assert_true(fault_on_write((uint8_t *)made.base + 100));
	assert_int_equal(ftruncate(seen.fd, 0), -1);
	segment_release(&seen);
	segment_release(&made);
}

static void the_end_is_followed_by_the_beginning(void **state)
{
	struct segment made = SEGMENT_NONE, seen = SEGMENT_NONE;
	uint8_t *data;
	int fd;

	(void)state;
	assert_int_equal(segment_create_repeated(
				 "test", SEGMENT_RING, 3 * PAGE, PAGE, SEGMENT_READ_ONLY, &made),
		0);
	assert_int_equal(made.size, 5 * PAGE);
	fd = fcntl(made.fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(
		segment_attach_repeated(fd, SEGMENT_RING, PAGE, 3 * PAGE, PAGE, false, &seen), 0);
	data = (uint8_t *)made.base + PAGE;
	memcpy(data + 2 * PAGE - 3, "abcdef", 6);
	assert_memory_equal(data, "def", 3);
	assert_memory_equal((uint8_t *)seen.base + 3 * PAGE - 3, "abcdef", 6);
	assert_true(fault_on_write((uint8_t *)seen.base + 4 * PAGE));
	segment_release(&seen);
	segment_release(&made);
}

static void each_header_field_counts(void **state)
{
	struct segment_header header = good_header(PAGE);

	(void)state;
	assert_int_equal(attach_foreign(&header, SEALS), 0);
	header.compatible = UINT64_MAX;
	assert_int_equal(attach_foreign(&header, SEALS), 0);
	header = good_header(PAGE);
	header.magic ^= 1;
	assert_int_equal(attach_foreign(&header, SEALS), -EINVAL);
	header = good_header(PAGE);
	header.kind = SEGMENT_POOL;
	assert_int_equal(attach_foreign(&header, SEALS), -EINVAL);
	header = good_header(PAGE);
	header.version++;
	assert_int_equal(attach_foreign(&header, SEALS), -EPROTO);
	header = good_header(PAGE);
	header.incompatible = UINT64_C(1) << 63;
	assert_int_equal(attach_foreign(&header, SEALS), -EPROTO);
	header = good_header(PAGE + 1);
	assert_int_equal(attach_foreign(&header, SEALS), -EINVAL);
	header = good_header(PAGE);
	header.reserved0 = 1;
	assert_int_equal(attach_foreign(&header, SEALS), -EINVAL);
	for (int i = 0; i < 3; i++) {
		header = good_header(PAGE);
		header.reserved1[i] = 1;
		assert_int_equal(attach_foreign(&header, SEALS), -EINVAL);
	}
}

/* A peer that could shrink its segment could make us die of SIGBUS. */
static void seals_are_asked_for(void **state)
{
	struct segment_header header = good_header(PAGE);

	(void)state;
	assert_int_equal(attach_foreign(&header, 0), -EPERM);
	assert_int_equal(attach_foreign(&header, F_SEAL_GROW | F_SEAL_SEAL), -EPERM);
	assert_int_equal(attach_foreign(&header, F_SEAL_SHRINK), 0);
}

static void other_files_are_refused(void **state)
{
	struct segment segment = SEGMENT_NONE;
	char path[] = "/tmp/tracefan-segment-XXXXXX";
	int ends[2], fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_true(segment_attach(fd, SEGMENT_RING, PAGE, PAGE, false, &segment) < 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(
		segment_attach(ends[0], SEGMENT_RING, PAGE, PAGE, false, &segment), -EINVAL);
	assert_int_equal(close(ends[0]) | close(ends[1]), 0);
	assert_int_equal(segment_attach(-1, SEGMENT_RING, PAGE, PAGE, false, &segment), -EBADF);
	assert_null(segment.base);
}

static void huge_pages_are_refused(void **state)
{
	struct segment segment = SEGMENT_NONE;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	assert_int_equal(
		segment_attach(fd, SEGMENT_RING, PAGE, SIZE_MAX / 2, false, &segment), -EINVAL);
	assert_int_equal(close(fd), 0);
}

static void sizes_have_bounds(void **state)
{
	static const size_t sizes[] = { 0, 1, PAGE - 1, PAGE, 2 * PAGE + 1, 4 * PAGE };
	struct segment segment = SEGMENT_NONE;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct segment_header header = good_header(sizes[i]);
		int fd = foreign_segment(
			sizes[i], sizes[i] >= sizeof(header) ? &header : NULL, SEALS);

		assert_int_equal(
			segment_attach(fd, SEGMENT_RING, 2 * PAGE, 3 * PAGE, false, &segment),
			-EINVAL);
		assert_int_equal(
			segment_attach(fd, SEGMENT_RING, 0, PAGE - 1, false, &segment), -EINVAL);
		assert_int_equal(close(fd), 0);
	}
}

static void blobs_travel_whole(void **state)
{
	void *data = NULL;
	size_t size = 99;
	int fd;

	(void)state;
	fd = segment_blob_create("blob", "hello", 5);
	assert_true(fd >= 0);
	assert_int_equal(segment_blob_read(fd, 4, &data, &size), -EFBIG);
	assert_null(data);
	assert_int_equal(segment_blob_read(fd, 5, &data, &size), 0);
	assert_int_equal(size, 5);
	assert_string_equal(data, "hello");
	free(data);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_ptr_equal(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(close(fd), 0);
	fd = segment_blob_create("blob", NULL, 0);
	assert_true(fd >= 0);
	assert_int_equal(segment_blob_read(fd, 0, &data, &size), 0);
	assert_int_equal(size, 0);
	assert_string_equal(data, "");
	free(data);
	assert_int_equal(close(fd), 0);
}

/* What can still be written could change between our check and our use. */
static void writable_blobs_are_refused(void **state)
{
	void *data = NULL;
	size_t size;
	int fd;

	(void)state;
	fd = foreign_segment(PAGE, NULL, SEALS);
	assert_int_equal(segment_blob_read(fd, PAGE, &data, &size), -EPERM);
	assert_int_equal(close(fd), 0);
	fd = foreign_segment(PAGE, NULL, F_SEAL_WRITE);
	assert_int_equal(segment_blob_read(fd, PAGE, &data, &size), -EPERM);
	assert_int_equal(close(fd), 0);
	fd = foreign_segment(PAGE, NULL, F_SEAL_WRITE | F_SEAL_SHRINK);
	assert_int_equal(segment_blob_read(fd, PAGE, &data, &size), 0);
	free(data);
	assert_int_equal(close(fd), 0);
}

static void duplicates_are_all_or_none(void **state)
{
	const int good[2] = { 0, 1 }, bad[2] = { 0, -1 };
	int made[2] = { -1, -1 };
	int probe;

	(void)state;
	assert_int_equal(segment_duplicate(good, made, 2), 0);
	assert_int_equal(fcntl(made[1], F_GETFD), FD_CLOEXEC);
	assert_int_equal(close(made[0]) | close(made[1]), 0);
	probe = dup(0);
	assert_int_equal(close(probe), 0);
	made[0] = made[1] = -1;
	assert_int_equal(segment_duplicate(bad, made, 2), -EBADF);
	assert_int_equal(made[0], -1);
	/* The first was closed again: its number is free. */
	assert_int_equal(dup(0), probe);
	assert_int_equal(close(probe), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(created_and_attached),
		cmocka_unit_test(bad_sizes_are_not_made),
		cmocka_unit_test(only_the_maker_writes),
		cmocka_unit_test(a_peer_may_write_where_it_is_meant_to),
		cmocka_unit_test(the_end_is_followed_by_the_beginning),
		cmocka_unit_test(each_header_field_counts),
		cmocka_unit_test(seals_are_asked_for),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(huge_pages_are_refused),
		cmocka_unit_test(sizes_have_bounds),
		cmocka_unit_test(blobs_travel_whole),
		cmocka_unit_test(writable_blobs_are_refused),
		cmocka_unit_test(duplicates_are_all_or_none),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
