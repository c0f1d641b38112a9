/* The schema of one trace: fetched, checked once, and compiled to how each field is read. */
#include "consumers/client/trace.h"

#include "consumers/client/connection.h"
#include "consumers/client/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_BYTES_MAX (sizeof(struct schema_header) + SCHEMA_FIELDS_MAX * sizeof(struct schema_field) + SCHEMA_STRINGS_MAX)

void trace_part_free(struct trace_part *part)
{
	if (!part)
		return;
	free(part->definition);
	free(part->schema_bytes);
	free(part->fields);
	free(part);
}

#define HOST_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static enum field_access access_of(const struct schema *schema, const struct schema_field *field)
{
	bool foreign = !(schema->header->flags & SCHEMA_BIG_ENDIAN) == HOST_IS_BIG_ENDIAN;

	if (schema->header->flags & SCHEMA_TEXT || field->kind != SCHEMA_INTEGER || field->place != SCHEMA_FIXED ||
		field->size > sizeof(uint64_t) || field->offset > INT32_MAX || (foreign && field->size > 1))
		return FIELD_CHECKED;
	return FIELD_DIRECT;
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
		field->access = (uint8_t)access_of(schema, from);
		field->window = (int32_t)(from->offset + from->size) - (int32_t)sizeof(uint64_t);
		field->shift = (uint8_t)(64 - 8 * from->size);
		field->sign = from->flags & SCHEMA_SIGNED ? UINT64_C(1) << (63 - field->shift) : 0;
		if (field->access != FIELD_CHECKED && (uint64_t)from->offset + from->size > direct)
			direct = (uint64_t)from->offset + from->size;
		if (field->access != FIELD_CHECKED && part->direct_count == part->field_count)
			part->direct_count++;
		part->field_count++;
	}
	if (direct > UINT32_MAX)
		return -EBADMSG;
	part->direct_size = (uint32_t)direct;
	return 0;
}

static int part_take_schema(struct tfan *tfan, struct trace_part *part, int fd)
{
	size_t size;
	int rc = segment_blob_read(fd, SCHEMA_BYTES_MAX, &part->schema_bytes, &size);

	if (rc == 0)
		rc = schema_view(part->schema_bytes, size, &part->schema);
	if (rc == 0)
		rc = part_compile(part);
	if (rc)
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1,
			"session \"%s\" gave a schema that can't be read: %s", tfan->session_name, strerror(-rc));
	return 0;
}

int trace_part_fetch(struct tfan *tfan, struct trace_part *part, char **ret_name)
{
	struct control_id request = { .id = part->id };
	struct control_message reply;
	const struct control_status *status = (const struct control_status *)reply.bytes;
	int rc = connection_call(tfan, CONTROL_SCHEMA, &request, sizeof(request), -1, &reply);

	if (rc)
		return rc;
	if (status->status != 0)
		rc = failure_take(&tfan->failure, status->status, &status->failure);
	else
		rc = part_take_schema(tfan, part, reply.fds[0]);
	if (rc == 0 && ret_name && status->failure.message[0])
		*ret_name = strdup(status->failure.message);
	control_message_release(&reply);
	return rc;
}

/* ---- at a new router ---- */

/* The caller holds indices of fields, so they must be what they were. */
static bool same_layout(const struct schema *a, const struct schema *b)
{
	const struct schema_header *x = a->header, *y = b->header;

	return x->field_count == y->field_count && x->strings_size == y->strings_size && x->flags == y->flags &&
	       memcmp(a->fields, b->fields, x->field_count * sizeof(*a->fields)) == 0 &&
	       memcmp(a->strings, b->strings, x->strings_size) == 0;
}

static int check_layout(struct tfan *tfan, const struct trace_part *part)
{
	struct trace_part again = { .trace = part->trace, .id = part->id };
	int rc = trace_part_fetch(tfan, &again, NULL);

	if (rc == 0 && !same_layout(&part->schema, &again.schema))
		rc = failure_set(&tfan->failure, TFAN_FAILED, EPROTO, -1,
			"trace \"%s\" came back with other fields", part->trace->name);
	free(again.schema_bytes);
	free(again.fields);
	return rc;
}

int trace_part_remake(struct trace_part *part)
{
	const struct tfan_trace *trace = part->trace;
	struct tfan *tfan = trace->tfan;
	struct control_create request = *part->definition;
	struct control_message reply;
	const struct control_created *created = (const struct control_created *)reply.bytes;
	int rc;

	request.trace_id = part->id;
	part->carried.delivered = part->delivered;
	part->passed = 0;
	request.carried = part->carried;
	rc = trace_filter_text(trace, request.filter);
	if (rc)
		return rc;
	request.flags = (request.flags & CREATE_STACKS) | (trace->shared ? CREATE_LENIENT : 0);
	rc = connection_call(tfan, CONTROL_CREATE, &request, sizeof(request), trace->target ? trace->target->fd : -1,
		&reply);
	if (rc)
		return rc;
	if (created->status != 0)
		rc = failure_take(&tfan->failure, created->status, &created->failure);
	else if (created->trace_id != part->id)
		rc = connection_failed(tfan, -EPROTO);
	control_message_release(&reply);
	return rc ? rc : check_layout(tfan, part);
}
