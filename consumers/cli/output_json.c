/* One JSON object per line: valid JSON and UTF-8 whatever the bytes are (see escape.h). */
#include "consumers/cli/output.h"

#include "consumers/cli/escape.h"
#include "consumers/cli/ledger.h"
#include "consumers/cli/number.h"
#include "consumers/cli/output_json.h"

#include <errno.h>
#include <string.h>

char *json_copy(char *p, const char *text)
{
	size_t length = strlen(text);

	memcpy(p, text, length);
	return p + length;
}

void json_string(struct writer *writer, const void *bytes, size_t size)
{
	writer_char(writer, '"');
	escape_json(writer, bytes, size);
	writer_char(writer, '"');
}

static void json_head(struct writer *writer, const struct tfan_trace *trace, bool decorated)
{
	const char *name = tfan_trace_name(trace);

	(void)decorated;
	writer_text(writer, ",\"probe\":");
	json_string(writer, name, strlen(name));
	writer_number(writer, ",\"id\":", tfan_trace_id(trace));
	writer_text(writer, ",\"args\":{");
}

/* The comma belongs to the key: the first one that is written leaves it out. */
static void json_key(struct writer *writer, const char *name, bool decorated)
{
	(void)decorated;
	writer_char(writer, ',');
	json_string(writer, name, strlen(name));
	writer_char(writer, ':');
}

static char *json_wall(struct output *output, char *p, uint64_t wall)
{
	if (wall == 0)
		return json_copy(p, "null");
	*p++ = '"';
	p = wall_clock_write(&output->wall, p, wall);
	*p++ = '"';
	return p;
}

/* {"kind":"KIND","time":T,"wall":W,"cpu":C */
void json_columns(struct output *output, const char *kind, const struct tfan_event *event)
{
	char *p = writer_room(output->writer, JSON_COLUMNS_ROOM);
	int cpu = tfan_event_cpu(event);

	p = json_copy(p, "{\"kind\":\"");
	p = json_copy(p, kind);
	p = json_copy(p, "\",\"time\":");
	p = number_unsigned(p, tfan_event_time(event));
	p = json_copy(p, ",\"wall\":");
	p = json_wall(output, p, tfan_event_wall(event));
	p = json_copy(p, ",\"cpu\":");
	p = cpu < 0 ? json_copy(p, "null") : number_unsigned(p, (uint64_t)cpu);
	writer_done(output->writer, p);
}

/* ,"pid":P,"comm":"COMM" */
void json_task(struct writer *writer, const struct tfan_event *event)
{
	const char *comm = tfan_event_comm(event);
	char *p = writer_room(writer, NUMBER_SIZE_MAX + 32);

	p = json_copy(p, ",\"pid\":");
	p = number_signed(p, tfan_event_pid(event));
	p = json_copy(p, ",\"comm\":");
	writer_done(writer, p);
	json_string(writer, comm, strlen(comm));
}

static char *json_number(char *p, const struct plan_field *field, uint64_t value)
{
	if (field->is_signed)
		return number_signed(p, number_extend(value, field->size));
	return number_unsigned(p, value);
}

static int json_integer(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	uint64_t value;
	int r = tfan_event_u64(event, field->index, &value);

	if (r < 0)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	writer_done(writer, json_number(writer_room(writer, NUMBER_SIZE_MAX), field, value));
	return 0;
}

static int json_text(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	const void *bytes;
	size_t size;
	int r = tfan_event_bytes(event, field->index, &bytes, &size);

	if (r < 0)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	json_string(writer, bytes, size);
	return 0;
}

/* The numbers of the bits that are set in one element; `any` tells whether one stands before them. */
static bool json_bits(struct writer *writer, uint64_t value, size_t first, bool any)
{
	for (; value; value &= value - 1) {
		char *p = writer_room(writer, NUMBER_SIZE_MAX + 1);

		if (any)
			*p++ = ',';
		any = true;
		writer_done(writer, number_unsigned(p, first + (size_t)__builtin_ctzll(value)));
	}
	return any;
}

/* Arrays of integers as arrays, masks as the array of the bits that are set, other bytes one by one. */
static int json_array(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	bool any = false;
	uint64_t value;
	int r = output_element(event, field, 0, &value);

	if (r < 0 && r != -ERANGE)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	writer_char(writer, '[');
	for (size_t i = 0; output_element(event, field, i, &value) == 0; i++) {
		char *p;

		if (field->display == TFAN_BITMASK) {
			any = json_bits(writer, number_cut(value, field->size), 8UL * field->size * i, any);
			continue;
		}
		p = writer_room(writer, NUMBER_SIZE_MAX + 1);
		if (i > 0)
			*p++ = ',';
		writer_done(writer, json_number(p, field, value));
	}
	writer_char(writer, ']');
	return 0;
}

static int json_field(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	switch (field->kind) {
	case TFAN_INTEGER:
		return json_integer(writer, event, field);
	case TFAN_STRING:
		return json_text(writer, event, field);
	case TFAN_BYTES:
		return json_array(writer, event, field);
	}
	return -EINVAL;
}

/* A field that the event does not have is left out; one that can't be read is null. */
static void json_fields(struct writer *writer, const struct tfan_event *event, const struct plan *plan)
{
	struct plan_field field;
	bool first = true;

	for (size_t i = 0; i < plan->count; i++) {
		int r;

		field = plan->fields[i];
		if (field.is_body && !first)
			continue;
		field.key += first;
		field.key_size -= first;
		r = json_field(writer, event, &field);
		if (r == -ENODATA)
			continue;
		first = false;
		if (r < 0) {
			writer_bytes(writer, field.key, field.key_size);
			writer_text(writer, "null");
		}
	}
}

static void json_frame(struct writer *writer, const struct tfan_frame *frame)
{
	writer_number(writer, "{\"address\":", frame->address);
	writer_text(writer, ",\"symbol\":");
	if (frame->symbol) {
		json_string(writer, frame->symbol, strlen(frame->symbol));
		writer_number(writer, ",\"offset\":", frame->offset);
	} else {
		writer_text(writer, "null,\"offset\":null");
	}
	writer_text(writer, ",\"file\":");
	if (frame->file)
		json_string(writer, frame->file, strlen(frame->file));
	else
		writer_text(writer, "null");
	if (frame->build_id) {
		writer_text(writer, ",\"build_id\":");
		json_string(writer, frame->build_id, strlen(frame->build_id));
	}
	writer_char(writer, '}');
}

/* Of a probe that has none, nothing; of an event that came without, null. */
static void json_stack(struct writer *writer, const struct tfan_event *event, const struct plan *plan, enum tfan_stack which,
	const char *key)
{
	struct tfan_frame frame;
	size_t count;

	if (!tfan_trace_has_stack(plan->trace, which))
		return;
	writer_text(writer, key);
	if (tfan_event_stack(event, which, &count) < 0) {
		writer_text(writer, "null");
		return;
	}
	writer_char(writer, '[');
	for (size_t i = 0; i < count && tfan_event_frame(event, which, i, &frame) == 0; i++) {
		if (i > 0)
			writer_char(writer, ',');
		json_frame(writer, &frame);
	}
	writer_char(writer, ']');
}

static void json_event(struct output *output, const struct tfan_event *event, const struct plan *plan)
{
	struct writer *writer = output->writer;

	json_columns(output, "event", event);
	json_task(writer, event);
	writer_bytes(writer, plan->head, plan->head_size);
	json_fields(writer, event, plan);
	writer_char(writer, '}');
	if (output->processes)
		output_json_process(writer, event);
	json_stack(writer, event, plan, TFAN_KERNEL_STACK, ",\"stack\":");
	json_stack(writer, event, plan, TFAN_USER_STACK, ",\"ustack\":");
	if (tfan_event_late(event))
		writer_text(writer, ",\"late\":true");
	if (tfan_event_suspect(event))
		writer_text(writer, ",\"suspect\":true");
	if (tfan_event_partial(event))
		writer_text(writer, ",\"partial\":true");
	writer_char(writer, '}');
	writer_end_line(writer);
}


static void json_list(struct writer *writer, const struct watch_value *value)
{
	writer_char(writer, '[');
	for (size_t i = 0; i < value->count; i++) {
		if (i > 0)
			writer_char(writer, ',');
		json_string(writer, value->list[i].bytes, value->list[i].size);
	}
	writer_char(writer, ']');
}

static void json_watch_value(struct writer *writer, const struct watch_value *value)
{
	switch (value->kind) {
	case WATCH_UNKNOWN:
		writer_text(writer, "null");
		break;
	case WATCH_INTEGER:
		writer_done(writer, number_signed(writer_room(writer, NUMBER_SIZE_MAX), value->integer));
		break;
	case WATCH_BOOL:
		writer_text(writer, value->integer ? "true" : "false");
		break;
	case WATCH_TEXT:
		json_string(writer, value->text.bytes, value->text.size);
		break;
	case WATCH_LIST:
		json_list(writer, value);
		break;
	}
}

static void json_watched(struct output *output, const struct watch_record *record)
{
	struct writer *writer = output->writer;

	json_columns(output, record->kind, record->event);
	json_task(writer, record->event);
	for (size_t i = 0; i < record->count; i++) {
		json_key(writer, record->fields[i].name, false);
		json_watch_value(writer, &record->fields[i].value);
	}
	writer_char(writer, '}');
	writer_end_line(writer);
}

static void json_filter(struct output *output, const struct tfan_event *event)
{
	const struct tfan_trace *trace = tfan_event_trace(event);
	const char *name = tfan_trace_name(trace);
	struct writer *writer = output->writer;
	char *p;

	writer_text(writer, "{\"kind\":\"filter\",\"probe\":");
	json_string(writer, name, strlen(name));
	writer_number(writer, ",\"id\":", tfan_trace_id(trace));
	writer_number(writer, ",\"time\":", tfan_event_time(event));
	p = writer_room(writer, JSON_COLUMNS_ROOM);
	p = json_copy(p, ",\"wall\":");
	p = json_wall(output, p, tfan_event_wall(event));
	writer_done(writer, p);
	writer_char(writer, '}');
	writer_end_line(writer);
}

static void json_throttled(struct output *output, const struct tfan_event *event, const struct tfan_throttled *throttled)
{
	const struct tfan_trace *trace = tfan_event_trace(event);
	const char *name = tfan_trace_name(trace);
	struct writer *writer = output->writer;

	writer_text(writer, "{\"kind\":\"throttled\",\"probe\":");
	json_string(writer, name, strlen(name));
	writer_number(writer, ",\"id\":", tfan_trace_id(trace));
	writer_number(writer, ",\"time\":", tfan_event_time(event));
	writer_text(writer, throttled->of_user ? ",\"of\":\"user\"" : ",\"of\":\"probe\"");
	writer_number(writer, ",\"rate\":", throttled->rate);
	writer_number(writer, ",\"count\":", throttled->count);
	writer_number(writer, ",\"since\":", throttled->since);
	writer_char(writer, '}');
	writer_end_line(writer);
}

static void json_lost(struct output *output, const struct tfan_event *event, const struct tfan_lost *lost)
{
	struct writer *writer = output->writer;

	writer_text(writer, tfan_event_kind(event) == TFAN_GAP ? "{\"kind\":\"gap\"" : "{\"kind\":\"lost\"");
	writer_text(writer, ",\"source\":\"");
	writer_text(writer, output_lost_source(lost->source));
	if (lost->cpu < 0)
		writer_text(writer, "\",\"cpu\":null");
	else
		writer_number(writer, "\",\"cpu\":", (uint64_t)lost->cpu);
	if (lost->counted) {
		writer_number(writer, ",\"count\":", lost->count);
	} else {
		writer_text(writer, ",\"count\":null");
		writer_number(writer, ",\"at_least\":", lost->count);
	}
	writer_number(writer, ",\"from\":", lost->from);
	writer_number(writer, ",\"to\":", lost->to);
	writer_char(writer, '}');
	writer_end_line(writer);
}

static void json_end(struct output *output, const struct tfan_event *event, enum tfan_end_reason reason, const char *message)
{
	struct writer *writer = output->writer;

	(void)event;
	writer_text(writer, "{\"kind\":\"end\",\"reason\":\"");
	writer_text(writer, output_end_reason(reason));
	writer_text(writer, "\",\"message\":");
	json_string(writer, message, strlen(message));
	writer_char(writer, '}');
	writer_end_line(writer);
}

static void json_summary_probe(struct writer *writer, const struct summary_probe *probe)
{
	json_string(writer, probe->name, strlen(probe->name));
	if (probe->known) {
		writer_text(writer, ":{");
		ledger_json_trace(writer, &probe->ledger);
		writer_number(writer, ",\"missed\":", probe->ledger.missed);
		writer_number(writer, ",\"gave_up\":", probe->ledger.gave_up);
	} else {
		writer_text(writer, ":{\"decoded\":null,\"delivered\":null,\"filtered\":null,\"lost_ring\":null,\"missed\":null,\"gave_up\":null");
	}
	if (probe->known && probe->ledger.kept_known)
		writer_number(writer, ",\"kept_away\":", probe->ledger.kept_away);
	else
		writer_text(writer, ",\"kept_away\":null");
	writer_number(writer, ",\"shown\":", probe->shown);
	writer_char(writer, '}');
}

void output_json_summary(struct writer *writer, const struct summary *summary)
{
	writer_text(writer, "{\"kind\":\"summary\",\"session\":{");
	if (summary->session_known) {
		ledger_json_session(writer, &summary->session);
		writer_number(writer, ",\"dropped\":", summary->session.dropped);
	} else {
		writer_text(writer, "\"committed\":null,\"decoded\":null,\"undecodable\":null,\"lost_kernel\":null,\"dropped\":null");
	}
	writer_text(writer, "},\"probes\":{");
	for (size_t i = 0; i < summary->count; i++) {
		if (i > 0)
			writer_char(writer, ',');
		json_summary_probe(writer, &summary->probes[i]);
	}
	writer_text(writer, "}}");
	writer_end_line(writer);
}

const struct output_format output_json = {
	.plan = { .head = json_head, .key = json_key },
	.wall = WALL_CLOCK_UTC,
	.event = json_event,
	.lost = json_lost,
	.end = json_end,
	.state = output_json_state,
	.filter = json_filter,
	.throttled = json_throttled,
	.watched = json_watched,
};
