#include "router/format.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "router/c_type.h"
#include "router/print_format.h"
#include "shm/schema.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#define FORMAT_SIZE_MAX (256U << 10)
/* libtraceevent reads the print format by recursion. */
#define FORMAT_DEPTH_MAX 100U
/* No event is longer: the location words could not point farther. */
#define FORMAT_EVENT_MAX 65536

/* ---- the text ---- */

/* A line of the file, without its end. */
struct line {
	const char *at;
	size_t length;
};

/* Takes the next line off [*at, end); false at the end. */
static bool next_line(const char **at, const char *end, struct line *ret)
{
	const char *newline;

	if (*at >= end)
		return false;
	newline = memchr(*at, '\n', (size_t)(end - *at));
	ret->at = *at;
	ret->length = (size_t)((newline ? newline : end) - *at);
	*at = newline ? newline + 1 : end;
	while (ret->length && (*ret->at == ' ' || *ret->at == '\t')) {
		ret->at++;
		ret->length--;
	}
	return true;
}

static bool line_begins(const struct line *line, const char *word)
{
	size_t length = strlen(word);

	return line->length >= length && !memcmp(line->at, word, length);
}

static bool line_holds(const struct line *line, const char *word)
{
	return memmem(line->at, line->length, word, strlen(word)) != NULL;
}

/* What the head of a format file says, and where the print format begins. */
struct head {
	struct line name; /* of the event */
	uint32_t id;
	const char *print; /* behind "print fmt:", up to the file's end; empty where there is none */
	size_t print_size;
};

static bool head_read_id(const struct line *line, uint32_t *ret)
{
	const char *p = line->at + strlen("ID:"), *end = line->at + line->length;
	uint32_t id = 0;
	bool digits = false;

	while (p < end && *p == ' ')
		p++;
	for (; p < end && *p >= '0' && *p <= '9' && id <= UINT16_MAX; p++) {
		id = id * 10 + (uint32_t)(*p - '0');
		digits = true;
	}
	*ret = id;
	return digits && id <= UINT16_MAX;
}

/* Why the text is no format file; NULL: it looks like one. */
static const char *head_read(const char *text, size_t size, struct head *ret)
{
	const char *at = text, *end = text + size;
	bool named = false, numbered = false, fields = false;
	struct line line;

	*ret = (struct head){ .print = "" };
	while (next_line(&at, end, &line)) {
		if (!named && line_begins(&line, "name:")) {
			named = true;
			ret->name = (struct line){ line.at + 5, line.length - 5 };
			while (ret->name.length && *ret->name.at == ' ') {
				ret->name.at++;
				ret->name.length--;
			}
		} else if (!numbered && line_begins(&line, "ID:")) {
			numbered = true;
			if (!head_read_id(&line, &ret->id))
				return "the ID is no number of an event";
		} else if (line_begins(&line, "field")) {
			fields = true;
		} else if (line_begins(&line, "print fmt:")) {
			ret->print = line.at + strlen("print fmt:");
			ret->print_size = (size_t)(end - ret->print);
			break;
		}
	}
	if (!named || !ret->name.length)
		return "it has no name: line";
	if (!numbered)
		return "it has no ID: line";
	if (!fields)
		return "it has no field: line";
	return NULL;
}

static bool nests_too_deeply(const char *text, size_t size)
{
	unsigned int depth = 0;

	for (size_t i = 0; i < size; i++) {
		if (strchr("([{", text[i]))
			depth++;
		else if (depth && strchr(")]}", text[i]))
			depth--;
		if (depth > FORMAT_DEPTH_MAX)
			return true;
	}
	return false;
}

static const char *text_check(const char *text, size_t size, struct head *ret)
{
	if (!size)
		return "it is empty";
	if (size > FORMAT_SIZE_MAX)
		return "it is longer than a format file";
	if (memchr(text, '\0', size))
		return "it holds a NUL";
	if (nests_too_deeply(text, size))
		return "its brackets nest too deeply";
	return head_read(text, size, ret);
}

/* How much of the print format libtraceevent may see: all up to the first bracket that closes nothing,
 * behind which it would go on with freed memory. */
static size_t print_balanced(const struct head *head)
{
	unsigned int depth = 0;
	char quote = '\0';

	for (size_t i = 0; i < head->print_size; i++) {
		char c = head->print[i];

		if (quote) {
			if (c == '\\')
				i++;
			else if (c == quote)
				quote = '\0';
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (strchr("([{", c)) {
			depth++;
		} else if (strchr(")]}", c) && !depth--) {
			return i;
		}
	}
	return head->print_size;
}

/* A copy for libtraceevent, which takes only letters, digits and '_' in an event's name; the kernel's
 * user_events have a dot there. */
static char *text_copy(const char *text, size_t size, const struct head *head, enum format_part part)
{
	static const char no_print[] = "\nprint fmt: \"\"\n";
	size_t fields = head->print_size ? (size_t)(head->print - text) - strlen("print fmt:") : size;
	size_t offset = (size_t)(head->name.at - text);
	char *copy = malloc(size + sizeof(no_print));

	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	if (part == FORMAT_FIELDS || !head->print_size)
		memcpy(copy + fields, no_print, sizeof(no_print));
	else
		copy[(size_t)(head->print - text) + print_balanced(head)] = '\0';
	for (size_t i = offset; i < offset + head->name.length; i++)
		if (copy[i] == '.' || copy[i] == '-' || copy[i] == ':')
			copy[i] = '_';
	return copy;
}

static int parse_checked(const struct format_target *target, const char *system, const char *text, size_t size,
	const struct head *head, enum format_part part, struct tep_handle **ret_tep, struct tep_event **ret_event,
	const char **ret_reason)
{
	CLEANUP_FREE char *copy = text_copy(text, size, head, part);
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event = NULL;

	if (!copy || !tep) {
		tep_free(tep);
		return -ENOMEM;
	}
	/* The library would write to stderr; this is process-wide there. */
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_local_bigendian(tep, tep_is_bigendian());
	tep_set_file_bigendian(tep, target->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)target->long_size);
	/* A print format that it can't read leaves the event, marked as failed, with all its fields. */
	(void)tep_parse_format(tep, &event, copy, strlen(copy), system);
	if (!event) {
		tep_free(tep);
		*ret_reason = "libtraceevent can't read its fields";
		return -EBADMSG;
	}
	*ret_tep = tep;
	*ret_event = event;
	return 0;
}

int format_parse(const struct format_target *target, const char *system, const char *text, size_t size,
	enum format_part part, struct tep_handle **ret_tep, struct tep_event **ret_event, const char **ret_reason)
{
	struct head head;
	const char *reason = text_check(text, size, &head);

	if (reason) {
		*ret_reason = reason;
		return -EBADMSG;
	}
	return parse_checked(target, system, text, size, &head, part, ret_tep, ret_event, ret_reason);
}

/* ---- fields ---- */

/* One format file on its way to a schema. */
struct build {
	const struct format_target *target;
	struct schema_builder builder;
	const char *lines, *end; /* the text of the fields that are still to come */
	bool shown[SCHEMA_FIELDS_MAX]; /* the print format has decided the display of this field */
	const char *reason;
};

/* libtraceevent lists the fields in the file's order; the next field's own line, to see what it says of
 * the sign. */
static bool build_line_has_sign(struct build *build)
{
	struct line line;

	while (next_line(&build->lines, build->end, &line))
		if (line_begins(&line, "field"))
			return line_holds(&line, "signed:");
	return true;
}

static bool is_integer_size(uint32_t size)
{
	return size <= 8 && is_power_of_two(size);
}

/* kind, place, element_size, count and the display that the type alone tells. */
static void field_set_kind(struct schema_field *field, const struct c_type *type)
{
	bool text = !strcmp(type->base, "char") && !type->is_unsigned && !type->pointer;
	bool array = *type->dimensions || type->place != SCHEMA_FIXED;

	field->place = (uint8_t)type->place;
	if (type->place == SCHEMA_FIXED && !field->size) {
		field->place = SCHEMA_TAIL;
		array = true;
	}
	if (array && text) {
		field->kind = SCHEMA_STRING;
		field->element_size = 1;
		field->count = field->place == SCHEMA_FIXED ? field->size : 0;
	} else if (array || (type->aggregate && !type->pointer) || !is_integer_size(field->size)) {
		bool sized = field->place == SCHEMA_FIXED;

		field->kind = SCHEMA_BYTES;
		field->element_size = c_type_element_size(type, sized ? field->size : 0);
		field->count = sized ? field->size / field->element_size : 0;
	} else {
		field->kind = SCHEMA_INTEGER;
		field->element_size = field->size;
		field->count = 1;
	}
	if (type->pointer) {
		field->flags |= SCHEMA_POINTER;
		field->display = SCHEMA_HEX;
	} else if (field->kind == SCHEMA_INTEGER && (!strcmp(type->base, "bool") || !strcmp(type->base, "_Bool"))) {
		field->display = SCHEMA_BOOL;
	} else if (field->kind == SCHEMA_BYTES && !strcmp(type->base, "cpumask_t")) {
		field->display = SCHEMA_BITMASK;
	}
}

static int build_fail(struct build *build, const char *reason)
{
	build->reason = reason;
	return -EBADMSG;
}

static int build_add(struct build *build, const struct schema_field *field, const char *name)
{
	struct schema_field named = *field;
	int64_t offset = schema_builder_string(&build->builder, name);
	int r;

	if (offset < 0)
		return (int)offset;
	named.name = (uint32_t)offset;
	if (build->builder.header.field_count >= SCHEMA_FIELDS_MAX)
		return build_fail(build, "it has too many fields");
	r = schema_builder_field(&build->builder, &named);
	if (r < 0)
		return r;
	if (field->offset + field->size > build->builder.header.fixed_size)
		build->builder.header.fixed_size = field->offset + field->size;
	return 0;
}

/* An array of location words ("__data_loc char[][2]", of a probe's string arrays) as so many fields. */
static int build_add_words(struct build *build, struct schema_field *field, const char *name, uint32_t words)
{
	char numbered[256];
	int r = 0;

	field->size = 4;
	for (uint32_t i = 0; i < words && !r; i++) {
		(void)snprintf(numbered, sizeof(numbered), "%s[%u]", name, i);
		r = build_add(build, field, numbered);
		field->offset += 4;
	}
	return r;
}

static int build_field(struct build *build, const struct tep_format_field *source)
{
	struct schema_field field = { 0 };
	struct c_type type;
	int64_t type_text;
	bool has_sign = build_line_has_sign(build);

	if (source->offset < 0 || source->size < 0 || source->offset > FORMAT_EVENT_MAX ||
		source->size > FORMAT_EVENT_MAX - source->offset)
		return build_fail(build, "a field lies outside any event");
	c_type_parse(source->type, build->target->long_size, &type);
	field.offset = (uint32_t)source->offset;
	field.size = (uint32_t)source->size;
	field_set_kind(&field, &type);
	if (has_sign ? source->flags & TEP_FIELD_IS_SIGNED : type.is_signed)
		field.flags |= SCHEMA_SIGNED;
	if (!strncmp(source->name, "common_", strlen("common_")))
		field.flags |= SCHEMA_COMMON;
	type_text = schema_builder_string(&build->builder, source->type);
	if (type_text < 0)
		return (int)type_text;
	field.type = (uint32_t)type_text;

	if (type.place == SCHEMA_FIXED || field.size == 4 || field.size == 2)
		return build_add(build, &field, source->name);
	if (!field.size || field.size % 4)
		return build_fail(build, "a location word has an impossible size");
	return build_add_words(build, &field, source->name, field.size / 4);
}

/* ---- the display of each field, by the print format ---- */

static void field_show(struct schema_field *field, enum print_format_use use, unsigned int long_size)
{
	bool bytes = field->kind == SCHEMA_BYTES && field->element_size == 1;

	switch (use) {
	case PRINT_HEX:
	case PRINT_BINARY:
		/* Addresses in char arrays. A pointer to an integer that is a pointer by type stays one. */
		if (field->kind == SCHEMA_STRING)
			field->kind = SCHEMA_BYTES;
		field->display = SCHEMA_HEX;
		break;
	case PRINT_OCTAL:
		field->display = SCHEMA_OCTAL;
		break;
	case PRINT_CHAR:
		if (field->kind == SCHEMA_INTEGER)
			field->display = SCHEMA_CHAR;
		break;
	case PRINT_STRING:
		if (bytes)
			field->kind = SCHEMA_STRING;
		break;
	case PRINT_BITMASK:
		if (field->kind != SCHEMA_BYTES)
			break;
		field->display = SCHEMA_BITMASK;
		if (field->place != SCHEMA_FIXED)
			field->element_size = long_size;
		break;
	default:
		break;
	}
}

/* The first argument that shows a field decides; symbolic ones only mark it. */
static void build_show(void *context, const char *name, size_t length, enum print_format_use use)
{
	struct build *build = context;

	for (uint32_t i = 0; i < build->builder.header.field_count; i++) {
		struct schema_field *field = &build->builder.fields[i];
		const char *own = build->builder.strings + field->name;

		if (strncmp(own, name, length) != 0 || (own[length] && own[length] != '['))
			continue;
		if (use == PRINT_SYMBOLIC) {
			field->flags |= SCHEMA_SYMBOLIC;
		} else if (!build->shown[i]) {
			build->shown[i] = true;
			field_show(field, use, build->target->long_size);
		}
	}
}

/* ---- the schema ---- */

static int build_string(struct build *build, const char *text, size_t length, uint32_t *ret)
{
	CLEANUP_FREE char *copy = strndup(text, length);
	int64_t offset;

	if (!copy)
		return -ENOMEM;
	offset = schema_builder_string(&build->builder, copy);
	if (offset < 0)
		return (int)offset;
	*ret = (uint32_t)offset;
	return 0;
}

static int build_head(struct build *build, const struct head *head, const char *system)
{
	struct schema_header *header = &build->builder.header;
	struct line print = { head->print, head->print_size };
	int r;

	header->event_type = head->id;
	if (build->target->big_endian)
		header->flags |= SCHEMA_BIG_ENDIAN;
	if (build->target->long_size == 4)
		header->flags |= SCHEMA_LONG4;
	while (print.length && (*print.at == ' ' || *print.at == '\t')) {
		print.at++;
		print.length--;
	}
	while (print.length && strchr(" \t\r\n", print.at[print.length - 1]))
		print.length--;

	r = build_string(build, system, strlen(system), &header->system);
	if (!r)
		r = build_string(build, head->name.at, head->name.length, &header->event);
	if (!r)
		r = build_string(build, print.at, print.length, &header->print_format);
	return r;
}

static int build_fields(struct build *build, const struct tep_event *event)
{
	const struct tep_format_field *field;
	const struct schema_field *first;
	int r = 0;

	for (field = event->format.common_fields; field && !r; field = field->next)
		r = build_field(build, field);
	for (field = event->format.fields; field && !r; field = field->next)
		r = build_field(build, field);
	if (r)
		return r;
	first = build->builder.fields;
	if (!build->builder.header.field_count || first->offset || first->size != 2 ||
		strcmp(build->builder.strings + first->name, "common_type") != 0)
		return build_fail(build, "common_type is not the first two bytes");
	return 0;
}

int format_schema(const struct format_target *target, const char *system, const char *text, size_t size,
	void **ret_bytes, size_t *ret_size, const char **ret_reason)
{
	struct build build = { .target = target, .lines = text, .end = text + size };
	struct tep_handle *tep = NULL;
	struct tep_event *event;
	struct head head;
	int r;

	build.reason = text_check(text, size, &head);
	if (build.reason) {
		*ret_reason = build.reason;
		return -EBADMSG;
	}
	r = parse_checked(target, system, text, size, &head, FORMAT_FIELDS, &tep, &event, ret_reason);
	if (r)
		return r;

	schema_builder_init(&build.builder);
	r = build_head(&build, &head, system);
	if (!r)
		r = build_fields(&build, event);
	if (!r) {
		print_format_walk(head.print, head.print_size, build_show, &build);
		r = schema_builder_finish(&build.builder, ret_bytes, ret_size);
	}
	if (r == -EBADMSG)
		*ret_reason = build.reason ? build.reason : "the fields make no consistent schema";
	schema_builder_release(&build.builder);
	tep_free(tep);
	return r;
}
