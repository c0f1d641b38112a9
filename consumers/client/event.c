#include "consumers/client/event.h"

#include "consumers/client/connection.h"

#include <errno.h>
#include <string.h>

enum tfan_kind tfan_event_kind(const struct tfan_event *event)
{
	return event->head.kind;
}

struct tfan_trace *tfan_event_trace(const struct tfan_event *event)
{
	return event->head.trace;
}

uint64_t tfan_event_time(const struct tfan_event *event)
{
	return event->head.time;
}

uint64_t tfan_event_wall(const struct tfan_event *event)
{
	return clock_model_wall(&event->tfan->clock, event->head.time);
}

int tfan_event_cpu(const struct tfan_event *event)
{
	return event->head.cpu;
}

int tfan_event_pid(const struct tfan_event *event)
{
	return event->head.pid;
}

const char *tfan_event_comm(const struct tfan_event *event)
{
	char *comm = event->tfan->event.comm;

	/* A copy: the record's array may be full, without a NUL. */
	comm[0] = '\0';
	if (event->record->flags & RECORD_COMM)
		memcpy(comm, event->record->comm, RECORD_COMM_SIZE);
	comm[RECORD_COMM_SIZE] = '\0';
	return comm;
}

bool tfan_event_late(const struct tfan_event *event)
{
	return event->record->flags & RECORD_LATE;
}

bool tfan_event_suspect(const struct tfan_event *event)
{
	return event->record->flags & RECORD_SUSPECT;
}

bool tfan_event_partial(const struct tfan_event *event)
{
	return event->record->flags & RECORD_PARTIAL;
}

/* ---- fields ---- */

int event_integer_checked(const struct tfan_event *event, const struct field *field, uint64_t *ret)
{
	return schema_read_integer(&event->part->schema, field->schema, event_payload(event), event->payload_size,
		ret);
}

int tfan_event_u64(const struct tfan_event *event, size_t i, uint64_t *ret)
{
	const struct field *field = event_field(event, i);

	return field ? event_integer(event, field, ret) : -EINVAL;
}

int tfan_event_i64(const struct tfan_event *event, size_t i, int64_t *ret)
{
	const struct field *field = event_field(event, i);
	uint64_t value = 0;
	int rc = field ? event_integer(event, field, &value) : -EINVAL;

	if (rc == 0)
		*ret = (int64_t)value;
	return rc;
}

/* The part of tfan_event_integers from the first field on that is not one load; so that the other part is a loop
 * and nothing else. */
static __attribute__((noinline)) void integers_checked(const struct tfan_event *event, uint64_t *ret, size_t from,
	size_t count)
{
	for (size_t i = from; i < count; i++) {
		if (event_integer(event, &event->part->fields[i], &ret[i]) < 0)
			ret[i] = 0;
	}
}

int tfan_event_integers(const struct tfan_event *event, uint64_t *ret, size_t count)
{
	const struct trace_part *part = event->part;
	const uint8_t *payload = event_payload(event);
	const struct field *fields;
	size_t direct, i = 0;

	if (event->head.kind != TFAN_EVENT || !part || count > part->field_count)
		return -EINVAL;
	fields = part->fields;
	direct = event->direct ? part->direct_count : 0;
	if (direct > count)
		direct = count;
	for (; i < direct; i++)
		ret[i] = event_load(payload, &fields[i]);
	if (i != count)
		integers_checked(event, ret, i, count);
	return 0;
}

int tfan_event_bytes(const struct tfan_event *event, size_t i, const void **ret, size_t *ret_size)
{
	const struct field *field = event_field(event, i);
	const uint8_t *bytes;
	size_t size;
	int rc;

	if (!field)
		return -EINVAL;
	rc = schema_read_bytes(&event->part->schema, field->schema, event_payload(event), event->payload_size, &bytes,
		&size);
	if (rc == 0) {
		*ret = bytes;
		*ret_size = size;
	}
	return rc;
}

int tfan_event_element(const struct tfan_event *event, size_t i, size_t at, uint64_t *ret)
{
	const struct field *field = event_field(event, i);

	if (!field)
		return -EINVAL;
	return schema_read_element(&event->part->schema, field->schema, event_payload(event), event->payload_size, at,
		ret);
}

/* ---- what is no event ---- */

int tfan_event_lost(const struct tfan_event *event, struct tfan_lost *ret)
{
	struct record_lost lost;

	if (event->head.kind != TFAN_LOST && event->head.kind != TFAN_GAP)
		return -EINVAL;
	memcpy(&lost, event_payload(event), sizeof(lost));
	ret->source = lost.source >= LOST_KERNEL && lost.source <= LOST_RECORDING ?
		(enum tfan_lost_source)lost.source : TFAN_LOST_KERNEL;
	ret->cpu = lost.cpu < RECORD_CPU_NONE ? (int)lost.cpu : -1;
	ret->counted = lost.count != LOST_COUNT_UNKNOWN;
	ret->count = ret->counted ? lost.count : lost.at_least;
	ret->from = lost.from;
	ret->to = lost.to;
	return 0;
}

int tfan_event_throttled(const struct tfan_event *event, struct tfan_throttled *ret)
{
	struct record_throttled throttled;

	if (event->head.kind != TFAN_THROTTLED)
		return -EINVAL;
	memcpy(&throttled, event_payload(event), sizeof(throttled));
	*ret = (struct tfan_throttled){
		.rate = throttled.rate, .count = throttled.count, .since = throttled.since, .of_user = throttled.of_user != 0,
	};
	return 0;
}

int tfan_event_end(const struct tfan_event *event, enum tfan_end_reason *ret, const char **ret_message)
{
	if (event->head.kind != TFAN_END)
		return -EINVAL;
	*ret = event->end_reason >= END_STOPPED && event->end_reason <= END_REFUSED ?
		(enum tfan_end_reason)event->end_reason : TFAN_END_ERROR;
	*ret_message = event->end_message;
	return 0;
}
