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

/* The longest of a present kernel has 6 KiB. */
#define FORMAT_SIZE_MAX (64U << 10)
/* No event is longer: the location words could not point farther. */
#define FORMAT_EVENT_MAX 65536U

/* One format file on its way to a schema. */
struct build {
	const struct format_target *target;
	struct schema_builder builder;
	bool shown[SCHEMA_FIELDS_MAX]; /* the print format has decided the display of this field */
	const char *reason;            /* why the file is refused */
};

static int build_fail(struct build *build, const char *reason)
{
	build->reason = reason;
	return -EBADMSG;
}

/* ---- the text ---- */

/* A line of the file, without its end and the blanks around it. */
struct line {
	const char *at;
	size_t length;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct line line_trim(struct line line)
{
	while (line.length && is_blank(*line.at)) {
		line.at++;
		line.length--;
	}
	while (line.length && is_blank(line.at[line.length - 1]))
		line.length--;
	return line;
}

/* Takes the next line off [*at, end); false at the end. */
static bool next_line(const char **at, const char *end, struct line *ret)
{
	const char *newline;

	if (*at >= end)
		return false;
	newline = memchr(*at, '\n', (size_t)(end - *at));
	*ret = line_trim((struct line){ *at, (size_t)((newline ? newline : end) - *at) });
	*at = newline ? newline + 1 : end;
	return true;
}

/* Takes `word` and the blanks behind it off the line's front. */
static bool line_take(struct line *line, const char *word)
{
	size_t length = strlen(word);

	if (line->length < length || memcmp(line->at, word, length) != 0)
		return false;
	*line = line_trim((struct line){ line->at + length, line->length - length });
	return true;
}

/* Takes a decimal number of at most `max`, and what ends it, off the line's front. */
static bool line_take_number(struct line *line, uint32_t max, uint32_t *ret)
{
	uint64_t value = 0;
	size_t digits = 0;

	for (; digits < line->length && line->at[digits] >= '0' && line->at[digits] <= '9' && value <= max; digits++)
		value = value * 10 + (uint64_t)(line->at[digits] - '0');
	if (!digits || value > max)
		return false;
	*ret = (uint32_t)value;
	*line = line_trim((struct line){ line->at + digits, line->length - digits });
	return !line->length || line_take(line, ";");
}

/* What a format file holds beside its fields. */
struct head {
	struct line name; /* of the event */
	uint32_t id;
	struct line print; /* behind "print fmt:", up to the file's end; empty where there is none */
	bool named, numbered;
};

/* ---- one field's line ---- */

/* "field:unsigned char common_flags;	offset:2;	size:1;	signed:0;" taken apart. */
struct field_line {
	struct line type, name, dimensions;
	uint32_t offset, size, is_signed;
	bool has_sign; /* files before 2.6.35 don't say */
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "char comm[16]", "__data_loc char[] name", "cpumask_t *[] mask": the name is the last word, and
 * dimensions may stand behind it. */
static bool split_declaration(struct line declaration, struct field_line *ret)
{
	size_t end = declaration.length, begin;

	while (end && declaration.at[end - 1] == ']') {
		while (end && declaration.at[end - 1] != '[')
			end--;
		end -= end != 0;
	}
	for (begin = end; begin && is_word(declaration.at[begin - 1]);)
		begin--;
	ret->dimensions = (struct line){ declaration.at + end, declaration.length - end };
	ret->name = (struct line){ declaration.at + begin, end - begin };
	ret->type = line_trim((struct line){ declaration.at, begin });
	return ret->name.length && ret->type.length;
}

/* Returns why the line is none, or NULL. `line` begins behind "field". */
static const char *field_line_read(struct line line, struct field_line *ret)
{
	const char *semicolon = memchr(line.at, ';', line.length);
	struct line declaration = line;

	*ret = (struct field_line){ 0 };
	/* "field special:" is of the oldest kernels. */
	(void)line_take(&declaration, "special");
	if (!semicolon || !line_take(&declaration, ":"))
		return "a field's line is cut short";
	line = line_trim((struct line){ semicolon + 1, line.length - (size_t)(semicolon + 1 - line.at) });
	declaration.length = semicolon > declaration.at ? (size_t)(semicolon - declaration.at) : 0;
	if (!split_declaration(line_trim(declaration), ret))
		return "a field has no name or no type";
	if (!line_take(&line, "offset:") || !line_take_number(&line, FORMAT_EVENT_MAX, &ret->offset))
		return "a field's offset is none in an event";
	if (!line_take(&line, "size:") || !line_take_number(&line, FORMAT_EVENT_MAX - ret->offset, &ret->size))
		return "a field's size is none in an event";
	ret->has_sign = line_take(&line, "signed:");
	if (ret->has_sign && !line_take_number(&line, 1, &ret->is_signed))
		return "a field's sign is neither 0 nor 1";
	return NULL;
}

/* ---- fields ---- */

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

static int build_string(struct build *build, const char *text, uint32_t *ret)
{
	int64_t offset = schema_builder_string(&build->builder, text);

	if (offset < 0)
		return (int)offset;
	*ret = (uint32_t)offset;
	return 0;
}

static int build_line(struct build *build, struct line line, uint32_t *ret)
{
	/* No strndup: what is copied from need not end with a NUL. */
	CLEANUP_FREE char *copy = malloc(line.length + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, line.at, line.length);
	copy[line.length] = '\0';
	return build_string(build, copy, ret);
}

static int build_add(struct build *build, const struct schema_field *field)
{
	int r;

	if (build->builder.header.field_count >= SCHEMA_FIELDS_MAX)
		return build_fail(build, "it has too many fields");
	r = schema_builder_field(&build->builder, field);
	return r < 0 ? r : 0;
}

/* An array of location words ("__data_loc char[][2]", of a probe's string arrays) as so many fields. */
static int build_add_words(struct build *build, struct schema_field *field, struct line name)
{
	uint32_t words = field->size / 4;
	int r = 0;

	field->size = 4;
	for (uint32_t i = 0; i < words && !r; i++) {
		CLEANUP_FREE char *numbered = NULL;

		if (asprintf(&numbered, "%.*s[%u]", (int)name.length, name.at, i) < 0) {
			numbered = NULL;
			return -ENOMEM;
		}
		r = build_string(build, numbered, &field->name);
		if (!r)
			r = build_add(build, field);
		field->offset += 4;
	}
	return r;
}

static int build_typed_field(struct build *build, const struct field_line *line, const char *type_text)
{
	struct schema_field field = { .offset = line->offset, .size = line->size };
	struct c_type type;
	int r;

	c_type_parse(type_text, build->target->long_size, &type);
	field_set_kind(&field, &type);
	if (line->has_sign ? line->is_signed : type.is_signed && field.kind != SCHEMA_STRING)
		field.flags |= SCHEMA_SIGNED;
	if (line->name.length > 7 && memcmp(line->name.at, "common_", 7) == 0)
		field.flags |= SCHEMA_COMMON;
	r = build_string(build, type_text, &field.type);
	if (r)
		return r;

	if (type.place != SCHEMA_FIXED && field.size != 2 && (!field.size || field.size % 4))
		return build_fail(build, "a location word has an impossible size");
	if (type.place != SCHEMA_FIXED && field.size > 4)
		return build_add_words(build, &field, line->name);
	r = build_line(build, line->name, &field.name);
	return r ? r : build_add(build, &field);
}

/* `line` begins behind "field". */
static int build_field(struct build *build, struct line line)
{
	CLEANUP_FREE char *type = NULL;
	struct field_line field;
	const char *reason = field_line_read(line, &field);

	if (reason)
		return build_fail(build, reason);
	if (asprintf(&type, "%.*s%.*s", (int)field.type.length, field.type.at, (int)field.dimensions.length,
		    field.dimensions.at) < 0) {
		type = NULL;
		return -ENOMEM;
	}
	return build_typed_field(build, &field, type);
}

/* ---- the display of each field, by the print format ---- */

static void field_show(struct schema_field *field, enum print_format_use use, unsigned int long_size)
{
	switch (use) {
	case PRINT_HEX:
	case PRINT_BINARY:
		/* A char array that the kernel prints so is no text. */
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
		if (field->kind == SCHEMA_BYTES && field->element_size == 1)
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

/* What a probe fetches from memory may not be there. The print format of an event probe begins with a blank. */
static void build_fallible(struct build *build, const struct line *print)
{
	struct schema_field *fields = build->builder.fields;
	bool probe = print->length > 2 && memcmp(print->at, "\" ", 2) == 0;

	for (uint32_t i = 0; i < build->builder.header.field_count; i++) {
		const char *name = build->builder.strings + fields[i].name;

		probe |= strcmp(name, "__probe_ip") == 0 || strcmp(name, "__probe_func") == 0;
		if (probe && fields[i].kind == SCHEMA_STRING && fields[i].place != SCHEMA_FIXED)
			fields[i].flags |= SCHEMA_FALLIBLE;
	}
}

/* ---- the file ---- */

static int build_text(struct build *build, const char *text, size_t size, struct head *ret)
{
	const char *at = text, *end = text + size;
	struct line line;
	int r = 0;

	*ret = (struct head){ .name = { "", 0 }, .print = { "", 0 } };
	while (!r && next_line(&at, end, &line)) {
		if (!ret->named && line_take(&line, "name:")) {
			ret->named = true;
			ret->name = line;
		} else if (!ret->numbered && line_take(&line, "ID:")) {
			ret->numbered = true;
			if (!line_take_number(&line, UINT16_MAX, &ret->id))
				r = build_fail(build, "the ID is no number of an event");
		} else if (line_take(&line, "print fmt:")) {
			ret->print = line_trim((struct line){ line.at, (size_t)(end - line.at) });
			break;
		} else if (line_take(&line, "field")) {
			r = build_field(build, line);
		}
	}
	return r;
}

static int build_head(struct build *build, const struct head *head, const char *system)
{
	struct schema_header *header = &build->builder.header;
	struct line print = head->print;
	int r;

	while (print.length && strchr(" \t\r\n", print.at[print.length - 1]))
		print.length--;
	header->event_type = head->id;
	if (build->target->big_endian)
		header->flags |= SCHEMA_BIG_ENDIAN;
	if (build->target->long_size == 4)
		header->flags |= SCHEMA_LONG4;
	r = build_string(build, system, &header->system);
	if (!r)
		r = build_line(build, head->name, &header->event);
	if (!r)
		r = build_line(build, print, &header->print_format);
	return r;
}

/* What is missing in a file whose lines are all good. */
static const char *build_lack(const struct build *build, const struct head *head)
{
	const struct schema_field *first = build->builder.fields;

	if (!head->named || !head->name.length)
		return "it has no name: line";
	if (!head->numbered)
		return "it has no ID: line";
	if (!build->builder.header.field_count)
		return "it has no field: line";
	if (first->offset || first->size != 2 || strcmp(build->builder.strings + first->name, "common_type") != 0)
		return "common_type is not the first two bytes";
	return NULL;
}

static int build_all(struct build *build, const char *system, const char *text, size_t size)
{
	struct head head;
	int r;

	if (!size)
		return build_fail(build, "it is empty");
	if (size > FORMAT_SIZE_MAX)
		return build_fail(build, "it is longer than a format file");
	if (memchr(text, '\0', size))
		return build_fail(build, "it holds a NUL");
	r = build_text(build, text, size, &head);
	if (r)
		return r;
	build->reason = build_lack(build, &head);
	if (build->reason)
		return -EBADMSG;
	print_format_walk(head.print.at, head.print.length, build_show, build);
	build_fallible(build, &head.print);
	return build_head(build, &head, system);
}

int format_schema(const struct format_target *target, const char *system, const char *text, size_t size,
	void **ret_bytes, size_t *ret_size, const char **ret_reason)
{
	struct build build = { .target = target };
	int r;

	schema_builder_init(&build.builder);
	r = build_all(&build, system, text, size);
	if (!r)
		r = schema_builder_finish(&build.builder, ret_bytes, ret_size);
	schema_builder_release(&build.builder);
	if (r && r != -ENOMEM) {
		*ret_reason = build.reason ? build.reason : "the fields make no consistent schema";
		r = -EBADMSG;
	}
	return r;
}
