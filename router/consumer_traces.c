#include "router/consumer_traces.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/answer.h"
#include "router/filter.h"
#include "router/kept.h"
#include "router/pushdown.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void answer_created(struct router *router, struct consumer *consumer, uint64_t cookie, uint32_t status, uint64_t id,
	const struct control_failure *failure)
{
	struct control_created created = { .status = status, .trace_id = id };

	created.failure.position = -1;
	if (status)
		created.failure = *failure;
	answer_send(router, consumer, &created, CONTROL_CREATE, sizeof(created), cookie, NULL, 0);
}

static void close_probe(struct router *router, uint64_t probe_id, uint32_t owner)
{
	struct control_probe_close message = { .id = probe_id, .owner = owner };
	struct upstream_request request = { .done = answer_nobody };
	int r = upstream_send(&router->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), NULL, 0, &request);

	if (r < 0 && r != -ENOTCONN)
		log_warning("closing probe %" PRIu64 ": %s", probe_id, strerror(-r));
}

/* Whoever asks for a probe that nobody has gets its format again, be it the same event or another one. */
static void drop_unused(struct router *router, struct route *route)
{
	if (!router_recorded(router) && strcmp(route->system, router->welcome.group) == 0)
		fanout_route_drop(&router->fanout, route);
}

static struct trace trace_model(struct router *router, struct consumer *consumer, uint64_t id, uint64_t probe_id, const char *name)
{
	struct trace model = {
		.id = id ? id : router_new_id(router),
		.probe_id = probe_id,
		.outlet = &consumer->outlet,
		.until = UINT64_MAX,
		.consumer = consumer->number,
		/* A recording doesn't tell. */
		.detailed = (consumer->flags & ATTACH_PROCESS) && !router_recorded(router),
	};

	memcpy(model.name, name, strnlen(name, sizeof(model.name) - 1));
	return model;
}

/* What nobody knows of the events of this session. A thread's process is known where all of them were read about. */
static uint32_t lacking_facts(const struct router *router)
{
	return router->knows_processes ? 0 : FILTER_PROCESS;
}

/* Parses and binds a filter's text to what the router evaluates and what the kernel gets. 0 or -errno. */
static int compile_filter(const struct route *route, const struct filter_environment *environment, const char *text,
	struct filter_program **ret, struct filter_program **ret_kernel, struct filter_failure *ret_failure)
{
	struct filter_environment kernel = *environment;
	struct filter_ast *ast = NULL;
	int r;

	r = filter_parse(text, strlen(text), &ast, ret_failure);
	if (r == 0)
		r = filter_compile(ast, &route->schema, environment, ret, ret_failure);
	if (route->schema.header->flags & SCHEMA_TEXT)
		kernel.text = &route->schema;
	if (r == 0 && route->event)
		r = filter_compile(ast, &route->event->schema, &kernel, ret_kernel, ret_failure);
	if (r < 0) {
		filter_program_release(*ret);
		*ret = NULL;
	}
	filter_ast_release(ast);
	return r;
}

/* A filter's text for a trace of `route`, as what the router evaluates and, in the kernel's own layout, as
 * what the kernel gets. Empty: both are NULL, everything passes. `environment` has what is said of missing
 * fields. Returns an exit status with *ret_failure filled in. */
static uint32_t read_filter(const struct route *route, const char *name, const char *text, struct filter_environment environment,
	struct filter_program **ret, struct filter_program **ret_kernel, struct control_failure *ret_failure)
{
	struct filter_failure failure = { .position = -1 };
	int r;

	*ret = NULL;
	*ret_kernel = NULL;
	if (!text[strspn(text, " \t")])
		return EXIT_DONE;
	environment.probe = name;
	environment.binary = route->event ? &route->event->schema : NULL;
	r = compile_filter(route, &environment, text, ret, ret_kernel, &failure);
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
	struct route *route = NULL;
	const struct filter_environment environment = {
		.flags = create->flags & CREATE_LENIENT ? FILTER_LENIENT : 0,
		.lacks = lacking_facts(router),
	};
	struct trace model;
	const char *what = "no memory";
	size_t size = 0;
	uint32_t status;
	int r;

	r = reply->fd_count == 1 ? segment_blob_read(reply->fds[0], 1U << 20, &format, &size) : -EBADMSG;
	if (r == 0)
		r = fanout_describe(&router->fanout, created->system, format, size, &route, &what);
	if (r != 0) {
		control_failure_set(ret_failure, -r, -1, "the format of %s:%s: %s", created->system, created->event,
			r == -EBADMSG ? what : strerror(-r));
		return EXIT_FAILED;
	}
	if (!created->shared)
		kept_begin(route, create->kind, router->stream.lost);
	recorder_format(&router->recorder, created->probe_id, create->kind, created->system, created->event, create->name, format, size);
	model = trace_model(router, consumer, create->trace_id, created->probe_id, create->name);
	model.ledger = (struct ledger_trace){
		.decoded = create->carried.delivered + create->carried.filtered + create->carried.lost_ring,
		.delivered = create->carried.delivered,
		.lost_ring = create->carried.lost_ring,
	};
	model.owner = created->owner;
	model.own = created->scope == SCOPE_OWN;
	model.rate = created->rate;
	model.owner_rate = created->owner_rate;
	model.in_task = create->kind == PROBE_UPROBE || create->kind == PROBE_URETPROBE || create->kind == PROBE_USDT;
	model.stacks = (uint8_t)((create->flags & CREATE_KERNEL_STACK ? STACK_KERNEL : 0) | (create->flags & CREATE_USER_STACK ? STACK_USER : 0));
	status = read_filter(route, create->name, create->filter, environment, &model.filter, &model.kernel_filter, ret_failure);
	if (status) {
		drop_unused(router, route);
		return status;
	}
	if (fanout_trace_add(route, &model, ret) < 0) {
		filter_program_release(model.filter);
		filter_program_release(model.kernel_filter);
		drop_unused(router, route);
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the trace");
		return EXIT_FAILED;
	}
	/* In a recording everything lies in the past: a trace has it all from its making on. */
	if (router_recorded(router) && fanout_trace_start(*ret, 0, 0) < 0) {
		fanout_trace_remove(*ret);
		*ret = NULL;
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the trace");
		return EXIT_FAILED;
	}
	if ((*ret)->own)
		tasks_ask(&router->fanout.tasks);
	budget_add(&router->budget, *ret);
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
			close_probe(router, created->probe_id, created->owner);
		return;
	}
	if (!status) {
		status = adopt_probe(router, consumer, create, reply, &trace, &failure);
		if (status)
			close_probe(router, created->probe_id, created->owner);
	}
	answer_created(router, consumer, request->consumer_cookie, status, trace ? trace->id : 0, &failure);
}

/* By a consumer's own word: it is in nobody else's account. */
static bool may_carry(const struct control_create *asked)
{
	const struct ledger_carried *carried = &asked->carried;

	if (!asked->trace_id)
		return !carried->delivered && !carried->filtered && !carried->lost_ring;
	return carried->delivered <= LEDGER_CARRIED_MAX && carried->filtered <= LEDGER_CARRIED_MAX &&
		carried->lost_ring <= LEDGER_CARRIED_MAX;
}

void consumer_on_create(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_create *asked = (const struct control_create *)message->bytes;
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

	/* Only who comes back may name an id, and only one that is free. */
	if ((asked->trace_id && (!(consumer->flags & ATTACH_RESUME) || fanout_trace_find(&router->fanout, asked->trace_id))) ||
		!may_carry(asked)) {
		free(create);
		control_failure_set(&failure, EINVAL, -1, "trace %" PRIu64 " is not this consumer's to have back", asked->trace_id);
		answer_created(router, consumer, message->header.cookie, EXIT_FAILED, 0, &failure);
		return;
	}
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

void consumer_on_schema(struct router *router, struct consumer *consumer, struct control_message *message)
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
	answer_send(router, consumer, &status, CONTROL_SCHEMA, sizeof(status), message->header.cookie, &fd, 1);
}

/* Whether events can have come by the old filter: their end has a place in the stream. */
static bool is_marked(const struct trace *trace)
{
	return trace->enabled || trace->stage == TRACE_CLOSING;
}

/* Returns an exit status with *ret_failure filled in. */
static uint32_t take_next_filter(struct router *router, struct consumer *consumer, struct trace *trace, uint64_t cookie,
	uint64_t time, struct control_failure *ret_failure)
{
	if (is_marked(trace) && consumer->outlet.filter_count == OUTLET_FILTERS_MAX) {
		control_failure_set(ret_failure, ENOBUFS, -1, "the old filter stays: the ring has no room for the mark of a new one");
		return EXIT_BUSY;
	}
	if (fanout_trace_filter(trace, trace->next_filter, trace->next_kernel_filter) < 0) {
		control_failure_set(ret_failure, ENOMEM, -1, "the old filter stays: no memory for the new one");
		return EXIT_FAILED;
	}
	trace->next_filter = NULL;
	trace->next_kernel_filter = NULL;
	if (is_marked(trace)) {
		outlet_filter(&consumer->outlet, trace->id, cookie, time);
		fanout_touch(&router->fanout, &consumer->outlet);
	}
	return EXIT_DONE;
}

/* The trace of a request whose filter was to take over, which is not pending any more; NULL: it is gone. */
static struct trace *end_pending(struct router *router, uint64_t number, uint64_t trace_id, struct consumer **ret_consumer)
{
	struct consumer *consumer = consumer_find(router, number);
	struct trace *trace = consumer ? own_trace(router, consumer, trace_id) : NULL;

	if (!trace || !trace->next_pending)
		return NULL;
	trace->next_pending = false;
	*ret_consumer = consumer;
	return trace;
}

/* What did not take over goes, and the kernel need not record for it. */
static void drop_next(struct router *router, struct trace *trace)
{
	const struct pushdown_next nothing = { 0 };

	filter_program_release(trace->next_filter);
	filter_program_release(trace->next_kernel_filter);
	trace->next_filter = NULL;
	trace->next_kernel_filter = NULL;
	pushdown_update(router, trace->route, &nothing);
}

/* The stream has come to where the kernel records all that the new filter needs: it takes over here. */
void consumer_filter_due(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie, uint64_t time)
{
	struct consumer *consumer;
	struct trace *trace = end_pending(router, number, trace_id, &consumer);
	struct control_failure failure = { .position = -1 };
	uint32_t status;

	if (!trace)
		return;
	/* The stream may have been told further than it was asked for. */
	if (time < router->fanout.last_time)
		time = router->fanout.last_time;
	status = take_next_filter(router, consumer, trace, cookie, time, &failure);
	answer_status(router, consumer, trace->next_request, cookie, status, status ? &failure : NULL);
	drop_next(router, trace);
}

void consumer_filter_failed(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie, int error)
{
	struct consumer *consumer;
	struct trace *trace = end_pending(router, number, trace_id, &consumer);
	struct control_failure failure = { .position = -1 };

	if (!trace)
		return;
	control_failure_set(&failure, -error, -1, "the old filter stays: %s",
		error == -ENOTCONN ? "the session's reader is not running" : "too many requests are under way");
	answer_status(router, consumer, trace->next_request, cookie, error == -ENOTCONN ? EXIT_MISSING : EXIT_BUSY, &failure);
	drop_next(router, trace);
}

static void filter_widened(struct router *router, const struct pushdown_next *next)
{
	struct consumer *consumer = consumer_find(router, next->consumer);
	struct trace *trace = consumer ? own_trace(router, consumer, next->trace) : NULL;
	int r;

	if (!trace)
		return;
	/* A trace that takes no events yet has no place in the stream to wait for. */
	if (!trace->enabled) {
		consumer_filter_due(router, next->consumer, next->trace, next->cookie, 0);
		return;
	}
	r = stream_filter(router, next->consumer, next->trace, next->cookie);
	if (r < 0)
		consumer_filter_failed(router, next->consumer, next->trace, next->cookie, r);
}

/* The schemas of a consumer's other traces, each once for each kind of event; *ret is the caller's to free. */
static int other_schemas(const struct router *router, const struct trace *trace, const struct schema *const **ret, size_t *ret_count)
{
	const struct schema **schemas = calloc(router->fanout.route_count + 1, sizeof(const struct schema *));
	size_t count = 0;

	if (!schemas)
		return -ENOMEM;
	for (size_t i = 0; i < router->fanout.route_count; i++) {
		const struct route *route = router->fanout.routes[i];

		for (uint32_t k = 0; route != trace->route && k < route->trace_count; k++) {
			if (route->traces[k]->consumer != trace->consumer)
				continue;
			schemas[count++] = &route->schema;
			break;
		}
	}
	*ret = schemas;
	*ret_count = count;
	return 0;
}

/* Reads the asked filter into what is to take over. Returns an exit status with *ret_failure filled in. */
static uint32_t read_next_filter(const struct router *router, struct trace *trace, const struct control_set_filter *asked,
	struct control_failure *ret_failure)
{
	struct filter_environment environment = { .lacks = lacking_facts(router) };
	CLEANUP_FREE const struct schema *const *others = NULL;
	int r = 0;

	if (asked->header.type == CONTROL_SET_SHARED) {
		r = other_schemas(router, trace, &others, &environment.other_count);
		environment.flags = FILTER_LENIENT;
		environment.others = others;
	}
	if (r < 0) {
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the filter");
		return EXIT_FAILED;
	}
	return read_filter(trace->route, trace->name, asked->filter, environment, &trace->next_filter, &trace->next_kernel_filter,
		ret_failure);
}

void consumer_on_set_filter(struct router *router, struct consumer *consumer, struct control_message *message)
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
	status = read_next_filter(router, trace, asked, &failure);
	if (status) {
		answer_status(router, consumer, message->header.type, message->header.cookie, status, &failure);
		return;
	}
	trace->next_pending = true;
	trace->next_request = asked->header.type;
	pushdown_update(router, trace->route, &next);
}

static void enable_answered(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_failure failure = { .position = -1 };
	uint32_t status = answer_from_reader(reply, &failure);
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
	if (asked->enabled && status == 0) {
		recorder_start(&router->recorder);
		stream_check_recording(router);
		fanout_publish(&router->fanout);
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
		/* As if it had not been asked for. */
		trace->claiming = trace->enabled;
		if (enabled)
			fanout_trace_stop(trace, 0);
		answer_failed(router, consumer, CONTROL_SET_ENABLED, cookie, r, "asking the reader");
	}
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
	struct trace *trace = consumer ? own_trace(router, consumer, next->trace) : NULL;

	if (!trace)
		return;
	/* Open before the kernel is asked, so that its first event finds the trace ready. */
	trace->until = UINT64_MAX;
	if (!router_recorded(router) && start_trace(consumer, trace) < 0) {
		trace->claiming = false;
		answer_failed(router, consumer, CONTROL_SET_ENABLED, next->cookie, -ENOMEM, "the trace");
		return;
	}
	budget_begin(&router->budget, trace, router_now());
	send_enable(router, consumer, trace, next->cookie, true);
}

void consumer_on_set_enabled(struct router *router, struct consumer *consumer, struct control_message *message)
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

/* It takes nothing any more from this very place on, and the kernel records it no longer than it takes to say so. */
void consumer_throttle(struct router *router, struct trace *trace, const struct record_throttled *why)
{
	const uint64_t now = router->fanout.last_time;
	struct control_set_enabled off = { .id = trace->probe_id, .enabled = 0 };
	struct upstream_request request = { .done = answer_nobody };
	const struct pushdown_next nothing = { 0 };

	(void)upstream_send(&router->upstream, &off, CONTROL_PROBE_ENABLE, sizeof(off), NULL, 0, &request);
	trace->enabled = trace->claiming = false;
	fanout_trace_stop(trace, now);
	outlet_throttled(trace->outlet, trace->id, now, why);
	fanout_touch(&router->fanout, trace->outlet);
	pushdown_update(router, trace->route, &nothing);
}

static void trace_drop(struct router *router, struct trace *trace)
{
	const struct pushdown_next nothing = { 0 };
	struct route *route = trace->route;
	uint64_t probe_id = trace->probe_id;
	uint32_t owner = trace->owner;

	if (trace->enabled && probe_id) {
		struct control_set_enabled off = { .id = probe_id, .enabled = 0 };
		struct upstream_request request = { .done = answer_nobody };

		(void)upstream_send(&router->upstream, &off, CONTROL_PROBE_ENABLE, sizeof(off), NULL, 0, &request);
	}
	router->fanout.tasks.asks -= trace->own;
	budget_remove(&router->budget, trace);
	fanout_trace_remove(trace);
	if (probe_id)
		close_probe(router, probe_id, owner);
	pushdown_update(router, route, &nothing);
	drop_unused(router, route);
}

void consumer_on_close(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = need_trace(router, consumer, &message->header, request->id);

	if (!trace)
		return;
	trace_drop(router, trace);
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

static void put_text(char *array, size_t size, const char *text)
{
	size_t length = strlen(text);

	memset(array, 0, size);
	if (length < size) {
		memcpy(array, text, length);
		return;
	}
	memcpy(array, text, size - 4);
	memcpy(array + size - 4, "...", 4);
}

/* What is pushed is made of all traces' filters, in which others may have put what this user is not to know. */
static const char *shown_pushed(const struct trace *trace)
{
	const struct route *route = trace->route;

	for (uint32_t i = 0; trace->owner != 0 && i < route->trace_count; i++) {
		if (route->traces[i]->owner != trace->owner)
			return "";
	}
	return route->pushed ? route->pushed : "0";
}

/* Returns 0 or -ENOMEM. */
static int explain(const struct trace *trace, struct control_explained *explained)
{
	CLEANUP_FREE char *kernel = NULL;
	CLEANUP_FREE char *router = NULL;
	bool exact = true;
	int r = 0;

	if (trace->filter)
		r = filter_program_show(trace->filter, &router);
	if (r == 0 && trace->kernel_filter)
		r = filter_kernel_text(trace->kernel_filter, CONTROL_FILTER_MAX, &kernel, &exact);
	if (r < 0)
		return r;
	/* What a line doesn't show is missing in the router, whatever the kernel finds in its event. */
	explained->exact = exact && (!trace->filter || trace->kernel_filter) && !(trace->route->schema.header->flags & SCHEMA_TEXT);
	put_text(explained->kernel, sizeof(explained->kernel), kernel ? kernel : "0");
	put_text(explained->router, sizeof(explained->router), router ? router : "");
	put_text(explained->pushed, sizeof(explained->pushed), shown_pushed(trace));
	return 0;
}

void consumer_on_explain(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = own_trace(router, consumer, request->id);
	struct control_explained explained = { 0 };

	explained.failure.position = -1;
	if (!trace) {
		explained.status = EXIT_FAILED;
		control_failure_set(&explained.failure, ENOENT, -1, "this consumer has no trace %" PRIu64, request->id);
	} else if (explain(trace, &explained) < 0) {
		explained.status = EXIT_FAILED;
		control_failure_set(&explained.failure, ENOMEM, -1, "no memory to show the filter");
	}
	answer_send(router, consumer, &explained, CONTROL_EXPLAIN, sizeof(explained), message->header.cookie, NULL, 0);
}

static void answer_stats(struct router *router, struct consumer *consumer, const struct trace *trace, uint64_t id, uint64_t cookie)
{
	struct control_stats stats = { 0 };

	stats.failure.position = -1;
	if (trace) {
		stats.trace = fanout_trace_ledger(trace);
	} else {
		stats.status = EXIT_FAILED;
		control_failure_set(&stats.failure, ENOENT, -1, "this consumer has no trace %" PRIu64, id);
	}
	answer_send(router, consumer, &stats, CONTROL_STATS, sizeof(stats), cookie, NULL, 0);
}

void consumer_stats_due(struct router *router, uint64_t number, uint64_t trace_id, uint64_t cookie)
{
	struct consumer *consumer = consumer_find(router, number);

	if (consumer)
		answer_stats(router, consumer, own_trace(router, consumer, trace_id), trace_id, cookie);
}

void consumer_on_stats(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = own_trace(router, consumer, request->id);
	bool dynamic = trace && !router_recorded(router) && strcmp(trace->route->system, router->welcome.group) == 0;

	/* What a return probe missed only the kernel knows. */
	if (!dynamic || stream_stats(router, consumer->number, request->id, message->header.cookie) < 0)
		answer_stats(router, consumer, trace, request->id, message->header.cookie);
}

void consumer_unseen(void *context, struct route *route)
{
	struct router *router = context;
	char name[2 * CONTROL_NAME_MAX];

	if (route->hidden)
		return;
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
			(void)snprintf(name, sizeof(name), "%s", *route->name ? route->name : "(unnamed)");
		model = trace_model(router, c, 0, 0, name);
		if (fanout_trace_add(route, &model, &trace) < 0 || fanout_trace_start(trace, 0, 0) < 0)
			log_error("no memory for a trace of %s", name);
	}
}

void consumer_traces_release(struct router *router, struct consumer *consumer, uint64_t since)
{
	if (!(consumer->flags & ATTACH_HOLD))
		return;
	consumer->flags &= ~(uint32_t)ATTACH_HOLD;
	for (size_t i = 0; i < router->fanout.route_count; i++) {
		struct route *route = router->fanout.routes[i];

		for (uint32_t k = 0; k < route->trace_count; k++) {
			struct trace *trace = route->traces[k];

			if (trace->consumer == consumer->number && trace->claiming && fanout_trace_start(trace, since, 0) < 0)
				log_error("no memory for trace %" PRIu64, trace->id);
		}
	}
}

/* A route may go with its last trace, and another then stands in its place. */
void consumer_traces_drop(struct router *router, uint64_t number)
{
	for (size_t i = router->fanout.route_count; i--;) {
		struct route *route = router->fanout.routes[i];

		for (uint32_t k = route->trace_count; k--;) {
			if (route->traces[k]->consumer == number)
				trace_drop(router, route->traces[k]);
		}
	}
}
