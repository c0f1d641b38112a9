/* Reading: from the ring's records to the caller's events, and sleeping until there are some. */
#include "consumers/client/connection.h"

#include "consumers/client/stack.h"
#include "shm/wake.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int damaged(struct tfan *tfan)
{
	tfan->broken = failure_set(&tfan->failure, TFAN_FAILED, EBADMSG, -1,
		"the ring of session \"%s\" is damaged: its router is broken", tfan->session_name);
	return tfan->broken;
}

/* Copies what counts of the record: the router could write it at any time. `size` has been checked. */
static inline void take_record(struct tfan *tfan, const struct record_header *record, enum tfan_kind kind, uint32_t size,
	struct tfan_trace *trace)
{
	struct tfan_event *event = &tfan->event;
	const uint16_t cpu = record->cpu;

	event->record = record;
	event->payload_size = size;
	event->head = (struct tfan_head){
		.time = record->time,
		.trace = trace,
		.pid = record->pid,
		.cpu = cpu == RECORD_CPU_NONE ? -1 : cpu,
		.kind = kind,
	};
}

/* Keeps the place in the merged order up to which the caller has seen events. */
static inline void see(struct tfan *tfan)
{
	struct place *seen = &tfan->comeback.seen;
	uint64_t time = tfan->event.head.time;
	uint16_t cpu = (uint16_t)tfan->event.head.cpu;

	seen->count = time == seen->time && cpu == seen->cpu ? seen->count + 1 : 1;
	seen->time = time;
	seen->cpu = cpu;
}

/* The trace of an event that is not of the same one as the last. Returns 0, -ENOENT (it is closed, or not
 * known) or another -errno. */
static int find_part(struct tfan *tfan, uint64_t id, struct trace_part **ret)
{
	struct trace_part *part = trace_index_find(&tfan->index, id);
	int rc;

	if (!part) {
		rc = tfan->all_events ? trace_adopt(tfan, id, &part) : -ENOENT;
		if (rc)
			return rc;
	}
	if (part->trace->unknown)
		return -ENOENT;
	*ret = part;
	return 0;
}

/* Returns 1 (an event for the caller), 0 (of a trace that is closed, or not known) or -errno. */
static inline int take_event(struct tfan *tfan, const struct record_header *record)
{
	struct tfan_event *event = &tfan->event;
	struct trace_part *part = event->part;
	uint64_t id = record->trace_id;
	uint32_t size;
	int rc;

	if (__builtin_expect(!part || part->id != id, 0)) {
		rc = find_part(tfan, id, &part);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		event->part = part;
	}
	if (tfan->comeback.passing && comeback_knows(tfan, record, part->trace->enabled_at)) {
		part->passed++;
		return 0;
	}
	size = ring_reader_payload_size(&tfan->ring, record);
	if (record->flags & RECORD_STACKED && stack_take(tfan, &record) < 0)
		return damaged(tfan);
	part->delivered++;
	take_record(tfan, record, TFAN_EVENT, size, part->trace);
	event->direct = event->payload_size >= part->direct_size;
	if (!(record->flags & RECORD_LATE))
		see(tfan);
	return 1;
}

static int take_clock(struct tfan *tfan)
{
	struct record_clock clock;

	memcpy(&clock, event_payload(&tfan->event), sizeof(clock));
	clock_model_add(&tfan->clock, clock.mono, clock.real, clock.error);
	return 0;
}

static int take_loss(struct tfan *tfan, const struct record_lost *lost);

/* A router that takes over may tell again what its predecessor told last. Returns as take_event. */
static int take_lost(struct tfan *tfan)
{
	const struct record_header *record = tfan->event.record;
	struct record_lost lost;
	uint64_t count;

	memcpy(&lost, event_payload(&tfan->event), sizeof(lost));
	if (lost.source == LOST_RING && record->cpu != RECORD_CPU_NONE && record->pid > 0)
		comeback_see_lost(tfan, record->time, record->cpu, (uint32_t)record->pid);
	if (lost.source != LOST_READER || !record->trace_id)
		return 1;
	count = comeback_see_reader(tfan, record->trace_id, lost.count);
	if (count == 0 || count == lost.count)
		return count != 0;
	lost.count = lost.at_least = count;
	return take_loss(tfan, &lost);
}

static int take_flushed(struct tfan *tfan)
{
	if (tfan->flushes > 0)
		tfan->flushes--;
	return 1;
}

/* A trace that has several parts has a mark from each. */
static int take_of_trace(struct tfan *tfan)
{
	int rc = find_part(tfan, tfan->event.record->trace_id, &tfan->event.part);

	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		tfan->event.head.trace = tfan->event.part->trace;
	return rc ? rc : 1;
}

static int take_throttled(struct tfan *tfan)
{
	int rc = take_of_trace(tfan);

	if (rc == 1)
		tfan->event.part->throttled_at = tfan->event.head.time;
	return rc;
}

static int take_end(struct tfan *tfan)
{
	struct record_end end;

	memcpy(&end, event_payload(&tfan->event), sizeof(end));
	tfan->end_ledger = end.session;
	tfan->has_end_ledger = end.accounted;
	memcpy(tfan->event.end_message, end.message, sizeof(end.message));
	tfan->event.end_message[sizeof(end.message) - 1] = '\0';
	tfan->event.end_reason = end.reason;
	tfan->ended = true;
	return 1;
}

/* What is no event. Kinds of a newer router are passed over. Returns as take_event. */
static int take_other(struct tfan *tfan, const struct record_header *record, uint32_t size)
{
	static const struct {
		uint8_t kind; /* enum tfan_kind */
		uint32_t least; /* bytes of payload */
		int (*take)(struct tfan *tfan); /* NULL: to the caller as it is */
	} rows[] = {
		[RECORD_LOST] = { TFAN_LOST, sizeof(struct record_lost), take_lost },
		[RECORD_STATE] = { TFAN_STATE, 0, NULL },
		[RECORD_GAP] = { TFAN_GAP, sizeof(struct record_lost), NULL },
		[RECORD_END] = { TFAN_END, sizeof(struct record_end), take_end },
		[RECORD_FLUSHED] = { TFAN_FLUSHED, 0, take_flushed },
		[RECORD_FILTER] = { TFAN_FILTER, sizeof(struct record_filter), take_of_trace },
		[RECORD_THROTTLED] = { TFAN_THROTTLED, sizeof(struct record_throttled), take_throttled },
		[RECORD_CLOCK] = { TFAN_EVENT, sizeof(struct record_clock), take_clock },
	};
	uint8_t kind = record->kind;

	if (kind >= sizeof(rows) / sizeof(rows[0]) || rows[kind].kind == 0)
		return 0;
	if (size < rows[kind].least)
		return damaged(tfan);
	take_record(tfan, record, (enum tfan_kind)rows[kind].kind, size, NULL);
	return rows[kind].take ? rows[kind].take(tfan) : 1;
}

static inline int take(struct tfan *tfan, const struct record_header *record)
{
	if (record->kind == RECORD_EVENT)
		return take_event(tfan, record);
	return take_other(tfan, record, ring_reader_payload_size(&tfan->ring, record));
}

/* A loss that no record in the ring tells of. Returns as take_event. */
static int take_loss(struct tfan *tfan, const struct record_lost *lost)
{
	struct tfan_event *event = &tfan->event;

	event->overwritten.header = (struct record_header){
		.size = sizeof(event->overwritten),
		.kind = RECORD_LOST,
		.cpu = RECORD_CPU_NONE,
		.time = lost->to,
		.payload_size = sizeof(event->overwritten.lost),
	};
	event->overwritten.lost = *lost;
	return take_other(tfan, &event->overwritten.header, sizeof(event->overwritten.lost));
}

/* RING_OVERWRITE: records were overwritten before they could be read. What was lost lies between the last
 * record that was read and the next. Returns 1 (the loss is for the caller, the next record is kept), 0 (only
 * records that are no events were lost, which the ledger tells again; *ret is the next one) or -errno. */
static int overwritten(struct tfan *tfan, const struct record_header **ret)
{
	struct tfan_event *event = &tfan->event;
	const struct record_header *next = NULL;
	uint64_t from = event->head.time, lost;
	int rc;

	do
		rc = ring_reader_next(&tfan->ring, &next);
	while (rc == -EOVERFLOW);
	if (rc < 0)
		return damaged(tfan);
	lost = tfan->ring.lost_events - tfan->overwritten;
	tfan->overwritten = tfan->ring.lost_events;
	*ret = next;
	if (lost == 0)
		return 0;
	event->pending = next;
	tfan->pending = true;
	return take_loss(tfan, &(struct record_lost){
		.source = LOST_RING,
		.cpu = RECORD_CPU_NONE,
		.count = lost,
		.at_least = lost,
		.from = from,
		.to = next ? next->time : from,
	});
}

/* Whether the router closed, or sent what nobody asked for. */
static int look_at_socket(struct tfan *tfan)
{
	char byte;
	ssize_t n = recv(tfan->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		return failure_set(&tfan->failure, TFAN_FAILED, EPROTO, -1,
			"session \"%s\" sent a message that nobody asked for", tfan->session_name);
	return failure_set(&tfan->failure, TFAN_FAILED, ECONNRESET, -1,
		"session \"%s\" is gone: its router ended or was restarted", tfan->session_name);
}

static bool is_asleep(const struct tfan *tfan)
{
	return tfan->asleep && tfan->asleep_at == ring_reader_position(&tfan->ring);
}

/* Announces sleep; false when a record came in the meantime. */
static bool fall_asleep(struct tfan *tfan)
{
	tfan->asleep = ring_reader_prepare_sleep(&tfan->ring);
	tfan->asleep_at = ring_reader_position(&tfan->ring);
	return tfan->asleep;
}

static bool is_pacing(const struct tfan *tfan)
{
	return tfan->pacing && tfan->pacing_at == ring_reader_position(&tfan->ring);
}

/* Starts an interval in which the router need not wake this process. A timer that can't be set means none. */
static int pace(struct tfan *tfan)
{
	const struct itimerspec in = {
		.it_value = { .tv_sec = tfan->interval / 1000, .tv_nsec = tfan->interval % 1000 * 1000000L },
	};

	tfan->pacing = timerfd_settime(tfan->timer, 0, &in, NULL) == 0;
	tfan->pacing_at = ring_reader_position(&tfan->ring);
	return tfan->pacing ? 0 : -errno;
}

/* Whether the interval has run out; takes back what else made the descriptor readable. */
static bool pace_over(struct tfan *tfan)
{
	uint64_t times;

	(void)wake_clear(tfan->ring.wake_fd);
	if (read(tfan->timer, &times, sizeof(times)) < 0)
		return false;
	tfan->pacing = false;
	return true;
}

/* Goes on with the return. Returns 1 (look again), 0 (not yet) or why there will never be more. */
static int come_back(struct tfan *tfan)
{
	int rc = comeback_step(tfan);

	if (rc < 0)
		tfan->broken = rc;
	return rc;
}

/* The router closed: what it published before is read, and then it is come back to, where that can be. A replay
 * has no place to come back to. Returns as come_back. */
static int leave(struct tfan *tfan, int rc)
{
	if (rc != -ECONNRESET || tfan->no_return || tfan->session.is_recorded) {
		tfan->broken = rc;
		return 1;
	}
	/* The last look at the ring came before the one at the socket. */
	if (!tfan->leaving) {
		tfan->leaving = true;
		return 1;
	}
	tfan->leaving = false;
	comeback_take_debt(tfan);
	comeback_take_columns(tfan);
	rc = comeback_begin(tfan);
	if (rc < 0)
		tfan->broken = rc;
	/* What it owed is told first. */
	return 1;
}

/* Nothing is in the ring. Returns 1 (look again), 0 (the caller may sleep), or why there will never be more.
 *
 * The order matters: the signal of an earlier sleep is taken back before the next sleep is announced, and
 * the socket is looked at before the ring's last look, so that what a router published before it went is
 * still delivered. */
static int idle(struct tfan *tfan)
{
	struct control_id room = { 0 };
	int rc;

	if (tfan->broken)
		return tfan->broken;
	if (tfan->ended) {
		tfan->broken = failure_set(&tfan->failure, TFAN_FAILED, ESHUTDOWN, -1,
			"session \"%s\" has ended", tfan->session_name);
		return tfan->broken;
	}
	if (tfan->comeback.state != COMEBACK_NONE)
		return come_back(tfan);
	connection_note_reader(tfan);
	if (is_asleep(tfan) || is_pacing(tfan)) {
		rc = look_at_socket(tfan);
		if (rc)
			return leave(tfan, rc);
		/* Nothing new, unless it was the timer or the router that woke the caller. */
		if (is_asleep(tfan) && wake_clear(tfan->ring.wake_fd) == -EAGAIN)
			return 0;
		if (is_pacing(tfan) && !pace_over(tfan))
			return 0;
	} else {
		(void)wake_clear(tfan->ring.wake_fd);
		if (tfan->interval > 0 && pace(tfan) == 0)
			return 0;
	}
	if (!fall_asleep(tfan))
		return 1;
	/* A replay does not go on without room, nor does what has to be told. */
	if (ring_reader_is_awaited(&tfan->ring))
		(void)connection_ask(tfan, CONTROL_ROOM, &room, sizeof(room), NULL);
	return 0;
}

/* While the state is awaited the ring is left alone, and what told of it is taken back. A router that dies meanwhile
 * leaves its successor to be asked. Returns as capture_step. */
static int await_state(struct tfan *tfan)
{
	uint64_t times;
	int rc;

	if (tfan->comeback.state != COMEBACK_NONE && tfan->capture.stage == CAPTURE_ASKED) {
		rc = come_back(tfan);
		return rc == 1 ? 0 : rc;
	}
	rc = capture_step(tfan);
	if (rc == 0) {
		(void)wake_clear(tfan->ring.wake_fd);
		if (tfan->timer >= 0 && read(tfan->timer, &times, sizeof(times)) > 0)
			tfan->pacing = false;
		tfan->asleep = false;
	}
	if (rc != -ECONNRESET || tfan->capture.stage != CAPTURE_ASKED)
		return rc;
	if (tfan->no_return) {
		capture_release(&tfan->capture);
		return CAPTURE_OVER;
	}
	/* Events that were held back begin anew with the state; others are read first. */
	if (!(tfan->attach.flags & ATTACH_HOLD)) {
		tfan->capture.stage = CAPTURE_AGAIN;
		return CAPTURE_OVER;
	}
	rc = comeback_begin(tfan);
	return rc < 0 ? (tfan->broken = rc) : 0;
}

/* What is seldom to be done before a record is taken. Returns 1 (take one), with *ret set if it is one that
 * was kept, SETTLED_GIVEN (the event is there already), 0 (none now) or an error. */
#define SETTLED_GIVEN 2

static int settle(struct tfan *tfan, const struct record_header **ret)
{
	int rc;

	if (!tfan->attached || tfan->socket < 0)
		return tfan->broken;
	trace_bury(tfan);
	if (tfan->capture.failed || tfan->capture.stage == CAPTURE_ASKED || tfan->capture.stage == CAPTURE_GIVING) {
		rc = await_state(tfan);
		if (rc != CAPTURE_OVER)
			return rc == 1 ? SETTLED_GIVEN : rc;
	}
	*ret = tfan->event.pending;
	tfan->event.pending = NULL;
	tfan->pending = tfan->comeback.passing;
	return 1;
}

#define STEP_AGAIN 2


/* One step towards the next record for the caller. `*record` is one that was taken already, or NULL. Returns 1
 * (it is there), 0 (none now), -errno, or STEP_AGAIN. */
static int step(struct tfan *tfan, const struct record_header **record)
{
	const struct record_lost *owed = *record ? NULL : comeback_next_loss(tfan);
	const bool overtaken = !*record && !owed && tfan->event.overtaken;
	int rc = *record ? 1 : owed ? 0 : overtaken ? -EOVERFLOW : ring_reader_next(&tfan->ring, record);
	const struct record_header *next = NULL;

	if (owed)
		return take_loss(tfan, owed);
	if (overtaken)
		tfan->event.overtaken = false;
	if (rc == 1)
		rc = take(tfan, *record);
	else if (rc == -EOVERFLOW)
		rc = overwritten(tfan, &next);
	else if (rc == 0)
		return (rc = idle(tfan)) == 1 ? STEP_AGAIN : rc;
	else
		return damaged(tfan);
	*record = next;
	return rc == 0 ? STEP_AGAIN : rc;
}

/* tfan_next but for its fast case, kept apart so that the fast case has no registers to save. */
__attribute__((noinline)) static int next_slow(struct tfan *tfan, const struct record_header *record,
	const struct tfan_event **ret)
{
	int rc = tfan->pending ? settle(tfan, &record) : 1;

	if (rc == SETTLED_GIVEN) {
		*ret = &tfan->event;
		return 1;
	}
	if (rc <= 0)
		return rc;
	do
		rc = step(tfan, &record);
	while (rc == STEP_AGAIN);
	if (rc == 1)
		*ret = &tfan->event;
	return rc;
}

int tfan_next(struct tfan *tfan, const struct tfan_event **ret)
{
	struct tfan_event *event = &tfan->event;
	const struct record_header *record = NULL;

	/* An event of the same trace as the last. */
	if (!tfan->pending && ring_reader_next_fast(&tfan->ring, &record) && record->kind == RECORD_EVENT &&
		!(record->flags & (RECORD_LATE | RECORD_STACKED)) && event->part && record->trace_id == event->part->id) {
		take_record(tfan, record, TFAN_EVENT, ring_reader_payload_size(&tfan->ring, record), event->part->trace);
		see(tfan);
		event->part->delivered++;
		event->direct = event->payload_size >= event->part->direct_size;
		*ret = event;
		return 1;
	}
	return next_slow(tfan, record, ret);
}

int tfan_wait(struct tfan *tfan, int milliseconds)
{
	struct pollfd fd = { .fd = tfan->epoll, .events = POLLIN };
	int n;

	if (!tfan->attached || tfan->event.pending || tfan->broken || tfan->ended || tfan->capture.failed ||
		tfan->capture.stage == CAPTURE_GIVING)
		return 1;
	if (tfan->capture.stage == CAPTURE_ASKED) {
		n = poll(&fd, 1, milliseconds);
		return n < 0 ? -errno : n;
	}
	if (tfan->comeback.state == COMEBACK_NONE && !is_asleep(tfan) && !is_pacing(tfan) && !fall_asleep(tfan))
		return 1;
	n = poll(&fd, 1, milliseconds);
	return n < 0 ? -errno : n;
}

int tfan_fd(struct tfan *tfan)
{
	return tfan->epoll;
}
