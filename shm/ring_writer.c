#include "shm/ring.h"

#include "shm/barrier.h"
#include "shm/past_cache.h"

#include "base/cleanup.h"
#include "shm/wake.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>

/* How often it is tried to move the cursor of a consumer that reads meanwhile. With each failure it has taken a
 * record within two loads; so many in a row are no chance. */
#define CURSOR_TRIES 1000

/* RING_OVERWRITE gives way in steps of a part of the ring, so that the barrier is not paid per
 * record. */
#define OVERWRITE_STEPS 64

static struct ring_head *writer_head(const struct ring_writer *writer)
{
	return writer->head.base;
}

static uint32_t writer_chunks(const struct ring_writer *writer)
{
	return (uint32_t)(writer->capacity / ring_chunk_size(writer->capacity));
}

static int writer_make_chunks(struct ring_writer *writer)
{
	const uint32_t count = writer_chunks(writer);

	writer->spare = calloc(count, sizeof(*writer->spare));
	if (!writer->spare)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		writer->spare[i] = (uint16_t)(count - 1 - i);
	writer->spare_count = count;
	return 0;
}

static int writer_make(size_t capacity, enum ring_overflow overflow, struct ring_writer *writer)
{
	struct ring_head *head;
	int r;

	r = segment_create_repeated("tracefan-ring", SEGMENT_RING, RING_HEAD + capacity, RING_HEAD,
		SEGMENT_READ_ONLY, &writer->head);
	if (r < 0)
		return r;
	r = segment_create(
		"tracefan-cursor", SEGMENT_CURSOR, RING_PAGE, SEGMENT_WRITABLE, &writer->cursor);
	if (r < 0)
		return r;
	r = overflow == RING_DROP ? segment_protect(&writer->cursor) : 0;
	if (r < 0)
		return r;
	r = wake_create(&writer->wait_fd, &writer->wake_fd);
	if (r < 0)
		return r;
	head = writer_head(writer);
	head->capacity = capacity;
	head->overflow = overflow;
	writer->data = (uint8_t *)writer->head.base + RING_HEAD;
	writer->capacity = capacity;
	writer->record_max = ring_record_max(capacity);
	writer->overflow = overflow;
	return overflow == RING_DROP ? writer_make_chunks(writer) : 0;
}

int ring_writer_create(size_t capacity, enum ring_overflow overflow, struct ring_writer *ret)
{
	struct ring_writer writer = {
		.head = SEGMENT_NONE, .cursor = SEGMENT_NONE, .wake_fd = -1, .wait_fd = -1
	};
	int r;

	if (!ring_capacity_valid(capacity) || (overflow != RING_DROP && overflow != RING_OVERWRITE))
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
	free(writer->spare);
	writer->spare = NULL;
	writer->data = writer->at = writer->end = NULL;
}

/* Loads the consumer's cursor once. It may only move forward and not past what was published; any
 * other value is the consumer's own loss: it counts as not having moved. */
static void writer_load_cursor(struct ring_writer *writer)
{
	const struct ring_cursor *cursor = writer->cursor.base;
	uint64_t consumed;

	/* Pairs with the release in reader_store_cursor: the consumer has done with the bytes
	 * before it. */
	consumed = __atomic_load_n(&cursor->consumed, __ATOMIC_ACQUIRE);
	if (consumed - writer->consumed <= writer->published - writer->consumed)
		writer->consumed = consumed;
}

/* Makes known where a consumer goes on whose cursor is moved to writer->oldest. */
static void writer_store_resume(struct ring_writer *writer)
{
	struct ring_head *head = writer_head(writer);
	const uint64_t turn = head->turn + 1;
	struct ring_resume *resume = &head->resume[turn & 1];

	/* Not before the cursor was moved to the place of the other pair. Pairs with barrier_acquire in
	 * reader_load_resume, which then sees that. */
	__atomic_store_n(&resume->position, writer->oldest, __ATOMIC_RELEASE);
	__atomic_store_n(&resume->events, writer->oldest_events, __ATOMIC_RELEASE);
	/* Publishes the pair. Pairs with the acquire in reader_load_resume. */
	__atomic_store_n(&head->turn, turn, __ATOMIC_RELEASE);
}

/* Moves the cursor on to writer->oldest, unless it is there already. Returns the position from which on the
 * consumer has not read what lies before `oldest`, and never will: a copy that it is making now counts for nothing. A
 * consumer that breaks the rules loses what it can. */
static uint64_t writer_move_cursor(struct ring_writer *writer)
{
	struct ring_cursor *cursor = writer->cursor.base;
	const uint64_t last = writer->consumed;

	for (unsigned int i = 0; i < CURSOR_TRIES; i++) {
		/* Pairs with the exchange in reader_claim: the copies of what lies before it are made. */
		uint64_t consumed = __atomic_load_n(&cursor->consumed, __ATOMIC_ACQUIRE);

		if (consumed - last > writer->published - last || consumed % RECORD_ALIGN)
			break;
		writer->consumed = consumed;
		if ((int64_t)(consumed - writer->oldest) >= 0)
			return writer->oldest;
		/* Before the caller overwrites bytes. Pairs with the exchange in reader_claim. */
		if (__atomic_compare_exchange_n(&cursor->consumed, &consumed, writer->oldest, false, __ATOMIC_ACQ_REL,
			    __ATOMIC_RELAXED)) {
			writer->consumed = writer->oldest;
			return consumed;
		}
	}
	if ((int64_t)(last - writer->oldest) >= 0)
		return writer->oldest;
	__atomic_store_n(&cursor->consumed, writer->oldest, __ATOMIC_RELEASE);
	writer->consumed = writer->oldest;
	return last;
}

static const struct record_header *writer_record(const struct ring_writer *writer, uint64_t position)
{
	return (const void *)(writer->data + (position & (writer->capacity - 1)));
}

/* Tells of the records between `from`, where one begins, and writer->oldest that do not lie before `begin`, which is
 * the consumer's word. */
static void writer_tell_gone(struct ring_writer *writer, uint64_t from, uint64_t begin)
{
	if (!writer->gone || (int64_t)(writer->oldest - begin) <= 0)
		return;
	for (uint64_t at = from; at != writer->oldest;) {
		const struct record_header *record = writer_record(writer, at);

		if (at - from >= begin - from)
			writer->gone(writer->gone_context, record);
		at += record->size;
	}
}

/* Declares the oldest records overwritten until `size` bytes are free, and some more for the next
 * ones. The sizes are this process's own: nobody else can write to the ring. */
static void writer_push_out(struct ring_writer *writer, size_t size)
{
	const uint64_t used = ring_writer_reserved(writer) - writer->oldest;
	const uint64_t step = writer->capacity / OVERWRITE_STEPS;
	uint64_t want = used + size - writer->capacity;
	uint64_t gone = 0;

	if (want < step)
		want = step < used ? step : used;
	/* Only whole, published records are pushed out, so that `oldest` never passes `published`; and there is another behind
	 * them, from which the consumer learns where it is if this process dies here. */
	if (want >= writer->published - writer->oldest)
		ring_writer_show(writer);
	while (gone < want && writer->oldest + gone != writer->published) {
		const struct record_header *record = writer_record(writer, writer->oldest + gone);

		gone += record->size;
		writer->oldest_events += record->kind == RECORD_EVENT;
	}
	writer->oldest += gone;
	writer_store_resume(writer);
	writer_tell_gone(writer, writer->oldest - gone, writer_move_cursor(writer));
}

/* RING_OVERWRITE: what lies before `oldest` may be written to. */
static void writer_give_way(struct ring_writer *writer, size_t size)
{
	const uint64_t position = ring_writer_reserved(writer);
	uint64_t room;

	/* All of it is free before the first lap is over. */
	if (size > writer->capacity - (position - writer->oldest))
		writer_push_out(writer, size);
	room = writer->capacity - (position - writer->oldest);
	writer->at = writer->data + (position & (writer->capacity - 1));
	writer->end = writer->at + room;
	writer->top = position + room;
}

/* Takes back the chunks that the consumer has done with. */
static void writer_collect(struct ring_writer *writer)
{
	const struct ring_head *head = writer->head.base;
	const uint64_t size = ring_chunk_size(writer->capacity);

	writer_load_cursor(writer);
	for (; writer->consumed - writer->returned >= size; writer->returned += size)
		writer->spare[writer->spare_count++] =
			head->order[(writer->returned / size) & (writer_chunks(writer) - 1)];
}

/* RING_DROP: ends the chunk in use and takes another one. False: there is none. */
static bool writer_change_chunk(struct ring_writer *writer)
{
	struct ring_head *head = writer_head(writer);
	const uint64_t size = ring_chunk_size(writer->capacity), begin = writer->top;
	uint16_t chunk;

	writer_collect(writer);
	if (!writer->spare_count)
		return false;
	if (writer->at != writer->end)
		((struct record_header *)(void *)writer->at)->size = 0;
	chunk = writer->spare[--writer->spare_count];
	/* Published with the first record in it, by the release in ring_writer_show. */
	__atomic_store_n(&head->order[(begin / size) & (writer_chunks(writer) - 1)], chunk,
		__ATOMIC_RELAXED);
	writer->at = writer->data + chunk * size;
	writer->end = writer->at + size;
	writer->top = begin + size;
	return true;
}

struct record_header *ring_writer_reserve_slow(struct ring_writer *writer, size_t size)
{
	uint8_t *record;

	if (size > writer->record_max)
		return NULL;
	if (writer->overflow == RING_OVERWRITE)
		writer_give_way(writer, size);
	else if (!writer_change_chunk(writer))
		return NULL;
	record = writer->at;
	writer->at = record + size;
	return (struct record_header *)(void *)record;
}

void ring_writer_make_room(struct ring_writer *writer, size_t size)
{
	if (writer->overflow == RING_OVERWRITE && size > (size_t)(writer->end - writer->at))
		writer_give_way(writer, size);
}

void ring_writer_show(struct ring_writer *writer)
{
	const uint64_t reserved = ring_writer_reserved(writer);

	if (writer->published == reserved)
		return;
	writer->published = reserved;
	if (writer->past_cache)
		past_cache_fence();
	writer->past_cache = false;
	/* Publishes the records' bytes. Pairs with the acquire in reader_load_published. */
	__atomic_store_n(&writer_head(writer)->published, writer->published, __ATOMIC_RELEASE);
}

void ring_writer_owe(struct ring_writer *writer, const struct ring_debt *debt)
{
	struct ring_debt *debts = writer_head(writer)->debts;
	struct ring_debt *next = &debts[debts[0].serial > debts[1].serial];
	const uint64_t serial = debts[debts[0].serial > debts[1].serial ? 0 : 1].serial + 1;

	/* Whoever looks after this process died finds either the old one or, with its serial, all of this. */
	__atomic_store_n(&next->serial, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(next->lost, debt->lost, sizeof(next->lost));
	next->cpu = debt->cpu;
	next->same = debt->same;
	next->reader_total = debt->reader_total;
	next->published = ring_writer_reserved(writer);
	__atomic_store_n(&next->serial, serial, __ATOMIC_RELEASE);
}

struct ring_columns *ring_writer_columns_begin(struct ring_writer *writer)
{
	struct ring_columns *columns = &writer_head(writer)->columns[(writer->columns_serial + 1) & 1];

	/* Whoever looks after this process died finds either the other ones or, with their serial, all of these. */
	__atomic_store_n(&columns->serial, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return columns;
}

void ring_writer_columns_end(struct ring_writer *writer, struct ring_columns *columns)
{
	__atomic_store_n(&columns->serial, ++writer->columns_serial, __ATOMIC_RELEASE);
}

int ring_writer_wake(struct ring_writer *writer)
{
	const struct ring_cursor *cursor = writer->cursor.base;
	int r;

	if (writer->announced == writer->published)
		return 0;
	writer->announced = writer->published;
	if (!wake_needed(&cursor->sleeps, &writer->signalled))
		return 0;
	r = wake_signal(writer->wake_fd);
	return r < 0 ? r : 1;
}

int ring_writer_publish(struct ring_writer *writer)
{
	int r;

	ring_writer_show(writer);
	r = ring_writer_wake(writer);
	return r < 0 ? r : 0;
}

uint64_t ring_writer_used(struct ring_writer *writer)
{
	const uint64_t reserved = ring_writer_reserved(writer);

	writer_load_cursor(writer);
	return reserved - writer->consumed;
}

uint64_t ring_writer_fill(const struct ring_writer *writer)
{
	const struct ring_cursor *cursor = writer->cursor.base;
	const uint64_t consumed = __atomic_load_n(&cursor->consumed, __ATOMIC_RELAXED), reserved = ring_writer_reserved(writer);
	const uint64_t used = consumed - writer->consumed <= writer->published - writer->consumed ? reserved - consumed
		: reserved - writer->consumed;

	return used < writer->capacity ? used : writer->capacity;
}

uint64_t ring_writer_room(struct ring_writer *writer)
{
	writer_collect(writer);
	return (uint64_t)(writer->end - writer->at) +
	       writer->spare_count * ring_chunk_size(writer->capacity);
}

int ring_writer_share(const struct ring_writer *writer, int ret_fds[3])
{
	const int fds[3] = { writer->head.fd, writer->cursor.fd, writer->wait_fd };

	return segment_duplicate(fds, ret_fds, 3);
}

void ring_writer_tell_reader(struct ring_writer *writer, bool has_one)
{
	struct ring_head *head = writer->head.base;

	__atomic_store_n(&head->readerless, !has_one, __ATOMIC_RELAXED);
	/* The write to the pipe orders the two: who was woken by it sees the word. */
	(void)wake_signal(writer->wake_fd);
}

void ring_writer_wait(struct ring_writer *writer, bool waits)
{
	struct ring_head *head = writer->head.base;

	__atomic_store_n(&head->waits, waits, __ATOMIC_RELAXED);
	/* Pairs with the barrier in ring_reader_prepare_sleep. */
	barrier_full();
}
