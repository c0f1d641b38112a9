#include "consumers/client/trace.h"

#include "consumers/client/binding.h"
#include "consumers/client/connection.h"
#include "consumers/client/functions.h"
#include "consumers/client/location.h"
#include "consumers/client/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Adds a part for a trace that the router knows as `id`. On failure the caller frees the trace. */
static int trace_add_part(struct tfan_trace *trace, uint64_t id, struct trace_part **ret)
{
	struct trace_part **parts = realloc(trace->parts, (trace->part_count + 1) * sizeof(struct trace_part *));
	struct trace_part *part = calloc(1, sizeof(*part));

	if (parts)
		trace->parts = parts;
	if (!parts || !part) {
		free(part);
		return failure_set(&trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	}
	part->trace = trace;
	part->id = id;
	trace->parts[trace->part_count++] = part;
	*ret = part;
	return 0;
}

void trace_free(struct tfan_trace *trace)
{
	if (!trace)
		return;
	for (size_t i = 0; i < trace->part_count; i++)
		trace_part_free(trace->parts[i]);
	free(trace->parts);
	free(trace->name);
	free(trace->filter);
	free(trace->shared);
	binding_free(trace->binding);
	target_put(trace->target);
	free(trace);
}

static struct tfan_trace *trace_new(struct tfan *tfan, const char *name)
{
	struct tfan_trace *trace = calloc(1, sizeof(*trace));

	if (trace)
		trace->name = strdup(name);
	if (!trace || !trace->name) {
		trace_free(trace);
		(void)failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
		return NULL;
	}
	trace->tfan = tfan;
	return trace;
}

/* ---- the connection's list ---- */

static int list_add(struct tfan_trace ***list, size_t *count, size_t *room, struct tfan_trace *trace)
{
	if (*count == *room) {
		size_t more = *room ? 2 * *room : 8;
		struct tfan_trace **new = realloc(*list, more * sizeof(struct tfan_trace *));

		if (!new)
			return -ENOMEM;
		*list = new;
		*room = more;
	}
	(*list)[(*count)++] = trace;
	return 0;
}

static void unregister(struct tfan_trace *trace)
{
	struct tfan *tfan = trace->tfan;

	for (size_t i = 0; i < trace->part_count; i++)
		trace_index_remove(&tfan->index, trace->parts[i]);
	/* The caller may hold an event of this trace, so the event keeps its part until the burial. */
	for (size_t i = 0; i < tfan->trace_count; i++) {
		if (tfan->traces[i] != trace)
			continue;
		tfan->trace_count--;
		memmove(&tfan->traces[i], &tfan->traces[i + 1], (tfan->trace_count - i) * sizeof(struct tfan_trace *));
		break;
	}
}

/* Puts the trace where records find it, and where tfan_trace_at does unless it is unknown. */
static int enlist(struct tfan_trace *trace)
{
	struct tfan *tfan = trace->tfan;
	int rc = list_add(&tfan->traces, &tfan->trace_count, &tfan->trace_room, trace);

	for (size_t i = 0; rc == 0 && i < trace->part_count; i++)
		rc = trace_index_add(&tfan->index, trace->parts[i]);
	if (rc == 0)
		return 0;
	unregister(trace);
	return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "%s",
		rc == -EEXIST ? "the router gave one id to two traces" : "out of memory");
}

/* ---- events of traces that were not created here ---- */

/* The router's name for the trace, or else the event's. */
static int adopt_name(struct trace_part *part, char *given)
{
	const struct schema *schema = &part->schema;
	char *name = given;

	if (!name && asprintf(&name, "%s:%s", schema_string(schema, schema->header->system),
			     schema_string(schema, schema->header->event)) < 0)
		return failure_set(&part->trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	free(part->trace->name);
	part->trace->name = name;
	return 0;
}

static int adopt_part(struct tfan_trace *trace, uint64_t id, struct trace_part **ret)
{
	char *name = NULL;
	int rc = trace_add_part(trace, id, ret);

	if (rc)
		return rc;
	rc = trace_part_fetch(trace->tfan, *ret, &name);
	if (rc == 0)
		return adopt_name(*ret, name);
	/* The router says no: the trace is gone since. */
	trace->unknown = trace->tfan->failure.refused;
	return trace->unknown ? 0 : rc;
}

int trace_adopt(struct tfan *tfan, uint64_t id, struct trace_part **ret)
{
	struct tfan_trace *trace = trace_new(tfan, "");
	struct trace_part *part;
	int rc;

	if (!trace)
		return -ENOMEM;
	rc = adopt_part(trace, id, &part);
	if (rc == 0)
		rc = enlist(trace);
	if (rc) {
		trace_free(trace);
		return rc;
	}
	*ret = part;
	return 0;
}

void trace_bury(struct tfan *tfan)
{
	if (tfan->closed_count > 0)
		tfan->event.part = NULL;
	for (size_t i = 0; i < tfan->closed_count; i++)
		trace_free(tfan->closed[i]);
	tfan->closed_count = 0;
}

/* ---- creating ---- */

/* Replaces a default name's tail by dots where the message has no room for all of it: it is for status
 * alone, tfan_trace_name keeps the whole. */
static void shown_name(char *out, size_t size, const char *name)
{
	int n = snprintf(out, size, "%s", name);

	if (n >= 0 && (size_t)n >= size)
		memcpy(out + size - 4, "...", 4);
}

static int keep_definition(struct trace_part *part, const struct control_create *request)
{
	part->definition = malloc(sizeof(*request));
	if (!part->definition)
		return failure_set(&part->trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	*part->definition = *request;
	return 0;
}

static int keep_target(struct tfan_trace *trace, int fd)
{
	int rc = fd >= 0 ? target_get(trace->tfan, fd, &trace->target) : 0;

	if (rc)
		return failure_set(&trace->tfan->failure, TFAN_FAILED, -rc, -1, "can't keep the file open: %s", strerror(-rc));
	return 0;
}

static int create_part(struct tfan_trace *trace, struct control_create *request, int fd,
	const struct location *location)
{
	struct tfan *tfan = trace->tfan;
	struct control_message reply;
	const struct control_created *created = (const struct control_created *)reply.bytes;
	struct trace_part *part;
	uint64_t id;
	int rc;

	shown_name(request->name, sizeof(request->name), trace->name);
	rc = connection_call(tfan, CONTROL_CREATE, request, sizeof(*request), fd, &reply);
	if (rc)
		return rc;
	id = created->trace_id;
	if (created->status != 0)
		rc = location_refused(tfan, location, request, created->status, &created->failure);
	control_message_release(&reply);
	if (rc == 0)
		rc = trace_add_part(trace, id, &part);
	if (rc == 0)
		rc = keep_definition(part, request);
	if (rc == 0)
		rc = trace_part_fetch(tfan, part, NULL);
	return rc;
}

/* Sends one request to the router for each part of the trace; the first that is refused ends it. */
static int each_part(struct tfan_trace *trace, int (*send)(struct trace_part *part, void *context),
	void *context)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < trace->part_count; i++)
		rc = send(trace->parts[i], context);
	return rc;
}

static int send_close(struct trace_part *part, void *context)
{
	struct control_id request = { .id = part->id };

	(void)context;
	/* What the router answers changes nothing here. */
	if (part->id)
		(void)connection_ask(part->trace->tfan, CONTROL_CLOSE, &request, sizeof(request), NULL);
	return 0;
}

/* Gives back the parts that were made, without losing the failure that ended the making. */
static void create_undo(struct tfan_trace *trace)
{
	const struct failure kept = trace->tfan->failure;

	(void)each_part(trace, send_close, NULL);
	failure_restore(&trace->tfan->failure, &kept);
	trace_free(trace);
}

/* Fields are read by index, whichever part an event is of. */
static bool same_fields(const struct trace_part *a, const struct trace_part *b)
{
	if (a->field_count != b->field_count)
		return false;
	for (size_t i = 0; i < a->field_count; i++)
		if (strcmp(schema_string(&a->schema, a->fields[i].schema->name),
			    schema_string(&b->schema, b->fields[i].schema->name)) != 0)
			return false;
	return true;
}

static int check_parts(const struct tfan_trace *trace)
{
	for (size_t i = 1; i < trace->part_count; i++)
		if (!same_fields(trace->parts[i - 1], trace->parts[i]))
			return failure_set(&trace->tfan->failure, TFAN_FAILED, EPROTO, -1,
				"the places of \"%s\" came with different fields", trace->name);
	return 0;
}

static int keep_filter(struct tfan_trace *trace, const char *filter)
{
	if (filter[0])
		trace->filter = strdup(filter);
	if (filter[0] && !trace->filter)
		return failure_set(&trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	return 0;
}

int trace_create(struct tfan *tfan, const char *probe, const struct shape_plan *plan, struct tfan_trace **ret)
{
	struct location *location = NULL;
	struct control_create *request = NULL;
	struct tfan_trace *trace = NULL;
	int rc = location_find(tfan, probe, plan, &location);

	if (rc)
		return rc;
	request = calloc(1, sizeof(*request));
	trace = trace_new(tfan, location_name(location));
	if (!trace || !request)
		rc = failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	if (rc == 0)
		rc = keep_target(trace, location_fd(location));
	for (size_t i = 0; rc == 0 && i < location_count(location); i++) {
		rc = location_request(tfan, location, i, request);
		if (rc == 0 && i == 0)
			rc = keep_filter(trace, request->filter);
		if (rc == 0)
			rc = location_define(tfan, location, request);
		if (rc == 0)
			rc = create_part(trace, request, location_fd(location), location);
	}
	if (rc == 0)
		rc = check_parts(trace);
	if (rc == 0)
		rc = enlist(trace);
	if (rc && trace)
		create_undo(trace);
	else if (rc == 0)
		*ret = trace;
	free(request);
	location_free(location);
	return rc;
}

int tfan_trace_create(struct tfan *tfan, const char *probe, struct tfan_trace **ret)
{
	return trace_create(tfan, probe, NULL, ret);
}

void tfan_trace_close(struct tfan_trace *trace)
{
	struct tfan *tfan;

	if (!trace || trace->closed)
		return;
	tfan = trace->tfan;
	trace->closed = true;
	tfan->comeback.some_closed = true;
	(void)each_part(trace, send_close, NULL);
	unregister(trace);
	/* The event that the caller holds may be its: it is freed by the next tfan_next. Without memory to
	 * remember it, it stays until the connection is closed, on the list of traces. */
	tfan->pending = true;
	if (list_add(&tfan->closed, &tfan->closed_count, &tfan->closed_room, trace) < 0)
		(void)list_add(&tfan->traces, &tfan->trace_count, &tfan->trace_room, trace);
}

/* ---- changing ---- */

static int send_enabled(struct trace_part *part, void *context)
{
	struct control_set_enabled request = { .id = part->id, .enabled = *(const bool *)context };

	return connection_ask(part->trace->tfan, CONTROL_SET_ENABLED, &request, sizeof(request), NULL);
}

/* What was throttled stays so until its owner says otherwise. */
static int send_enabled_again(struct trace_part *part, void *context)
{
	return part->throttled_at > part->trace->asked_at ? 0 : send_enabled(part, context);
}

int trace_enable_again(struct tfan_trace *trace)
{
	bool enabled = true;

	return each_part(trace, send_enabled_again, &enabled);
}

uint64_t trace_now(const struct tfan *tfan)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec - tfan->clock_ahead;
}

/* In all parts, or as it was. */
static int switch_parts(struct tfan_trace *trace, bool enabled)
{
	struct failure kept;
	size_t done = 0;
	int rc = 0;

	for (; rc == 0 && done < trace->part_count; done += rc == 0)
		rc = send_enabled(trace->parts[done], &enabled);
	if (rc == 0)
		return 0;
	kept = trace->tfan->failure;
	while (done > 0)
		(void)send_enabled(trace->parts[--done], &trace->enabled);
	failure_restore(&trace->tfan->failure, &kept);
	return rc;
}

int tfan_trace_set_enabled(struct tfan_trace *trace, bool enabled)
{
	uint64_t now = trace_now(trace->tfan);
	int rc = switch_parts(trace, enabled);

	if (rc)
		return rc;
	if (enabled && !trace->enabled)
		trace->enabled_at = now;
	if (enabled)
		trace->asked_at = now;
	trace->enabled = enabled;
	return 0;
}

static const char *text_or_none(const char *text)
{
	return text ? text : "";
}

int trace_filter_text(const struct tfan_trace *trace, char out[static CONTROL_FILTER_MAX])
{
	char *text = shape_join_conditions(text_or_none(trace->filter), text_or_none(trace->shared), NULL);
	int rc = 0;

	memset(out, 0, CONTROL_FILTER_MAX);
	if (!text)
		rc = failure_set(&trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	else if (control_text(out, CONTROL_FILTER_MAX, text) < 0)
		rc = failure_set(&trace->tfan->failure, TFAN_USAGE, ENAMETOOLONG, CONTROL_FILTER_MAX - 1,
			"the filter is longer than %d bytes", CONTROL_FILTER_MAX - 1);
	free(text);
	return rc ? rc : functions_define(trace->tfan, out, CONTROL_FILTER_MAX);
}

static int send_filter(struct trace_part *part, void *context)
{
	struct control_set_filter *request = context;
	uint32_t type = part->trace->shared ? CONTROL_SET_SHARED : CONTROL_SET_FILTER;

	request->id = part->id;
	return connection_ask(part->trace->tfan, type, request, sizeof(*request), NULL);
}

/* Tells the router the trace's filters. Returns how many parts have them, with *ret_rc 0 if that is all. */
static size_t send_filters(struct tfan_trace *trace, int *ret_rc)
{
	struct control_set_filter request = { 0 };
	size_t done = 0;
	int rc = trace_filter_text(trace, request.filter);

	while (rc == 0 && done < trace->part_count) {
		rc = send_filter(trace->parts[done], &request);
		done += rc == 0;
	}
	*ret_rc = rc;
	return done;
}

/* Gives the first `count` parts the trace's filters once more. The failure that is told stays the first one. */
static void resend_filters(struct tfan_trace *trace, size_t count)
{
	const struct failure kept = trace->tfan->failure;
	struct control_set_filter request = { 0 };

	(void)trace_filter_text(trace, request.filter);
	while (count > 0)
		(void)send_filter(trace->parts[--count], &request);
	failure_restore(&trace->tfan->failure, &kept);
}

/* A position in the text of both filters, told in one of them. */
static void shift_position(struct tfan_trace *trace, bool shared)
{
	struct tfan_failure *failure = &trace->tfan->failure.public;
	const char *own = text_or_none(trace->filter), *other = text_or_none(trace->shared);
	size_t shift = 0, at;
	char *joined;

	if (failure->position < 0)
		return;
	joined = shape_join_conditions(own, other, &shift);
	/* Where both are, the first stands behind a parenthesis. */
	at = (size_t)failure->position - (shared ? shift : shift > strlen(own));
	failure->position = joined && at <= strlen(shared ? other : own) ? (int)at : -1;
	free(joined);
}

/* Replaces one of the trace's two texts: in all parts, or in none, and then `text` is freed. */
static int replace_filter(struct tfan_trace *trace, char **place, char *text)
{
	char *old = *place;
	size_t done;
	int rc;

	*place = text;
	done = send_filters(trace, &rc);
	if (rc == 0) {
		free(old);
		return 0;
	}
	shift_position(trace, place == &trace->shared);
	*place = old;
	resend_filters(trace, done);
	free(text);
	return rc;
}

/* A copy for a trace to keep; NULL for none. Returns 0 or -ENOMEM with the failure set. */
static int copy_filter(struct tfan *tfan, const char *filter, char **ret)
{
	*ret = filter && *filter ? strdup(filter) : NULL;
	if (filter && *filter && !*ret)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	return 0;
}

int tfan_trace_set_filter(struct tfan_trace *trace, const char *filter)
{
	char *copy;
	int rc = copy_filter(trace->tfan, filter, &copy);

	return rc ? rc : replace_filter(trace, &trace->filter, copy);
}

int tfan_set_filter(struct tfan *tfan, const char *filter)
{
	struct tfan_trace *trace;
	char **before, *copy;
	size_t count = 0, done = 0;
	int rc = 0;

	while (tfan_trace_at(tfan, count))
		count++;
	/* What each had, should a later one refuse. */
	before = calloc(count + 1, sizeof(*before));
	if (!before)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	for (; rc == 0 && done < count; done += rc == 0) {
		trace = tfan_trace_at(tfan, done);
		rc = copy_filter(tfan, trace->shared, &before[done]);
		if (rc == 0)
			rc = copy_filter(tfan, filter, &copy);
		if (rc == 0)
			rc = replace_filter(trace, &trace->shared, copy);
	}
	for (size_t i = 0; rc && i < done; i++) {
		trace = tfan_trace_at(tfan, i);
		free(trace->shared);
		trace->shared = before[i];
		before[i] = NULL;
		resend_filters(trace, trace->part_count);
	}
	for (size_t i = 0; i < count; i++)
		free(before[i]);
	free(before);
	return rc;
}

static int add_ledger(struct trace_part *part, void *context)
{
	struct tfan *tfan = part->trace->tfan;
	struct control_id request = { .id = part->id };
	struct control_message reply;
	const struct control_stats *stats = (const struct control_stats *)reply.bytes;
	struct tfan_ledger *sum = context;
	int rc = connection_call(tfan, CONTROL_STATS, &request, sizeof(request), -1, &reply);

	if (rc)
		return rc;
	if (stats->status != 0) {
		rc = failure_take(&tfan->failure, stats->status, &stats->failure);
	} else {
		sum->decoded += stats->trace.decoded - part->passed;
		sum->delivered += stats->trace.delivered - part->passed;
		sum->filtered += stats->trace.filtered;
		sum->lost_ring += stats->trace.lost_ring;
		sum->missed += stats->trace.missed;
		sum->gave_up += stats->trace.gave_up;
		sum->kept_known = sum->kept_known && stats->trace.kept_away != LEDGER_UNKNOWN;
		sum->kept_away = sum->kept_known ? sum->kept_away + stats->trace.kept_away : 0;
	}
	control_message_release(&reply);
	return rc;
}

int tfan_trace_ledger(struct tfan_trace *trace, struct tfan_ledger *ret)
{
	struct tfan_ledger sum = { .kept_known = true };
	int rc = each_part(trace, add_ledger, &sum);

	if (rc == 0)
		*ret = sum;
	return rc;
}

/* ---- looking ---- */

uint64_t tfan_trace_id(const struct tfan_trace *trace)
{
	return trace->parts[0]->id;
}

const char *tfan_trace_name(const struct tfan_trace *trace)
{
	return trace->name;
}

const char *tfan_trace_system(const struct tfan_trace *trace)
{
	const struct schema *schema = &trace->parts[0]->schema;

	return schema_string(schema, schema->header->system);
}

const char *tfan_trace_event(const struct tfan_trace *trace)
{
	const struct schema *schema = &trace->parts[0]->schema;

	return schema_string(schema, schema->header->event);
}

struct tfan_trace *tfan_trace_at(const struct tfan *tfan, size_t i)
{
	for (size_t at = 0; at < tfan->trace_count; at++) {
		struct tfan_trace *trace = tfan->traces[at];

		if (!trace->unknown && !trace->closed && i-- == 0)
			return trace;
	}
	return NULL;
}

size_t tfan_field_count(const struct tfan_trace *trace)
{
	return trace->parts[0]->field_count;
}

int tfan_field_at(const struct tfan_trace *trace, size_t i, struct tfan_field *ret)
{
	const struct trace_part *part = trace->parts[0];
	const struct schema_field *field;

	if (i >= part->field_count)
		return -EINVAL;
	field = part->fields[i].schema;
	ret->name = schema_string(&part->schema, field->name);
	ret->type = schema_string(&part->schema, field->type);
	ret->kind = (enum tfan_type)field->kind;
	ret->display = (enum tfan_display)field->display;
	ret->size = field->kind == SCHEMA_INTEGER ? field->size : field->element_size;
	ret->is_signed = field->flags & SCHEMA_SIGNED;
	ret->is_common = field->flags & SCHEMA_COMMON;
	ret->is_pointer = field->flags & SCHEMA_POINTER;
	return 0;
}

int tfan_field_find(const struct tfan_trace *trace, const char *name)
{
	const struct trace_part *part = trace->parts[0];

	for (size_t i = 0; i < part->field_count; i++)
		if (strcmp(schema_string(&part->schema, part->fields[i].schema->name), name) == 0)
			return (int)i;
	return -ENOENT;
}
