#include "shm/ring.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "shm/wake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* How often a consumer tries to load a whole ring_resume. Each failure is an advance of the writer
 * by a step within a few loads; so many in a row are no chance. */
#define RESUME_TRIES 1000

static const struct ring_head *reader_head(const struct ring_reader *reader)
{
	return reader->head.base;
}

static uint64_t reader_load_published(const struct ring_reader *reader)
{
	/* Pairs with the release in ring_writer_show: the records before it are there. */
	return __atomic_load_n(&reader_head(reader)->published, __ATOMIC_ACQUIRE);
}

static void reader_store_cursor(struct ring_reader *reader, uint64_t position)
{
	struct ring_cursor *cursor = reader->cursor.base;

	reader->released = position;
	/* Pairs with the acquire in writer_load_cursor: all reads of the bytes before it are done.
	 */
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
	if (!ring_capacity_valid(capacity) || reader->head.size != RING_HEAD + 2 * capacity)
		return -EINVAL;
	if ((overflow != RING_DROP && overflow != RING_OVERWRITE) || head->reserved0)
		return -EINVAL;
	reader->data = (const uint8_t *)reader->head.base + RING_HEAD;
	reader->capacity = capacity;
	reader->record_max = ring_record_max(capacity);
	reader->overflow = overflow;
	reader->top = align_up(cursor->consumed, RECORD_ALIGN);
	reader->limit = reader->top;
	reader->released = reader->top;
	if (overflow == RING_DROP && reader_load_published(reader) - reader->top > capacity)
		return -EINVAL;
	return 0;
}

static uint64_t reader_load_cursor(const struct ring_reader *reader)
{
	const struct ring_cursor *cursor = reader->cursor.base;

	/* Pairs with the exchange in writer_move_cursor: the pair of this position is there. */
	return __atomic_load_n(&cursor->consumed, __ATOMIC_ACQUIRE);
}

/* RING_OVERWRITE: where the writer moved the cursor to, and how many events began before. */
static int reader_load_resume(const struct ring_reader *reader, struct ring_resume *ret)
{
	const struct ring_head *head = reader_head(reader);

	for (int i = 0; i < 2 * RESUME_TRIES; i++) {
		const uint64_t cursor = reader_load_cursor(reader);
		/* Pairs with the release in writer_store_resume: the pair is there. */
		const uint64_t turn = __atomic_load_n(&head->turn, __ATOMIC_ACQUIRE);
		/* The last pair, or the one before while the cursor was not yet moved to the last. */
		const struct ring_resume *resume = &head->resume[(turn + (uint64_t)i) & 1];
		const uint64_t position = __atomic_load_n(&resume->position, __ATOMIC_RELAXED);
		const uint64_t events = __atomic_load_n(&resume->events, __ATOMIC_RELAXED);

		/* Pairs with the releases in writer_store_resume: had the pair been filled in anew, so would the
		 * cursor or `turn` be another. */
		barrier_acquire();
		if (position == cursor && __atomic_load_n(&head->turn, __ATOMIC_RELAXED) == turn &&
			reader_load_cursor(reader) == cursor) {
			*ret = (struct ring_resume){ .position = position, .events = events };
			return 0;
		}
	}
	return -EBADMSG;
}

/* RING_OVERWRITE: room for one record, and the count of events to begin with. */
static int reader_make_copy(struct ring_reader *reader)
{
	struct ring_resume resume;

	reader->copy_size = reader->record_max;
	reader->copy = malloc(reader->copy_size);
	if (!reader->copy)
		return -ENOMEM;
	if (reader_load_resume(reader, &resume) < 0 || resume.position != reader->top)
		return -EINVAL;
	reader->events = resume.events;
	return 0;
}

static int reader_make(const int fds[3], struct ring_reader *reader)
{
	int r;

	r = check_wait_fd(fds[2]);
	if (r < 0)
		return r;
	r = segment_attach_repeated(fds[0], SEGMENT_RING, RING_HEAD + RING_CAPACITY_MIN,
		RING_HEAD + (size_t)RING_CAPACITY_MAX, RING_HEAD, false, &reader->head);
	if (r < 0)
		return r;
	r = segment_attach(fds[1], SEGMENT_CURSOR, RING_PAGE, RING_PAGE, true, &reader->cursor);
	if (r < 0)
		return r;
	r = reader_check_head(reader);
	if (r < 0)
		return r;
	return reader->overflow == RING_OVERWRITE ? reader_make_copy(reader) : 0;
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
	reader->top = ring_reader_position(reader);
	reader->at = reader->end;
	reader->limit = reader->top;
	return -EBADMSG;
}

/* RING_OVERWRITE: how large the next record may be. */
static uint64_t reader_room(const struct ring_reader *reader)
{
	const uint64_t room = reader->limit - reader->top;

	return room < reader->record_max ? room : reader->record_max;
}

/* Goes on at the oldest record that is still whole. */
static int reader_resume(struct ring_reader *reader)
{
	struct ring_resume resume;
	uint64_t published, skipped, events;

	if (reader_load_resume(reader, &resume) < 0)
		return reader_break(reader);
	published = reader_load_published(reader);
	skipped = resume.position - reader->top;
	events = resume.events - reader->events;
	/* A writer pushes out only what it has published, and no record is smaller than its header.
	 */
	if (!skipped || skipped > published - reader->top || skipped % RECORD_ALIGN ||
		events > skipped / sizeof(struct record_header))
		return reader_break(reader);
	reader->overwritten += skipped;
	reader->lost_events += events;
	reader->events = resume.events;
	reader->top = resume.position;
	reader->limit = published;
	return -EOVERFLOW;
}

/* Copies by words that are each loaded once: the writer may be overwriting them. `size` is a
 * multiple of RECORD_ALIGN within the copy. */
static void copy_words(uint8_t *to, const uint8_t *from, size_t size)
{
	uint64_t *target = (uint64_t *)(void *)to;
	const uint64_t *source = (const uint64_t *)(const void *)from;

	for (size_t i = 0; i < size / sizeof(*target); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* RING_OVERWRITE: moves on behind a record that was copied. False: it was overwritten, wholly or in part. */
static bool reader_claim(struct ring_reader *reader, uint32_t size)
{
	struct ring_cursor *cursor = reader->cursor.base;
	uint64_t position = reader->top;

	/* Pairs with the exchange and the load in writer_move_cursor: bytes are overwritten only behind them, and
	 * after one that passes this position this one fails. */
	return __atomic_compare_exchange_n(&cursor->consumed, &position, position + size, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
}

/* RING_OVERWRITE: the next record. Returns as ring_reader_next. */
static int reader_next_copy(struct ring_reader *reader, const struct record_header **ret)
{
	const struct record_header *record =
		(const void *)(reader->data + (reader->top & (reader->capacity - 1)));
	struct record_header *copy = (void *)reader->copy;
	uint32_t size;

	if (reader->top == reader->limit)
		reader->limit = reader_load_published(reader);
	if (reader->top == reader->limit)
		return 0;
	size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
	/* A torn size must not lead outside, so it is checked before it is known to be whole. */
	if (ring_record_plausible(size, 0, reader_room(reader))) {
		copy_words(reader->copy, (const uint8_t *)record, size);
		if (copy->size == size && ring_record_plausible(size, copy->payload_size, reader_room(reader)) &&
			reader_claim(reader, size)) {
			reader->top += size;
			reader->current_size = size;
			reader->events += copy->kind == RECORD_EVENT;
			*ret = copy;
			return 1;
		}
	}
	/* Pairs with the exchange in writer_move_cursor: if any byte above was a new one, so is the cursor. */
	barrier_acquire();
	return reader_load_cursor(reader) == reader->top ? reader_break(reader) : reader_resume(reader);
}

/* RING_DROP: where the rest of a chunk is passed over, goes on at the chunk's end. False: no
 * record's size is wrong there. */
static bool reader_pass_over(struct ring_reader *reader)
{
	const struct record_header *record = (const void *)reader->at;

	/* Only all of a chunk is passed over. */
	if (reader->at == reader->end || reader->top % ring_chunk_size(reader->capacity) ||
		__atomic_load_n(&record->size, __ATOMIC_RELAXED))
		return false;
	reader->at = reader->end;
	return true;
}

/* RING_DROP: all that was known to be readable has been read. Makes known what is to be read next,
 * up to the end of its chunk. Returns 1, 0 (nothing) or -EBADMSG. */
static int reader_advance(struct ring_reader *reader)
{
	const uint64_t size = ring_chunk_size(reader->capacity), position = reader->top;
	const uint64_t inside = position & (size - 1);
	uint64_t readable;
	uint16_t chunk;

	if (position == reader->limit) {
		reader->limit = reader_load_published(reader);
		if (reader->limit - position > reader->capacity)
			return reader_break(reader);
	}
	if (position != reader->released && (!inside || position == reader->limit))
		reader_store_cursor(reader, position);
	if (position == reader->limit)
		return 0;
	readable = reader->limit - position;
	if (readable > size - inside)
		readable = size - inside;
	/* Published with the first record of the chunk. */
	chunk = __atomic_load_n(
		&reader_head(reader)->order[(position / size) & (reader->capacity / size - 1)],
		__ATOMIC_RELAXED);
	if (chunk >= reader->capacity / size)
		return reader_break(reader);
	reader->at = reader->data + chunk * size + inside;
	reader->end = reader->at + readable;
	reader->top = position + readable;
	return 1;
}

int ring_reader_next_slow(struct ring_reader *reader, const struct record_header **ret)
{
	int r;

	if (reader->broken)
		return -EBADMSG;
	/* The record of the last call is given up by this one. */
	reader->current_size = 0;
	if (reader->overflow == RING_OVERWRITE)
		return reader_next_copy(reader, ret);
	while (reader->at == reader->end || reader_pass_over(reader)) {
		r = reader_advance(reader);
		if (r <= 0)
			return r;
		if (ring_reader_next_fast(reader, ret))
			return 1;
	}
	return reader_break(reader);
}

void ring_reader_release_read(struct ring_reader *reader)
{
	const uint64_t begin = ring_reader_position(reader) - reader->current_size;

	/* RING_OVERWRITE: what was copied has been given up by that. */
	if (reader->overflow == RING_DROP && begin != reader->released)
		reader_store_cursor(reader, begin);
}

bool ring_reader_prepare_sleep(struct ring_reader *reader)
{
	struct ring_cursor *cursor = reader->cursor.base;

	const uint64_t position = ring_reader_position(reader);

	if (reader->broken || position != reader->limit)
		return false;
	wake_prepare_sleep(&cursor->sleeps);
	return reader_load_published(reader) == position;
}

bool ring_reader_is_awaited(const struct ring_reader *reader)
{
	/* Behind the barrier of ring_reader_prepare_sleep, which pairs with the one in
	 * ring_writer_wait: either this load sees the router waiting, or the router's next look
	 * sees the cursor. */
	return __atomic_load_n(&reader_head(reader)->waits, __ATOMIC_RELAXED);
}

bool ring_reader_columns(const struct ring_reader *reader, struct ring_columns *ret)
{
	const struct ring_columns *both = reader_head(reader)->columns;
	const struct ring_columns *last = &both[both[1].serial > both[0].serial];

	*ret = *last;
	if (ret->count > RING_COLUMNS)
		ret->count = 0;
	return ret->serial != 0;
}

uint64_t ring_reader_published(const struct ring_reader *reader)
{
	return reader_load_published(reader);
}

bool ring_reader_is_readerless(const struct ring_reader *reader)
{
	return __atomic_load_n(&reader_head(reader)->readerless, __ATOMIC_RELAXED);
}

bool ring_reader_debt(const struct ring_reader *reader, struct ring_debt *ret)
{
	const uint64_t published = reader_load_published(reader);
	struct ring_debt found = { .serial = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(reader_head(reader)->debts); i++) {
		/* Copied, then looked at: the writer can't be trusted to be gone. */
		const struct ring_debt debt = reader_head(reader)->debts[i];

		if (debt.published == published && debt.serial > found.serial)
			found = debt;
	}
	if (found.serial)
		*ret = found;
	return found.serial != 0;
}
