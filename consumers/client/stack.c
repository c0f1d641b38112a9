/* The stacks of an event: taken along with it, and named when they are asked for. */
#include "consumers/client/stack.h"

#include "consumers/client/connection.h"
#include "consumers/client/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copies the event's record, whose place the ring may give to the next one. */
static int keep_record(struct tfan_event *event, const struct record_header *record, uint32_t size)
{
	uint8_t *more = size > event->kept_room ? realloc(event->kept, size) : event->kept;

	if (!more)
		return -ENOMEM;
	event->kept = more;
	if (size > event->kept_room)
		event->kept_room = size;
	memcpy(event->kept, record, size);
	/* The one that was checked, whatever the ring says by now. */
	((struct record_header *)(void *)event->kept)->size = size;
	return 0;
}

/* The counts are the router's: they are held to what the record has room for. */
static void take_stack(struct tfan_event *event, const struct record_header *record, uint32_t payload_size)
{
	uint64_t frames;

	if (payload_size < sizeof(event->stack))
		return;
	memcpy(&event->stack, record + 1, sizeof(event->stack));
	frames = (uint64_t)event->stack.kernel_count + event->stack.user_count;
	if (frames > (payload_size - sizeof(event->stack)) / sizeof(uint64_t)) {
		memset(&event->stack, 0, sizeof(event->stack));
		return;
	}
	event->frames = (const uint64_t *)(const void *)((const uint8_t *)(record + 1) + sizeof(event->stack));
}

int stack_take(struct tfan *tfan, const struct record_header **record)
{
	struct tfan_event *event = &tfan->event;
	const struct record_header *next = NULL;
	int rc;

	memset(&event->stack, 0, sizeof(event->stack));
	/* Without memory for it, the event has no stack, whose record is passed over. */
	if (keep_record(event, *record, tfan->ring.current_size) < 0)
		return 0;
	*record = (const struct record_header *)(const void *)event->kept;
	rc = ring_reader_next(&tfan->ring, &next);
	if (rc == 1 && next->kind == RECORD_STACK && next->trace_id == (*record)->trace_id) {
		take_stack(event, next, ring_reader_payload_size(&tfan->ring, next));
		return 0;
	}
	/* In a ring that overwrites, it may be gone, and what comes now is for the next call. */
	if (rc == 1)
		event->pending = next;
	if (rc == -EOVERFLOW)
		event->overtaken = true;
	tfan->pending = tfan->pending || rc == 1 || rc == -EOVERFLOW;
	return rc == 0 || rc == 1 || rc == -EOVERFLOW ? 0 : rc;
}

void stack_release(struct tfan *tfan)
{
	free(tfan->event.kept);
	symbols_free(tfan->symbols);
}

/* Where the frames of a kind lie, or NULL. */
static const uint64_t *frames_of(const struct tfan_event *event, enum tfan_stack which, size_t *ret_count)
{
	bool is_user = which == TFAN_USER_STACK;

	/* What an earlier event had is there yet. */
	if (event->head.kind != TFAN_EVENT || !(event->record->flags & RECORD_STACKED) || !(event->stack.found & (is_user ? STACK_USER : STACK_KERNEL)))
		return NULL;
	*ret_count = is_user ? event->stack.user_count : event->stack.kernel_count;
	return event->frames + (is_user ? event->stack.kernel_count : 0);
}

int tfan_event_stack(const struct tfan_event *event, enum tfan_stack which, size_t *ret_count)
{
	return frames_of(event, which, ret_count) ? 0 : -ENODATA;
}

int tfan_event_frame(const struct tfan_event *event, enum tfan_stack which, size_t i, struct tfan_frame *ret)
{
	struct tfan *tfan = event->tfan;
	size_t count = 0;
	const uint64_t *frames = frames_of(event, which, &count);
	int rc;

	if (!frames)
		return -ENODATA;
	if (i >= count)
		return -ERANGE;
	/* Who had these addresses is gone, and this kernel may be another. */
	if (tfan->session.is_recorded) {
		*ret = (struct tfan_frame){ .address = frames[i] };
		return 0;
	}
	if (!tfan->symbols) {
		rc = symbols_make(&tfan->symbols);
		if (rc)
			return rc;
	}
	/* All but the innermost are where calls return to. */
	if (which == TFAN_USER_STACK)
		symbols_of_process(tfan->symbols, event->stack.process, frames[i], i > 0, ret);
	else
		symbols_of_kernel(tfan->symbols, frames[i], i > 0, ret);
	return 0;
}

bool tfan_trace_has_stack(const struct tfan_trace *trace, enum tfan_stack which)
{
	const struct trace_part *part = trace->part_count ? trace->parts[0] : NULL;

	if (!part || !part->definition)
		return false;
	return part->definition->flags & (which == TFAN_USER_STACK ? CREATE_USER_STACK : CREATE_KERNEL_STACK);
}
