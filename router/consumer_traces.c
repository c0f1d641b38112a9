#include "router/consumer_traces.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/answer.h"
#include "router/consumer_filter.h"
#include "router/consumer_switch.h"
#include "router/kept.h"
#include "router/pushdown.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trace *consumer_trace_find(struct router *router, const struct consumer *consumer, uint64_t id)
{
	struct trace *trace = fanout_trace_find(&router->fanout, id);

	return trace && trace->consumer == consumer->number ? trace : NULL;
}

struct trace *consumer_trace_need(struct router *router, struct consumer *consumer, const struct control_header *header, uint64_t id)
{
	struct trace *trace = consumer_trace_find(router, consumer, id);
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
	status = consumer_filter_read(router, route, create->name, create->filter, environment, &model.filter, &model.kernel_filter,
		ret_failure);
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
			consumer_probe_close(router, created->probe_id, created->owner);
		return;
	}
	if (!status) {
		status = adopt_probe(router, consumer, create, reply, &trace, &failure);
		if (status)
			consumer_probe_close(router, created->probe_id, created->owner);
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
	struct trace *trace = consumer_trace_need(router, consumer, &message->header, request->id);
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

static void trace_drop(struct router *router, struct trace *trace)
{
	const struct pushdown_next nothing = { 0 };
	struct route *route = trace->route;

	consumer_switch_drop(router, trace);
	router->fanout.tasks.asks -= trace->own;
	budget_remove(&router->budget, trace);
	fanout_trace_remove(trace);
	pushdown_update(router, route, &nothing);
	drop_unused(router, route);
}

void consumer_on_close(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = consumer_trace_need(router, consumer, &message->header, request->id);

	if (!trace)
		return;
	trace_drop(router, trace);
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
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
		answer_stats(router, consumer, consumer_trace_find(router, consumer, trace_id), trace_id, cookie);
}

void consumer_on_stats(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	struct trace *trace = consumer_trace_find(router, consumer, request->id);
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
