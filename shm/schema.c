#include "shm/schema.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool string_valid(const struct schema_header *header, uint32_t offset)
{
	/* The strings end with a NUL, so whatever begins inside ends inside. */
	return offset < header->strings_size;
}

static bool integer_size_valid(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* The bytes that the field itself, or its word, takes; false when they don't go with kind and
 * place. */
static bool field_extent(const struct schema_field *field, uint32_t *ret)
{
	*ret = field->size;
	switch (field->place) {
	case SCHEMA_FIXED:
		if (field->kind == SCHEMA_INTEGER)
			return integer_size_valid(field->size);
		return field->kind == SCHEMA_STRING ||
		       (uint64_t)field->element_size * field->count <= field->size;
	case SCHEMA_DATA_LOC:
	case SCHEMA_REL_LOC:
		return field->kind != SCHEMA_INTEGER && (field->size == 4 || field->size == 2);
	case SCHEMA_TAIL:
		return field->kind != SCHEMA_INTEGER && field->size == 0;
	default:
		return false;
	}
}

static bool field_valid(const struct schema_header *header, const struct schema_field *field)
{
	uint32_t extent;

	if (!string_valid(header, field->name) || !string_valid(header, field->type))
		return false;
	if (field->kind < SCHEMA_INTEGER || field->kind > SCHEMA_BYTES ||
		field->display > SCHEMA_BITMASK)
		return false;
	return field_extent(field, &extent) &&
	       range_inside(field->offset, extent, header->fixed_size);
}

int schema_view(const void *bytes, size_t size, struct schema *ret)
{
	const struct schema_header *header = bytes;
	struct schema schema = { .header = header };
	size_t fields_size;

	if ((uintptr_t)bytes % _Alignof(struct schema_header) || size < sizeof(*header))
		return -EBADMSG;
	if (header->field_count > SCHEMA_FIELDS_MAX || !header->strings_size ||
		header->strings_size > SCHEMA_STRINGS_MAX)
		return -EBADMSG;
	fields_size = header->field_count * sizeof(struct schema_field);
	if (size != sizeof(*header) + fields_size + header->strings_size)
		return -EBADMSG;
	schema.fields = (const void *)(header + 1);
	schema.strings = (const char *)(header + 1) + fields_size;
	if (schema.strings[0] || schema.strings[header->strings_size - 1])
		return -EBADMSG;
	if (!string_valid(header, header->system) || !string_valid(header, header->event) ||
		!string_valid(header, header->print_format))
		return -EBADMSG;
	for (uint32_t i = 0; i < header->field_count; i++)
		if (!field_valid(header, &schema.fields[i]))
			return -EBADMSG;
	*ret = schema;
	return 0;
}

int schema_find(const struct schema *schema, const char *name)
{
	for (uint32_t i = 0; i < schema->header->field_count; i++)
		if (strcmp(schema_string(schema, schema->fields[i].name), name) == 0)
			return (int)i;
	return -1;
}

/* ---- building ---- */

void schema_builder_init(struct schema_builder *builder)
{
	*builder = (struct schema_builder){
		.header = {
			.segment = {
				.magic = SEGMENT_MAGIC,
				.kind = SEGMENT_SCHEMA,
				.version = SEGMENT_VERSION,
			},
		},
	};
}

void schema_builder_release(struct schema_builder *builder)
{
	if (!builder)
		return;
	free(builder->fields);
	free(builder->strings);
	*builder = (struct schema_builder){ 0 };
}

/* Makes room for `want` elements of `size` bytes, doubling. */
static int grow(void *array, size_t *room, size_t want, size_t size)
{
	void **where = array;
	size_t more = *room ? *room : 64;
	void *moved;

	if (want <= *room)
		return 0;
	while (more < want)
		more *= 2;
	moved = realloc(*where, more * size);
	if (!moved)
		return -ENOMEM;
	*where = moved;
	*room = more;
	return 0;
}

int64_t schema_builder_string(struct schema_builder *builder, const char *text)
{
	const size_t length = strlen(text) + 1;
	/* The first byte is the empty string's. */
	const size_t offset = builder->header.strings_size ? builder->header.strings_size : 1;
	int r;

	if (length == 1)
		return 0;
	if (length > SCHEMA_STRINGS_MAX - offset)
		return -E2BIG;
	r = grow(&builder->strings, &builder->strings_room, offset + length, 1);
	if (r < 0)
		return r;
	builder->strings[0] = 0;
	memcpy(builder->strings + offset, text, length);
	builder->header.strings_size = (uint32_t)(offset + length);
	return (int64_t)offset;
}

int schema_builder_field(struct schema_builder *builder, const struct schema_field *field)
{
	const uint32_t index = builder->header.field_count;
	uint32_t extent;
	int r;

	if (index >= SCHEMA_FIELDS_MAX)
		return -E2BIG;
	if (!field_extent(field, &extent) || extent > UINT32_MAX - field->offset)
		return -EINVAL;
	r = grow(&builder->fields, &builder->fields_room, index + 1, sizeof(*field));
	if (r < 0)
		return r;
	builder->fields[index] = *field;
	builder->header.field_count = index + 1;
	if (builder->header.fixed_size < field->offset + extent)
		builder->header.fixed_size = field->offset + extent;
	return (int)index;
}

int schema_builder_finish(struct schema_builder *builder, void **ret_bytes, size_t *ret_size)
{
	struct schema_header header = builder->header;
	const size_t fields_size = header.field_count * sizeof(struct schema_field);
	struct schema schema;
	uint8_t *bytes;
	size_t size;

	if (!header.strings_size)
		header.strings_size = 1;
	size = sizeof(header) + fields_size + header.strings_size;
	header.segment.size = size;
	bytes = calloc(1, size);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, &header, sizeof(header));
	if (fields_size)
		memcpy(bytes + sizeof(header), builder->fields, fields_size);
	if (builder->strings)
		memcpy(bytes + sizeof(header) + fields_size, builder->strings, header.strings_size);
	/* The reader's own check, so that nothing leaves that the other side refuses. */
	if (schema_view(bytes, size, &schema) < 0) {
		free(bytes);
		return -EINVAL;
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* ---- reading a payload ---- */

static bool foreign_order(const struct schema *schema)
{
	const bool big = schema->header->flags & SCHEMA_BIG_ENDIAN;

	return big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Loads `size` bytes (1, 2, 4 or 8) at `from`, without extension of the sign. */
static uint64_t load(const uint8_t *from, uint32_t size, bool swap)
{
	uint16_t v2;
	uint32_t v4;
	uint64_t v8;

	switch (size) {
	case 1:
		return *from;
	case 2:
		memcpy(&v2, from, sizeof(v2));
		return swap ? __builtin_bswap16(v2) : v2;
	case 4:
		memcpy(&v4, from, sizeof(v4));
		return swap ? __builtin_bswap32(v4) : v4;
	default:
		memcpy(&v8, from, sizeof(v8));
		return swap ? __builtin_bswap64(v8) : v8;
	}
}

static uint64_t extend(uint64_t value, uint32_t size, bool is_signed)
{
	const unsigned int shift = 64 - 8 * size;

	/* Shifting a negative value to the right keeps the sign in every compiler that builds this. */
	return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

/* Whether the text line had the field: a bit of the bitmap that such payloads begin with. */
static int present(const struct schema *schema, const struct schema_field *field,
	const uint8_t *payload, size_t size)
{
	const size_t index = (size_t)(field - schema->fields);
	const size_t word = index / 64 * sizeof(uint64_t);
	uint64_t bits;

	if (!(schema->header->flags & SCHEMA_TEXT))
		return 0;
	if (!range_inside(word, sizeof(bits), size))
		return -EBADMSG;
	memcpy(&bits, payload + word, sizeof(bits));
	return bits >> (index % 64) & 1 ? 0 : -ENODATA;
}

int schema_read_integer(const struct schema *schema, const struct schema_field *field,
	const void *payload, size_t size, uint64_t *ret)
{
	int r;

	if (field->kind != SCHEMA_INTEGER)
		return -EINVAL;
	r = present(schema, field, payload, size);
	if (r < 0)
		return r;
	if (!range_inside(field->offset, field->size, size))
		return -EBADMSG;
	*ret = extend(
		load((const uint8_t *)payload + field->offset, field->size, foreign_order(schema)),
		field->size, field->flags & SCHEMA_SIGNED);
	return 0;
}

/* Where the data of a __data_loc or __rel_loc field lies. The old form of the word has two bytes
 * and no length: the data then goes to the payload's end. */
static int locate(const struct schema *schema, const struct schema_field *field,
	const uint8_t *payload, size_t size, size_t *ret_offset, size_t *ret_length)
{
	uint64_t word, offset;

	if (!range_inside(field->offset, field->size, size))
		return -EBADMSG;
	word = load(payload + field->offset, field->size, foreign_order(schema));
	offset = word & 0xffff;
	if (field->place == SCHEMA_REL_LOC)
		offset += (uint64_t)field->offset + field->size;
	if (!word) {
		*ret_offset = field->offset;
		*ret_length = 0;
		return 0;
	}
	if (offset > size)
		return -EBADMSG;
	*ret_offset = offset;
	*ret_length = field->size == 2 ? size - offset : word >> 16;
	return 0;
}

int schema_read_bytes(const struct schema *schema, const struct schema_field *field,
	const void *payload, size_t size, const uint8_t **ret, size_t *ret_size)
{
	size_t offset = field->offset, length = field->size;
	const uint8_t *bytes = payload;
	const uint8_t *end;
	int r;

	r = present(schema, field, payload, size);
	if (r < 0)
		return r;
	if (field->place == SCHEMA_DATA_LOC || field->place == SCHEMA_REL_LOC) {
		r = locate(schema, field, payload, size, &offset, &length);
		if (r < 0)
			return r;
	} else if (field->place == SCHEMA_TAIL) {
		if (offset > size)
			return -EBADMSG;
		length = size - offset;
	}
	if (!range_inside(offset, length, size))
		return -EBADMSG;
	if (!length && field->flags & SCHEMA_FALLIBLE)
		return -ENODATA;
	bytes += offset;
	end = field->kind == SCHEMA_STRING && length ? memchr(bytes, 0, length) : NULL;
	*ret = bytes;
	*ret_size = end ? (size_t)(end - bytes) : length;
	return 0;
}

int schema_read_element(const struct schema *schema, const struct schema_field *field,
	const void *payload, size_t size, size_t i, uint64_t *ret)
{
	const uint8_t *bytes;
	size_t length;
	int r;

	if (field->kind != SCHEMA_BYTES || !integer_size_valid(field->element_size))
		return -EINVAL;
	r = schema_read_bytes(schema, field, payload, size, &bytes, &length);
	if (r < 0)
		return r;
	if (i >= length / field->element_size ||
		(field->place == SCHEMA_FIXED && i >= field->count))
		return -ERANGE;
	*ret = extend(
		load(bytes + i * field->element_size, field->element_size, foreign_order(schema)),
		field->element_size, field->flags & SCHEMA_SIGNED);
	return 0;
}
