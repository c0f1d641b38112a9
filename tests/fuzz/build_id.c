/* Any bytes as the begin of a mapped file, and as its notes. */
#include "reader/build_id.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>

static void notes(const uint8_t *bytes, size_t size, uint64_t align)
{
	const uint8_t *id = NULL;
	size_t length = build_id_find(bytes, size, align, &id);

	if (length > STATE_BUILD_ID_MAX || (length && (id < bytes || length > size - (size_t)(id - bytes))))
		abort();
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct build_id_segment segments[BUILD_ID_SEGMENTS];
	int count = build_id_segments(bytes, size, segments);

	if (count > BUILD_ID_SEGMENTS)
		abort();
	for (int i = 0; i < count; i++) {
		if (segments[i].offset < size && segments[i].size <= size - segments[i].offset)
			notes(bytes + segments[i].offset, (size_t)segments[i].size, segments[i].align);
	}
	notes(bytes, size, 4);
	notes(bytes, size, 8);
}
