#include "reader/page_head.h"

#include "shm/pool_abi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The low bits of `commit` are the length, a multiple of 4; of the others the top two are flags. */
#define COMMIT_MASK ((1U << 27) - 1)
#define COMMIT_ZERO (7U << 27 | 3)
#define TIME_MAX    (UINT64_C(1) << 56)

static int find_field(
	const char *text, const char *name, unsigned int *ret_offset, unsigned int *ret_size)
{
	const char *at = strstr(text, name), *offset = at ? strstr(at, "offset:") : NULL;

	return offset && sscanf(offset, "offset:%u;\tsize:%u", ret_offset, ret_size) == 2
		       ? 0
		       : -EBADMSG;
}

int page_head_parse(const char *text, struct page_head *ret)
{
	unsigned int commit, commit_size, data, data_size;

	if (find_field(text, " commit;", &commit, &commit_size) < 0 ||
		find_field(text, " data;", &data, &data_size) < 0)
		return -EBADMSG;
	if ((commit_size != 4 && commit_size != 8) || commit > 16 || data < commit + commit_size ||
		data > PAGE_HEAD_BYTES)
		return -EBADMSG;
	if (data_size > POOL_SLOT_SIZE_MAX - data)
		return -EBADMSG;
	*ret = (struct page_head){ .page_size = data + data_size,
		.data_offset = data,
		.commit_offset = commit,
		.commit_size = commit_size };
	return 0;
}

static uint64_t load(const uint8_t *bytes, unsigned int size, bool big_endian)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value = value << 8 | bytes[big_endian ? i : size - 1 - i];
	return value;
}

int page_head_fits(const struct page_head *head, const uint8_t *bytes, size_t size, bool big_endian)
{
	uint64_t commit;
	int points;

	if (size < head->data_offset)
		return 0;
	commit = load(bytes + head->commit_offset, head->commit_size, big_endian);
	points = (commit & COMMIT_MASK) <= head->page_size - head->data_offset &&
		 !(commit & COMMIT_ZERO);
	return points + (load(bytes, 8, big_endian) < TIME_MAX);
}

uint64_t page_head_time(const struct page_head *head, const uint8_t *bytes, size_t size)
{
	return size < 8 ? 0 : load(bytes, 8, head->big_endian);
}
