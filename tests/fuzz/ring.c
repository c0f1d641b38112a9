/* A record ring with a bad peer. The first byte picks the side under test and the overflow policy.
 *
 * A bad writer (bit 1 clear): the bytes are the ring's first page behind the segment's header, and
 * then its data, over and over; the consumer reads to the end. A bad consumer (bit 1 set): the
 * bytes are commands of nine bytes each, which make the writer write and set the cursor to
 * anything. */
#include "shm/ring.h"
#include "tests/support/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPACITY ((size_t)RING_CAPACITY_MIN)
#define HEAD     (sizeof(struct ring_head) - sizeof(struct segment_header))

static void touch(const struct ring_reader *reader, const struct record_header *record)
{
	const uint8_t *payload = (const void *)(record + 1);
	const uint32_t size = ring_reader_payload_size(reader, record);
	volatile uint8_t sum = 0;

	if (reader->current_size < sizeof(*record) || size > reader->current_size - sizeof(*record))
		abort();
	for (uint32_t i = 0; i < size; i++)
		sum = (uint8_t)(sum + payload[i]);
}

static void read_to_the_end(struct ring_reader *reader)
{
	const struct record_header *record;
	const uint64_t begin = ring_reader_position(reader);
	int r = 1;

	/* No record is smaller than its header, so that a lap has an end. */
	for (size_t i = 0; i < 2 * CAPACITY / sizeof(*record) && (r == 1 || r == -EOVERFLOW); i++) {
		r = ring_reader_next(reader, &record);
		if (r == 1)
			touch(reader, record);
	}
	if (r == -EBADMSG && ring_reader_next(reader, &record) != -EBADMSG)
		abort();
	if (reader->lost_events > (ring_reader_position(reader) - begin) / sizeof(*record))
		abort();
	(void)ring_reader_prepare_sleep(reader);
	ring_reader_release_read(reader);
}

static void bad_writer(struct ring_writer *writer, const uint8_t *bytes, size_t size)
{
	const size_t head = size < HEAD ? size : HEAD;
	struct ring_reader reader;
	int fds[3];

	memcpy((uint8_t *)writer->head.base + sizeof(struct segment_header), bytes, head);
	for (size_t at = 0; size > head && at < CAPACITY; at += size - head)
		memcpy(writer->data + at, bytes + head,
			size - head < CAPACITY - at ? size - head : CAPACITY - at);
	if (ring_writer_share(writer, fds) < 0)
		return;
	if (ring_reader_attach(fds, &reader) == 0) {
		read_to_the_end(&reader);
		ring_reader_release(&reader);
		return;
	}
	for (int i = 0; i < 3; i++)
		(void)close(fds[i]);
}

static void check_writer(const struct ring_writer *writer)
{
	const uint64_t reserved = ring_writer_reserved(writer);
	const uint64_t floor =
		writer->overflow == RING_OVERWRITE ? writer->oldest : writer->consumed;

	if (reserved - floor > CAPACITY || writer->published - floor > CAPACITY ||
		reserved - writer->published > CAPACITY ||
		writer->spare_count > CAPACITY / RING_CHUNK_MIN)
		abort();
}

static void write_record(struct ring_writer *writer, size_t size)
{
	struct record_header *record = ring_writer_reserve(writer, size);

	if (!record) {
		if (writer->overflow == RING_OVERWRITE && size <= writer->record_max)
			abort();
		return;
	}
	if ((uint8_t *)record < writer->data ||
		(uint8_t *)record + size > writer->data + 2 * CAPACITY)
		abort();
	memset(record, 0x55, size);
	record->size = (uint32_t)size;
	record->kind = RECORD_EVENT;
}

static void bad_consumer(struct ring_writer *writer, const uint8_t *bytes, size_t size)
{
	struct ring_cursor *cursor =
		mmap(NULL, RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, writer->cursor.fd, 0);
	uint64_t value;

	if (cursor == MAP_FAILED)
		return;
	for (; size >= 9; bytes += 9, size -= 9) {
		memcpy(&value, bytes + 1, sizeof(value));
		if (bytes[0] & 1)
			write_record(writer,
				sizeof(struct record_header) + (size_t)(bytes[0] & 0xf0) * 64);
		if (bytes[0] & 2)
			cursor->consumed =
				bytes[0] & 8 ? writer->published - (uint8_t)value : value;
		if (bytes[0] & 4) {
			cursor->sleeps = value;
			(void)ring_writer_publish(writer);
		}
		if (ring_writer_used(writer) > CAPACITY)
			abort();
		check_writer(writer);
	}
	(void)munmap(cursor, RING_PAGE);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct ring_writer writer;

	if (size < 1 || ring_writer_create(
				CAPACITY, bytes[0] & 1 ? RING_OVERWRITE : RING_DROP, &writer) < 0)
		return;
	if (bytes[0] & 2)
		bad_consumer(&writer, bytes + 1, size - 1);
	else
		bad_writer(&writer, bytes + 1, size - 1);
	ring_writer_release(&writer);
}
