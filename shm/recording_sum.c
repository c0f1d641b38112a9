#include "shm/recording_sum.h"

#include <string.h>

#define LANES 4

/* Each step can be undone, so that one word that differs always makes another result. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}

/* Lanes, since a step has to wait for the one before it. */
static uint64_t sum_bytes(uint64_t sum, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t lanes[LANES] = { sum, 1, 2, 3 }, words[LANES];

	for (; size >= sizeof(words); size -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (size_t i = 0; i < LANES; i++)
			lanes[i] = mix(lanes[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	if (size)
		memcpy(words, at, size);
	for (size_t i = 0; i < LANES; i++)
		lanes[i] = mix(lanes[i], words[i]);
	for (size_t i = 1; i < LANES; i++)
		lanes[0] = mix(lanes[0], lanes[i]);
	return lanes[0];
}

uint64_t recording_sum_header(const struct recording_header *header)
{
	struct recording_header plain = *header;
	uint64_t sum;

	plain.sum = 0;
	sum = sum_bytes(0, &plain, sizeof(plain));
	return sum ? sum : 1;
}

uint32_t recording_sum_frame(const struct recording_frame *frame, const void *payload, size_t size)
{
	struct recording_frame plain = *frame;
	uint64_t sum;

	recording_sum_set(&plain, 0);
	sum = sum_bytes(sum_bytes(0, &plain, sizeof(plain)), payload, size);
	return (uint32_t)(sum ^ sum >> 24 ^ sum >> 48) & 0xffffff;
}

uint32_t recording_sum_of(const struct recording_frame *frame)
{
	return frame->sum[0] | (uint32_t)frame->sum[1] << 8 | (uint32_t)frame->sum[2] << 16;
}

void recording_sum_set(struct recording_frame *frame, uint32_t sum)
{
	frame->sum[0] = (uint8_t)sum;
	frame->sum[1] = (uint8_t)(sum >> 8);
	frame->sum[2] = (uint8_t)(sum >> 16);
}
