#include "router/consumer_filter.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "router/answer.h"
#include "router/consumer_traces.h"
#include "router/pushdown.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

uint32_t consumer_filter_read(const struct router *router, const struct route *route, const char *name, const char *text,
	struct filter_environment environment, struct filter_program **ret, struct filter_program **ret_kernel,
	struct control_failure *ret_failure)
{
	struct filter_failure failure = { .position = -1 };
	int r;

	*ret = NULL;
	*ret_kernel = NULL;
	if (!text[strspn(text, " \t")])
		return EXIT_DONE;
	environment.lacks = lacking_facts(router);
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
	struct trace *trace = consumer ? consumer_trace_find(router, consumer, trace_id) : NULL;

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
	drop_next(router, trace);
	/* Who can't be answered is closed, and its traces go. */
	answer_status(router, consumer, trace->next_request, cookie, status, status ? &failure : NULL);
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
	drop_next(router, trace);
	answer_status(router, consumer, trace->next_request, cookie, error == -ENOTCONN ? EXIT_MISSING : EXIT_BUSY, &failure);
}

static void filter_widened(struct router *router, const struct pushdown_next *next)
{
	struct consumer *consumer = consumer_find(router, next->consumer);
	struct trace *trace = consumer ? consumer_trace_find(router, consumer, next->trace) : NULL;
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
	struct filter_environment environment = { 0 };
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
	return consumer_filter_read(router, trace->route, trace->name, asked->filter, environment, &trace->next_filter,
		&trace->next_kernel_filter, ret_failure);
}

void consumer_on_set_filter(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_set_filter *asked = (const struct control_set_filter *)message->bytes;
	struct trace *trace = consumer_trace_need(router, consumer, &message->header, asked->id);
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
	struct trace *trace = consumer_trace_find(router, consumer, request->id);
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
