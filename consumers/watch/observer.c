#include "consumers/watch/observer.h"

#include <errno.h>
#include <string.h>

void observer_begin(struct watch_record *record, const char *kind, const struct tfan_event *event)
{
	record->kind = kind;
	record->event = event;
	record->count = 0;
}

static struct watch_value *observer_field(struct watch_record *record, const char *name, enum watch_value_kind kind)
{
	struct watch_field *field = &record->fields[record->count < WATCH_FIELDS_MAX - 1 ? record->count : WATCH_FIELDS_MAX - 1];

	record->count = (size_t)(field - record->fields) + 1;
	*field = (struct watch_field){ .name = name, .value = { .kind = kind } };
	return &field->value;
}

void observer_integer(struct watch_record *record, const char *name, int64_t value)
{
	observer_field(record, name, WATCH_INTEGER)->integer = value;
}

void observer_bool(struct watch_record *record, const char *name, bool value)
{
	observer_field(record, name, WATCH_BOOL)->integer = value;
}

void observer_unknown(struct watch_record *record, const char *name)
{
	(void)observer_field(record, name, WATCH_UNKNOWN);
}

void observer_bytes(struct watch_record *record, const char *name, const char *bytes, size_t size)
{
	observer_field(record, name, WATCH_TEXT)->text = (struct watch_text){ bytes, size };
}

void observer_text(struct watch_record *record, const char *name, const char *text)
{
	if (text)
		observer_bytes(record, name, text, strlen(text));
	else
		observer_unknown(record, name);
}

void observer_list(struct watch_record *record, const char *name, const struct watch_text *list, size_t count)
{
	struct watch_value *value = observer_field(record, name, WATCH_LIST);

	value->list = list;
	value->count = count;
}

void observer_tell(struct watch *watch, const struct watch_record *record)
{
	watch->sink.record(watch->sink.context, record);
}

void observer_note(struct watch *watch, const char *text)
{
	watch->sink.note(watch->sink.context, text);
}

int observer_trace(struct watch *watch, const char *place, const struct tfan_shape *shape, tfan_handler handler)
{
	struct tfan_trace *trace;

	return tfan_trace_bind(watch->tfan, place, shape, handler, watch, &trace);
}

int observer_library(struct watch *watch, const char *function, const struct tfan_shape *shape, tfan_handler handler)
{
	struct tfan_trace *trace;

	if (!watch->library)
		return -ENOENT;
	return tfan_trace_uprobe(watch->tfan, watch->library, function, shape, handler, watch, &trace);
}

bool observer_may_do_without(const struct watch *watch, int r)
{
	const struct tfan_failure *failure = tfan_failure(watch->tfan);

	if (r == -ENOENT && !watch->library)
		return true;
	return failure && (failure->category == TFAN_NOT_PERMITTED || failure->category == TFAN_MISSING ||
		failure->category == TFAN_LOCATION || failure->category == TFAN_FETCH_ARG);
}
