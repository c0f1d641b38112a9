/* The fan-out's routes: their making and going, and by which names they are found. */
#include "router/fanout_parts.h"

#include "router/filter.h"
#include "router/text_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fanout_route_release(struct route *route)
{
	if (!route)
		return;
	while (route->trace_count)
		fanout_trace_remove(route->traces[route->trace_count - 1]);
	free(route->traces);
	free(route->plain);
	free(route->owned);
	free(route->detailed);
	filter_index_release(route->index);
	free(route->schema_bytes);
	free(route->system);
	free(route->name);
	free(route->shown);
	free(route->pushed);
	free(route);
}

static uint32_t name_hash(const char *name, size_t size)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return (hash ^ hash >> 16) & (FANOUT_NAMES - 1);
}

/* `body` is of a line of the event, where that is all that is known of it. */
static int route_schema(struct fanout *fanout, struct route *route, const struct text_piece *body)
{
	int r;

	if (!route->event)
		r = text_schema_infer(body, route->system, route->name, &route->schema_bytes, &route->schema_size);
	else if (fanout->text)
		r = text_schema_make(&route->event->schema, route->system, route->name, &route->schema_bytes,
			&route->schema_size);
	else
		r = catalog_schema_for(route->event, 0, 0, &route->schema_bytes, &route->schema_size);
	if (r == 0)
		r = schema_view(route->schema_bytes, route->schema_size, &route->schema);
	route->guarded = r == 0 && fanout->text && text_schema_is_guarded(&route->schema);
	return r;
}

static int routes_append(struct fanout *fanout, struct route *route)
{
	if (fanout->route_count == fanout->route_room) {
		size_t room = fanout->route_room ? 2 * fanout->route_room : 64;
		struct route **routes = realloc(fanout->routes, room * sizeof(struct route *));

		if (!routes)
			return -ENOMEM;
		fanout->routes = routes;
		fanout->route_room = room;
	}
	fanout->routes[fanout->route_count++] = route;
	return 0;
}

static int route_make(struct fanout *fanout, struct catalog_event *event, const struct text_piece *name,
	const struct text_piece *body, struct route **ret)
{
	struct route *route = calloc(1, sizeof(*route));
	int r = -ENOMEM;
	uint32_t hash;

	if (!route)
		return r;
	route->event = event;
	route->pid_end = UINT32_MAX;
	route->kept = LEDGER_UNKNOWN;
	if (event && event->pid_offset != UINT16_MAX) {
		route->pid_offset = event->pid_offset;
		route->pid_end = event->pid_offset + (uint32_t)sizeof(uint32_t);
	}
	route->flags_offset = UINT32_MAX;
	if (event && !fanout->text) {
		int flags = schema_find(&event->schema, "common_flags");

		if (flags >= 0 && event->schema.fields[flags].size == 1)
			route->flags_offset = event->schema.fields[flags].offset;
	}
	route->seed = fanout->seed;
	route->tasks = &fanout->tasks;
	route->system = strdup(event ? event->system : "");
	route->name = calloc(1, name->size + 1);
	if (route->name && name->size)
		memcpy(route->name, name->at, name->size);
	if (route->system && route->name)
		r = route_schema(fanout, route, body);
	if (r == 0)
		r = routes_append(fanout, route);
	if (r < 0) {
		fanout_route_release(route);
		return r;
	}
	hash = name_hash(name->at, name->size);
	route->next_name = fanout->by_name[hash];
	fanout->by_name[hash] = route;
	*ret = route;
	return 0;
}

int fanout_route(struct fanout *fanout, struct catalog_event *event, struct route **ret)
{
	struct route *route = event->user;
	int r = 0;

	if (!route) {
		const struct text_piece name = { .at = event->name, .size = strlen(event->name) };

		r = route_make(fanout, event, &name, NULL, &route);
		if (r < 0)
			return r;
		event->user = route;
	}
	fanout->by_type[event->type] = route;
	*ret = route;
	return r;
}

struct route *fanout_route_named(const struct fanout *fanout, const char *name, size_t size)
{
	struct route *route = fanout->by_name[name_hash(name, size)];

	while (route && (strncmp(route->name, name, size) != 0 || route->name[size]))
		route = route->next_name;
	return route;
}

int fanout_text_route(struct fanout *fanout, const struct text_piece *name, const struct text_piece *body,
	struct route **ret)
{
	struct route *route = fanout_route_named(fanout, name->at, name->size);
	int r;

	if (!route) {
		r = route_make(fanout, NULL, name, body, &route);
		if (r < 0)
			return r;
	}
	*ret = route;
	return 0;
}

/* A line of a log begins with the name of a thread, never with "name:", which begins every format file. */
static bool is_line(const struct fanout *fanout, const char *text, size_t size)
{
	return fanout->text && (size < 5 || memcmp(text, "name:", 5) != 0);
}

int fanout_describe(struct fanout *fanout, const char *system, const char *text, size_t size, struct route **ret,
	const char **ret_reason)
{
	struct catalog_event *event = NULL;
	char name[CONTROL_NAME_MAX];
	struct text_line line;
	int r;

	if (!is_line(fanout, text, size)) {
		r = catalog_add(fanout->catalog, system, text, size, &event, ret_reason);
		return r < 0 ? r : fanout_route(fanout, event, ret);
	}
	*ret_reason = "there is no whole line of it";
	text_line_parse(text, size, &line);
	if (line.kind != TEXT_EVENT || text_event_name(&line, name, sizeof(name)) < 0)
		return -EBADMSG;
	return fanout_text_route(fanout, &(struct text_piece){ .at = name, .size = strlen(name) }, &line.body, ret);
}

static void route_unlist(struct fanout *fanout, const struct route *route)
{
	struct route **place = &fanout->by_name[name_hash(route->name, strlen(route->name))];

	while (*place && *place != route)
		place = &(*place)->next_name;
	if (*place)
		*place = route->next_name;
	for (size_t i = 0; i < fanout->route_count; i++) {
		if (fanout->routes[i] != route)
			continue;
		fanout->routes[i] = fanout->routes[--fanout->route_count];
		break;
	}
	if (fanout->by_type[route->event->type] == route)
		fanout->by_type[route->event->type] = NULL;
}

void fanout_route_drop(struct fanout *fanout, struct route *route)
{
	if (route->gone || route->trace_count || route->own || !route->event)
		return;
	route_unlist(fanout, route);
	catalog_remove(fanout->catalog, route->event);
	route->event = NULL;
	route->gone = true;
	if (!route->holds)
		fanout_route_release(route);
}

struct route *fanout_route_hold(struct route *route)
{
	route->holds++;
	return route;
}

void fanout_route_let_go(struct route *route)
{
	if (--route->holds == 0 && route->gone)
		fanout_route_release(route);
}

void fanout_route_use(struct route *route, bool first, void (*own)(void *context, const struct own_event *event), void *context)
{
	route->own = own;
	route->own_first = first;
	route->own_context = context;
	route->quick = 0;
}
