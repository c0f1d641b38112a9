#include "router/outlet.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

/* A consumer that sleeps is not left asleep while so much of its ring fills up. */
#define WAKE_PART 8

/* Something has to stand before the next event. */
static void set_due(struct outlet *outlet)
{
	outlet->due = true;
	outlet->stop = outlet->ring.at;
}

static uint32_t room_left(enum record_kind kind)
{
	switch (kind) {
	case RECORD_END:
		return 0;
	case RECORD_FLUSHED:
		return OUTLET_MARGIN_FLUSH;
	default:
		return OUTLET_MARGIN_LOST;
	}
}

/* A record that is no event. NULL: no room now. */
static struct record_header *write_record(struct outlet *outlet, enum record_kind kind, uint64_t time, uint64_t trace_id,
	const void *payload, uint32_t payload_size)
{
	struct ring_writer *ring = &outlet->ring;
	uint32_t size = (uint32_t)align_up(sizeof(struct record_header) + payload_size, RECORD_ALIGN);
	struct record_header *record;

	if (ring->overflow == RING_DROP && ring_writer_room(ring) < size + room_left(kind))
		return NULL;
	record = ring_writer_reserve(ring, size);
	outlet->stop = ring->at;
	if (!record)
		return NULL;
	*record = (struct record_header){
		.size = size,
		.kind = (uint8_t)kind,
		.cpu = RECORD_CPU_NONE,
		.time = time,
		.trace_id = trace_id,
		.payload_size = payload_size,
	};
	memcpy(record + 1, payload, payload_size);
	return record;
}

static void merge_lost(struct record_lost *lost, const struct record_lost *more)
{
	bool unknown = lost->count == LOST_COUNT_UNKNOWN || more->count == LOST_COUNT_UNKNOWN;

	if (!lost->at_least) {
		*lost = *more;
		return;
	}
	lost->count = unknown ? LOST_COUNT_UNKNOWN : lost->count + more->count;
	lost->at_least += more->at_least;
	lost->cpu = lost->cpu == more->cpu ? more->cpu : RECORD_CPU_NONE;
	lost->from = more->from < lost->from ? more->from : lost->from;
	lost->to = more->to > lost->to ? more->to : lost->to;
}

static bool write_lost(struct outlet *outlet, struct record_lost *lost)
{
	struct record_header *record;

	if (!lost->at_least)
		return true;
	record = write_record(outlet, RECORD_LOST, lost->to, 0, lost, sizeof(*lost));
	if (!record)
		return false;
	if (lost == &outlet->lost[LOST_RING] && outlet->lost_same) {
		record->cpu = (uint16_t)outlet->lost_cpu;
		record->pid = (int32_t)outlet->lost_same;
		outlet->lost_same = 0;
	}
	if (lost == &outlet->lost[LOST_READER])
		record->trace_id = outlet->reader_total;
	memset(lost, 0, sizeof(*lost));
	return true;
}

static bool write_losses(struct outlet *outlet)
{
	if (outlet->gap_due) {
		struct record_lost gap = { .cpu = RECORD_CPU_NONE, .from = outlet->gap_time, .to = outlet->gap_time };

		if (outlet->gap_until) {
			gap.count = LOST_COUNT_UNKNOWN;
			gap.to = outlet->gap_until;
		}
		if (!write_record(outlet, RECORD_GAP, outlet->gap_time, 0, &gap, sizeof(gap)))
			return false;
		outlet->gap_due = false;
	}
	for (unsigned int source = 0; source < LOST_SOURCES; source++) {
		if (!write_lost(outlet, &outlet->lost[source]))
			return false;
	}
	if (outlet->clock_known) {
		if (!write_record(outlet, RECORD_CLOCK, outlet->clock.mono, 0, &outlet->clock, sizeof(outlet->clock)))
			return false;
		outlet->clock_known = false;
	}
	return true;
}

static bool write_flushes(struct outlet *outlet)
{
	while (outlet->flush_count) {
		struct record_flushed flushed = { .cookie = outlet->flushes[0].cookie };

		if (!write_record(outlet, RECORD_FLUSHED, outlet->flushes[0].time, 0, &flushed, sizeof(flushed)))
			return false;
		outlet->flushes_unread++;
		outlet->flushes_end = ring_writer_reserved(&outlet->ring);
		outlet->flush_count--;
		memmove(outlet->flushes, outlet->flushes + 1, outlet->flush_count * sizeof(outlet->flushes[0]));
	}
	return true;
}

static bool write_filters(struct outlet *outlet)
{
	while (outlet->filter_count) {
		const struct outlet_filter *mark = &outlet->filters[0];
		struct record_filter filter = { .cookie = mark->cookie };

		if (!write_record(outlet, RECORD_FILTER, mark->time, mark->trace_id, &filter, sizeof(filter)))
			return false;
		outlet->filter_count--;
		memmove(outlet->filters, outlet->filters + 1, outlet->filter_count * sizeof(outlet->filters[0]));
	}
	return true;
}

static bool write_throttled(struct outlet *outlet)
{
	while (outlet->throttled_count) {
		const struct outlet_throttled *mark = &outlet->throttled[0];

		if (!write_record(outlet, RECORD_THROTTLED, mark->time, mark->trace_id, &mark->why, sizeof(mark->why)))
			return false;
		outlet->throttled_count--;
		memmove(outlet->throttled, outlet->throttled + 1, outlet->throttled_count * sizeof(outlet->throttled[0]));
	}
	return true;
}

/* Writes what has to stand before the next event. False: no room for all of it yet. At the end what finds no
 * room behind a consumer that does not read is left to the ledger. */
static bool write_due(struct outlet *outlet)
{
	bool done;

	if (!outlet->due)
		return true;
	/* What is overwritten for it is told with it, and nothing is behind it. */
	ring_writer_make_room(&outlet->ring, OUTLET_MARGIN);
	outlet->stop = outlet->ring.at;
	done = write_losses(outlet) && write_filters(outlet) && write_throttled(outlet) && write_flushes(outlet);
	if (outlet->end_due && write_record(outlet, RECORD_END, outlet->end_time, 0, &outlet->end, sizeof(outlet->end))) {
		outlet->end_due = false;
		outlet->ended = true;
	}
	done = outlet->ended || (done && !outlet->end_due);
	outlet->due = !done;
	return done;
}

void outlet_lost(struct outlet *outlet, enum lost_source source, uint32_t cpu, uint64_t count, uint64_t from, uint64_t to)
{
	const struct record_lost lost = {
		.source = source, .cpu = cpu, .count = count, .from = from, .to = to,
		.at_least = count == LOST_COUNT_UNKNOWN ? 1 : count,
	};

	if (!count || (unsigned int)source >= LOST_SOURCES)
		return;
	merge_lost(&outlet->lost[source], &lost);
	set_due(outlet);
}

/* RING_OVERWRITE: a record is about to be overwritten unread. */
static void record_gone(void *context, const struct record_header *record)
{
	struct outlet *outlet = context;
	const void *payload = record + 1;
	struct record_flushed flushed;
	struct record_throttled throttled;
	struct record_filter filter;
	struct record_lost lost;

	switch (record->kind) {
	case RECORD_EVENT:
		outlet->lost_more = true;
		if (outlet->event_gone)
			outlet->event_gone(outlet, record->trace_id);
		return;
	case RECORD_LOST:
		memcpy(&lost, payload, sizeof(lost));
		merge_lost(&outlet->lost[lost.source], &lost);
		break;
	case RECORD_GAP:
		memcpy(&lost, payload, sizeof(lost));
		outlet->gap_time = record->time;
		outlet->gap_until = lost.count == LOST_COUNT_UNKNOWN ? lost.to : 0;
		outlet->gap_due = true;
		break;
	case RECORD_CLOCK:
		outlet->clock_known = true;
		break;
	case RECORD_FLUSHED:
		memcpy(&flushed, payload, sizeof(flushed));
		outlet->flushes_unread--;
		outlet_flushed(outlet, flushed.cookie, record->time);
		break;
	case RECORD_FILTER:
		memcpy(&filter, payload, sizeof(filter));
		if (outlet->filter_count < OUTLET_FILTERS_MAX)
			outlet_filter(outlet, record->trace_id, filter.cookie, record->time);
		break;
	case RECORD_THROTTLED:
		memcpy(&throttled, payload, sizeof(throttled));
		if (outlet->throttled_count < OUTLET_THROTTLED_MAX)
			outlet_throttled(outlet, record->trace_id, record->time, &throttled);
		break;
	default:
		break;
	}
	outlet->due = true;
}

int outlet_init(struct outlet *outlet, size_t capacity, enum ring_overflow overflow)
{
	int r;

	memset(outlet, 0, sizeof(*outlet));
	r = ring_writer_create(capacity, overflow, &outlet->ring);
	if (r < 0)
		return r;
	outlet->ring.gone = record_gone;
	outlet->ring.gone_context = outlet;
	return 0;
}

void outlet_release(struct outlet *outlet)
{
	if (outlet)
		ring_writer_release(&outlet->ring);
}

/* How far events may go in what the ring has given: with nothing behind it, up to the margin. */
static const uint8_t *events_stop(const struct outlet *outlet)
{
	const struct ring_writer *ring = &outlet->ring;

	uint64_t room = (uint64_t)(ring->end - ring->at);

	if (ring->overflow == RING_DROP && !ring->spare_count)
		room = room > OUTLET_MARGIN ? room - OUTLET_MARGIN : 0;
	/* A larger record is for the ring to refuse. */
	return ring->at + (room < ring->record_max ? room : ring->record_max);
}

struct record_header *outlet_reserve_slow(struct outlet *outlet, size_t size, uint64_t time)
{
	struct ring_writer *ring = &outlet->ring;
	struct record_header *record = NULL;

	if (outlet->ended)
		return NULL;
	/* The cursor is looked at only here, so that its cache line is not fetched while there is room. */
	if (ring->overflow == RING_OVERWRITE || ring_writer_room(ring) >= size + 2 * OUTLET_MARGIN) {
		if (write_due(outlet))
			record = ring_writer_reserve(ring, size);
	}
	if (record)
		outlet->stop = outlet->due ? ring->at : events_stop(outlet);
	if (!record)
		outlet_lost(outlet, LOST_RING, RECORD_CPU_NONE, 1, time, time);
	outlet->last_time = time;
	return record;
}

void outlet_clock(struct outlet *outlet, const struct record_clock *clock)
{
	outlet->clock = *clock;
	outlet->clock_known = true;
	set_due(outlet);
}

void outlet_gap(struct outlet *outlet, uint64_t time, uint64_t until)
{
	outlet->gap_time = time;
	outlet->gap_until = until;
	outlet->gap_due = true;
	set_due(outlet);
}

uint32_t outlet_flushes(struct outlet *outlet)
{
	/* Those that were read can't be overwritten unread, and a ring that drops keeps all. */
	if (outlet->ring.overflow == RING_DROP ||
		ring_writer_reserved(&outlet->ring) - ring_writer_used(&outlet->ring) - outlet->flushes_end < UINT64_MAX / 2)
		outlet->flushes_unread = 0;
	return outlet->flush_count + outlet->flushes_unread;
}

void outlet_flushed(struct outlet *outlet, uint64_t cookie, uint64_t time)
{
	outlet->flushes[outlet->flush_count++] = (struct outlet_flush){ .cookie = cookie, .time = time };
	set_due(outlet);
}

void outlet_filter(struct outlet *outlet, uint64_t trace_id, uint64_t cookie, uint64_t time)
{
	outlet->filters[outlet->filter_count++] = (struct outlet_filter){
		.trace_id = trace_id, .cookie = cookie, .time = time,
	};
	set_due(outlet);
}

void outlet_throttled(struct outlet *outlet, uint64_t trace_id, uint64_t time, const struct record_throttled *why)
{
	/* Many at once: what is due already is told first. It finds no room only with a consumer that does not read. */
	if (outlet->throttled_count == OUTLET_THROTTLED_MAX)
		(void)write_due(outlet);
	if (outlet->throttled_count == OUTLET_THROTTLED_MAX)
		return;
	outlet->throttled[outlet->throttled_count++] = (struct outlet_throttled){
		.trace_id = trace_id, .time = time, .why = *why,
	};
	set_due(outlet);
}

void outlet_end(struct outlet *outlet, uint64_t time, const struct record_end *end)
{
	if (outlet->end_due || outlet->ended)
		return;
	outlet->end = *end;
	outlet->end_time = time > outlet->last_time ? time : outlet->last_time;
	outlet->end_due = true;
	set_due(outlet);
}

void outlet_lost_at(struct outlet *outlet, uint64_t time, uint32_t cpu)
{
	outlet->lost_more = true;
	outlet->lost_same = outlet->lost_time == time && outlet->lost_cpu == cpu ? outlet->lost_same + 1 : 1;
	outlet->lost_time = time;
	outlet->lost_cpu = cpu;
}

/* For the consumer, should this process die before it can tell. */
static void owe_losses(struct outlet *outlet)
{
	struct ring_debt debt = { .cpu = outlet->lost_cpu, .same = outlet->lost_same, .reader_total = outlet->reader_total };
	bool any = false;

	for (unsigned int source = 0; source < LOST_SOURCES; source++) {
		debt.lost[source] = outlet->lost[source];
		any |= outlet->lost[source].at_least > 0;
	}
	if (any)
		ring_writer_owe(&outlet->ring, &debt);
}

static void await_room(struct outlet *outlet, bool *which, bool waits)
{
	if (*which == waits)
		return;
	*which = waits;
	ring_writer_wait(&outlet->ring, outlet->due_waits || outlet->events_wait);
}

void outlet_await_room(struct outlet *outlet, bool waits)
{
	await_room(outlet, &outlet->events_wait, waits);
}

/* Nothing may come behind what is due for long, so the consumer is asked to say when there is room. False: there is
 * none yet. */
static bool write_due_or_wait(struct outlet *outlet)
{
	bool done = write_due(outlet);

	if (!done && outlet->ring.overflow == RING_DROP) {
		await_room(outlet, &outlet->due_waits, true);
		done = write_due(outlet);
	}
	if (done)
		await_room(outlet, &outlet->due_waits, false);
	return done;
}

int outlet_publish(struct outlet *outlet)
{
	if (!write_due_or_wait(outlet))
		owe_losses(outlet);
	if (__builtin_expect(outlet->lost_more, 0) && outlet->columns)
		outlet->columns(outlet);
	ring_writer_show(&outlet->ring);
	return ring_writer_unannounced(&outlet->ring) >= outlet->ring.capacity / WAKE_PART ? outlet_wake(outlet) : 0;
}

int outlet_wake(struct outlet *outlet)
{
	return ring_writer_wake(&outlet->ring);
}

size_t outlet_room(struct outlet *outlet)
{
	struct ring_writer *ring = &outlet->ring;
	uint64_t room;

	if (ring->overflow == RING_OVERWRITE)
		return ring->capacity;
	room = ring_writer_room(ring);
	return room > 2 * OUTLET_MARGIN ? room - 2 * OUTLET_MARGIN : 0;
}
