#include "shm/ring.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* RING_OVERWRITE gives way in steps of a part of the ring, so that the barrier is not paid per record. */
#define OVERWRITE_STEPS 64
/* How often a consumer tries to get `oldest` and its count of events from one moment. Each failure is an
 * advance of the writer within a few loads; so many in a row are no chance. */
#define OLDEST_TRIES 1000

static uint64_t record_max(uint64_t capacity)
{
	return capacity / 4 < RECORD_SIZE_MAX ? capacity / 4 : RECORD_SIZE_MAX;
}

static bool capacity_valid(uint64_t capacity)
{
	return is_power_of_two(capacity) && capacity >= RING_CAPACITY_MIN && capacity <= RING_CAPACITY_MAX;
}

/* Duplicates n descriptors, all or none. */
static int duplicate(const int *fds, int *ret_fds, unsigned int n)
{
	int made[8];

	for (unsigned int i = 0; i < n; i++) {
		made[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (made[i] < 0) {
			int error = errno;

			while (i)
				(void)close_fd(made[--i]);
			return -error;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		ret_fds[i] = made[i];
	return 0;
}

/* ---- the router's end ---- */

static struct ring_head *writer_head(const struct ring_writer *writer)
{
	return writer->head.base;
}

static int writer_make(size_t capacity, enum ring_overflow overflow, struct ring_writer *writer)
{
	struct ring_head *head;
	int r;

	r = segment_create_repeated("tracefan-ring", SEGMENT_RING, RING_PAGE + capacity, RING_PAGE,
		SEGMENT_READ_ONLY, &writer->head);
	if (r < 0)
		return r;
	r = segment_create("tracefan-cursor", SEGMENT_CURSOR, RING_PAGE, SEGMENT_WRITABLE, &writer->cursor);
	if (r < 0)
		return r;
	r = segment_protect(&writer->cursor);
	if (r < 0)
		return r;
	r = wake_create(&writer->wait_fd, &writer->wake_fd);
	if (r < 0)
		return r;
	head = writer_head(writer);
	head->capacity = capacity;
	head->overflow = overflow;
	writer->data = (uint8_t *)writer->head.base + RING_PAGE;
	writer->capacity = capacity;
	writer->record_max = record_max(capacity);
	writer->overflow = overflow;
	return 0;
}

int ring_writer_create(size_t capacity, enum ring_overflow overflow, struct ring_writer *ret)
{
	struct ring_writer writer = {
		.head = SEGMENT_NONE, .cursor = SEGMENT_NONE, .wake_fd = -1, .wait_fd = -1
	};
	int r;

	if (!capacity_valid(capacity) || (overflow != RING_DROP && overflow != RING_OVERWRITE))
		return -EINVAL;
	r = writer_make(capacity, overflow, &writer);
	if (r < 0) {
		ring_writer_release(&writer);
		return r;
	}
	*ret = writer;
	return 0;
}

void ring_writer_release(struct ring_writer *writer)
{
	if (!writer)
		return;
	segment_release(&writer->head);
	segment_release(&writer->cursor);
	writer->wake_fd = close_fd(writer->wake_fd);
	writer->wait_fd = close_fd(writer->wait_fd);
	writer->data = NULL;
}

/* Loads the consumer's cursor once. It may only move forward and not past what was published; any other
 * value is the consumer's own loss: it counts as not having moved. */
static void writer_load_cursor(struct ring_writer *writer)
{
	const struct ring_cursor *cursor = writer->cursor.base;
	uint64_t consumed;

	/* Pairs with the release in reader_store_cursor: the consumer has done with the bytes before it. */
	consumed = __atomic_load_n(&cursor->consumed, __ATOMIC_ACQUIRE);
	if (consumed - writer->consumed <= writer->published - writer->consumed)
		writer->consumed = consumed;
}

/* Declares the oldest records overwritten until `size` bytes are free, and some more for the next ones.
 * The sizes are this process's own: nobody else can write to the ring. */
static void writer_push_out(struct ring_writer *writer, size_t size)
{
	struct ring_head *head = writer_head(writer);
	const uint64_t used = writer->reserved - writer->oldest;
	const uint64_t step = writer->capacity / OVERWRITE_STEPS;
	uint64_t want = used + size - writer->capacity;
	uint64_t gone = 0;

	/* Only whole, published records are pushed out, so that `oldest` never passes `published`. */
	if (want > writer->published - writer->oldest)
		(void)ring_writer_publish(writer);
	if (want < step)
		want = step < used ? step : used;
	while (gone < want && writer->oldest + gone != writer->published) {
		const struct record_header *record =
			(const void *)(writer->data + ((writer->oldest + gone) & (writer->capacity - 1)));

		gone += record->size;
		writer->oldest_events += record->kind == RECORD_EVENT;
	}
	writer->oldest += gone;
	__atomic_store_n(&head->oldest_next, writer->oldest, __ATOMIC_RELAXED);
	/* Pairs with barrier_acquire in reader_load_oldest: who sees the count sees oldest_next. */
	barrier_release();
	__atomic_store_n(&head->oldest_events, writer->oldest_events, __ATOMIC_RELAXED);
	/* Pairs with the acquire in reader_load_oldest: publishes oldest_events. */
	__atomic_store_n(&head->oldest, writer->oldest, __ATOMIC_RELEASE);
	/* Before the caller overwrites bytes. Pairs with barrier_acquire in reader_copy: whoever copied a
	 * byte that was written after this also sees the new `oldest`. */
	barrier_full();
	writer->floor = writer->oldest;
}

struct record_header *ring_writer_reserve_slow(struct ring_writer *writer, size_t size)
{
	uint64_t position = writer->reserved;

	if (size > writer->record_max)
		return NULL;
	if (writer->overflow == RING_OVERWRITE) {
		writer_push_out(writer, size);
	} else {
		writer_load_cursor(writer);
		writer->floor = writer->consumed;
		if (size > writer->capacity - (position - writer->floor))
			return NULL;
	}
	writer->reserved = position + size;
	return (struct record_header *)(void *)(writer->data + (position & (writer->capacity - 1)));
}

int ring_writer_publish(struct ring_writer *writer)
{
	const struct ring_cursor *cursor = writer->cursor.base;

	if (writer->published == writer->reserved)
		return 0;
	writer->published = writer->reserved;
	/* Publishes the records' bytes. Pairs with the acquire in reader_load_published. */
	__atomic_store_n(&writer_head(writer)->published, writer->published, __ATOMIC_RELEASE);
	if (!wake_needed(&cursor->sleeps, &writer->signalled))
		return 0;
	return wake_signal(writer->wake_fd);
}

uint64_t ring_writer_used(struct ring_writer *writer)
{
	writer_load_cursor(writer);
	if (writer->overflow == RING_OVERWRITE && writer->consumed - writer->oldest > writer->reserved - writer->oldest)
		return writer->reserved - writer->oldest;
	return writer->reserved - writer->consumed;
}

int ring_writer_share(const struct ring_writer *writer, int ret_fds[3])
{
	const int fds[3] = { writer->head.fd, writer->cursor.fd, writer->wait_fd };

	return duplicate(fds, ret_fds, 3);
}

/* ---- the consumer's end ---- */

static const struct ring_head *reader_head(const struct ring_reader *reader)
{
	return reader->head.base;
}

static uint64_t reader_load_published(const struct ring_reader *reader)
{
	/* Pairs with the release in ring_writer_publish: the records before it are there. */
	return __atomic_load_n(&reader_head(reader)->published, __ATOMIC_ACQUIRE);
}

static void reader_store_cursor(struct ring_reader *reader, uint64_t position)
{
	struct ring_cursor *cursor = reader->cursor.base;

	reader->released = position;
	/* Pairs with the acquire in writer_load_cursor: all reads of the bytes before it are done. */
	__atomic_store_n(&cursor->consumed, position, __ATOMIC_RELEASE);
}

static int check_wait_fd(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISFIFO(st.st_mode) ? 0 : -EINVAL;
}

static int reader_check_head(struct ring_reader *reader)
{
	const struct ring_head *head = reader_head(reader);
	const struct ring_cursor *cursor = reader->cursor.base;
	const uint64_t capacity = __atomic_load_n(&head->capacity, __ATOMIC_RELAXED);
	const uint32_t overflow = __atomic_load_n(&head->overflow, __ATOMIC_RELAXED);

	/* The whole segment is mapped with its data a second time behind it. */
	if (!capacity_valid(capacity) || reader->head.size != RING_PAGE + 2 * capacity)
		return -EINVAL;
	if ((overflow != RING_DROP && overflow != RING_OVERWRITE) || head->reserved0)
		return -EINVAL;
	reader->data = (const uint8_t *)reader->head.base + RING_PAGE;
	reader->capacity = capacity;
	reader->record_max = record_max(capacity);
	reader->overflow = overflow;
	reader->position = align_up(cursor->consumed, RECORD_ALIGN);
	reader->limit = reader->position;
	reader->released = reader->position;
	if (overflow == RING_DROP && reader_load_published(reader) - reader->position > capacity)
		return -EINVAL;
	return 0;
}

static int reader_make(const int fds[3], struct ring_reader *reader)
{
	int r;

	r = check_wait_fd(fds[2]);
	if (r < 0)
		return r;
	r = segment_attach_repeated(fds[0], SEGMENT_RING, RING_PAGE + RING_CAPACITY_MIN,
		RING_PAGE + (size_t)RING_CAPACITY_MAX, RING_PAGE, false, &reader->head);
	if (r < 0)
		return r;
	r = segment_attach(fds[1], SEGMENT_CURSOR, RING_PAGE, RING_PAGE, true, &reader->cursor);
	if (r < 0)
		return r;
	r = reader_check_head(reader);
	if (r < 0)
		return r;
	if (reader->overflow == RING_OVERWRITE) {
		reader->copy_size = reader->record_max;
		reader->copy = malloc(reader->copy_size);
		if (!reader->copy)
			return -ENOMEM;
	}
	return 0;
}

int ring_reader_attach(const int fds[3], struct ring_reader *ret)
{
	struct ring_reader reader = { .head = SEGMENT_NONE, .cursor = SEGMENT_NONE, .wake_fd = -1 };
	int r;

	r = reader_make(fds, &reader);
	if (r < 0) {
		/* The descriptors stay the caller's. */
		reader.head.fd = -1;
		reader.cursor.fd = -1;
		ring_reader_release(&reader);
		return r;
	}
	reader.wake_fd = fds[2];
	*ret = reader;
	return 0;
}

void ring_reader_release(struct ring_reader *reader)
{
	if (!reader)
		return;
	segment_release(&reader->head);
	segment_release(&reader->cursor);
	reader->wake_fd = close_fd(reader->wake_fd);
	free(reader->copy);
	reader->copy = NULL;
	reader->data = NULL;
}

static int reader_break(struct ring_reader *reader)
{
	reader->broken = true;
	/* From here on ring_reader_next always comes to the slow part, which says so. */
	reader->limit = reader->position;
	return -EBADMSG;
}

/* `oldest` and the count of events before it, of one moment. */
static int reader_load_oldest(const struct ring_reader *reader, uint64_t *ret_oldest, uint64_t *ret_events)
{
	const struct ring_head *head = reader_head(reader);

	for (int i = 0; i < OLDEST_TRIES; i++) {
		/* Pairs with the release in writer_push_out: at least its count of events is there. */
		uint64_t oldest = __atomic_load_n(&head->oldest, __ATOMIC_ACQUIRE);
		uint64_t events = __atomic_load_n(&head->oldest_events, __ATOMIC_RELAXED);

		/* Pairs with barrier_release in writer_push_out. */
		barrier_acquire();
		if (__atomic_load_n(&head->oldest_next, __ATOMIC_RELAXED) == oldest) {
			*ret_oldest = oldest;
			*ret_events = events;
			return 0;
		}
	}
	return -EBADMSG;
}

/* Goes on at the oldest record that is still whole. */
static int reader_resume(struct ring_reader *reader)
{
	uint64_t oldest, events, published;

	if (reader_load_oldest(reader, &oldest, &events) < 0)
		return reader_break(reader);
	published = reader_load_published(reader);
	/* The writer never gives up what it has not published, nor takes back. */
	if (oldest - reader->position > published - reader->position || events - reader->events > oldest - reader->position)
		return reader_break(reader);
	reader->overwritten += oldest - reader->position;
	reader->lost_events += events - reader->events;
	reader->events = events;
	reader->position = oldest;
	reader->limit = published;
	reader_store_cursor(reader, oldest);
	return -EOVERFLOW;
}

/* Copies by words that are each loaded once: the writer may be overwriting them. `size` is a multiple of
 * RECORD_ALIGN within the copy. */
static void copy_words(uint8_t *to, const uint8_t *from, size_t size)
{
	uint64_t *target = (uint64_t *)(void *)to;
	const uint64_t *source = (const uint64_t *)(const void *)from;

	for (size_t i = 0; i < size / sizeof(*target); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* RING_OVERWRITE: copies the record at `position`, then proves that the copy is whole. */
static int reader_copy(struct ring_reader *reader, const struct record_header **ret)
{
	const struct record_header *record =
		(const void *)(reader->data + (reader->position & (reader->capacity - 1)));
	struct record_header *copy = (void *)reader->copy;
	const uint32_t size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
	/* A torn size must not lead outside, so it is checked before it is known to be whole. */
	bool plausible = ring_reader_plausible(reader, size, 0);
	uint64_t oldest;

	if (plausible)
		copy_words(reader->copy, (const uint8_t *)record, size);
	/* Pairs with barrier_full in writer_push_out: if any byte above was a new one, so is `oldest`. */
	barrier_acquire();
	oldest = __atomic_load_n(&reader_head(reader)->oldest, __ATOMIC_RELAXED);
	if ((int64_t)(oldest - reader->position) > 0)
		return reader_resume(reader);
	if (!plausible || copy->size != size || !ring_reader_plausible(reader, size, copy->payload_size))
		return reader_break(reader);
	reader->position += size;
	reader->current_size = size;
	reader->events += copy->kind == RECORD_EVENT;
	*ret = copy;
	return 1;
}

int ring_reader_next_slow(struct ring_reader *reader, const struct record_header **ret)
{
	if (reader->broken)
		return -EBADMSG;
	/* The record of the last call is given up by this one. */
	reader->current_size = 0;
	if (reader->position == reader->limit) {
		reader->limit = reader_load_published(reader);
		if (reader->overflow == RING_DROP && reader->limit - reader->position > reader->capacity)
			return reader_break(reader);
	}
	if (reader->position - reader->released >= reader->capacity / 8 ||
		(reader->position == reader->limit && reader->position != reader->released))
		reader_store_cursor(reader, reader->position);
	if (reader->position == reader->limit)
		return 0;
	if (reader->overflow == RING_OVERWRITE)
		return reader_copy(reader, ret);
	return ring_reader_take(reader, ret) > 0 ? 1 : reader_break(reader);
}

void ring_reader_release_read(struct ring_reader *reader)
{
	const uint64_t begin = reader->position - reader->current_size;

	if (begin != reader->released)
		reader_store_cursor(reader, begin);
}

bool ring_reader_prepare_sleep(struct ring_reader *reader)
{
	struct ring_cursor *cursor = reader->cursor.base;

	if (reader->broken || reader->position != reader->limit)
		return false;
	wake_prepare_sleep(&cursor->sleeps);
	return reader_load_published(reader) == reader->position;
}
