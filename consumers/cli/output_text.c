/* One line per record for people, and for awk: TIME CPU PID COMM NAME field=value ... */
#include "consumers/cli/output.h"

#include "consumers/cli/escape.h"
#include "consumers/cli/ledger.h"
#include "consumers/cli/number.h"
#include "consumers/cli/output_text.h"

#include <errno.h>
#include <string.h>

#define TEXT_COLUMNS_ROOM 256

/* On a terminal. */
#define TEXT_DIM   "\033[2m"
#define TEXT_NAME  "\033[1m"
#define TEXT_KEY   "\033[36m"
#define TEXT_ALARM "\033[1;31m"
#define TEXT_OFF   "\033[0m"
#define TEXT_CPU_WIDTH  3
#define TEXT_PID_WIDTH  7
#define TEXT_COMM_WIDTH 15
#define TEXT_NAME_WIDTH 20

static char *text_copy(char *p, const char *text)
{
	size_t length = strlen(text);

	memcpy(p, text, length);
	return p + length;
}

static void text_pad(struct writer *writer, size_t from, size_t width)
{
	for (; from < width; from++)
		writer_char(writer, ' ');
}

/* A value with a blank before it, right-aligned on a terminal. */
static char *text_column(char *p, int64_t value, unsigned int width, bool aligned)
{
	char digits[NUMBER_SIZE_MAX];
	size_t length = (size_t)(number_signed(digits, value) - digits);

	*p++ = ' ';
	for (size_t i = length; aligned && i < width; i++)
		*p++ = ' ';
	memcpy(p, digits, length);
	return p + length;
}

static void text_head(struct writer *writer, const struct tfan_trace *trace, bool decorated)
{
	const char *name = tfan_trace_name(trace);
	size_t from = writer->used;

	if (!decorated) {
		escape_text(writer, name, strlen(name));
		return;
	}
	writer_text(writer, TEXT_NAME);
	escape_text(writer, name, strlen(name));
	text_pad(writer, writer->used - from - strlen(TEXT_NAME), TEXT_NAME_WIDTH);
	writer_text(writer, TEXT_OFF);
}

void text_key(struct writer *writer, const char *name, bool decorated)
{
	writer_char(writer, ' ');
	if (decorated)
		writer_text(writer, TEXT_KEY);
	escape_text(writer, name, strlen(name));
	if (decorated)
		writer_text(writer, TEXT_OFF);
	writer_char(writer, '=');
}

/* Where wall time isn't known (logs of other machines), seconds of the trace's own clock. */
static char *text_time(struct output *output, char *p, uint64_t time, uint64_t wall)
{
	if (output->decorated)
		p = text_copy(p, TEXT_DIM);
	if (wall != 0) {
		p = wall_clock_write(&output->wall, p, wall);
	} else {
		p = number_unsigned(p, time / 1000000000);
		*p++ = '.';
		p = number_padded(p, time % 1000000000, 9);
	}
	if (output->decorated)
		p = text_copy(p, TEXT_OFF);
	return p;
}

static void text_comm(struct output *output, const struct tfan_event *event)
{
	struct writer *writer = output->writer;
	const char *comm = tfan_event_comm(event);
	size_t from;

	/* With the room made beforehand nothing is written out in between, and positions hold. */
	(void)writer_room(writer, TEXT_COLUMNS_ROOM);
	writer_char(writer, ' ');
	from = writer->used;
	if (*comm)
		escape_text(writer, comm, strlen(comm));
	else
		writer_text(writer, "<...>");
	if (output->decorated)
		text_pad(writer, writer->used - from, TEXT_COMM_WIDTH);
	writer_char(writer, ' ');
}

/* TIME CPU PID COMM and a blank. */
void text_columns(struct output *output, const struct tfan_event *event)
{
	char *p = writer_room(output->writer, TEXT_COLUMNS_ROOM);

	p = text_time(output, p, tfan_event_time(event), tfan_event_wall(event));
	/* The state is of no CPU. */
	if (tfan_event_cpu(event) < 0)
		p = text_copy(p, " -");
	else
		p = text_column(p, tfan_event_cpu(event), TEXT_CPU_WIDTH, output->decorated);
	p = text_column(p, tfan_event_pid(event), TEXT_PID_WIDTH, output->decorated);
	writer_done(output->writer, p);
	text_comm(output, event);
}

static char *text_number(char *p, const struct plan_field *field, uint64_t value)
{
	uint64_t cut = number_cut(value, field->size);

	switch (field->display) {
	case TFAN_HEX:
		return number_hex(text_copy(p, "0x"), cut);
	case TFAN_OCTAL:
		return number_octal(text_copy(p, "0"), cut);
	case TFAN_CHAR:
		if (cut <= 0x20 || cut >= 0x7f)
			break;
		p[0] = p[2] = '\'';
		p[1] = (char)cut;
		return p + 3;
	case TFAN_DECIMAL:
	case TFAN_BOOL:
	case TFAN_BITMASK:
		break;
	}
	return field->is_signed ? number_signed(p, number_extend(value, field->size)) : number_unsigned(p, cut);
}

static int text_integer(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	uint64_t value;
	int r = tfan_event_u64(event, field->index, &value);

	if (r < 0)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	writer_done(writer, text_number(writer_room(writer, NUMBER_SIZE_MAX), field, value));
	return 0;
}

static int text_string(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	const void *bytes;
	size_t size;
	int r = tfan_event_bytes(event, field->index, &bytes, &size);

	if (r < 0)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	escape_text(writer, bytes, size);
	return 0;
}

/* Ranges of set bits, as in the kernel's CPU lists: 0-2,5. */
struct text_ranges {
	struct writer *writer;
	size_t first, next; /* the run that is open: first up to, not including, next */
	bool any;
};

static void text_ranges_end(struct text_ranges *ranges)
{
	char *p = writer_room(ranges->writer, 2 * NUMBER_SIZE_MAX + 2);

	if (ranges->first == ranges->next)
		return;
	if (ranges->any)
		*p++ = ',';
	ranges->any = true;
	p = number_unsigned(p, ranges->first);
	if (ranges->next - ranges->first > 1) {
		*p++ = '-';
		p = number_unsigned(p, ranges->next - 1);
	}
	writer_done(ranges->writer, p);
}

static void text_ranges_bit(struct text_ranges *ranges, size_t bit)
{
	if (bit != ranges->next) {
		text_ranges_end(ranges);
		ranges->first = bit;
	}
	ranges->next = bit + 1;
}

static void text_mask(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	struct text_ranges ranges = { .writer = writer };
	uint64_t value;

	for (size_t i = 0; output_element(event, field, i, &value) == 0; i++) {
		for (value = number_cut(value, field->size); value; value &= value - 1)
			text_ranges_bit(&ranges, 8UL * field->size * i + (size_t)__builtin_ctzll(value));
	}
	text_ranges_end(&ranges);
	if (!ranges.any)
		writer_char(writer, '-');
}

static int text_array(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	uint64_t value;
	int r = output_element(event, field, 0, &value);

	if (r < 0 && r != -ERANGE)
		return r;
	writer_bytes(writer, field->key, field->key_size);
	if (field->display == TFAN_BITMASK) {
		text_mask(writer, event, field);
		return 0;
	}
	writer_char(writer, '[');
	for (size_t i = 0; output_element(event, field, i, &value) == 0; i++) {
		char *p = writer_room(writer, NUMBER_SIZE_MAX + 1);

		if (i > 0)
			*p++ = ',';
		writer_done(writer, text_number(p, field, value));
	}
	writer_char(writer, ']');
	return 0;
}

static int text_field(struct writer *writer, const struct tfan_event *event, const struct plan_field *field)
{
	switch (field->kind) {
	case TFAN_INTEGER:
		return text_integer(writer, event, field);
	case TFAN_STRING:
		return text_string(writer, event, field);
	case TFAN_BYTES:
		return text_array(writer, event, field);
	}
	return -EINVAL;
}

static void text_fields(struct writer *writer, const struct tfan_event *event, const struct plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_field *field = &plan->fields[i];
		int r = field->is_body && any ? -ENODATA : text_field(writer, event, field);

		if (r == -ENODATA)
			continue;
		any = true;
		if (r < 0) {
			writer_bytes(writer, field->key, field->key_size);
			writer_text(writer, "(unreadable)");
		}
	}
}

/* A line a frame, as the kernel has it: " => SYMBOL+0xOFFSET (FILE)". */
static void text_frame(struct writer *writer, const struct tfan_frame *frame)
{
	writer_text(writer, " => ");
	if (frame->symbol) {
		escape_text(writer, frame->symbol, strlen(frame->symbol));
		writer_text(writer, "+0x");
		writer_done(writer, number_hex(writer_room(writer, NUMBER_SIZE_MAX), frame->offset));
	} else {
		writer_text(writer, "0x");
		writer_done(writer, number_hex(writer_room(writer, NUMBER_SIZE_MAX), frame->address));
	}
	if (frame->file) {
		writer_text(writer, " (");
		escape_text(writer, frame->file, strlen(frame->file));
		writer_char(writer, ')');
	}
	writer_end_line(writer);
}

static void text_stack(struct writer *writer, const struct tfan_event *event, const struct plan *plan, enum tfan_stack which)
{
	struct tfan_frame frame;
	size_t count;

	if (!tfan_trace_has_stack(plan->trace, which) || tfan_event_stack(event, which, &count) < 0)
		return;
	for (size_t i = 0; i < count && tfan_event_frame(event, which, i, &frame) == 0; i++)
		text_frame(writer, &frame);
}

static void text_event(struct output *output, const struct tfan_event *event, const struct plan *plan)
{
	struct writer *writer = output->writer;

	text_columns(output, event);
	writer_bytes(writer, plan->head, plan->head_size);
	text_fields(writer, event, plan);
	if (output->processes)
		output_text_process(writer, event, output->decorated);
	if (tfan_event_late(event))
		writer_text(writer, " (late)");
	if (tfan_event_suspect(event))
		writer_text(writer, " (suspect)");
	if (tfan_event_partial(event))
		writer_text(writer, " (cut)");
	writer_end_line(writer);
	text_stack(writer, event, plan, TFAN_KERNEL_STACK);
	text_stack(writer, event, plan, TFAN_USER_STACK);
}

/* The columns of a line that belongs to no task: TIME CPU - - NAME. */
static void text_notice(struct output *output, const struct tfan_event *event, int cpu, const char *name)
{
	struct writer *writer = output->writer;
	char *p = writer_room(writer, TEXT_COLUMNS_ROOM);

	p = text_time(output, p, tfan_event_time(event), tfan_event_wall(event));
	p = cpu < 0 ? text_copy(p, " -") : text_column(p, cpu, 0, false);
	p = text_copy(p, " - - ");
	writer_done(writer, p);
	if (output->decorated)
		writer_text(writer, TEXT_ALARM);
	writer_text(writer, name);
	if (output->decorated)
		writer_text(writer, TEXT_OFF);
}

static void text_lost(struct output *output, const struct tfan_event *event, const struct tfan_lost *lost)
{
	struct writer *writer = output->writer;

	text_notice(output, event, lost->cpu, tfan_event_kind(event) == TFAN_GAP ? "GAP" : "LOST");
	writer_text(writer, " source=");
	writer_text(writer, output_lost_source(lost->source));
	writer_number(writer, lost->counted ? " count=" : " count=unknown at_least=", lost->count);
	writer_number(writer, " from=", lost->from);
	writer_number(writer, " to=", lost->to);
	writer_end_line(writer);
}

static void text_end(struct output *output, const struct tfan_event *event, enum tfan_end_reason reason, const char *message)
{
	struct writer *writer = output->writer;

	/* A replay that came to its end is what everybody expects. */
	if (reason == TFAN_END_FINISHED)
		return;
	text_notice(output, event, -1, "END");
	writer_text(writer, " reason=");
	writer_text(writer, output_end_reason(reason));
	if (*message) {
		writer_text(writer, " message=");
		escape_text(writer, message, strlen(message));
	}
	writer_end_line(writer);
}

static void text_list(struct writer *writer, const struct watch_value *value)
{
	writer_char(writer, '[');
	for (size_t i = 0; i < value->count; i++) {
		if (i > 0)
			writer_char(writer, ' ');
		escape_text(writer, value->list[i].bytes, value->list[i].size);
	}
	writer_char(writer, ']');
}

static void text_watch_value(struct writer *writer, const struct watch_value *value)
{
	switch (value->kind) {
	case WATCH_UNKNOWN:
		writer_char(writer, '?');
		break;
	case WATCH_INTEGER:
		writer_done(writer, number_signed(writer_room(writer, NUMBER_SIZE_MAX), value->integer));
		break;
	case WATCH_BOOL:
		writer_text(writer, value->integer ? "yes" : "no");
		break;
	case WATCH_TEXT:
		escape_text(writer, value->text.bytes, value->text.size);
		break;
	case WATCH_LIST:
		text_list(writer, value);
		break;
	}
}

/* What isn't known or doesn't apply is left out: a line is for people. */
static void text_watched(struct output *output, const struct watch_record *record)
{
	struct writer *writer = output->writer;

	text_columns(output, record->event);
	if (output->decorated)
		writer_text(writer, TEXT_NAME);
	writer_text(writer, record->kind);
	if (output->decorated)
		writer_text(writer, TEXT_OFF);
	for (size_t i = 0; i < record->count; i++) {
		const struct watch_field *field = &record->fields[i];

		if (field->value.kind == WATCH_UNKNOWN || (field->value.kind == WATCH_BOOL && !field->value.integer))
			continue;
		text_key(writer, field->name, output->decorated);
		text_watch_value(writer, &field->value);
	}
	writer_end_line(writer);
}

static void text_filter(struct output *output, const struct tfan_event *event)
{
	const struct tfan_trace *trace = tfan_event_trace(event);
	const char *name = tfan_trace_name(trace);
	struct writer *writer = output->writer;

	text_notice(output, event, -1, "FILTER");
	writer_text(writer, " probe=");
	escape_text(writer, name, strlen(name));
	writer_number(writer, " id=", tfan_trace_id(trace));
	writer_end_line(writer);
}

static void text_throttled(struct output *output, const struct tfan_event *event, const struct tfan_throttled *throttled)
{
	const struct tfan_trace *trace = tfan_event_trace(event);
	const char *name = tfan_trace_name(trace);
	struct writer *writer = output->writer;

	text_notice(output, event, -1, "THROTTLED");
	writer_text(writer, " probe=");
	escape_text(writer, name, strlen(name));
	writer_number(writer, " id=", tfan_trace_id(trace));
	writer_text(writer, throttled->of_user ? " of=user" : " of=probe");
	writer_number(writer, " rate=", throttled->rate);
	writer_number(writer, " count=", throttled->count);
	writer_number(writer, " since=", throttled->since);
	writer_end_line(writer);
}

/* A number, right-aligned in its column. */
static void text_cell(struct writer *writer, bool known, uint64_t value, size_t width)
{
	text_pad(writer, known ? number_width(value) : 1, width);
	if (known)
		writer_number(writer, "", value);
	else
		writer_char(writer, '?');
}

/* What an observer has for whatever may come is nothing that its user asked for by name. */
static bool text_summary_shows(const struct summary *summary, const struct summary_probe *probe)
{
	const struct tfan_ledger *ledger = &probe->ledger;

	return !summary->only_busy || !probe->known || ledger->decoded || ledger->missed || (ledger->kept_known && ledger->kept_away);
}

static size_t text_summary_width(const struct summary *summary)
{
	size_t width = strlen("PROBE");

	for (size_t i = 0; i < summary->count; i++) {
		size_t length = strlen(summary->probes[i].name);

		if (length > width && text_summary_shows(summary, &summary->probes[i]))
			width = length;
	}
	return width;
}

static void text_summary_probe(struct writer *writer, const struct summary_probe *probe, size_t width, bool shown)
{
	text_pad(writer, escape_plain(writer, probe->name, strlen(probe->name)), width);
	text_cell(writer, probe->known, probe->ledger.decoded, 12);
	text_cell(writer, probe->known, probe->ledger.delivered, 12);
	text_cell(writer, probe->known, probe->ledger.filtered, 12);
	text_cell(writer, probe->known, probe->ledger.lost_ring, 12);
	text_cell(writer, shown, probe->shown, 12);
	if (probe->known && probe->ledger.missed > 0)
		writer_number(writer, "  missed by the kernel: ", probe->ledger.missed);
	if (probe->known && probe->ledger.gave_up > 0)
		writer_number(writer, "  expressions that gave up: ", probe->ledger.gave_up);
	if (probe->known && probe->ledger.kept_known && probe->ledger.kept_away > 0)
		writer_number(writer, "  kept away by the kernel: ", probe->ledger.kept_away);
	writer_end_line(writer);
}

void output_text_summary(struct writer *writer, const struct summary *summary)
{
	size_t width = text_summary_width(summary), idle = 0;

	if (summary->count > 0) {
		writer_text(writer, "PROBE");
		text_pad(writer, strlen("PROBE"), width);
		writer_text(writer, "     DECODED   DELIVERED    FILTERED   LOST RING       SHOWN");
		writer_end_line(writer);
	}
	for (size_t i = 0; i < summary->count; i++) {
		if (text_summary_shows(summary, &summary->probes[i]))
			text_summary_probe(writer, &summary->probes[i], width, !summary->unshown);
		else
			idle++;
	}
	if (idle > 0) {
		writer_number(writer, "and ", idle);
		writer_text(writer, idle == 1 ? " probe without an event" : " probes without an event");
		writer_end_line(writer);
	}
	if (!summary->session_known)
		return;
	ledger_text_session(writer, "session: ", &summary->session);
}

const struct output_format output_text = {
	.plan = { .head = text_head, .key = text_key },
	.wall = WALL_CLOCK_LOCAL,
	.event = text_event,
	.lost = text_lost,
	.end = text_end,
	.state = output_text_state,
	.filter = text_filter,
	.throttled = text_throttled,
	.watched = text_watched,
};
