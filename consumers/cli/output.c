#include "consumers/cli/output.h"

#include <errno.h>

void output_open(struct output *output, const struct output_format *format, struct writer *writer, bool decorated)
{
	*output = (struct output){
		.format = format,
		.writer = writer,
		.plans = { .style = &format->plan, .decorated = decorated },
		.wall = { .form = format->wall },
		.decorated = decorated,
	};
}

void output_close(struct output *output)
{
	plan_set_release(&output->plans);
}

static int output_event(struct output *output, const struct tfan_event *event)
{
	struct plan *plan = plan_get(&output->plans, tfan_event_trace(event));

	if (!plan)
		return -ENOMEM;
	output->format->event(output, event, plan);
	plan->shown++;
	return 0;
}

static int output_lost(struct output *output, const struct tfan_event *event)
{
	struct tfan_lost lost;
	int r = tfan_event_lost(event, &lost);

	if (r < 0)
		return r;
	output->format->lost(output, event, &lost);
	return 0;
}

static int output_throttled(struct output *output, const struct tfan_event *event)
{
	struct tfan_throttled throttled;
	int r = tfan_event_throttled(event, &throttled);

	if (r < 0)
		return r;
	output->format->throttled(output, event, &throttled);
	return 0;
}

static int output_end(struct output *output, const struct tfan_event *event)
{
	enum tfan_end_reason reason;
	const char *message;
	int r = tfan_event_end(event, &reason, &message);

	if (r < 0)
		return r;
	output->format->end(output, event, reason, message);
	return 0;
}

int output_record(struct output *output, const struct tfan_event *event)
{
	switch (tfan_event_kind(event)) {
	case TFAN_EVENT:
		return output_event(output, event);
	case TFAN_LOST:
	case TFAN_GAP:
		return output_lost(output, event);
	case TFAN_END:
		return output_end(output, event);
	case TFAN_STATE:
		output->format->state(output, event);
		return 0;
	case TFAN_THROTTLED:
		return output_throttled(output, event);
	case TFAN_FILTER:
		output->format->filter(output, event);
		return 0;
	case TFAN_FLUSHED:
		return 0;
	}
	return 0;
}

int output_element(const struct tfan_event *event, const struct plan_field *field, size_t i, uint64_t *ret)
{
	const void *bytes;
	size_t size;
	int r;

	if (!field->is_opaque)
		return tfan_event_element(event, field->index, i, ret);
	r = tfan_event_bytes(event, field->index, &bytes, &size);
	if (r < 0)
		return r;
	if (i >= size)
		return -ERANGE;
	*ret = ((const uint8_t *)bytes)[i];
	return 0;
}

const char *output_lost_source(enum tfan_lost_source source)
{
	switch (source) {
	case TFAN_LOST_KERNEL:
		return "kernel";
	case TFAN_LOST_RING:
		return "ring";
	case TFAN_LOST_UNDECODABLE:
		return "undecodable";
	case TFAN_LOST_READER:
		return "reader";
	case TFAN_LOST_RECORDING:
		return "recording";
	}
	return "unknown";
}

const char *output_end_reason(enum tfan_end_reason reason)
{
	switch (reason) {
	case TFAN_END_STOPPED:
		return "stopped";
	case TFAN_END_FINISHED:
		return "finished";
	case TFAN_END_ERROR:
		return "error";
	case TFAN_END_REFUSED:
		return "refused";
	}
	return "unknown";
}
