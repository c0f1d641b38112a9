#include "router/pushdown.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "router/filter.h"
#include "router/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char no_filter[] = "0";

/* What travels with a request to the reader. */
struct pushdown_request {
	struct pushdown_next next;
	struct route *route;
	uint64_t probe_id;
	bool widest; /* it was "0" already: there is nothing wider to fall back to */
};

/* The programs of every trace that claims events of the route. *ret_all: one of them wants everything. */
static size_t claims(const struct route *route, const struct filter_program **programs, bool *ret_all)
{
	size_t count = 0;

	*ret_all = route->own != NULL;
	for (uint32_t i = 0; i < route->trace_count; i++) {
		const struct trace *trace = route->traces[i];

		if (trace->claiming && !trace->kernel_filter)
			*ret_all = true;
		if (trace->claiming && trace->kernel_filter)
			programs[count++] = trace->kernel_filter;
		if (trace->claiming && trace->next_pending && !trace->next_kernel_filter)
			*ret_all = true;
		if (trace->claiming && trace->next_pending && trace->next_kernel_filter)
			programs[count++] = trace->next_kernel_filter;
	}
	return count;
}

char *pushdown_text(const struct route *route, bool *ret_exact)
{
	CLEANUP_FREE const struct filter_program **programs = calloc(2 * (size_t)route->trace_count + 1, sizeof(struct filter_program *));
	struct filter_program *all = NULL;
	char *text = NULL;
	bool everything;
	size_t count;
	int r;

	*ret_exact = false;
	if (!programs)
		return NULL;
	count = claims(route, programs, &everything);
	if (everything || !count)
		return strdup(no_filter);
	r = filter_union(programs, count, &all);
	if (r == 0)
		r = filter_kernel_text(all, FILTER_KERNEL_TEXT_MAX < CONTROL_FILTER_MAX ? FILTER_KERNEL_TEXT_MAX : CONTROL_FILTER_MAX, &text, ret_exact);
	filter_program_release(all);
	return r < 0 ? NULL : text;
}

static void go_on(struct router *router, const struct pushdown_next *next)
{
	if (next->then)
		next->then(router, next);
}

static void push_answered(void *context, const struct upstream_request *request, struct control_message *answer);

static int push(struct router *router, const struct pushdown_request *model, const char *text)
{
	struct pushdown_request *extra = malloc(sizeof(*extra));
	struct control_set_filter message = { .id = model->probe_id };
	struct upstream_request request = { .extra = extra, .done = push_answered };
	int r = -ENOMEM;

	if (extra) {
		*extra = *model;
		extra->widest = strcmp(text, no_filter) == 0;
		r = control_text(message.filter, sizeof(message.filter), text);
	}
	if (r == 0)
		r = upstream_send(&router->upstream, &message, CONTROL_PROBE_FILTER, sizeof(message), NULL, 0, &request);
	if (r < 0)
		free(extra);
	else
		(void)fanout_route_hold(extra->route);
	return r;
}

static void push_answered(void *context, const struct upstream_request *request, struct control_message *answer)
{
	struct router *router = context;
	struct pushdown_request *pushed = request->extra;
	const struct control_status *status = answer ? (const struct control_status *)answer->bytes : NULL;

	if (status && status->status && !pushed->widest) {
		log_note("the kernel refuses the filter of %s:%s, which goes without: %s", pushed->route->system,
			pushed->route->name, status->failure.message);
		free(pushed->route->pushed);
		pushed->route->pushed = strdup(no_filter);
		if (push(router, pushed, no_filter) == 0) {
			fanout_route_let_go(pushed->route);
			return;
		}
	}
	fanout_route_let_go(pushed->route);
	go_on(router, &pushed->next);
}

/* Nobody (0) is anybody who leaves or changes his mind. */
static bool comes_back(struct router *router, uint64_t number)
{
	const struct consumer *consumer = number ? consumer_find(router, number) : NULL;

	return !number || (consumer && (consumer->flags & ATTACH_RESUME));
}

/* What a router found that took over is not known until it has been written anew. */
static bool pushed_already(const struct router *router, const struct route *route, const char *text)
{
	if (!route->pushed)
		return !router->welcome.consumers && strcmp(text, no_filter) == 0;
	return strcmp(text, route->pushed) == 0;
}

void pushdown_all(struct router *router)
{
	const struct pushdown_next nothing = { 0 };

	for (size_t i = 0; i < router->fanout.route_count; i++)
		pushdown_update(router, router->fanout.routes[i], &nothing);
}

void pushdown_update(struct router *router, struct route *route, const struct pushdown_next *next)
{
	struct pushdown_request model = { .next = *next, .route = route };
	CLEANUP_FREE char *text = NULL;
	bool exact;

	for (uint32_t i = 0; i < route->trace_count && !model.probe_id; i++)
		model.probe_id = route->traces[i]->probe_id;
	if (router_recorded(router) || !model.probe_id) {
		go_on(router, next);
		return;
	}
	/* The filter that the last router left covers all its consumers. Until they are back their claims are not
	 * known, so it may be taken away for a newcomer, but not narrowed. */
	if (router->awaited && comes_back(router, next->consumer)) {
		go_on(router, next);
		return;
	}
	text = router->awaited ? strdup(no_filter) : pushdown_text(route, &exact);
	if (!text)
		text = strdup(no_filter);
	if (!text || pushed_already(router, route, text) || push(router, &model, text) < 0) {
		go_on(router, next);
		return;
	}
	free(route->pushed);
	route->pushed = TAKE_PTR(text);
}
