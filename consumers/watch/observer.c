#include "consumers/watch/observer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
	return observer_trace_for(watch, place, shape, handler, watch);
}

int observer_trace_for(struct watch *watch, const char *place, const struct tfan_shape *shape, tfan_handler handler, void *context)
{
	struct tfan_trace *trace;

	return tfan_trace_bind(watch->tfan, place, shape, handler, context, &trace);
}

/* Quotes what the notation would read otherwise. The caller's to free; NULL: no memory. */
static char *observer_quoted(const char *path)
{
	char *quoted = malloc(2 * strlen(path) + 3), *out = quoted;

	if (!quoted)
		return NULL;
	*out++ = '"';
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			*out++ = '\\';
		*out++ = *path;
	}
	*out++ = '"';
	*out = '\0';
	return quoted;
}

int observer_library(struct watch *watch, const char *function, const struct tfan_shape *shape, tfan_handler handler,
	void *context)
{
	char *path, *place = NULL;
	int r = -ENOMEM;

	if (!watch->library)
		return -ENOENT;
	path = observer_quoted(watch->library);
	if (path && asprintf(&place, "uprobe:%s:%s", path, function) >= 0)
		r = observer_trace_for(watch, place, shape, handler, context);
	free(place);
	free(path);
	return r;
}

int observer_first(struct watch *watch, const char *const *places, const struct tfan_shape *shape, tfan_handler handler)
{
	int r = -ENOENT;

	for (; *places; places++) {
		r = observer_trace(watch, *places, shape, handler);
		if (r == 0 || !observer_may_do_without(watch, r))
			break;
	}
	return r;
}

bool observer_may_do_without(const struct watch *watch, int r)
{
	const struct tfan_failure *failure = tfan_failure(watch->tfan);

	if (r == -ENOMEM)
		return false;
	if (r == -ENOENT && !watch->library)
		return true;
	return failure && (failure->category == TFAN_NOT_PERMITTED || failure->category == TFAN_MISSING ||
		failure->category == TFAN_LOCATION || failure->category == TFAN_FETCH_ARG);
}
