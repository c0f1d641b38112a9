#include "router/stream_marks.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "router/router.h"
#include "router/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct stream_mark *mark_find(struct stream *stream, uint64_t reader_cookie)
{
	for (uint32_t i = 0; i < stream->mark_count; i++) {
		if (stream->marks[i].reader_cookie == reader_cookie)
			return &stream->marks[i];
	}
	return NULL;
}

static void mark_remove(struct stream *stream, struct stream_mark *mark)
{
	size_t i = (size_t)(mark - stream->marks);

	stream->mark_count--;
	memmove(mark, mark + 1, (stream->mark_count - i) * sizeof(*mark));
}

/* Of the two kinds of marks, those that come with the kernel's counts. */
static bool is_account(const struct stream_mark *mark)
{
	return mark->kind == MARK_COUNTS || mark->kind == MARK_LOOK;
}

static int mark_send(struct router *router, struct stream_mark mark);

/* Tells whoever asked for an account, and forgets it. */
static void account_tell(struct router *router, struct stream_mark *done)
{
	kept_release(&done->kept);
	if (done->trace)
		consumer_stats_due(router, done->consumer, done->trace, done->consumer_cookie);
	else
		consumer_accounted(router, done->consumer, done->consumer_cookie, &done->session);
}

/* Nobody but the reader is to write to the session's instance, but who is root can. A router that comes after another one finds,
 * and tells, once more what that one had found. */
static void compare_counts(struct router *router, struct stream_mark *mark)
{
	struct stream *stream = &router->stream;
	const uint64_t known = mark->decoded + mark->undecodable + stream->counters.lost_reader, now = router_now();

	if (ledger_counts_take(&stream->counts, known, &mark->kernel)) {
		log_warning("somebody else cleared the buffers of the session's instance: nobody knows how many events are lost");
		stream_cleared(router, stream->accounted, now);
	}
	if (mark->kernel.off) {
		if (!stream->off)
			log_warning("tracing_on of the session's instance is 0, which is nobody's of the session: no events are recorded");
		stream_cleared(router, stream->accounted, now);
	}
	stream->off = mark->kernel.off;
	stream->accounted = now;
	stream->lost = mark->kernel.overrun + mark->kernel.dropped + mark->undecodable + stream->counters.lost_reader +
		stream->counts.cleared + mark->kernel.off;
	mark->kept.lost = stream->lost;
}

/* Both sides of an account are there. What the kernel kept away shows when what it had recorded by then is told. */
static void account_settle(struct router *router, struct stream_mark *mark)
{
	struct stream_mark done;

	if (!mark->seen || !mark->answered)
		return;
	if (!router_recorded(router))
		compare_counts(router, mark);
	done = *mark;
	mark_remove(&router->stream, mark);
	if (done.kind == MARK_LOOK) {
		kept_release(&done.kept);
		takeover_accounted(router, &done.kernel, done.decoded, done.undecodable);
		return;
	}
	/* What is replayed has no counts of the kernel's beside what its pages or lines tell. */
	if (router_recorded(router)) {
		done.kernel.overrun = router->stream.told_lost;
		done.kernel.read = done.decoded + done.undecodable;
	}
	done.session = (struct ledger_session){
		.committed = done.kernel.read + done.kernel.overrun,
		.decoded = done.decoded,
		.undecodable = done.undecodable,
		.lost_kernel = done.kernel.overrun + router->stream.counters.lost_reader,
		.dropped = done.kernel.dropped,
		.unrecorded = done.unrecorded,
		.recording_error = (uint32_t)-router->recorder.error,
		.cleared = router->stream.counts.cleared > 0,
	};
	done.kind = MARK_TOLD;
	if (done.kept.count && !router->ending && !router->stream.over && mark_send(router, done) == 0)
		return;
	if (router->ending || router->stream.over)
		kept_settle(&done.kept);
	account_tell(router, &done);
}

static void flush_done(struct router *router, struct stream_mark *mark, uint64_t time)
{
	if (mark->kind == MARK_TOLD) {
		kept_settle(&mark->kept);
		account_tell(router, mark);
	} else if (mark->kind == MARK_STATE) {
		state_due(router, mark->trace);
	} else if (mark->kind == MARK_FILTER) {
		consumer_filter_due(router, mark->consumer, mark->trace, mark->consumer_cookie, time);
	} else {
		consumer_flushed(router, mark->consumer, mark->consumer_cookie, time);
	}
}

static void mark_failed(struct router *router, uint64_t reader_cookie)
{
	struct stream_mark *mark = mark_find(&router->stream, reader_cookie);
	struct stream_mark done;

	if (!mark)
		return;
	done = *mark;
	mark_remove(&router->stream, mark);
	if (done.kind == MARK_LOOK)
		return;
	if (done.kind == MARK_COUNTS && done.trace)
		consumer_stats_due(router, done.consumer, done.trace, done.consumer_cookie);
	else if (done.kind == MARK_COUNTS)
		consumer_accounted(router, done.consumer, done.consumer_cookie, NULL);
	else if (done.kind == MARK_TOLD)
		account_tell(router, &done);
	else if (done.kind == MARK_FILTER)
		consumer_filter_failed(router, done.consumer, done.trace, done.consumer_cookie, -ENOTCONN);
	else
		flush_done(router, &done, router->fanout.last_time);
}

static bool mark_is_state(struct router *router, uint64_t reader_cookie)
{
	const struct stream_mark *mark = mark_find(&router->stream, reader_cookie);

	return mark && mark->kind == MARK_STATE;
}

static void flush_answered(void *context, const struct upstream_request *request, struct control_message *answer)
{
	const struct control_status *status;

	if (answer) {
		status = (const struct control_status *)answer->bytes;
		if (status->status == 0)
			return;
		/* What was read of processes may come when the session is over. */
		if (!mark_is_state(context, request->cookie))
			log_warning("flush: %s", status->failure.message);
	}
	/* The next reader will be asked. */
	if (!answer && ((struct router *)context)->takeover.waiting)
		return;
	mark_failed(context, request->cookie);
}

struct profile {
	struct router *router;
	struct kept *kept;
	int error;
};

static void take_profile(void *context, const struct ledger_probe *probe)
{
	struct profile *profile = context;
	struct route *route = fanout_route_named(&profile->router->fanout, probe->event, probe->event_size);

	if (!route)
		return;
	route->missed = probe->missed;
	if (!profile->error)
		profile->error = kept_add(profile->kept, route, probe->hits);
}

/* Reads the kernel's counts out of an account. Returns 0 or -errno. */
static int read_counts(struct router *router, struct stream_mark *mark, const void *blob, size_t size)
{
	struct profile profile = { .router = router, .kept = &mark->kept };
	int r = ledger_kernel_parse(blob, size, &mark->kernel);

	if (r == 0)
		r = ledger_probes_parse(blob, size, take_profile, &profile);
	if (r == 0)
		r = profile.error;
	return r;
}

static void account_answered(void *context, const struct upstream_request *request, struct control_message *answer)
{
	struct router *router = context;
	struct stream_mark *mark = mark_find(&router->stream, request->cookie);
	const struct control_status *status = answer ? (const struct control_status *)answer->bytes : NULL;
	CLEANUP_FREE void *blob = NULL;
	size_t size = 0;
	int r = -ENOTCONN;

	if (!mark || (!answer && router->takeover.waiting))
		return;
	if (status && status->status == 0 && answer->fd_count == 1)
		r = segment_blob_read(answer->fds[0], 1U << 24, &blob, &size);
	if (r == 0)
		r = read_counts(router, mark, blob, size);
	if (r < 0) {
		kept_release(&mark->kept);
		log_warning("the kernel's counts: %s", status && status->status ? status->failure.message : strerror(-r));
		mark_failed(router, request->cookie);
		return;
	}
	mark->answered = true;
	account_settle(router, mark);
}

static void account_here(struct router *router, struct stream_mark *mark)
{
	stream_finish_line(router);
	mark->seen = true;
	mark->decoded = router->fanout.decoded + merge_held(&router->stream.merge) + router->fanout.waits +
		text_join_held(&router->stream.text);
	mark->undecodable = router->fanout.undecodable;
	mark->unrecorded = router->recorder.unrecorded;
}

void stream_marks_accounted(struct router *router, uint64_t reader_cookie)
{
	struct stream_mark *mark = mark_find(&router->stream, reader_cookie);

	if (!mark || !is_account(mark))
		return;
	account_here(router, mark);
	account_settle(router, mark);
}

void stream_marks_end(struct router *router)
{
	struct stream *stream = &router->stream;

	for (uint32_t i = 0; i < stream->mark_count; i++) {
		struct stream_mark *mark = &stream->marks[i];

		if (mark->seen)
			continue;
		if (is_account(mark))
			account_here(router, mark);
		mark->seen = true;
	}
	for (uint32_t i = stream->mark_count; i--;) {
		if (is_account(&stream->marks[i]))
			account_settle(router, &stream->marks[i]);
	}
}

/* Asks the reader for what the mark waits for. */
static int mark_ask(struct router *router, struct stream_mark *mark)
{
	struct control_id message = { .id = 0 };
	struct upstream_request request = { .consumer = mark->consumer, .consumer_cookie = mark->consumer_cookie };
	bool account = is_account(mark);
	int r;

	request.done = account ? account_answered : flush_answered;
	r = upstream_send(&router->upstream, &message, account ? CONTROL_ACCOUNT : CONTROL_READER_FLUSH,
		sizeof(message), NULL, 0, &request);
	/* One that is there no more, which the router is about to hear: the next reader will be asked. */
	if (r == -ENOTCONN && router->upstream.lasting && !router->ending)
		return 0;
	if (r == 0)
		mark->reader_cookie = message.header.cookie;
	return r;
}

/* The mark is taken over unless it can't be asked for. */
static int mark_send(struct router *router, struct stream_mark mark)
{
	struct stream *stream = &router->stream;
	int r = stream->mark_count == STREAM_MARKS_MAX ? -EBUSY : mark_ask(router, &mark);

	if (r < 0)
		return r;
	mark.seen = false;
	stream->marks[stream->mark_count++] = mark;
	if (router->ending)
		stream_marks_end(router);
	return 0;
}

static int mark_new(struct router *router, enum mark_kind kind, uint64_t consumer, uint64_t trace_id, uint64_t cookie)
{
	const struct stream_mark mark = { .kind = kind, .consumer = consumer, .consumer_cookie = cookie, .trace = trace_id };

	return mark_send(router, mark);
}

int stream_flush(struct router *router, uint64_t consumer, uint64_t cookie)
{
	return mark_new(router, MARK_FLUSH, consumer, 0, cookie);
}

int stream_state(struct router *router, uint64_t work)
{
	return mark_new(router, MARK_STATE, 0, work, 0);
}

int stream_filter(struct router *router, uint64_t consumer, uint64_t trace_id, uint64_t cookie)
{
	return mark_new(router, MARK_FILTER, consumer, trace_id, cookie);
}

int stream_stats(struct router *router, uint64_t consumer, uint64_t trace_id, uint64_t cookie)
{
	return mark_new(router, MARK_COUNTS, consumer, trace_id, cookie);
}

int stream_account(struct router *router, uint64_t consumer, uint64_t cookie)
{
	return mark_new(router, MARK_COUNTS, consumer, 0, cookie);
}

int stream_look(struct router *router)
{
	/* One sees what several readers took with them. */
	for (uint32_t i = 0; i < router->stream.mark_count; i++) {
		if (router->stream.marks[i].kind == MARK_LOOK)
			return 0;
	}
	return mark_new(router, MARK_LOOK, 0, 0, 0);
}

void stream_ask_again(struct router *router)
{
	struct stream *stream = &router->stream;

	for (uint32_t i = 0; i < stream->mark_count; i++) {
		struct stream_mark *mark = &stream->marks[i];

		/* A flush whose place has come by is due by itself. */
		if (!is_account(mark) && mark->seen)
			continue;
		if (is_account(mark))
			kept_release(&mark->kept);
		mark->seen = mark->answered = false;
		if (mark_ask(router, mark) < 0)
			log_warning("a flush or an account can't be asked for again");
	}
}

void stream_marks_flushed(struct router *router, uint64_t reader_cookie, uint64_t time)
{
	struct stream_mark *mark = mark_find(&router->stream, reader_cookie);

	if (!mark || is_account(mark))
		return;
	mark->seen = true;
	mark->time = time;
}

void stream_marks_settle(struct router *router)
{
	struct stream *stream = &router->stream;
	uint64_t horizon = router_text(router) ? UINT64_MAX : merge_horizon(&stream->merge);

	if (router->fanout.waits && router->fanout.awaiting.time <= horizon)
		horizon = router->fanout.awaiting.time - 1;

	for (uint32_t i = 0; i < stream->mark_count;) {
		struct stream_mark mark = stream->marks[i];

		if (is_account(&mark) || !mark.seen || mark.time > horizon) {
			i++;
			continue;
		}
		mark_remove(stream, &stream->marks[i]);
		flush_done(router, &mark, mark.time);
	}
}
