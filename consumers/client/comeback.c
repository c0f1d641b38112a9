#include "consumers/client/comeback.h"

#include "consumers/client/attach.h"
#include "consumers/client/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

static void unwatch(struct tfan *tfan, int fd)
{
	/* The descriptor may be nothing any more; then there is nothing to unwatch either. */
	if (fd >= 0)
		(void)epoll_ctl(tfan->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int comeback_begin(struct tfan *tfan)
{
	int rc;

	unwatch(tfan, tfan->socket);
	/* Its writing end is gone with the router, so it would stay readable for ever. */
	unwatch(tfan, tfan->ring.wake_fd);
	tfan->asleep = false;
	tfan->pacing = false;
	if (tfan->timer >= 0)
		(void)timerfd_settime(tfan->timer, 0, &(struct itimerspec){ 0 }, NULL);
	rc = attach_greet(tfan);
	if (rc)
		return failure_set(&tfan->failure, TFAN_FAILED, ECONNRESET, -1,
			"session \"%s\" is gone: its router ended, and nobody holds its place (%s)", tfan->session_name,
			strerror(-rc));
	tfan->comeback.state = COMEBACK_GREETED;
	return attach_watch(tfan, tfan->socket);
}

/* ---- the place ---- */

static const struct tfan_trace *enabled_trace(const struct tfan *tfan, size_t i)
{
	const struct tfan_trace *trace = tfan->traces[i];

	return trace->enabled && !trace->closed && !trace->unknown ? trace : NULL;
}

/* Up to where everything was seen: the last event in order, or else the first enabling. */
static struct place seen_place(const struct tfan *tfan)
{
	struct place place = tfan->comeback.seen;

	if (place.count > 0)
		return place;
	place.time = UINT64_MAX;
	place.cpu = 0;
	for (size_t i = 0; i < tfan->trace_count; i++) {
		const struct tfan_trace *trace = enabled_trace(tfan, i);

		if (trace && trace->enabled_at < place.time)
			place.time = trace->enabled_at;
	}
	if (place.time == UINT64_MAX)
		place.time = trace_now(tfan);
	return place;
}

void comeback_see_lost(struct tfan *tfan, uint64_t time, uint32_t cpu, uint32_t same)
{
	struct place *seen = &tfan->comeback.seen;

	if (!same || time < seen->time)
		return;
	if (time != seen->time || cpu != seen->cpu)
		*seen = (struct place){ .time = time, .cpu = cpu };
	seen->count += same;
}

uint64_t comeback_see_reader(struct tfan *tfan, uint64_t total, uint64_t count)
{
	struct comeback *comeback = &tfan->comeback;
	uint64_t known = comeback->reader_total;

	if (total <= known)
		return 0;
	comeback->reader_total = total;
	return known && total - known < count ? total - known : count;
}

void comeback_take_debt(struct tfan *tfan)
{
	struct comeback *comeback = &tfan->comeback;

	comeback->debt_next = LOST_SOURCES;
	if (!ring_reader_debt(&tfan->ring, &comeback->debt))
		return;
	comeback->debt_next = 0;
	if (comeback->debt.lost[LOST_READER].at_least &&
		!comeback_see_reader(tfan, comeback->debt.reader_total, comeback->debt.lost[LOST_READER].at_least))
		comeback->debt.lost[LOST_READER].at_least = 0;
	if (comeback->debt.lost[LOST_RING].at_least)
		comeback_see_lost(tfan, comeback->debt.lost[LOST_RING].to, comeback->debt.cpu, comeback->debt.same);
}

static void carry(struct tfan *tfan, const struct ring_column *column)
{
	struct trace_part *part = trace_index_find(&tfan->index, column->trace_id);

	if (!part || column->filtered > LEDGER_CARRIED_MAX || column->lost_ring > LEDGER_CARRIED_MAX)
		return;
	part->carried.filtered = column->filtered;
	part->carried.lost_ring = column->lost_ring;
}

static uint64_t carried_losses(const struct tfan *tfan, struct trace_part **ret_most)
{
	const struct trace_index *index = &tfan->index;
	uint64_t sum = 0;

	*ret_most = NULL;
	for (size_t i = 0; i < index->room; i++) {
		struct trace_part *part = index->rows[i].part;

		if (!part)
			continue;
		sum += part->carried.lost_ring;
		if (!*ret_most || part->carried.lost_ring > (*ret_most)->carried.lost_ring)
			*ret_most = part;
	}
	return sum;
}

/* RING_OVERWRITE: how many events of the ring were overwritten is known here, to the last; the router writes down which
 * traces' they were after each batch, and the rest, up to the batch amid which it died, goes to the one that has lost most. */
static void settle_overwritten(struct tfan *tfan, uint64_t before)
{
	struct trace_part *most;
	const uint64_t told = carried_losses(tfan, &most) - before;
	const uint64_t missing = tfan->ring.lost_events - told;

	if (tfan->ring.overflow != RING_OVERWRITE || tfan->comeback.some_closed || !most)
		return;
	/* It may have been about to overwrite what was read instead. */
	if (most->carried.lost_ring + missing <= LEDGER_CARRIED_MAX)
		most->carried.lost_ring += missing;
}

void comeback_take_columns(struct tfan *tfan)
{
	struct ring_columns *columns = malloc(sizeof(*columns));
	struct trace_part *most;
	const uint64_t before = carried_losses(tfan, &most);

	/* Without memory the last router's are missing. */
	if (columns && ring_reader_columns(&tfan->ring, columns)) {
		for (uint64_t i = 0; i < columns->count; i++)
			carry(tfan, &columns->rows[i]);
	}
	if (columns)
		settle_overwritten(tfan, before);
	free(columns);
}

const struct record_lost *comeback_next_loss(struct tfan *tfan)
{
	struct comeback *comeback = &tfan->comeback;

	while (comeback->debt_next < LOST_SOURCES) {
		const struct record_lost *lost = &comeback->debt.lost[comeback->debt_next++];

		if (lost->at_least)
			return lost;
	}
	return NULL;
}

static void pass_over(struct tfan *tfan, const struct place *place)
{
	struct comeback *comeback = &tfan->comeback;

	comeback->passing = true;
	comeback->known = *place;
	comeback->enabled_last = 0;
	for (size_t i = 0; i < tfan->trace_count; i++) {
		const struct tfan_trace *trace = enabled_trace(tfan, i);

		if (trace && trace->enabled_at > comeback->enabled_last)
			comeback->enabled_last = trace->enabled_at;
	}
	tfan->pending = true;
}

bool comeback_knows(struct tfan *tfan, const struct record_header *record, uint64_t enabled_at)
{
	struct comeback *comeback = &tfan->comeback;
	const struct place *known = &comeback->known;

	if (record->time < enabled_at)
		return true;
	if (record->time == known->time && record->cpu == known->cpu && comeback->known.count > 0) {
		comeback->known.count--;
		return true;
	}
	if (record->flags & RECORD_LATE)
		return false;
	if (record->time > known->time && record->time > comeback->enabled_last)
		comeback->passing = false;
	return false;
}

/* ---- making everything again ---- */

static int make_trace(struct tfan_trace *trace)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < trace->part_count; i++)
		rc = trace_part_remake(trace->parts[i]);
	return rc;
}

static int make_traces(struct tfan *tfan)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < tfan->trace_count; i++)
		if (!tfan->traces[i]->closed && !tfan->traces[i]->unknown)
			rc = make_trace(tfan->traces[i]);
	for (size_t i = 0; rc == 0 && i < tfan->trace_count; i++)
		if (enabled_trace(tfan, i))
			rc = trace_enable_again(tfan->traces[i]);
	return rc;
}

/* Flushes that the old router owed are asked of the new one. */
static int make_flushes(struct tfan *tfan)
{
	struct control_id request = { 0 };
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < tfan->flushes; i++)
		rc = connection_ask(tfan, CONTROL_FLUSH, &request, sizeof(request), NULL);
	return rc;
}

static int make(struct tfan *tfan)
{
	const struct place place = seen_place(tfan);
	struct control_id request = { 0 };
	int rc;

	rc = attach_ring(tfan, ATTACH_RESUME, place.time, place.cpu);
	if (rc == 0)
		rc = make_traces(tfan);
	if (rc == 0)
		rc = connection_ask(tfan, CONTROL_RESUMED, &request, sizeof(request), NULL);
	if (rc == 0)
		rc = make_flushes(tfan);
	if (rc == 0 && (tfan->capture.stage == CAPTURE_ASKED || tfan->capture.stage == CAPTURE_AGAIN))
		rc = capture_ask(tfan);
	if (rc == 0)
		pass_over(tfan, &place);
	return rc;
}

int comeback_step(struct tfan *tfan)
{
	int rc = attach_welcomed(tfan, false);

	if (rc == -EAGAIN)
		return 0;
	if (rc == 0) {
		tfan->comeback.state = COMEBACK_MAKING;
		rc = make(tfan);
	}
	tfan->comeback.state = COMEBACK_NONE;
	/* The new one died, too: the next may have more luck. */
	if (rc == -ECONNRESET)
		return comeback_begin(tfan);
	return rc == 0 ? 1 : rc;
}
