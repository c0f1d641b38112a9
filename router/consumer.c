#include "router/consumer.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/filter.h"
#include "router/pushdown.h"
#include "router/router.h"
#include "shm/recording_abi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* ---- answers ---- */

static void answer(struct router *router, struct consumer *consumer, void *message, uint16_t type, uint32_t size,
	uint64_t cookie, const int *fds, unsigned int fd_count)
{
	int r;

	if (consumer->state == CONSUMER_GONE)
		return;
	control_header_init(message, type + CONTROL_REPLY, size, cookie);
	r = control_send(consumer->fd, message, fds, fd_count);
	if (r < 0) {
		log_note("consumer %" PRIu64 " does not take its answers: %s", consumer->number, strerror(-r));
		consumer_close(router, consumer);
	}
}

static void answer_status(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie,
	uint32_t status, const struct control_failure *failure)
{
	struct control_status message = { .status = status };

	if (failure)
		message.failure = *failure;
	else
		message.failure.position = -1;
	answer(router, consumer, &message, type, sizeof(message), cookie, NULL, 0);
}

static void answer_failed(struct router *router, struct consumer *consumer, uint16_t type, uint64_t cookie, int error, const char *what)
{
	struct control_failure failure = { .position = -1 };

	control_failure_set(&failure, -error, -1, "%s: %s", what, strerror(-error));
	answer_status(router, consumer, type, cookie, error == -EBUSY ? EXIT_BUSY : EXIT_FAILED, &failure);
}

/* The reader's answer, or its absence, as status and failure. */
static uint32_t reader_status(const struct control_message *reply, struct control_failure *ret)
{
	const struct control_status *status;

	if (!reply) {
		control_failure_set(ret, ENOTCONN, -1, "the session's reader is not running");
		return EXIT_MISSING;
	}
	status = (const struct control_status *)reply->bytes;
	*ret = status->failure;
	return status->status;
}

static struct trace *own_trace(struct router *router, const struct consumer *consumer, uint64_t id)
{
	struct trace *trace = fanout_trace_find(&router->fanout, id);

	return trace && trace->consumer == consumer->number ? trace : NULL;
}

static struct trace *need_trace(struct router *router, struct consumer *consumer, const struct control_header *header, uint64_t id)
{
	struct trace *trace = own_trace(router, consumer, id);
	struct control_failure failure = { .position = -1 };

	if (!trace) {
		control_failure_set(&failure, ENOENT, -1, "this consumer has no trace %" PRIu64, id);
		answer_status(router, consumer, header->type, header->cookie, EXIT_FAILED, &failure);
	}
	return trace;
}

static void no_answer(void *context, const struct upstream_request *request, struct control_message *reply)
{
	const struct control_status *status = reply ? (const struct control_status *)reply->bytes : NULL;

	(void)context;
	if (status && status->status)
		log_warning("request %u to the reader: %s", request->type, status->failure.message);
}

/* ---- hello, attach ---- */

static void on_hello(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_hello *hello = (const struct control_hello *)message->bytes;
	struct control_welcome welcome = {
		.source = router->welcome.source,
		.flags = router->welcome.flags,
	};

	memcpy(consumer->program, hello->program, sizeof(consumer->program));
	memcpy(welcome.session, router->welcome.session, sizeof(welcome.session));
	welcome.failure.position = -1;
	consumer->state = CONSUMER_GREETED;
	answer(router, consumer, &welcome, CONTROL_HELLO, sizeof(welcome), hello->header.cookie, NULL, 0);
}

static void answer_attached(struct router *router, struct consumer *consumer, uint32_t status, const struct control_failure *failure)
{
	struct control_attached attached = { .status = status };
	int fds[3] = { -1, -1, -1 };
	unsigned int count = 0;

	attached.failure.position = -1;
	if (failure)
		attached.failure = *failure;
	if (status == 0) {
		int r = ring_writer_share(&consumer->outlet.ring, fds);

		if (r < 0) {
			attached.status = EXIT_FAILED;
			control_failure_set(&attached.failure, -r, -1, "sharing the ring: %s", strerror(-r));
		} else {
			attached.ring_capacity = consumer->outlet.ring.capacity;
			count = 3;
		}
	}
	consumer->state = attached.status ? CONSUMER_GREETED : CONSUMER_READY;
	if (consumer->state == CONSUMER_READY && router->stream.clock.mono) {
		outlet_clock(&consumer->outlet, &router->stream.clock);
		fanout_touch(&router->fanout, &consumer->outlet);
	}
	answer(router, consumer, &attached, CONTROL_ATTACH, sizeof(attached), consumer->attach_cookie, fds, count);
	for (unsigned int i = 0; i < count; i++)
		(void)close_fd(fds[i]);
}

/* A recording begins to flow once somebody wants its events. */
static void replay_go(struct router *router)
{
	struct control_set_enabled go = { .id = 0, .enabled = 1 };
	struct upstream_request request = { .done = no_answer };
	int r = upstream_send(&router->upstream, &go, CONTROL_PROBE_ENABLE, sizeof(go), NULL, 0, &request);

	if (r < 0)
		log_error("starting the replay: %s", strerror(-r));
}

static void attach_vouched(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_failure failure = { .position = -1 };
	uint32_t status;

	if (!consumer || consumer->state != CONSUMER_ATTACHING)
		return;
	status = reader_status(reply, &failure);
	if (status) {
		consumer->has_outlet = false;
		outlet_release(&consumer->outlet);
	}
	answer_attached(router, consumer, status, &failure);
	if (!status && consumer->state == CONSUMER_READY && (consumer->flags & ATTACH_ALL_EVENTS)) {
		router->fanout.all_generation++;
		replay_go(router);
	}
}

static size_t ring_capacity(uint64_t asked)
{
	size_t capacity = RING_CAPACITY_MIN;

	while (capacity < asked && capacity < RING_CAPACITY_MAX)
		capacity *= 2;
	return capacity;
}

static void on_attach(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_attach *attach = (const struct control_attach *)message->bytes;
	struct control_consumer vouch = { .state = CONSUMER_ATTACHED, .flags = attach->flags, .consumer = consumer->number };
	struct upstream_request request = { .consumer = consumer->number, .done = attach_vouched };
	struct control_failure failure = { .position = -1 };
	int r;

	consumer->attach_cookie = attach->header.cookie;
	consumer->flags = attach->flags;
	if ((attach->flags & ATTACH_ALL_EVENTS) && !router_recorded(router)) {
		control_failure_set(&failure, EINVAL, -1, "all events at once are for recordings: name the probes of a live session");
		answer_attached(router, consumer, EXIT_USAGE, &failure);
		return;
	}
	r = outlet_init(&consumer->outlet, ring_capacity(attach->ring_capacity), (enum ring_overflow)attach->overflow);
	if (r == 0) {
		consumer->has_outlet = true;
		r = upstream_send(&router->upstream, &vouch, CONTROL_CONSUMER, sizeof(vouch), &consumer->fd, 1, &request);
	}
	if (r < 0) {
		if (consumer->has_outlet)
			outlet_release(&consumer->outlet);
		consumer->has_outlet = false;
		control_failure_set(&failure, -r, -1, r == -ENOTCONN ? "the session's reader is not running" : "making the ring: %s", strerror(-r));
		answer_attached(router, consumer, r == -ENOTCONN ? EXIT_MISSING : EXIT_FAILED, &failure);
		return;
	}
	consumer->state = CONSUMER_ATTACHING;
}

/* ---- traces ---- */

static void answer_created(struct router *router, struct consumer *consumer, uint64_t cookie, uint32_t status, uint64_t id,
	const struct control_failure *failure)
{
	struct control_created created = { .status = status, .trace_id = id };

	created.failure.position = -1;
	if (status)
		created.failure = *failure;
	answer(router, consumer, &created, CONTROL_CREATE, sizeof(created), cookie, NULL, 0);
}

static void close_probe(struct router *router, uint64_t probe_id)
{
	struct control_id message = { .id = probe_id };
	struct upstream_request request = { .done = no_answer };
	int r = upstream_send(&router->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), NULL, 0, &request);

	if (r < 0 && r != -ENOTCONN)
		log_warning("closing probe %" PRIu64 ": %s", probe_id, strerror(-r));
}

static struct trace trace_model(struct router *router, struct consumer *consumer, uint64_t probe_id, const char *name)
{
	struct trace model = {
		.id = router_new_id(router),
		.probe_id = probe_id,
		.outlet = &consumer->outlet,
		.until = UINT64_MAX,
		.consumer = consumer->number,
	};

	memcpy(model.name, name, strnlen(name, sizeof(model.name) - 1));
	return model;
}

/* A filter's text for a trace of `route`, as what the router evaluates and, in the kernel's own layout, as
 * what the kernel gets. Empty: both are NULL, everything passes. Returns an exit status with *ret_failure
 * filled in. */
static uint32_t read_filter(const struct route *route, const char *name, const char *text, struct filter_program **ret,
	struct filter_program **ret_kernel, struct control_failure *ret_failure)
{
	const struct filter_environment environment = { .probe = name, .lacks = FILTER_TGID | FILTER_UID | FILTER_CGROUP };
	struct filter_failure failure = { .position = -1 };
	struct filter_ast *ast = NULL;
	int r;

	*ret = NULL;
	*ret_kernel = NULL;
	if (!text[strspn(text, " \t")])
		return EXIT_DONE;
	r = filter_parse(text, strlen(text), &ast, &failure);
	if (r == 0)
		r = filter_compile(ast, &route->schema, &environment, ret, &failure);
	if (r == 0 && route->event)
		r = filter_compile(ast, &route->event->schema, &environment, ret_kernel, &failure);
	if (r < 0) {
		filter_program_release(*ret);
		*ret = NULL;
	}
	filter_ast_release(ast);
	if (r == 0)
		return EXIT_DONE;
	if (r == -ENOMEM)
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the filter");
	else
		control_failure_set(ret_failure, -r, failure.position, "filter: %s%s%s", failure.message,
			*failure.near ? "; did you mean " : "", failure.near);
	return r == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
}

/* Reads the new probe's format and gives the consumer its trace. Returns an exit status with *ret_failure
 * filled in. */
static uint32_t adopt_probe(struct router *router, struct consumer *consumer, const struct control_create *create,
	const struct control_message *reply, struct trace **ret, struct control_failure *ret_failure)
{
	const struct control_probe_created *created = (const struct control_probe_created *)reply->bytes;
	CLEANUP_FREE void *format = NULL;
	struct catalog_event *event = NULL;
	struct route *route = NULL;
	struct trace model;
	const char *what = "no memory";
	size_t size = 0;
	uint32_t status;
	int r;

	r = reply->fd_count == 1 ? segment_blob_read(reply->fds[0], 1U << 20, &format, &size) : -EBADMSG;
	if (r == 0)
		r = catalog_add(router->catalog, created->system, format, size, &event, &what);
	if (r == 0)
		r = fanout_route(&router->fanout, event, &route);
	if (r < 0) {
		control_failure_set(ret_failure, -r, -1, "the format of %s:%s: %s", created->system, created->event,
			r == -EBADMSG ? what : strerror(-r));
		return EXIT_FAILED;
	}
	recorder_format(&router->recorder, created->probe_id, create->kind, created->system, created->event, create->name, format, size);
	model = trace_model(router, consumer, created->probe_id, create->name);
	status = read_filter(route, create->name, create->filter, &model.filter, &model.kernel_filter, ret_failure);
	if (status)
		return status;
	if (fanout_trace_add(route, &model, ret) < 0) {
		filter_program_release(model.filter);
		filter_program_release(model.kernel_filter);
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the trace");
		return EXIT_FAILED;
	}
	/* In a recording everything lies in the past: a trace has it all from its making on. */
	if (router_recorded(router) && fanout_trace_start(*ret, 0) < 0) {
		fanout_trace_remove(*ret);
		*ret = NULL;
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the trace");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static void probe_created(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	const struct control_create *create = request->extra;
	const struct control_probe_created *created = reply ? (const struct control_probe_created *)reply->bytes : NULL;
	struct control_failure failure = { .position = -1 };
	struct trace *trace = NULL;
	uint32_t status = EXIT_MISSING;

	if (!created) {
		control_failure_set(&failure, ENOTCONN, -1, "the session's reader is not running");
	} else {
		failure = created->failure;
		status = created->status;
	}
	if (!consumer) {
		if (!status)
			close_probe(router, created->probe_id);
		return;
	}
	if (!status) {
		status = adopt_probe(router, consumer, create, reply, &trace, &failure);
		if (status)
			close_probe(router, created->probe_id);
	}
	answer_created(router, consumer, request->consumer_cookie, status, trace ? trace->id : 0, &failure);
}

static void on_create(struct router *router, struct consumer *consumer, struct control_message *message)
{
	struct control_create *create = malloc(sizeof(*create));
	struct control_create forward;
	struct upstream_request request = {
		.consumer = consumer->number,
		.consumer_cookie = message->header.cookie,
		.extra = create,
		.done = probe_created,
	};
	int fds[2] = { consumer->fd, message->fd_count ? message->fds[0] : -1 };
	struct control_failure failure = { .position = -1 };
	int r = -ENOMEM;

	if (create) {
		memcpy(create, message->bytes, sizeof(*create));
		forward = *create;
		r = upstream_send(&router->upstream, &forward, CONTROL_PROBE_CREATE, sizeof(forward), fds, 1 + message->fd_count, &request);
	}
	if (r < 0) {
		free(create);
		control_failure_set(&failure, -r, -1, "asking the reader for a probe: %s", strerror(-r));
		answer_created(router, consumer, message->header.cookie, r == -ENOTCONN ? EXIT_MISSING : EXIT_FAILED, 0, &failure);
	}
}

static void on_schema(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = need_trace(router, consumer, &message->header, request->id);
	struct control_status status = { .status = 0 };
	CLEANUP_CLOSE int fd = -1;
	CLEANUP_FREE void *bytes = NULL;

	if (!trace)
		return;
	bytes = malloc(trace->route->schema_size);
	if (bytes) {
		struct schema_header *header = bytes;

		memcpy(bytes, trace->route->schema_bytes, trace->route->schema_size);
		header->trace_id = trace->id;
		header->probe_id = trace->probe_id;
		fd = segment_blob_create("tracefan-schema", bytes, trace->route->schema_size);
	}
	if (fd < 0) {
		answer_failed(router, consumer, message->header.type, message->header.cookie, bytes ? fd : -ENOMEM, "schema");
		return;
	}
	status.failure.position = -1;
	memcpy(status.failure.message, trace->name, sizeof(trace->name));
	answer(router, consumer, &status, CONTROL_SCHEMA, sizeof(status), message->header.cookie, &fd, 1);
}

/* The stream has come to where the kernel records all that the new filter needs: it takes over here. */
void consumer_filter_due(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie)
{
	const struct pushdown_next nothing = { 0 };
	struct consumer *consumer = consumer_find(router, number);
	struct trace *trace = consumer ? own_trace(router, consumer, trace_id) : NULL;

	if (!trace || !trace->next_pending)
		return;
	trace->next_pending = false;
	if (fanout_trace_filter(trace, trace->next_filter, trace->next_kernel_filter) < 0) {
		answer_failed(router, consumer, CONTROL_SET_FILTER, cookie, -ENOMEM, "the old filter stays");
	} else {
		trace->next_filter = NULL;
		trace->next_kernel_filter = NULL;
		(void)outlet_filter(&consumer->outlet, trace->id, cookie);
		fanout_touch(&router->fanout, &consumer->outlet);
		answer_status(router, consumer, CONTROL_SET_FILTER, cookie, EXIT_DONE, NULL);
	}
	pushdown_update(router, trace->route, &nothing);
}

static void filter_widened(struct router *router, const struct pushdown_next *next)
{
	struct consumer *consumer = consumer_find(router, next->consumer);
	struct trace *trace = consumer ? own_trace(router, consumer, next->trace) : NULL;

	if (!trace)
		return;
	/* A trace that takes no events yet has no place in the stream to wait for. */
	if (!trace->enabled || stream_filter(router, next->consumer, next->trace, next->cookie) < 0)
		consumer_filter_due(router, next->consumer, next->trace, next->cookie);
}

static void on_set_filter(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_set_filter *asked = (const struct control_set_filter *)message->bytes;
	struct trace *trace = need_trace(router, consumer, &message->header, asked->id);
	struct control_failure failure = { .position = -1 };
	struct pushdown_next next = { .then = filter_widened, .consumer = consumer->number, .cookie = message->header.cookie };
	uint32_t status;

	if (!trace)
		return;
	next.trace = trace->id;
	if (trace->next_pending) {
		control_failure_set(&failure, EBUSY, -1, "the trace's last filter has not taken over yet");
		answer_status(router, consumer, message->header.type, message->header.cookie, EXIT_BUSY, &failure);
		return;
	}
	status = read_filter(trace->route, trace->name, asked->filter, &trace->next_filter, &trace->next_kernel_filter, &failure);
	if (status) {
		answer_status(router, consumer, message->header.type, message->header.cookie, status, &failure);
		return;
	}
	trace->next_pending = true;
	pushdown_update(router, trace->route, &next);
}

static void enable_answered(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_failure failure = { .position = -1 };
	uint32_t status = reader_status(reply, &failure);
	const struct control_set_enabled *asked = request->extra;
	const struct pushdown_next nothing = { 0 };
	struct trace *trace;

	if (!consumer)
		return;
	trace = own_trace(router, consumer, request->trace);
	if (trace && !asked->enabled) {
		/* What was committed until now is still the trace's. */
		if (!status && !router_recorded(router))
			fanout_trace_stop(trace, router_now());
		trace->enabled = status != 0;
		trace->claiming = trace->enabled;
		pushdown_update(router, trace->route, &nothing);
	} else if (trace) {
		trace->enabled = status == 0;
		trace->claiming = trace->enabled;
		if (status)
			fanout_trace_stop(trace, 0);
	}
	answer_status(router, consumer, CONTROL_SET_ENABLED, request->consumer_cookie, status, &failure);
}

static void send_enable(struct router *router, struct consumer *consumer, struct trace *trace, uint64_t cookie, bool enabled)
{
	struct control_set_enabled *forward = calloc(1, sizeof(*forward));
	struct upstream_request request = {
		.consumer = consumer->number,
		.consumer_cookie = cookie,
		.trace = trace->id,
		.extra = forward,
		.done = enable_answered,
	};
	int r = -ENOMEM;

	if (forward) {
		forward->id = trace->probe_id;
		forward->enabled = enabled;
		r = upstream_send(&router->upstream, forward, CONTROL_PROBE_ENABLE, sizeof(*forward), NULL, 0, &request);
	}
	if (r < 0) {
		free(forward);
		answer_failed(router, consumer, CONTROL_SET_ENABLED, cookie, r, "asking the reader");
	}
}

static void enable_widened(struct router *router, const struct pushdown_next *next)
{
	struct consumer *consumer = consumer_find(router, next->consumer);
	struct trace *trace = consumer ? own_trace(router, consumer, next->trace) : NULL;

	if (!trace)
		return;
	/* Open before the kernel is asked, so that its first event finds the trace ready. */
	trace->until = UINT64_MAX;
	if (!router_recorded(router) && fanout_trace_start(trace, router_now()) < 0) {
		trace->claiming = false;
		answer_failed(router, consumer, CONTROL_SET_ENABLED, next->cookie, -ENOMEM, "the trace");
		return;
	}
	send_enable(router, consumer, trace, next->cookie, true);
}

static void on_set_enabled(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_set_enabled *asked = (const struct control_set_enabled *)message->bytes;
	struct trace *trace = need_trace(router, consumer, &message->header, asked->id);
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
		send_enable(router, consumer, trace, message->header.cookie, false);
}

static void trace_drop(struct router *router, struct trace *trace)
{
	const struct pushdown_next nothing = { 0 };
	struct route *route = trace->route;
	uint64_t probe_id = trace->probe_id;

	if (trace->enabled && probe_id) {
		struct control_set_enabled off = { .id = probe_id, .enabled = 0 };
		struct upstream_request request = { .done = no_answer };

		(void)upstream_send(&router->upstream, &off, CONTROL_PROBE_ENABLE, sizeof(off), NULL, 0, &request);
	}
	fanout_trace_remove(trace);
	if (probe_id)
		close_probe(router, probe_id);
	pushdown_update(router, route, &nothing);
}

static void on_close(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = need_trace(router, consumer, &message->header, request->id);

	if (!trace)
		return;
	trace_drop(router, trace);
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

static void on_stats(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = own_trace(router, consumer, request->id);
	struct control_stats stats = { 0 };

	stats.failure.position = -1;
	if (trace) {
		stats.trace = fanout_trace_ledger(trace);
	} else {
		stats.status = EXIT_FAILED;
		control_failure_set(&stats.failure, ENOENT, -1, "this consumer has no trace %" PRIu64, request->id);
	}
	answer(router, consumer, &stats, CONTROL_STATS, sizeof(stats), message->header.cookie, NULL, 0);
}

/* ---- session ---- */

static void list_answered(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_status status = { 0 };

	if (!consumer)
		return;
	status.status = reader_status(reply, &status.failure);
	answer(router, consumer, &status, CONTROL_LIST, sizeof(status), request->consumer_cookie,
		reply ? reply->fds : NULL, status.status ? 0 : reply->fd_count);
}

static void on_list(struct router *router, struct consumer *consumer, struct control_message *message)
{
	struct control_id forward = { .id = 0 };
	struct upstream_request request = {
		.consumer = consumer->number,
		.consumer_cookie = message->header.cookie,
		.done = list_answered,
	};
	int r = upstream_send(&router->upstream, &forward, CONTROL_READER_LIST, sizeof(forward), &consumer->fd, 1, &request);

	if (r < 0)
		answer_failed(router, consumer, message->header.type, message->header.cookie, r, "asking the reader");
}

static void on_flush(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	int r = -EBUSY;

	/* After the end of the stream everything has been told already. */
	if (router->ending) {
		answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
		return;
	}
	if (consumer->flushes + consumer->outlet.flush_count < OUTLET_FLUSHES_MAX)
		r = stream_flush(router, consumer->number, request->id);
	if (r < 0) {
		answer_failed(router, consumer, message->header.type, message->header.cookie, r, "flush");
		return;
	}
	consumer->flushes++;
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

void consumer_flushed(struct router *router, uint64_t number, uint64_t cookie, uint64_t time)
{
	struct consumer *consumer = consumer_find(router, number);

	if (!consumer || consumer->state != CONSUMER_READY)
		return;
	consumer->flushes--;
	outlet_flushed(&consumer->outlet, cookie, time);
	fanout_touch(&router->fanout, &consumer->outlet);
}

static void on_ledger(struct router *router, struct consumer *consumer, struct control_message *message)
{
	int r = stream_account(router, consumer->number, message->header.cookie);

	if (r < 0)
		consumer_accounted(router, consumer->number, message->header.cookie, NULL);
}

void consumer_accounted(struct router *router, uint64_t number, uint64_t cookie, const struct ledger_session *session)
{
	struct control_ledger ledger = { 0 };
	struct consumer *consumer;

	if (number == 0) {
		router_accounted(router, session);
		return;
	}
	consumer = consumer_find(router, number);
	if (!consumer)
		return;
	ledger.failure.position = -1;
	if (session) {
		ledger.session = *session;
	} else {
		ledger.status = EXIT_FAILED;
		control_failure_set(&ledger.failure, EAGAIN, -1, "the kernel's counts can't be had now");
	}
	answer(router, consumer, &ledger, CONTROL_LEDGER, sizeof(ledger), cookie, NULL, 0);
}

static void on_detach(struct router *router, struct consumer *consumer, struct control_message *message)
{
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
	if (consumer->state != CONSUMER_GONE)
		consumer_close(router, consumer);
}

/* ---- all events ---- */

void consumer_unseen(void *context, struct route *route)
{
	struct router *router = context;
	char name[2 * CONTROL_NAME_MAX];

	for (struct consumer *c = router->consumers; c; c = c->next) {
		struct trace model, *trace;
		bool has = false;

		if (c->state != CONSUMER_READY || !(c->flags & ATTACH_ALL_EVENTS))
			continue;
		for (uint32_t i = 0; i < route->trace_count; i++)
			has |= route->traces[i]->consumer == c->number;
		if (has)
			continue;
		if (route->shown)
			(void)snprintf(name, sizeof(name), "%s", route->shown);
		else if (*route->system)
			(void)snprintf(name, sizeof(name), "%s:%s", route->system, route->name);
		else
			(void)snprintf(name, sizeof(name), "%s", route->name);
		model = trace_model(router, c, 0, name);
		if (fanout_trace_add(route, &model, &trace) < 0 || fanout_trace_start(trace, 0) < 0)
			log_error("no memory for a trace of %s", name);
	}
}

/* ---- messages ---- */

static const struct {
	uint16_t type;
	uint16_t states; /* enum consumer_state: where it may come */
	void (*handle)(struct router *router, struct consumer *consumer, struct control_message *message);
} handlers[] = {
	{ CONTROL_HELLO, CONSUMER_NEW, on_hello },
	{ CONTROL_ATTACH, CONSUMER_GREETED, on_attach },
	{ CONTROL_CREATE, CONSUMER_READY, on_create },
	{ CONTROL_SCHEMA, CONSUMER_READY, on_schema },
	{ CONTROL_SET_FILTER, CONSUMER_READY, on_set_filter },
	{ CONTROL_SET_ENABLED, CONSUMER_READY, on_set_enabled },
	{ CONTROL_STATS, CONSUMER_READY, on_stats },
	{ CONTROL_CLOSE, CONSUMER_READY, on_close },
	{ CONTROL_LIST, CONSUMER_GREETED | CONSUMER_READY, on_list },
	{ CONTROL_FLUSH, CONSUMER_READY, on_flush },
	{ CONTROL_LEDGER, CONSUMER_READY, on_ledger },
	{ CONTROL_DETACH, CONSUMER_GREETED | CONSUMER_READY, on_detach },
};

static bool dispatch(struct router *router, struct consumer *consumer, struct control_message *message)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type != message->header.type)
			continue;
		if (!(handlers[i].states & consumer->state))
			return false;
		handlers[i].handle(router, consumer, message);
		return true;
	}
	return false;
}

void consumer_readable(struct router *router, struct consumer *consumer)
{
	struct control_message message;
	int r;

	if (consumer->state == CONSUMER_GONE)
		return;
	r = control_receive(consumer->fd, &message);
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		consumer_close(router, consumer);
		return;
	}
	if (r == 1) {
		r = control_check(&message);
		if (r == 0 && !dispatch(router, consumer, &message))
			r = -EPROTO;
		control_message_release(&message);
	}
	if (r < 0) {
		log_note("consumer %" PRIu64 " broke the protocol: %s", consumer->number, strerror(-r));
		consumer_close(router, consumer);
	}
}

int consumer_accept(struct router *router, int fd)
{
	struct consumer *consumer = calloc(1, sizeof(*consumer));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = consumer };

	if (!consumer || epoll_ctl(router->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = consumer ? -errno : -ENOMEM;

		free(consumer);
		(void)close_fd(fd);
		return r;
	}
	consumer->fd = fd;
	consumer->state = CONSUMER_NEW;
	consumer->number = ++router->next_consumer;
	consumer->next = router->consumers;
	router->consumers = consumer;
	return 0;
}

static void drop_traces(struct router *router, uint64_t number)
{
	for (size_t i = 0; i < router->fanout.route_count; i++) {
		struct route *route = router->fanout.routes[i];

		for (uint32_t k = 0; k < route->trace_count;) {
			if (route->traces[k]->consumer == number)
				trace_drop(router, route->traces[k]);
			else
				k++;
		}
	}
}

void consumer_close(struct router *router, struct consumer *consumer)
{
	struct control_consumer left = { .state = CONSUMER_LEFT, .consumer = consumer->number };
	struct upstream_request request = { .done = no_answer };

	if (consumer->state == CONSUMER_GONE)
		return;
	if (consumer->has_outlet) {
		drop_traces(router, consumer->number);
		(void)upstream_send(&router->upstream, &left, CONTROL_CONSUMER, sizeof(left), &consumer->fd, 1, &request);
		fanout_forget(&router->fanout, &consumer->outlet);
		outlet_release(&consumer->outlet);
		consumer->has_outlet = false;
	}
	consumer->state = CONSUMER_GONE;
	consumer->fd = close_fd(consumer->fd);
	router->sweep = true;
}

void consumer_sweep(struct router *router)
{
	struct consumer **place = &router->consumers;

	while (*place) {
		struct consumer *consumer = *place;

		if (consumer->state != CONSUMER_GONE) {
			place = &consumer->next;
			continue;
		}
		*place = consumer->next;
		free(consumer);
	}
	router->sweep = false;
}

struct consumer *consumer_find(struct router *router, uint64_t number)
{
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->number == number)
			return c->state == CONSUMER_GONE ? NULL : c;
	}
	return NULL;
}
