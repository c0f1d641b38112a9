/* What stands in a recording or a page's head, however it came there. */
#include "reader/page_head.h"
#include "reader/recording_frame.h"
#include "shm/recording_sum.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct recording_header good_header(void)
{
	return (struct recording_header){ .magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.source = SOURCE_RAW,
		.subbuf_size = 4096,
		.cpu_count = 2 };
}

static const char *refused(const struct recording_header *header, bool *ret_damaged)
{
	return recording_header_refused(header, sizeof(*header), ret_damaged);
}

static void test_header(void **state)
{
	struct recording_header header = good_header();
	struct {
		size_t offset;
		uint8_t value;
		bool is_version;
	} damages[] = {
		{ offsetof(struct recording_header, magic), 0 },
		{ offsetof(struct recording_header, version), 1, true },
		{ offsetof(struct recording_header, version), 3, true },
		{ offsetof(struct recording_header, source), 3 },
		{ offsetof(struct recording_header, subbuf_size) + 1, 0 },
		{ offsetof(struct recording_header, subbuf_size) + 3, 1 },
		{ offsetof(struct recording_header, cpu_count), 0 },
		{ offsetof(struct recording_header, cpu_count) + 3, 1 },
		{ offsetof(struct recording_header, incompatible) + 7, 0x80, true },
	};

	bool damaged;

	(void)state;
	assert_null(refused(&header, &damaged));
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		header = good_header();
		((uint8_t *)&header)[damages[i].offset] = damages[i].value;
		assert_non_null(refused(&header, &damaged));
		assert_int_equal(damaged, !damages[i].is_version);
	}
	header = good_header();
	memset(header.tag, 'x', sizeof(header.tag));
	assert_non_null(refused(&header, &damaged));
	assert_true(damaged);
	header = good_header();
	header.magic = __builtin_bswap64(header.magic);
	assert_non_null(strstr(refused(&header, &damaged), "byte order"));
	assert_false(damaged);
	header.magic = UINT64_C(0x46454c457f020101);
	assert_non_null(strstr(refused(&header, &damaged), "not a tracefan recording"));
	assert_false(damaged);
	header = good_header();
	header.sum = recording_sum_header(&header);
	assert_null(refused(&header, &damaged));
	header.group[3] ^= 1;
	assert_non_null(refused(&header, &damaged));
	assert_true(damaged);
	/* Cut off behind its mark, and in it. */
	for (size_t size = 5; size < sizeof(header); size++) {
		struct recording_header whole = good_header();

		memset(&header, 0, sizeof(header));
		memcpy(&header, &whole, size);
		assert_non_null(recording_header_refused(&header, size, &damaged));
		assert_true(damaged);
	}
}

static void test_frames(void **state)
{
	struct recording_frame frame = { .kind = FRAME_ENTRY, .size = 48 };
	uint64_t size = 0;

	(void)state;
	assert_int_equal(recording_frame_check(&frame, 64, &size), 0);
	assert_true(size == 64);
	assert_int_equal(recording_frame_check(&frame, 63, &size), -ENODATA);
	assert_int_equal(recording_frame_check(&frame, 15, &size), -ENODATA);
	frame.size = 49;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), 0);
	assert_true(size == 72);
	/* The last one, without its padding. */
	assert_int_equal(recording_frame_check(&frame, 65, &size), 0);
	assert_true(size == 65);
	frame.size = UINT64_MAX;
	assert_int_equal(recording_frame_check(&frame, UINT64_MAX / 2, &size), -ENODATA);
	frame = (struct recording_frame){ .kind = 77, .size = 8 };
	assert_int_equal(recording_frame_check(&frame, 1000, &size), 0);
	frame.flags = FRAME_INCOMPATIBLE;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), -EOPNOTSUPP);
	frame.kind = FRAME_NAMES;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), 0);
	frame.flags = 4;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), -EBADMSG);
	frame.flags = 0;
	frame.sum[1] = 1;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), -EBADMSG);
	frame.flags = FRAME_SUMMED;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), 0);
	frame = (struct recording_frame){ .kind = 0 };
	assert_int_equal(recording_frame_check(&frame, 1000, &size), -EBADMSG);
	frame.kind = FRAME_ENTRY | 1 << 16;
	assert_int_equal(recording_frame_check(&frame, 1000, &size), -EBADMSG);
	/* Nothing follows the end. */
	frame.kind = FRAME_END;
	assert_int_equal(recording_frame_check(&frame, sizeof(frame), &size), 0);
	assert_int_equal(recording_frame_check(&frame, sizeof(frame) + 1, &size), -EBADMSG);
	frame.size = 1;
	assert_int_equal(recording_frame_check(&frame, sizeof(frame), &size), -EBADMSG);
}

/* Each bit of a frame changes its sum, wherever it is in the lanes. */
static void test_sums(void **state)
{
	struct recording_frame frame = { .kind = FRAME_ENTRY, .flags = FRAME_SUMMED };
	uint8_t payload[104];
	uint32_t sum;

	(void)state;
	for (size_t size = 0; size <= sizeof(payload); size += 8) {
		memset(payload, 0x5a, sizeof(payload));
		frame.size = size;
		sum = recording_sum_frame(&frame, payload, size);
		recording_sum_set(&frame, sum);
		assert_int_equal(recording_sum_of(&frame), sum);
		assert_int_equal(recording_sum_frame(&frame, payload, size), sum);
		for (size_t bit = 0; bit < 8 * size; bit++) {
			payload[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_not_equal(recording_sum_frame(&frame, payload, size), sum);
			payload[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		frame.kind ^= 1;
		assert_int_not_equal(recording_sum_frame(&frame, payload, size), sum);
		frame.kind ^= 1;
	}
}

static void test_entries(void **state)
{
	struct pool_entry entry = { .kind = POOL_DATA, .length = 4096 };

	(void)state;
	assert_int_equal(recording_entry_check(&entry, sizeof(entry) + 4096, 4096), 0);
	assert_int_equal(recording_entry_stored(&entry, sizeof(entry) + 4096), 4096);
	/* The rest is zeros. */
	assert_int_equal(recording_entry_check(&entry, sizeof(entry) + 40, 4096), 0);
	assert_int_equal(recording_entry_stored(&entry, sizeof(entry) + 40), 40);
	assert_int_equal(recording_entry_check(&entry, sizeof(entry) + 4097, 4096), -EBADMSG);
	assert_int_equal(recording_entry_check(&entry, sizeof(entry) + 4096, 4095), -EBADMSG);
	assert_int_equal(recording_entry_check(&entry, sizeof(entry) - 1, 4096), -EBADMSG);
	entry.length = UINT32_MAX;
	assert_int_equal(recording_entry_check(&entry, UINT64_MAX, 4096), -EBADMSG);
	entry = (struct pool_entry){ .kind = POOL_SWEEP };
	assert_int_equal(recording_entry_check(&entry, sizeof(entry), 4096), 0);
	assert_true(recording_entry_played(&entry));
	entry.kind = POOL_CLEARED;
	assert_int_equal(recording_entry_check(&entry, sizeof(entry), 4096), 0);
	assert_true(recording_entry_played(&entry));
	entry.kind = POOL_END;
	assert_int_equal(recording_entry_check(&entry, sizeof(entry), 4096), 0);
	assert_false(recording_entry_played(&entry));
	entry.kind = POOL_FLUSH;
	assert_false(recording_entry_played(&entry));
	entry.kind = POOL_ACCOUNT;
	assert_false(recording_entry_played(&entry));
	entry.kind = POOL_CLEARED + 1;
	assert_int_equal(recording_entry_check(&entry, sizeof(entry), 4096), -EBADMSG);
	entry.kind = 0;
	assert_int_equal(recording_entry_check(&entry, sizeof(entry), 4096), -EBADMSG);
}

static void test_formats(void **state)
{
	struct recording_format format = { .kind = PROBE_UPROBE, .format_size = 10 };

	(void)state;
	assert_int_equal(recording_format_check(&format, sizeof(format) + 10), 0);
	assert_int_equal(recording_format_check(&format, sizeof(format) + 9), -EBADMSG);
	assert_int_equal(recording_format_check(&format, sizeof(format) - 1), -EBADMSG);
	format.kind = 0;
	assert_int_equal(recording_format_check(&format, sizeof(format) + 10), -EBADMSG);
	format.kind = PROBE_EVENT + 1;
	assert_int_equal(recording_format_check(&format, sizeof(format) + 10), -EBADMSG);
	format.kind = PROBE_USDT;
	memset(format.name, 'x', sizeof(format.name));
	assert_int_equal(recording_format_check(&format, sizeof(format) + 10), -EBADMSG);
}

#define HEADER_PAGE(commit_size, data, size)                                                       \
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"                                 \
	"\tfield: local_t commit;\toffset:8;\tsize:" commit_size ";\tsigned:1;\n"                  \
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"                                 \
	"\tfield: char data;\toffset:" data ";\tsize:" size ";\tsigned:0;\n"

static void test_page_heads(void **state)
{
	/* time 0x20304050607, commit 0x64 with the flag of lost events, little-endian and
	 * big-endian */
	static const uint8_t little[PAGE_HEAD_BYTES] = { 7, 6, 5, 4, 3, 2, 0, 0, 0x64, 0, 0, 0x80 };
	static const uint8_t big[PAGE_HEAD_BYTES] = { 0, 0, 2, 3, 4, 5, 6, 7, 0x80, 0, 0, 0x64 };
	struct page_head head;

	(void)state;
	assert_int_equal(page_head_parse(HEADER_PAGE("8", "16", "4080"), &head), 0);
	assert_int_equal(head.page_size, 4096);
	assert_int_equal(head.data_offset, 16);
	assert_int_equal(head.commit_size, 8);
	assert_int_equal(page_head_parse(HEADER_PAGE("4", "12", "65524"), &head), 0);
	assert_int_equal(head.page_size, 65536);
	assert_int_equal(page_head_fits(&head, little, sizeof(little), false), 2);
	assert_int_equal(page_head_fits(&head, little, sizeof(little), true), 0);
	assert_int_equal(page_head_fits(&head, big, sizeof(big), true), 2);
	assert_int_equal(page_head_fits(&head, big, sizeof(big), false), 0);
	assert_int_equal(page_head_fits(&head, big, 11, true), 0);
	assert_true(page_head_time(&head, little, sizeof(little)) == UINT64_C(0x20304050607));
	head.big_endian = true;
	assert_true(page_head_time(&head, big, sizeof(big)) == UINT64_C(0x20304050607));
	assert_true(page_head_time(&head, big, 7) == 0);

	assert_int_equal(page_head_parse("", &head), -EBADMSG);
	assert_int_equal(page_head_parse(HEADER_PAGE("8", "12", "4084"), &head), -EBADMSG);
	assert_int_equal(page_head_parse(HEADER_PAGE("3", "16", "4084"), &head), -EBADMSG);
	assert_int_equal(page_head_parse(HEADER_PAGE("8", "64", "4032"), &head), -EBADMSG);
	assert_int_equal(page_head_parse(HEADER_PAGE("8", "16", "4294967295"), &head), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_page_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
