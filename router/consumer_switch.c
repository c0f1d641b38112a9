#include "router/consumer_switch.h"

#include "base/log.h"
#include "router/answer.h"
#include "router/consumer_traces.h"
#include "router/pushdown.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a request to switch a trace on or off remembers until its answer. */
struct switching {
	uint64_t probe_id;
	uint32_t owner;
	bool asked, before; /* enabled, and what it was then */
	bool throttled;     /* not by the consumer's word, and it has been told */
	bool dropped;       /* there is no trace any more: the probe is to be given back */
};

void consumer_probe_close(struct router *router, uint64_t probe_id, uint32_t owner)
{
	struct control_probe_close message = { .id = probe_id, .owner = owner };
	struct upstream_request request = { .done = answer_nobody };
	int r = upstream_send(&router->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), NULL, 0, &request);

	if (r < 0 && r != -ENOTCONN)
		log_warning("closing probe %" PRIu64 ": %s", probe_id, strerror(-r));
}

static void give_back(struct router *router, uint64_t probe_id, uint32_t owner, bool enabled)
{
	struct control_set_enabled off = { .id = probe_id, .enabled = 0 };
	struct upstream_request request = { .done = answer_nobody };

	if (enabled)
		(void)upstream_send(&router->upstream, &off, CONTROL_PROBE_ENABLE, sizeof(off), NULL, 0, &request);
	consumer_probe_close(router, probe_id, owner);
}

static struct switching *in_flight(struct router *router, uint64_t consumer, uint64_t trace)
{
	const struct upstream_request *request = upstream_find(&router->upstream, CONTROL_PROBE_ENABLE, consumer, trace);

	return request ? request->extra : NULL;
}

/* What is asked for since stands: only the last answer says what the kernel must go on to record. */
static void settle(struct router *router, struct trace *trace, const struct switching *switching, bool done, bool is_last)
{
	const struct pushdown_next nothing = { 0 };

	trace->enabled = switching->throttled ? false : switching->asked == done;
	if (is_last)
		trace->claiming = trace->enabled;
	if (switching->asked) {
		if (!done)
			fanout_trace_stop(trace, 0);
		return;
	}
	/* What was committed until now is still the trace's. */
	if (done && !switching->throttled && !router_recorded(router))
		fanout_trace_stop(trace, router_now());
	pushdown_update(router, trace->route, &nothing);
}

static void switched(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	const struct switching *switching = request->extra;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct trace *trace = consumer ? consumer_trace_find(router, consumer, request->trace) : NULL;
	struct switching *next = in_flight(router, request->consumer, request->trace);
	struct control_failure failure = { .position = -1 };
	uint32_t status = answer_from_reader(reply, &failure);
	bool enabled = status ? switching->before : switching->asked;

	if (next)
		next->before = enabled;
	/* A reader that takes over never heard of it, and who closes a trace without waiting gets this answer from its own reader
	 * alone. */
	if (switching->dropped && !reply)
		return;
	if (switching->dropped)
		give_back(router, switching->probe_id, switching->owner, enabled);
	else if (trace)
		settle(router, trace, switching, status == 0, !next);
	if (!consumer || switching->throttled)
		return;
	if (switching->asked && status == 0) {
		recorder_start(&router->recorder);
		stream_check_recording(router);
		fanout_publish(&router->fanout);
	}
	answer_status(router, consumer, CONTROL_SET_ENABLED, request->consumer_cookie, status, &failure);
}

/* Returns 0 or -errno. */
static int send_switch(struct router *router, const struct trace *trace, uint64_t cookie, bool enabled, bool throttled)
{
	struct control_set_enabled message = { .id = trace->probe_id, .enabled = enabled };
	struct switching *switching = calloc(1, sizeof(*switching));
	struct upstream_request request = {
		.consumer = trace->consumer,
		.consumer_cookie = cookie,
		.trace = trace->id,
		.extra = switching,
		.done = switched,
	};
	int r = -ENOMEM;

	if (!switching)
		return r;
	*switching = (struct switching){
		.probe_id = trace->probe_id,
		.owner = trace->owner,
		.asked = enabled,
		.before = trace->enabled,
		.throttled = throttled,
	};
	r = upstream_send(&router->upstream, &message, CONTROL_PROBE_ENABLE, sizeof(message), NULL, 0, &request);
	if (r < 0)
		free(switching);
	return r;
}

static void ask(struct router *router, struct consumer *consumer, struct trace *trace, uint64_t cookie, bool enabled)
{
	int r = send_switch(router, trace, cookie, enabled, false);

	if (r == 0)
		return;
	/* As if it had not been asked for. */
	trace->claiming = trace->enabled;
	if (enabled)
		fanout_trace_stop(trace, 0);
	answer_failed(router, consumer, CONTROL_SET_ENABLED, cookie, r, "asking the reader");
}

/* A consumer that is coming back goes on where it was; one that waits for the state begins with it; any other begins
 * now. */
static int start_trace(const struct consumer *consumer, struct trace *trace)
{
	if (consumer->flags & ATTACH_HOLD)
		return 0;
	if (consumer->flags & ATTACH_RESUME)
		return fanout_trace_start(trace, consumer->seen_time, consumer->seen_cpu);
	return fanout_trace_start(trace, router_now(), 0);
}

static void enable_widened(struct router *router, const struct pushdown_next *next)
{
	struct consumer *consumer = consumer_find(router, next->consumer);
	struct trace *trace = consumer ? consumer_trace_find(router, consumer, next->trace) : NULL;

	if (!trace)
		return;
	/* Open before the kernel is asked, so that its first event finds the trace ready. */
	if (!router_recorded(router) && start_trace(consumer, trace) < 0) {
		trace->claiming = false;
		answer_failed(router, consumer, CONTROL_SET_ENABLED, next->cookie, -ENOMEM, "the trace");
		return;
	}
	budget_begin(&router->budget, trace, router_now());
	ask(router, consumer, trace, next->cookie, true);
}

void consumer_on_set_enabled(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_set_enabled *asked = (const struct control_set_enabled *)message->bytes;
	struct trace *trace = consumer_trace_need(router, consumer, &message->header, asked->id);
	struct pushdown_next next = { .then = enable_widened, .consumer = consumer->number, .cookie = message->header.cookie };

	if (!trace)
		return;
	next.trace = trace->id;
	if (trace->claiming == !!asked->enabled) {
		answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
		return;
	}
	trace->claiming = asked->enabled;
	if (asked->enabled)
		pushdown_update(router, trace->route, &next);
	else
		ask(router, consumer, trace, message->header.cookie, false);
}

/* It takes nothing any more from this very place on, and the kernel records it no longer than it takes to say so. */
void consumer_throttle(struct router *router, struct trace *trace, const struct record_throttled *why)
{
	const uint64_t now = router->fanout.last_time;
	const struct pushdown_next nothing = { 0 };

	/* Unless its consumer has just asked for the same. */
	if (!in_flight(router, trace->consumer, trace->id)) {
		if (send_switch(router, trace, 0, false, true) == 0)
			upstream_forgo(&router->upstream, CONTROL_PROBE_ENABLE, trace->consumer, trace->id);
		trace->enabled = false;
	}
	trace->claiming = false;
	fanout_trace_stop(trace, now);
	outlet_throttled(trace->outlet, trace->id, now, why);
	fanout_touch(&router->fanout, trace->outlet);
	pushdown_update(router, trace->route, &nothing);
}

void consumer_switch_drop(struct router *router, struct trace *trace)
{
	struct switching *last = in_flight(router, trace->consumer, trace->id);

	if (!trace->probe_id)
		return;
	if (!last) {
		give_back(router, trace->probe_id, trace->owner, trace->enabled);
		return;
	}
	last->dropped = true;
	upstream_forgo(&router->upstream, CONTROL_PROBE_ENABLE, trace->consumer, trace->id);
}
