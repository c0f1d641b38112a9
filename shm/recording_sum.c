#include "shm/recording_sum.h"

#include <zlib.h>

uint64_t recording_sum_header(const struct recording_header *header)
{
	struct recording_header plain = *header;

	plain.sum = 0;
	/* Beside the CRC, so that it is never 0, which says that there is none. */
	return UINT64_C(1) << 32 | crc32(0, (const Bytef *)&plain, sizeof(plain));
}

uint32_t recording_sum_frame(const struct recording_frame *frame, const void *payload, size_t size)
{
	struct recording_frame plain = *frame;

	recording_sum_set(&plain, 0);
	return (uint32_t)crc32_z(crc32(0, (const Bytef *)&plain, sizeof(plain)), payload, size) & 0xffffff;
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
