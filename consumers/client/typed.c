/* Typed traces: made from a place and a table, and handed to their handlers. */
#include "consumers/client/binding.h"

#include "consumers/client/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tfan_trace_bind(struct tfan *tfan, const char *place, const struct tfan_shape *shape, tfan_handler handler,
	void *context, struct tfan_trace **ret)
{
	struct tfan_trace *trace = NULL;
	struct shape_plan *plan = NULL;
	int rc = shape_plan_make(shape, &plan, &tfan->failure);

	if (rc == 0)
		rc = trace_create(tfan, place, plan, &trace);
	if (rc == 0) {
		rc = binding_make(trace, plan, handler, context);
		if (rc) {
			const struct failure kept = tfan->failure;

			tfan_trace_close(trace);
			failure_restore(&tfan->failure, &kept);
		}
	}
	shape_plan_free(plan);
	if (rc == 0)
		*ret = trace;
	return rc;
}

/* Creates from a text that the caller did not write: positions are told in what follows its first `shift`
 * bytes, which he did. */
static int bind_shifted(struct tfan *tfan, const char *place, size_t shift, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret)
{
	int rc = tfan_trace_bind(tfan, place, shape, handler, context, ret);
	struct tfan_failure *failure = &tfan->failure.public;

	if (rc && failure->position >= 0)
		failure->position = (size_t)failure->position >= shift ? failure->position - (int)shift : -1;
	return rc;
}

int tfan_trace_kprobe(struct tfan *tfan, const char *location, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret)
{
	const char *kind = shape->at_return ? "kretprobe:" : "kprobe:";
	char *place;
	int rc;

	if (asprintf(&place, "%s%s", kind, location) < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	rc = bind_shifted(tfan, place, strlen(kind), shape, handler, context, ret);
	free(place);
	return rc;
}

/* Writes the path so that the notation reads it as it is. Returns the end of what was written. */
static char *quote(char *out, const char *path)
{
	*out++ = '"';
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			*out++ = '\\';
		*out++ = *path;
	}
	*out++ = '"';
	return out;
}

int tfan_trace_uprobe(struct tfan *tfan, const char *file, const char *location, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret)
{
	const char *kind = shape->at_return ? "uretprobe:" : "uprobe:";
	size_t kind_size = strlen(kind), location_size = strlen(location);
	char *place = malloc(kind_size + 2 * strlen(file) + 2 + 1 + location_size + 1), *at;
	int rc;

	if (!place)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	memcpy(place, kind, kind_size);
	at = quote(place + kind_size, file);
	*at++ = ':';
	memcpy(at, location, location_size + 1);
	rc = bind_shifted(tfan, place, (size_t)(at - place), shape, handler, context, ret);
	free(place);
	return rc;
}

int tfan_trace_set_condition(struct tfan_trace *trace, const char *condition)
{
	const char *own = trace->binding ? trace->binding->condition : "";
	struct tfan_failure *failure = &trace->tfan->failure.public;
	size_t shift = 0;
	char *joined = shape_join_conditions(own, condition ? condition : "", &shift);
	int rc;

	if (!joined)
		return failure_set(&trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	rc = tfan_trace_set_filter(trace, joined);
	free(joined);
	if (rc && failure->position >= 0)
		failure->position = (size_t)failure->position >= shift ? failure->position - (int)shift : -1;
	return rc;
}

uint64_t tfan_trace_done(const struct tfan_trace *trace)
{
	return trace->binding ? trace->binding->done : 0;
}

uint64_t tfan_trace_lost(struct tfan_trace *trace)
{
	struct binding *binding = trace->binding;
	struct tfan_ledger ledger;

	if (!binding)
		return 0;
	if (tfan_trace_ledger(trace, &ledger) == 0)
		binding->lost_ring = ledger.lost_ring;
	return binding->lost_ring + binding->unreadable;
}

void tfan_set_notice(struct tfan *tfan, void (*notice)(void *context, const struct tfan_event *event), void *context)
{
	tfan->notice = notice;
	tfan->notice_context = context;
}

/* Returns whether a handler was given it. */
static bool dispatch_event(struct tfan *tfan, const struct tfan_event *event)
{
	const struct tfan_trace *trace = event->head.kind == TFAN_EVENT ? event->head.trace : NULL;
	struct binding *binding = trace ? trace->binding : NULL;

	if (!binding) {
		if (tfan->notice)
			tfan->notice(tfan->notice_context, event);
		return false;
	}
	if (binding_fill(binding, event, &tfan->strings) < 0) {
		binding->unreadable++;
		return false;
	}
	/* Before the handler, which may close the trace; the binding stays until the next tfan_next. */
	binding->done++;
	binding->handler(binding->context, event, binding->filled);
	return true;
}

int tfan_dispatch(struct tfan *tfan, unsigned int most)
{
	const struct tfan_event *event;
	int given = 0;

	while (most == 0 ? given < INT32_MAX : (unsigned int)given < most) {
		int rc = tfan_next(tfan, &event);

		/* An error is told again by the next call, once what was given has been counted. */
		if (rc <= 0)
			return given > 0 ? given : rc;
		given += dispatch_event(tfan, event);
	}
	return given;
}
