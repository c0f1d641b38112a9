#include "router/stream.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "router/router.h"
#include "router/state.h"
#include "router/stream_marks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries and bytes taken between two publications: enough that a batch pays for looking at everything else, little
 * enough that its slots stay in the cache. */
#define STREAM_BATCH 32
#define STREAM_BATCH_BYTES (128U << 10)
/* Waking a process costs as much as telling hundreds of events, so while there is always more to do, who sleeps is
 * left asleep for so many bytes, or half of the pool. */
#define STREAM_WAKE_BYTES (512U << 10)

static void page_begins(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after)
{
	struct router *router = context;
	uint64_t count = cursor->missed_counted ? cursor->missed_count : LOST_COUNT_UNKNOWN;

	if (!cursor->missed || count == 0)
		return;
	fanout_catch_up(&router->fanout);
	if (cursor->missed_counted)
		router->stream.told_lost += count;
	state_doubt(router, cursor->start_time);
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_lost(&c->outlet, LOST_KERNEL, cpu, count, after, cursor->start_time);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

static void tell_undecodable(struct router *router, uint32_t cpu, uint64_t count, uint64_t from, uint64_t to)
{
	router->stream.undecodable = true;
	state_doubt(router, to > from ? to : from);
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_lost(&c->outlet, LOST_UNDECODABLE, cpu, count, from, to);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

static void page_damaged(void *context, uint32_t cpu, const struct page_cursor *cursor)
{
	struct router *router = context;

	fanout_catch_up(&router->fanout);
	router->fanout.undecodable++;
	log_warning("cpu %u: damaged sub-buffer of time %" PRIu64 ": %s at byte %u", cpu, cursor->start_time,
		page_error_name(cursor->error), cursor->error_at);
	tell_undecodable(router, cpu, LOST_COUNT_UNKNOWN, cursor->start_time, cursor->time);
}

/* A page for which there was no memory: the kernel has counted each of its events. */
static void page_unread(struct router *router, uint32_t cpu, const void *bytes, uint32_t length)
{
	struct page_cursor cursor;
	uint64_t last;
	uint32_t count;

	if (page_open(&cursor, router->stream.merge.layout, bytes, length) < 0) {
		page_damaged(router, cpu, &cursor);
		return;
	}
	page_begins(router, cpu, &cursor, router->fanout.last_time);
	last = cursor.start_time;
	count = page_count(&cursor, &last);
	router->fanout.undecodable += count;
	if (count)
		tell_undecodable(router, cpu, count, cursor.start_time, last);
}

static void slot_released(void *context, uint32_t slot, uint32_t told)
{
	struct router *router = context;

	router->stream.counters.decoded += told;
	if (slot == MERGE_DISOWNED)
		takeover_released(router);
	else
		router->stream.done[router->stream.done_count++] = slot;
}

/* Publishes what was copied, then gives the slots back that it came from. */
static void publish(struct router *router)
{
	struct stream *stream = &router->stream;

	fanout_publish(&router->fanout);
	if (stream->lost_told != stream->counters.lost_reader) {
		stream->lost_told = stream->counters.lost_reader;
		pool_reader_lost(&router->pool, stream->lost_told);
	}
	/* Damage and losses are met as pages begin, so a page that is begun a second time counts them again. */
	stream->counters.undecodable = router->fanout.undecodable;
	/* An event whose text may go on is in no slot any more: should this router die, it is gone. */
	stream->counters.undecodable += text_join_held(&stream->text);
	stream->counters.told_lost = stream->told_lost;
	/* The last event of a text is told when no more of it comes, after its slot has gone back. */
	if (router_text(router))
		stream->counters.decoded = router->fanout.decoded;
	pool_reader_return_all(&router->pool, stream->done, stream->done_count, &stream->counters);
	stream->done_count = 0;
	if (router_text(router))
		pool_reader_count(&router->pool, &stream->counters);
	takeover_count(router);
	takeover_tidy(router);
}

uint64_t stream_wake(struct router *router)
{
	router->stream.asleep = 0;
	(void)pool_reader_wake(&router->pool);
	return fanout_wake(&router->fanout, router_now());
}

/* The reader waits when it has no slot left, so it is better woken for half of the pool than for one. */
static bool must_wake(const struct router *router)
{
	const uint64_t half = (uint64_t)router->pool.slot_count * router->pool.slot_size / 2;

	return router->stream.asleep >= (half < STREAM_WAKE_BYTES ? half : STREAM_WAKE_BYTES);
}

int stream_init(struct router *router)
{
	const struct merge_hooks hooks = {
		.context = router,
		.page = page_begins,
		.damaged = page_damaged,
		.release = slot_released,
	};

	router->stream.done = calloc(router->pool.slot_count, sizeof(*router->stream.done));
	if (!router->stream.done)
		return -ENOMEM;
	router->stream.counters = pool_reader_counters(&router->pool);
	router->stream.told_lost = router->stream.counters.told_lost;
	router->stream.accounted = router->stream.counters.decoded ? 0 : router_now();
	router->fanout.decoded = router->stream.counters.decoded;
	router->fanout.undecodable = router->stream.counters.undecodable;
	text_join_init(&router->stream.text);
	/* The reader must never come to want for a slot because of an event that waits. */
	router->fanout.stacks.merge = &router->stream.merge;
	router->fanout.stacks.slots_most = router->pool.slot_count / 2;
	return merge_init(&router->stream.merge, router->welcome.cpu_count, &router->layout, &hooks);
}

void stream_release(struct router *router)
{
	for (uint32_t i = 0; i < router->stream.mark_count; i++)
		kept_release(&router->stream.marks[i].kept);
	merge_release(&router->stream.merge);
	text_join_release(&router->stream.text);
	free(router->stream.done);
	router->stream.done = NULL;
}

/* ---- text ---- */

/* "tracefan TAG flush COOKIE" in a trace_marker event of ours. */
static bool text_is_mark(struct router *router, const struct text_line *line)
{
	char text[CONTROL_NAME_MAX + 64];
	uint64_t cookie = 0;
	size_t length;
	int n;

	if (line->name.size < 5 || line->body.size >= sizeof(text))
		return false;
	n = snprintf(text, sizeof(text), "tracefan %s flush ", router->welcome.tag);
	length = (size_t)n;
	if (line->body.size <= length || memcmp(line->body.at, text, length) != 0)
		return false;
	for (size_t i = length; i < line->body.size && line->body.at[i] >= '0' && line->body.at[i] <= '9'; i++)
		cookie = cookie * 10 + (uint64_t)(line->body.at[i] - '0');
	stream_marks_flushed(router, cookie, line->time);
	return true;
}

static void text_lost(struct router *router, const struct text_line *line)
{
	uint64_t lost = line->lost == TEXT_COUNT_UNKNOWN ? LOST_COUNT_UNKNOWN : line->lost;

	if (line->lost != TEXT_COUNT_UNKNOWN)
		router->stream.told_lost += line->lost;
	/* A line of a loss has no time; the next one of its CPU has. */
	state_doubt(router, router->fanout.last_time);
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_lost(&c->outlet, LOST_KERNEL, line->cpu, lost, router->fanout.last_time, router->fanout.last_time);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

static int text_joined(void *context, const struct text_joined *joined)
{
	struct router *router = context;

	if (joined->line.kind == TEXT_LOST)
		text_lost(router, &joined->line);
	router->stream.strays += joined->line.kind == TEXT_CONTINUATION;
	/* Taken out of the kernel's ring, and nothing but this is told of it. */
	if (joined->line.kind == TEXT_TOO_BIG)
		router->fanout.undecodable++;
	if (joined->line.kind != TEXT_EVENT)
		return TEXT_JOIN_DONE;
	if (!text_is_mark(router, &joined->line))
		return fanout_text(&router->fanout, joined);
	router->fanout.decoded++;
	return TEXT_JOIN_SURE;
}

void stream_finish_line(struct router *router)
{
	if (router_text(router))
		(void)text_join_flush(&router->stream.text, text_joined, router);
}

/* The rest of a line that a dead reader had begun to read went with it, and is not the head of another's first line. */
static void end_text(struct router *router)
{
	if (router_text(router))
		(void)text_join_end(&router->stream.text, text_joined, router);
}

static void text_data(struct router *router, const struct pool_entry *entry, const void *bytes)
{
	int r = text_join_feed(&router->stream.text, bytes, entry->length, text_joined, router);

	if (r < 0) {
		log_error("text of %u bytes: %s", entry->length, strerror(-r));
		router->fanout.undecodable++;
	}
	slot_released(router, entry->slot, 0);
}

/* ---- entries ---- */

static void raw_data(struct router *router, const struct pool_entry *entry, const void *bytes)
{
	const struct merge_slot slot = { .bytes = bytes, .length = entry->length, .slot = entry->slot };
	int r = merge_add(&router->stream.merge, entry->cpu, &slot);

	if (r < 0) {
		log_error("sub-buffer of cpu %u: %s", entry->cpu, strerror(-r));
		page_unread(router, entry->cpu, bytes, entry->length);
		slot_released(router, entry->slot, 0);
	}
}

static void take_clock(struct router *router, const struct pool_entry *entry)
{
	router->stream.clock = (struct record_clock){
		.mono = entry->time, .real = entry->value, .error = entry->length,
	};
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_clock(&c->outlet, &router->stream.clock);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

/* Whether what was replayed as text is something else. */
static bool is_foreign(const struct router *router)
{
	return router_recorded(router) && router->stream.strays && !router->fanout.decoded && !router->fanout.undecodable;
}

/* How many there were, if any, is known to nobody: the kernel forgot its counts with them. */
void stream_cleared(struct router *router, uint64_t from, uint64_t to)
{
	state_doubt(router, to);
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_lost(&c->outlet, LOST_KERNEL, RECORD_CPU_NONE, LOST_COUNT_UNKNOWN, from, to);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

/* What the end says for people. */
static const char *end_message(const struct router *router, uint32_t reason)
{
	if (is_foreign(router))
		return "not a line of the file is text of ftrace's (trace, trace_pipe, trace-cmd report)";
	switch (reason) {
	case END_FINISHED:
		return "the recording is at its end";
	case END_ERROR:
		return router_recorded(router) ? "the recording is damaged: not all of it could be replayed"
					       : "its reader failed, and has logged why";
	default:
		return "the session was stopped";
	}
}

static void take_end(struct router *router, const struct pool_entry *entry)
{
	struct record_end end = { .reason = (uint32_t)entry->value };

	for (uint32_t i = 0; i < router->stream.merge.lane_count; i++)
		router->stream.merge.lanes[i].busy = false;
	merge_sweep(&router->stream.merge, UINT64_MAX);
	fanout_drain(&router->fanout, &router->stream.merge);
	end_text(router);
	router->stream.over = true;
	stream_marks_end(router);
	stream_marks_settle(router);
	if (is_foreign(router) || (router_recorded(router) && router->stream.undecodable))
		end.reason = END_ERROR;
	(void)snprintf(end.message, sizeof(end.message), "%s", end_message(router, end.reason));
	router_end(router, &end);
}

void stream_check_recording(struct router *router)
{
	uint64_t now = router->fanout.last_time;

	if (!router->recorder.error || router->recorder.told)
		return;
	router->recorder.told = true;
	log_error("writing the recording: %s", strerror(-router->recorder.error));
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_lost(&c->outlet, LOST_RECORDING, RECORD_CPU_NONE, LOST_COUNT_UNKNOWN, now, now);
		fanout_touch(&router->fanout, &c->outlet);
	}
}

static void take_entry(struct router *router, const struct pool_entry *entry)
{
	const void *bytes = entry->kind == POOL_DATA ? pool_reader_slot(&router->pool, entry->slot) : NULL;

	recorder_entry(&router->recorder, router_text(router) ? NULL : &router->layout, entry, bytes);
	stream_check_recording(router);
	switch ((enum pool_entry_kind)entry->kind) {
	case POOL_DATA:
		if (router_text(router))
			text_data(router, entry, bytes);
		else
			raw_data(router, entry, bytes);
		break;
	case POOL_BUSY:
		merge_busy(&router->stream.merge, entry->cpu);
		break;
	case POOL_SWEEP:
		merge_sweep(&router->stream.merge, entry->time);
		break;
	case POOL_FLUSH:
		stream_marks_flushed(router, entry->value, entry->time);
		break;
	case POOL_ACCOUNT:
		stream_marks_accounted(router, entry->value);
		break;
	case POOL_CLOCK:
		take_clock(router, entry);
		break;
	case POOL_END:
		take_end(router, entry);
		break;
	case POOL_CLEARED:
		stream_cleared(router, entry->value, entry->time);
		break;
	}
}

/* ---- recordings ---- */

size_t stream_slot_room(const struct router *router)
{
	/* The smallest event takes 8 bytes in a sub-buffer, a header and 8 bytes in a ring; of a text's line the
	 * words of its fields count, too. */
	return 8 * (size_t)router->pool.slot_size;
}

/* What was recorded waits for its consumers, who wait for nothing else: the events of a slot are told once
 * every ring has room for them. False: one has none, and its consumer has been told that it is awaited. */
static bool replay_has_room(struct router *router)
{
	size_t room = stream_slot_room(router);

	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY || outlet_room(&c->outlet) >= room)
			continue;
		outlet_await_room(&c->outlet, true);
		if (outlet_room(&c->outlet) < room)
			return false;
		outlet_await_room(&c->outlet, false);
	}
	return true;
}

static bool replay_merge(struct router *router)
{
	struct merge_event event;

	while (replay_has_room(router)) {
		if (fanout_next(&router->fanout, &router->stream.merge, &event) != 1 || !fanout_event(&router->fanout, &event))
			return true;
	}
	return false;
}

/* One entry after the other, each told before the next is taken. Returns as stream_take. */
static int replay_take(struct router *router)
{
	struct pool_entry entry;
	int r = 0;

	for (struct consumer *c = router->consumers; router->stream.stalled && c; c = c->next) {
		if (c->state == CONSUMER_READY)
			outlet_await_room(&c->outlet, false);
	}
	for (int taken = 0; taken < STREAM_BATCH; taken++) {
		router->stream.stalled = !replay_merge(router);
		if (router->stream.stalled)
			break;
		r = pool_reader_next(&router->pool, &entry);
		if (r != 1)
			break;
		take_entry(router, &entry);
	}
	if (!router->stream.stalled)
		router->stream.stalled = !replay_merge(router);
	/* An event of a file that goes on in the next piece is not flushed here, only at the end. */
	stream_marks_settle(router);
	publish(router);
	(void)stream_wake(router);
	return router->stream.stalled ? 0 : r;
}

int stream_take(struct router *router)
{
	struct pool_entry entry;
	uint32_t bytes = 0;
	int r = 0;

	if (router_recorded(router))
		return replay_take(router);
	for (int taken = 0; taken < STREAM_BATCH && bytes < STREAM_BATCH_BYTES; taken++) {
		r = pool_reader_next(&router->pool, &entry);
		if (r == 0 && router->takeover.has_next) {
			end_text(router);
			publish(router);
			r = takeover_switch(router);
			break;
		}
		if (r != 1)
			break;
		take_entry(router, &entry);
		bytes += entry.kind == POOL_DATA ? entry.length : 0;
	}
	fanout_drain(&router->fanout, &router->stream.merge);
	/* The kernel hands out whole events, so what waits for more when nothing is there is complete. */
	if (r == 0 && router_text(router))
		(void)text_join_flush(&router->stream.text, text_joined, router);
	stream_marks_settle(router);
	state_turn(router);
	publish(router);
	router->stream.asleep += bytes;
	if (must_wake(router))
		(void)stream_wake(router);
	return r;
}
