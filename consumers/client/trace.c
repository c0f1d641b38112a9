#include "consumers/client/trace.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumers/client/connection.h"
#include "consumers/client/location.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_BYTES_MAX (sizeof(struct schema_header) + SCHEMA_FIELDS_MAX * sizeof(struct schema_field) + SCHEMA_STRINGS_MAX)

/* ---- the index ---- */

void trace_index_release(struct trace_index *index)
{
	free(index->rows);
	memset(index, 0, sizeof(*index));
}

static void index_put(struct trace_index *index, struct trace_part *part)
{
	size_t i = trace_index_place(index, part->id);

	while (index->rows[i].part)
		i = (i + 1) & (index->room - 1);
	index->rows[i].id = part->id;
	index->rows[i].part = part;
	index->used++;
}

/* Builds the table anew with this room, leaving `but` out. */
static int index_rebuild(struct trace_index *index, size_t room, const struct trace_part *but)
{
	struct trace_index new = { .rows = calloc(room, sizeof(*new.rows)), .room = room };

	if (!new.rows)
		return -ENOMEM;
	for (size_t i = 0; i < index->room; i++)
		if (index->rows[i].part && index->rows[i].part != but)
			index_put(&new, index->rows[i].part);
	free(index->rows);
	*index = new;
	return 0;
}

int trace_index_add(struct trace_index *index, struct trace_part *part)
{
	int rc = 0;

	if (trace_index_find(index, part->id))
		return -EEXIST;
	if (2 * (index->used + 1) > index->room)
		rc = index_rebuild(index, index->room ? 2 * index->room : 16, NULL);
	if (rc == 0)
		index_put(index, part);
	return rc;
}

/* Takes the row out in place and moves the rows behind it that would no longer be found. */
void trace_index_remove(struct trace_index *index, const struct trace_part *part)
{
	size_t mask = index->room - 1, hole, i;

	if (trace_index_find(index, part->id) != part)
		return;
	for (hole = trace_index_place(index, part->id); index->rows[hole].part != part;)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; index->rows[i].part; i = (i + 1) & mask) {
		size_t home = trace_index_place(index, index->rows[i].id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		index->rows[hole] = index->rows[i];
		hole = i;
	}
	index->rows[hole].part = NULL;
	index->used--;
}

/* ---- parts ---- */

static void part_free(struct trace_part *part)
{
	if (!part)
		return;
	free(part->schema_bytes);
	free(part->fields);
	free(part);
}

static enum field_access access_of(const struct schema *schema, const struct schema_field *field)
{
	static const bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	bool is_signed = field->flags & SCHEMA_SIGNED;
	bool foreign = !(schema->header->flags & SCHEMA_BIG_ENDIAN) == host_big;

	if (schema->header->flags & SCHEMA_TEXT || field->kind != SCHEMA_INTEGER || field->place != SCHEMA_FIXED ||
		(foreign && field->size > 1))
		return FIELD_CHECKED;
	switch (field->size) {
	case 1:
		return is_signed ? FIELD_S8 : FIELD_U8;
	case 2:
		return is_signed ? FIELD_S16 : FIELD_U16;
	case 4:
		return is_signed ? FIELD_S32 : FIELD_U32;
	case 8:
		return FIELD_U64;
	default:
		return FIELD_CHECKED;
	}
}

/* Decides for each field how it is read, and how large a payload must be for it. */
static int part_compile(struct trace_part *part)
{
	const struct schema *schema = &part->schema;
	uint64_t direct = 0;

	part->fields = calloc(schema->header->field_count + 1, sizeof(*part->fields));
	if (!part->fields)
		return -ENOMEM;
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *from = &schema->fields[i];
		struct field *field = &part->fields[part->field_count];

		if (from->flags & SCHEMA_HIDDEN)
			continue;
		field->schema = from;
		field->offset = from->offset;
		field->access = access_of(schema, from);
		if (field->access != FIELD_CHECKED && (uint64_t)from->offset + from->size > direct)
			direct = (uint64_t)from->offset + from->size;
		part->field_count++;
	}
	if (direct > UINT32_MAX)
		return -EBADMSG;
	part->direct_size = (uint32_t)direct;
	return 0;
}

/* Asks for the schema of part->id, checks it and compiles it. */
static int part_fetch_schema(struct tfan *tfan, struct trace_part *part)
{
	struct control_id request = { .id = part->id };
	CLEANUP_CLOSE int fd = -1;
	size_t size;
	int rc = connection_ask(tfan, CONTROL_SCHEMA, &request, sizeof(request), &fd);

	if (rc)
		return rc;
	rc = segment_blob_read(fd, SCHEMA_BYTES_MAX, &part->schema_bytes, &size);
	if (rc == 0)
		rc = schema_view(part->schema_bytes, size, &part->schema);
	if (rc == 0)
		rc = part_compile(part);
	if (rc)
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1,
			"session \"%s\" gave a schema that can't be read: %s", tfan->session_name, strerror(-rc));
	return 0;
}

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
		part_free(trace->parts[i]);
	free(trace->parts);
	free(trace->name);
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
	tfan->last = NULL;
	for (size_t i = 0; i < tfan->trace_count; i++) {
		if (tfan->traces[i] != trace)
			continue;
		tfan->trace_count--;
		memmove(&tfan->traces[i], &tfan->traces[i + 1], (tfan->trace_count - i) * sizeof(tfan->traces[0]));
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

static int adopt_name(struct trace_part *part)
{
	const struct schema *schema = &part->schema;
	char *name;

	if (asprintf(&name, "%s:%s", schema_string(schema, schema->header->system),
		    schema_string(schema, schema->header->event)) < 0)
		return failure_set(&part->trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	free(part->trace->name);
	part->trace->name = name;
	return 0;
}

int trace_adopt(struct tfan *tfan, uint64_t id, struct trace_part **ret)
{
	struct tfan_trace *trace = trace_new(tfan, "");
	struct trace_part *part;
	int rc;

	if (!trace)
		return -ENOMEM;
	rc = trace_add_part(trace, id, &part);
	if (rc == 0) {
		rc = part_fetch_schema(tfan, part);
		/* The router says no: the trace is gone since. */
		if (rc && tfan->failure.refused) {
			trace->unknown = true;
			rc = 0;
		} else if (rc == 0) {
			rc = adopt_name(part);
		}
	}
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
		rc = location_refused(tfan, location, created->status, &created->failure);
	control_message_release(&reply);
	if (rc == 0)
		rc = trace_add_part(trace, id, &part);
	if (rc == 0)
		rc = part_fetch_schema(tfan, part);
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
	struct failure *kept = malloc(sizeof(*kept));
	struct tfan *tfan = trace->tfan;

	if (kept)
		*kept = tfan->failure;
	(void)each_part(trace, send_close, NULL);
	if (kept) {
		tfan->failure = *kept;
		tfan->failure.public.message = tfan->failure.text;
	}
	free(kept);
	trace_free(trace);
}

int tfan_trace_create(struct tfan *tfan, const char *probe, struct tfan_trace **ret)
{
	struct location *location = NULL;
	struct control_create *request = NULL;
	struct tfan_trace *trace = NULL;
	int rc = location_find(tfan, probe, &location);

	if (rc)
		return rc;
	request = calloc(1, sizeof(*request));
	trace = trace_new(tfan, location_name(location));
	rc = trace && request ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < location_count(location); i++) {
		rc = location_request(tfan, location, i, request);
		if (rc == 0)
			rc = create_part(trace, request, location_fd(location), location);
	}
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

void tfan_trace_close(struct tfan_trace *trace)
{
	struct tfan *tfan;

	if (!trace || trace->closed)
		return;
	tfan = trace->tfan;
	trace->closed = true;
	(void)each_part(trace, send_close, NULL);
	unregister(trace);
	/* The event that the caller holds may be its: it is freed by the next tfan_next. Without memory to
	 * remember it, it stays until the connection is closed, on the list of traces. */
	if (list_add(&tfan->closed, &tfan->closed_count, &tfan->closed_room, trace) < 0)
		(void)list_add(&tfan->traces, &tfan->trace_count, &tfan->trace_room, trace);
}

/* ---- changing ---- */

static int send_enabled(struct trace_part *part, void *context)
{
	struct control_set_enabled request = { .id = part->id, .enabled = *(const bool *)context };

	return connection_ask(part->trace->tfan, CONTROL_SET_ENABLED, &request, sizeof(request), NULL);
}

int tfan_trace_set_enabled(struct tfan_trace *trace, bool enabled)
{
	return each_part(trace, send_enabled, &enabled);
}

static int send_filter(struct trace_part *part, void *context)
{
	struct control_set_filter *request = context;

	request->id = part->id;
	return connection_ask(part->trace->tfan, CONTROL_SET_FILTER, request, sizeof(*request), NULL);
}

int tfan_trace_set_filter(struct tfan_trace *trace, const char *filter)
{
	struct control_set_filter request = { 0 };

	if (filter && control_text(request.filter, sizeof(request.filter), filter) < 0)
		return failure_set(&trace->tfan->failure, TFAN_USAGE, ENAMETOOLONG, CONTROL_FILTER_MAX - 1,
			"the filter is longer than %d bytes", CONTROL_FILTER_MAX - 1);
	return each_part(trace, send_filter, &request);
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
		rc = failure_take(&tfan->failure, stats->status, &stats->failure, 0);
	} else {
		sum->decoded += stats->trace.decoded;
		sum->delivered += stats->trace.delivered;
		sum->filtered += stats->trace.filtered;
		sum->lost_ring += stats->trace.lost_ring;
		sum->missed += stats->trace.missed;
	}
	control_message_release(&reply);
	return rc;
}

int tfan_trace_ledger(struct tfan_trace *trace, struct tfan_ledger *ret)
{
	struct tfan_ledger sum = { 0 };
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
