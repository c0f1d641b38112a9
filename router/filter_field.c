#include "router/filter_field.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* Whether the print format holds `before`, the name and `after`, blanks aside, with no more of a
 * name. */
static bool prints(const char *format, const char *before, const char *name, const char *after)
{
	size_t before_size = strlen(before), name_size = strlen(name);

	for (const char *at = strstr(format, before); at; at = strstr(at + 1, before)) {
		const char *rest = at + before_size;

		if (strncmp(rest, name, name_size) != 0 || is_name_char(rest[name_size]))
			continue;
		rest += name_size;
		rest += strspn(rest, " ");
		if (!*rest || strchr(after, *rest))
			return true;
	}
	return false;
}

/* The kernel relies on the NUL of a string that it prints with %s: by __get_str, or as a bare
 * argument. */
static bool is_terminated(const struct schema *schema, const struct schema_field *field)
{
	const char *format = schema_string(schema, schema->header->print_format);
	const char *name = schema_string(schema, field->name);

	if (field->kind != SCHEMA_STRING)
		return false;
	if (field->place == SCHEMA_FIXED)
		return prints(format, ", REC->", name, ",") && !strstr(format, "%.*s") &&
		       !strstr(format, "%*");
	return prints(format, "__get_str(", name, ")") ||
	       prints(format, "__get_rel_str(", name, ")");
}

/* What the kernel takes for a string has "char" in its type, and its names hold no other
 * characters. */
static bool is_kernel_field(const struct schema *schema, const struct schema_field *field)
{
	const char *name = schema_string(schema, field->name);

	for (size_t i = 0; name[i]; i++)
		if (!is_name_char(name[i]))
			return false;
	if (!*name || (schema->header->flags & SCHEMA_TEXT))
		return false;
	if (field->kind == SCHEMA_STRING)
		return field->place != SCHEMA_TAIL &&
		       strstr(schema_string(schema, field->type), "char");
	return field->kind == SCHEMA_INTEGER;
}

static uint8_t traits(const struct schema *schema, const struct schema_field *field)
{
	return (is_terminated(schema, field) ? TRAIT_TERMINATED : 0) |
	       (is_kernel_field(schema, field) ? TRAIT_KERNEL : 0);
}

int filter_schema_create(const struct schema *schema, struct filter_schema **ret)
{
	struct filter_schema *copy = calloc(1, sizeof(*copy));
	uint32_t count = schema->header->field_count;
	size_t names_size = 1, used = 1;

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		names_size += strlen(schema_string(schema, schema->fields[i].name)) + 1;
	copy->refs = 1;
	copy->header = *schema->header;
	copy->fields = calloc(count ? count : 1, sizeof(copy->fields[0]));
	copy->names = calloc(1, names_size);
	copy->traits = calloc(count ? count : 1, sizeof(copy->traits[0]));
	if (!copy->fields || !copy->names || !copy->traits) {
		filter_schema_release(copy);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *name = schema_string(schema, schema->fields[i].name);
		size_t size = strlen(name) + 1;

		copy->fields[i] = schema->fields[i];
		copy->fields[i].name = (uint32_t)used;
		memcpy(copy->names + used, name, size);
		used += size;
		copy->traits[i] = traits(schema, &schema->fields[i]);
	}
	copy->view = (struct schema){ &copy->header, copy->fields, copy->names };
	*ret = copy;
	return 0;
}

struct filter_schema *filter_schema_ref(struct filter_schema *schema)
{
	if (schema)
		schema->refs++;
	return schema;
}

void filter_schema_release(struct filter_schema *schema)
{
	if (!schema || --schema->refs)
		return;
	free(schema->fields);
	free(schema->names);
	free(schema->traits);
	free(schema);
}

/* ---- finding ---- */

struct builtin {
	const char *name;
	struct filter_field field;
};

#define NUMBER(source_, size_, signed_, kernel_)                                                   \
	{                                                                                          \
		.source = (source_), .type = TYPE_NUMBER, .size = (size_), .is_signed = (signed_), \
		.kernel_name = (kernel_)                                                           \
	}
#define STRING(source_, kernel_)                                                                   \
	{                                                                                          \
		.source = (source_), .type = TYPE_STRING, .terminated = true,                      \
		.kernel_name = (kernel_)                                                           \
	}

static const struct builtin builtins[] = {
	{ "CPU", NUMBER(FROM_CPU, 4, true, "CPU") },
	{ "cpu", NUMBER(FROM_CPU, 4, true, "CPU") },
	{ "COMM", STRING(FROM_COMM, "COMM") },
	{ "comm", STRING(FROM_COMM, "COMM") },
	{ "pid", NUMBER(FROM_TGID, 4, true, NULL) },
	{ "tgid", NUMBER(FROM_TGID, 4, true, NULL) },
	{ "tid", NUMBER(FROM_TID, 4, true, "common_pid") },
	{ "common_pid", NUMBER(FROM_TID, 4, true, "common_pid") },
	{ "uid", NUMBER(FROM_UID, 4, false, NULL) },
	{ "gid", NUMBER(FROM_GID, 4, false, NULL) },
	{ "exe", STRING(FROM_EXE, NULL) },
	{ "cgroup", STRING(FROM_CGROUP, NULL) },
	{ "probe", STRING(FROM_PROBE, NULL) },
};

#define BUILTIN_COUNT (sizeof(builtins) / sizeof(builtins[0]))

static bool name_is(const char *name, const char *wanted, size_t size)
{
	return strlen(name) == size && !memcmp(name, wanted, size);
}

static bool native_order(const struct schema_header *header)
{
	bool big = header->flags & SCHEMA_BIG_ENDIAN;

	return big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* A short array of fixed place counts as one number, as in the kernel: `saddr == 0x100007f`. */
static bool is_number(const struct schema_field *field)
{
	if (field->kind == SCHEMA_INTEGER)
		return true;
	return field->kind == SCHEMA_BYTES && field->place == SCHEMA_FIXED &&
	       field->display != SCHEMA_BITMASK &&
	       (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8);
}

static void describe(struct filter_schema *schema, uint32_t index, struct filter_field *ret)
{
	const struct schema_field *field = &schema->fields[index];

	*ret = (struct filter_field){
		.source = FROM_PAYLOAD,
		.type = TYPE_NOTHING,
		.index = index,
		.size = field->place == SCHEMA_FIXED ? field->size : 0,
		.is_signed = field->flags & SCHEMA_SIGNED,
		.terminated = schema->traits[index] & TRAIT_TERMINATED,
		.schema = schema,
		.name = schema_string(&schema->view, field->name),
	};
	if (field->kind == SCHEMA_STRING)
		ret->type = TYPE_STRING;
	else if (field->kind == SCHEMA_BYTES && field->display == SCHEMA_BITMASK)
		ret->type = TYPE_CPUMASK;
	else if (is_number(field))
		ret->type = TYPE_NUMBER;
	ret->kernel_name = schema->traits[index] & TRAIT_KERNEL ? ret->name : NULL;
	ret->direct = field->place == SCHEMA_FIXED && !(schema->header.flags & SCHEMA_TEXT) &&
		      (native_order(&schema->header) || ret->type == TYPE_STRING);
	ret->offset = field->offset;
}

static int find_in_schema(struct filter_schema *schema, bool common, const char *name, size_t size,
	struct filter_field *ret)
{
	for (uint32_t i = 0; i < schema->header.field_count; i++) {
		const struct schema_field *field = &schema->fields[i];

		if ((field->flags & SCHEMA_HIDDEN) || !(field->flags & SCHEMA_COMMON) == common)
			continue;
		if (name_is(schema_string(&schema->view, field->name), name, size)) {
			describe(schema, i, ret);
			return 0;
		}
	}
	return -ENOENT;
}

/* The thread's id is common_pid where the payload has it, so that `tid` and `common_pid` are one
 * thing. */
static void settle_thread(struct filter_schema *schema,
	const struct filter_environment *environment, struct filter_field *field)
{
	struct filter_field common;
	const char *name = field->name;

	if (field->source == FROM_TGID && !(environment->lacks & FILTER_TGID))
		return;
	if (!find_in_schema(schema, true, "common_pid", strlen("common_pid"), &common) &&
		common.type == TYPE_NUMBER && common.kernel_name) {
		*field = common;
		return;
	}
	*field = (struct filter_field)NUMBER(FROM_TID, 4, true, "common_pid");
	field->name = name;
}

/* A text schema gives every number 8 bytes; the numbers themselves are of the kernel's width. */
static void settle_width(const struct filter_environment *environment, struct filter_field *field)
{
	const struct schema *binary = environment->binary;
	int i = binary ? schema_find(binary, field->name) : -1;

	if (i >= 0 && field->type == TYPE_NUMBER && binary->fields[i].kind == SCHEMA_INTEGER &&
		(field->schema->header.flags & SCHEMA_TEXT))
		field->size = binary->fields[i].size;
}

int filter_field_find(struct filter_schema *schema, const struct filter_environment *environment,
	const char *name, size_t size, struct filter_field *ret)
{
	if (!find_in_schema(schema, false, name, size, ret) ||
		!find_in_schema(schema, true, name, size, ret)) {
		settle_width(environment, ret);
		return 0;
	}
	for (size_t i = 0; i < BUILTIN_COUNT; i++) {
		if (!name_is(builtins[i].name, name, size))
			continue;
		*ret = builtins[i].field;
		ret->name = builtins[i].name;
		if (ret->source == FROM_TID || ret->source == FROM_TGID)
			settle_thread(schema, environment, ret);
		return 0;
	}
	return -ENOENT;
}

const char *filter_field_name(const struct filter_schema *schema, size_t i)
{
	size_t count = schema->header.field_count;

	if (i >= count)
		return i - count < BUILTIN_COUNT ? builtins[i - count].name : NULL;
	return schema->fields[i].flags & SCHEMA_HIDDEN
		       ? ""
		       : schema_string(&schema->view, schema->fields[i].name);
}

bool filter_field_equal(const struct filter_field *a, const struct filter_field *b)
{
	return a->source == b->source && (a->source != FROM_PAYLOAD || a->index == b->index);
}

uint32_t filter_field_fact(const struct filter_field *field)
{
	static const uint32_t facts[] = {
		[FROM_PAYLOAD] = 0,
		[FROM_TID] = FILTER_TID,
		[FROM_TGID] = FILTER_TGID,
		[FROM_CPU] = FILTER_CPU,
		[FROM_COMM] = FILTER_COMM,
		[FROM_UID] = FILTER_UID,
		[FROM_CGROUP] = FILTER_CGROUP,
		[FROM_GID] = FILTER_GID,
		[FROM_EXE] = FILTER_EXE,
		[FROM_PROBE] = 0,
	};

	return facts[field->source];
}

struct filter_range filter_field_domain(const struct filter_field *field)
{
	unsigned int bits = 8 * field->size;
	uint64_t most = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	uint64_t middle = UINT64_C(1) << 63;

	if (!field->is_signed)
		return (struct filter_range){ 0, most };
	return (struct filter_range){ middle - (most >> 1) - 1, middle + (most >> 1) };
}

/* ---- reading ---- */

/* A field that is not direct. A short array is turned into an integer of its size first. */
static bool read_number(
	const struct filter_field *field, const struct filter_event *event, uint64_t *ret)
{
	const struct schema *schema = &field->schema->view;
	const struct schema_field *row = &schema->fields[field->index];
	uint8_t ordered[8];
	const uint8_t *bytes;
	size_t size;

	if (row->kind == SCHEMA_INTEGER)
		return !schema_read_integer(schema, row, event->payload, event->size, ret);
	if (schema_read_bytes(schema, row, event->payload, event->size, &bytes, &size) ||
		size != field->size)
		return false;
	for (size_t i = 0; i < size; i++)
		ordered[i] = bytes[native_order(schema->header) ? i : size - 1 - i];
	*ret = filter_load(ordered, field->size, field->is_signed);
	return true;
}

bool filter_field_other_number(
	const struct filter_field *field, const struct filter_event *event, uint64_t *ret)
{
	if (field->source == FROM_PAYLOAD)
		return read_number(field, event, ret);
	if (!(event->facts & filter_field_fact(field)))
		return false;
	switch (field->source) {
	case FROM_TID:
		*ret = (uint64_t)event->tid;
		return true;
	case FROM_TGID:
		*ret = (uint64_t)event->tgid;
		return true;
	case FROM_CPU:
		*ret = (uint64_t)(int32_t)event->cpu;
		return true;
	case FROM_UID:
		*ret = event->uid;
		return true;
	case FROM_GID:
		*ret = event->gid;
		return true;
	default:
		return false;
	}
}

/* A probe that could not read its string leaves a place of length 0. A word of 0 is an empty
 * string. */
static bool is_unreadable(const struct filter_field *field, const struct filter_event *event)
{
	const struct schema_field *row = &field->schema->fields[field->index];
	uint32_t word;

	if ((row->place != SCHEMA_DATA_LOC && row->place != SCHEMA_REL_LOC) ||
		row->size != sizeof(word))
		return false;
	memcpy(&word, (const uint8_t *)event->payload + row->offset, sizeof(word));
	if (!native_order(&field->schema->header))
		word = __builtin_bswap32(word);
	return word && !(word >> 16);
}

static bool read_text(const struct filter_field *field, const struct filter_event *event,
	const char **ret, size_t *ret_size)
{
	const struct schema *schema = &field->schema->view;
	const uint8_t *bytes;

	if (schema_read_bytes(schema, &schema->fields[field->index], event->payload, event->size,
		    &bytes, ret_size))
		return false;
	*ret = (const char *)bytes;
	return *ret_size || !is_unreadable(field, event);
}

bool filter_field_text(const struct filter_field *field, const struct filter_event *event,
	const char **ret, size_t *ret_size)
{
	switch (field->source) {
	case FROM_PAYLOAD:
		if (!field->direct)
			return read_text(field, event, ret, ret_size);
		if ((uint64_t)field->offset + field->size > event->size)
			return false;
		*ret = (const char *)event->payload + field->offset;
		*ret_size = strnlen(*ret, field->size);
		return true;
	case FROM_COMM:
		if (!(event->facts & FILTER_COMM))
			return false;
		*ret = event->comm;
		*ret_size = strnlen(event->comm, FILTER_COMM_SIZE);
		return true;
	case FROM_CGROUP:
		if (!(event->facts & FILTER_CGROUP))
			return false;
		*ret = event->cgroup;
		*ret_size = strlen(event->cgroup);
		return true;
	case FROM_EXE:
		if (!(event->facts & FILTER_EXE))
			return false;
		*ret = event->exe;
		*ret_size = strlen(event->exe);
		return true;
	default:
		return false;
	}
}

bool filter_field_bytes(const struct filter_field *field, const struct filter_event *event,
	const uint8_t **ret, size_t *ret_size)
{
	const struct schema *schema = &field->schema->view;

	return !schema_read_bytes(
		schema, &schema->fields[field->index], event->payload, event->size, ret, ret_size);
}

/* The mask is an array of the kernel's longs; in a big-endian one the first CPUs stand in a long's
 * last byte. */
bool filter_field_bit(const struct filter_field *field, const uint8_t *bytes, size_t cpu)
{
	const struct schema_header *header = &field->schema->header;
	size_t long_size = header->flags & SCHEMA_LONG4 ? 4 : 8, byte = cpu / 8;

	if (header->flags & SCHEMA_BIG_ENDIAN)
		byte = byte / long_size * long_size + (long_size - 1 - byte % long_size);
	return bytes[byte] >> (cpu % 8) & 1;
}
