#include "router/text_fields.h"

#include "base/cleanup.h"
#include "router/text_pairs.h"
#include "router/text_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is being made: `classes` gets a character per field, and in the end the template. */
struct making {
	const struct schema *binary; /* or NULL */
	struct schema_builder builder;
	int32_t map[SCHEMA_FIELDS_MAX]; /* binary field to text field, -1: left out */
	char classes[SCHEMA_FIELDS_MAX + 2];
	uint32_t count;
};

/* The class of a field, as text_template.h lists them. */
static char class_of(const struct schema_field *field)
{
	bool words = field->place == SCHEMA_DATA_LOC || field->place == SCHEMA_REL_LOC;

	if (field->kind == SCHEMA_INTEGER)
		return (char)('0' + field->size);
	if (field->kind == SCHEMA_STRING)
		return 's';
	if (words || !field->count || field->count > SCHEMA_FIELDS_MAX || field->element_size > 8)
		return 'o';
	return 'n';
}

static int64_t copy_string(struct making *m, uint32_t offset)
{
	return schema_builder_string(&m->builder, schema_string(m->binary, offset));
}

static int add_field(struct making *m, const struct schema_field *field, char class)
{
	int r = schema_builder_field(&m->builder, field);

	if (r < 0)
		return r;
	m->classes[m->count++] = class;
	return 0;
}

static int add_binary_field(struct making *m, uint32_t i)
{
	const struct schema_field *binary = &m->binary->fields[i];
	int64_t name = copy_string(m, binary->name), type = copy_string(m, binary->type);
	struct schema_field field = *binary;
	char class = class_of(binary);

	m->map[i] = -1;
	/* Common fields come with a line's prefix. */
	if ((binary->flags & SCHEMA_COMMON) || m->count + 1 >= SCHEMA_FIELDS_MAX)
		return 0;
	if (name < 0 || type < 0)
		return (int)(name < 0 ? name : type);
	m->map[i] = (int32_t)m->count;
	field.name = (uint32_t)name;
	field.type = (uint32_t)type;
	if (strncmp(schema_string(m->binary, binary->name), TEXT_CANARY, strlen(TEXT_CANARY)) == 0)
		field.flags |= SCHEMA_HIDDEN;
	/* A line says by itself which string could not be read. */
	field.flags &= (uint8_t)~SCHEMA_FALLIBLE;
	field.place = SCHEMA_DATA_LOC;
	field.size = 4;
	if (class >= '1' && class <= '8') {
		field.place = SCHEMA_FIXED;
		field.size = 8;
		field.element_size = 8;
		field.count = 1;
	} else if (class == 'n') {
		field.element_size = 8;
	} else {
		field.element_size = 1;
		field.count = 0;
	}
	return add_field(m, &field, class);
}

static int add_text_field(struct making *m)
{
	int64_t name = schema_builder_string(&m->builder, "text");
	int64_t type = schema_builder_string(&m->builder, "char[]");
	struct schema_field field = {
		.size = 4,
		.element_size = 1,
		.kind = SCHEMA_STRING,
		.place = SCHEMA_DATA_LOC,
	};

	if (name < 0 || type < 0)
		return (int)(name < 0 ? name : type);
	field.name = (uint32_t)name;
	field.type = (uint32_t)type;
	return add_field(m, &field, 't');
}

/* Gives the fields their places: the bitmap, then eight bytes each. */
static void lay_out(struct making *m)
{
	uint32_t bitmap = (m->count + 63) / 64 * 8;

	for (uint32_t i = 0; i < m->count; i++)
		m->builder.fields[i].offset = bitmap + i * 8;
	m->builder.header.fixed_size = bitmap + m->count * 8;
}

static int add_template(struct making *m)
{
	char *template CLEANUP_FREE = NULL;
	char *both CLEANUP_FREE = NULL;
	size_t size;
	int64_t offset;

	if (m->binary) {
		int r = text_template_make(m->binary, m->map, &template);

		if (r)
			return r;
	}
	size = m->count + (template ? strlen(template) + 1 : 0);
	both = malloc(size + 1);
	if (!both)
		return -ENOMEM;
	memcpy(both, m->classes, m->count);
	if (template) {
		both[m->count] = ' ';
		memcpy(both + m->count + 1, template, strlen(template));
	}
	both[size] = '\0';
	offset = schema_builder_string(&m->builder, both);
	if (offset < 0)
		return (int)offset;
	m->builder.header.print_format = (uint32_t)offset;
	return 0;
}

static int make_header(struct making *m, const char *system, const char *event)
{
	int64_t system_at = schema_builder_string(&m->builder, system);
	int64_t event_at = schema_builder_string(&m->builder, event);
	const uint16_t probe = 1;

	if (system_at < 0 || event_at < 0)
		return (int)(system_at < 0 ? system_at : event_at);
	m->builder.header.system = (uint32_t)system_at;
	m->builder.header.event = (uint32_t)event_at;
	/* Numbers are this machine's, whatever the traced one is. */
	m->builder.header.flags = SCHEMA_TEXT | (*(const uint8_t *)&probe ? 0 : SCHEMA_BIG_ENDIAN);
	if (m->binary)
		m->builder.header.event_type = m->binary->header->event_type;
	return 0;
}

/* The fields are all there: the rest of the schema, and its bytes. */
static int finish(struct making *m, void **ret_bytes, size_t *ret_size)
{
	int r = add_text_field(m);

	if (r == 0) {
		lay_out(m);
		r = add_template(m);
	}
	return r ? r : schema_builder_finish(&m->builder, ret_bytes, ret_size);
}

int text_schema_make(const struct schema *binary, const char *system, const char *event, void **ret_bytes,
	size_t *ret_size)
{
	struct making *m CLEANUP_FREE = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->binary = binary;
	schema_builder_init(&m->builder);
	r = make_header(m, system, event);
	for (uint32_t i = 0; r == 0 && binary && i < binary->header->field_count; i++)
		r = add_binary_field(m, i);
	if (r == 0)
		r = finish(m, ret_bytes, ret_size);
	schema_builder_release(&m->builder);
	return r;
}

/* ---- from a line ---- */

/* More pairs than this in a line are text. */
#define INFERRED_MAX 64

static bool is_known(const struct making *m, const char *name)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (strcmp(m->builder.strings + m->builder.fields[i].name, name) == 0)
			return true;
	return false;
}

/* Most kernels print the arguments of a system call in hexadecimal without 0x, some in decimal: such a number has two
 * readings, and is kept as it stands. */
static bool is_call(const struct text_piece *body)
{
	return body->size > 4 && memcmp(body->at, "sys_", 4) == 0;
}

static int add_pair(struct making *m, const struct text_pair *pair, bool call)
{
	static const char *const types[] = {
		[TEXT_LOOKS_STRING] = "char[]", [TEXT_LOOKS_DECIMAL] = "s64", [TEXT_LOOKS_HEX] = "u64",
	};
	struct schema_field field = { .size = 4, .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC };
	enum text_look look = text_pairs_look(pair);
	char name[64];
	int64_t at, type;

	if (pair->name.size >= sizeof(name))
		return 0;
	if (call && look == TEXT_LOOKS_DECIMAL)
		look = TEXT_LOOKS_STRING;
	memcpy(name, pair->name.at, pair->name.size);
	name[pair->name.size] = '\0';
	if (is_known(m, name) || strcmp(name, "text") == 0)
		return 0;
	if (look != TEXT_LOOKS_STRING)
		field = (struct schema_field){
			.size = 8,
			.element_size = 8,
			.count = 1,
			.kind = SCHEMA_INTEGER,
			.display = look == TEXT_LOOKS_HEX ? SCHEMA_HEX : SCHEMA_DECIMAL,
			.flags = look == TEXT_LOOKS_HEX ? 0 : SCHEMA_SIGNED,
		};
	at = schema_builder_string(&m->builder, name);
	type = schema_builder_string(&m->builder, types[look]);
	if (at < 0 || type < 0)
		return (int)(at < 0 ? at : type);
	field.name = (uint32_t)at;
	field.type = (uint32_t)type;
	return add_field(m, &field, look == TEXT_LOOKS_STRING ? 's' : '8');
}

int text_schema_infer(const struct text_piece *body, const char *system, const char *event, void **ret_bytes,
	size_t *ret_size)
{
	struct making *m CLEANUP_FREE = calloc(1, sizeof(*m));
	const char *at = body->at, *end = body->at + body->size;
	struct text_pair pair;
	int r;

	if (!m)
		return -ENOMEM;
	schema_builder_init(&m->builder);
	r = make_header(m, system, event);
	while (r == 0 && m->count < INFERRED_MAX && text_pairs_next(&at, end, &pair))
		r = add_pair(m, &pair, is_call(body));
	if (r == 0)
		r = finish(m, ret_bytes, ret_size);
	schema_builder_release(&m->builder);
	return r;
}

/* ---- what a kind of event can be trusted with ---- */

/* A line's prefix alone takes more. */
#define STRING_SHORT 20

bool text_schema_is_guarded(const struct schema *schema)
{
	const char *at = schema_string(schema, schema->header->print_format);
	struct text_step step, next;

	if (strlen(at) <= schema->header->field_count || at[schema->header->field_count] != ' ')
		return false;
	at += schema->header->field_count + 1;
	for (at = text_template_step(at, &step); step.letter; step = next) {
		at = text_template_step(at, &next);
		if (step.letter != 's' && step.letter != 'q')
			continue;
		if (step.number && step.number <= STRING_SHORT)
			continue;
		if (next.letter != 'l' || !memmem(next.text, next.size, TEXT_CANARY, strlen(TEXT_CANARY)))
			return false;
	}
	return true;
}
