#include "shm/schema.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* A schema of one's own making: fields are given by value, names are f0, f1, ... */
struct made {
	void *bytes;
	size_t size;
	struct schema schema;
};

static void make(const struct schema_field *fields, size_t count, uint32_t flags, struct made *ret)
{
	struct schema_builder builder;

	schema_builder_init(&builder);
	builder.header.flags = flags;
	for (size_t i = 0; i < count; i++) {
		struct schema_field field = fields[i];
		char name[8] = { 'f', (char)('0' + i), 0 };
		int64_t offset = schema_builder_string(&builder, name);

		assert_true(offset > 0);
		field.name = (uint32_t)offset;
		assert_int_equal(schema_builder_field(&builder, &field), i);
	}
	assert_int_equal(schema_builder_finish(&builder, &ret->bytes, &ret->size), 0);
	schema_builder_release(&builder);
	assert_int_equal(schema_view(ret->bytes, ret->size, &ret->schema), 0);
}

static void integer_is(
	const struct made *made, size_t i, const void *payload, size_t size, uint64_t expected)
{
	uint64_t value = 0xdead;

	assert_int_equal(
		schema_read_integer(&made->schema, &made->schema.fields[i], payload, size, &value),
		0);
	assert_int_equal(value, expected);
}

static int integer_fails(const struct made *made, size_t i, const void *payload, size_t size)
{
	uint64_t value = 0xdead;
	int r = schema_read_integer(&made->schema, &made->schema.fields[i], payload, size, &value);

	assert_int_equal(value, 0xdead);
	return r;
}

static void bytes_are(
	const struct made *made, size_t i, const void *payload, size_t size, const char *expected)
{
	const uint8_t *bytes = NULL;
	size_t length = 0xdead;

	assert_int_equal(schema_read_bytes(&made->schema, &made->schema.fields[i], payload, size,
				 &bytes, &length),
		0);
	assert_non_null(bytes);
	assert_int_equal(length, strlen(expected));
	assert_memory_equal(bytes, expected, length);
}

static int bytes_fail(const struct made *made, size_t i, const void *payload, size_t size)
{
	const uint8_t *bytes = NULL;
	size_t length = 0xdead;
	int r = schema_read_bytes(
		&made->schema, &made->schema.fields[i], payload, size, &bytes, &length);

	assert_null(bytes);
	assert_int_equal(length, 0xdead);
	return r;
}

/* ---- building and viewing ---- */

static void what_is_built_is_viewed(void **state)
{
	static const struct schema_field field = { .kind = SCHEMA_INTEGER, .offset = 8, .size = 4 };
	struct schema_builder builder;
	struct schema schema;
	void *bytes;
	size_t size;

	(void)state;
	schema_builder_init(&builder);
	builder.header.trace_id = 7;
	builder.header.event_type = 300;
	assert_int_equal(schema_builder_string(&builder, ""), 0);
	builder.header.system = (uint32_t)schema_builder_string(&builder, "sched");
	builder.header.event = (uint32_t)schema_builder_string(&builder, "sched_switch");
	assert_int_equal(schema_builder_field(&builder, &field), 0);
	assert_int_equal(builder.header.fixed_size, 12);
	assert_int_equal(schema_builder_finish(&builder, &bytes, &size), 0);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(schema.header->segment.magic, SEGMENT_MAGIC);
	assert_int_equal(schema.header->segment.kind, SEGMENT_SCHEMA);
	assert_int_equal(schema.header->segment.size, size);
	assert_int_equal(schema.header->trace_id, 7);
	assert_string_equal(schema_string(&schema, schema.header->system), "sched");
	assert_string_equal(schema_string(&schema, schema.header->event), "sched_switch");
	assert_string_equal(schema_string(&schema, schema.header->print_format), "");
	assert_int_equal(schema.header->field_count, 1);
	free(bytes);
	schema_builder_release(&builder);
	schema_builder_release(NULL);
}

static void an_empty_schema_is_a_schema(void **state)
{
	struct made made;

	(void)state;
	make(NULL, 0, 0, &made);
	assert_int_equal(made.size, sizeof(struct schema_header) + 1);
	assert_int_equal(schema_find(&made.schema, "f0"), -1);
	free(made.bytes);
}

static void fields_are_found_by_name(void **state)
{
	static const struct schema_field fields[] = { { .kind = SCHEMA_INTEGER, .size = 1 },
		{ .kind = SCHEMA_INTEGER, .size = 8, .offset = 8 } };
	struct made made;

	(void)state;
	make(fields, 2, 0, &made);
	assert_int_equal(schema_find(&made.schema, "f0"), 0);
	assert_int_equal(schema_find(&made.schema, "f1"), 1);
	assert_int_equal(schema_find(&made.schema, "f"), -1);
	assert_int_equal(schema_find(&made.schema, ""), -1);
	free(made.bytes);
}

static void impossible_fields_are_not_built(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_INTEGER, .size = 3 },
		{ .kind = SCHEMA_INTEGER, .size = 0 },
		{ .kind = SCHEMA_INTEGER, .size = 16 },
		{ .kind = SCHEMA_INTEGER, .size = 4, .place = SCHEMA_DATA_LOC },
		{ .kind = SCHEMA_INTEGER, .size = 0, .place = SCHEMA_TAIL },
		{ .kind = SCHEMA_STRING, .size = 8, .place = SCHEMA_DATA_LOC },
		{ .kind = SCHEMA_STRING, .size = 3, .place = SCHEMA_REL_LOC },
		{ .kind = SCHEMA_STRING, .size = 4, .place = SCHEMA_TAIL },
		{ .kind = SCHEMA_STRING, .size = 4, .place = SCHEMA_TAIL + 1 },
		{ .kind = SCHEMA_BYTES, .size = 15, .element_size = 8, .count = 2 },
		{ .kind = SCHEMA_BYTES, .size = 4, .element_size = 1U << 31, .count = 2 },
		{ .kind = SCHEMA_INTEGER, .size = 8, .offset = UINT32_MAX - 7 },
	};
	struct schema_builder builder;

	(void)state;
	schema_builder_init(&builder);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		assert_int_equal(schema_builder_field(&builder, &fields[i]), -EINVAL);
	schema_builder_release(&builder);
}

static void limits_hold(void **state)
{
	static const struct schema_field field = { .kind = SCHEMA_INTEGER, .size = 1 };
	struct schema_builder builder;
	char *text = malloc(SCHEMA_STRINGS_MAX);

	(void)state;
	assert_non_null(text);
	schema_builder_init(&builder);
	for (int i = 0; i < SCHEMA_FIELDS_MAX; i++)
		assert_int_equal(schema_builder_field(&builder, &field), i);
	assert_int_equal(schema_builder_field(&builder, &field), -E2BIG);
	memset(text, 'x', SCHEMA_STRINGS_MAX - 1);
	text[SCHEMA_STRINGS_MAX - 1] = 0;
	assert_int_equal(schema_builder_string(&builder, text), -E2BIG);
	text[SCHEMA_STRINGS_MAX - 2] = 0;
	assert_int_equal(schema_builder_string(&builder, text), 1);
	assert_int_equal(schema_builder_string(&builder, "y"), -E2BIG);
	assert_int_equal(schema_builder_string(&builder, ""), 0);
	schema_builder_release(&builder);
	free(text);
}

/* Names that are no offsets of strings: the builder's own check finds them. */
static void a_schema_that_nobody_could_view_is_not_finished(void **state)
{
	static const struct schema_field field = { .kind = SCHEMA_INTEGER, .size = 1, .name = 5 };
	struct schema_builder builder;
	void *bytes = NULL;
	size_t size;

	(void)state;
	schema_builder_init(&builder);
	assert_int_equal(schema_builder_field(&builder, &field), 0);
	assert_int_equal(schema_builder_finish(&builder, &bytes, &size), -EINVAL);
	assert_null(bytes);
	schema_builder_release(&builder);
}

static void spoil_header(const struct made *made, size_t offset, uint32_t value)
{
	uint8_t *copy = malloc(made->size);
	struct schema schema = { 0 };

	assert_non_null(copy);
	memcpy(copy, made->bytes, made->size);
	memcpy(copy + offset, &value, sizeof(value));
	if (schema_view(copy, made->size, &schema) != -EBADMSG)
		fail_msg("offset %zu, value %u", offset, value);
	assert_null(schema.header);
	free(copy);
}

static void spoiled_schemas_are_refused(void **state)
{
	static const struct schema_field fields[] = { { .kind = SCHEMA_INTEGER, .size = 4 },
		{ .kind = SCHEMA_STRING, .size = 4, .offset = 4 } };
	const size_t field = sizeof(struct schema_header);
	struct schema schema;
	struct made made;

	(void)state;
	make(fields, 2, 0, &made);
#define HEADER(member) offsetof(struct schema_header, member)
#define FIELD(member)  (field + offsetof(struct schema_field, member))
	spoil_header(&made, HEADER(field_count), 1);
	spoil_header(&made, HEADER(field_count), 3);
	spoil_header(&made, HEADER(field_count), SCHEMA_FIELDS_MAX + 1);
	spoil_header(&made, HEADER(field_count), UINT32_MAX);
	spoil_header(&made, HEADER(strings_size), 0);
	spoil_header(&made, HEADER(strings_size), 6);
	spoil_header(&made, HEADER(strings_size), SCHEMA_STRINGS_MAX + 1);
	spoil_header(&made, HEADER(strings_size), UINT32_MAX);
	spoil_header(&made, HEADER(system), 7);
	spoil_header(&made, HEADER(event), UINT32_MAX);
	spoil_header(&made, HEADER(print_format), 7);
	spoil_header(&made, HEADER(fixed_size), 7);
	spoil_header(&made, FIELD(name), 7);
	spoil_header(&made, FIELD(type), UINT32_MAX);
	spoil_header(&made, FIELD(offset), 5);
	spoil_header(&made, FIELD(offset), UINT32_MAX);
	spoil_header(&made, FIELD(size), 5);
	spoil_header(&made, FIELD(size), UINT32_MAX);
	/* kind, place, display and flags at once. */
	spoil_header(&made, FIELD(kind), 0);
	spoil_header(&made, FIELD(kind), 4);
	spoil_header(&made, FIELD(kind), SCHEMA_INTEGER | 4 << 8);
	spoil_header(&made, FIELD(kind), SCHEMA_INTEGER | 6 << 16);
	/* The strings' first and last byte. */
	spoil_header(&made, made.size - 4, 0x41414141);
	spoil_header(&made, made.size - 7, 0x00410041);
#undef HEADER
#undef FIELD
	for (size_t size = 0; size < made.size; size++)
		assert_int_equal(schema_view(made.bytes, size, &schema), -EBADMSG);
	free(made.bytes);
}

static void size_must_be_exact_and_aligned(void **state)
{
	static const struct schema_field field = { .kind = SCHEMA_INTEGER, .size = 4 };
	struct schema schema;
	struct made made;
	uint8_t *copy;

	(void)state;
	make(&field, 1, 0, &made);
	copy = calloc(1, made.size + 8);
	assert_non_null(copy);
	memcpy(copy, made.bytes, made.size);
	assert_int_equal(schema_view(copy, made.size, &schema), 0);
	assert_int_equal(schema_view(copy, made.size + 1, &schema), -EBADMSG);
	memcpy(copy + 4, made.bytes, made.size);
	assert_int_equal(schema_view(copy + 4, made.size, &schema), -EBADMSG);
	free(copy);
	free(made.bytes);
}

/* ---- integers ---- */

static void integers_have_width_and_sign(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_INTEGER, .size = 1 },
		{ .kind = SCHEMA_INTEGER, .size = 1, .flags = SCHEMA_SIGNED },
		{ .kind = SCHEMA_INTEGER, .size = 2 },
		{ .kind = SCHEMA_INTEGER, .size = 2, .flags = SCHEMA_SIGNED },
		{ .kind = SCHEMA_INTEGER, .size = 4 },
		{ .kind = SCHEMA_INTEGER, .size = 4, .flags = SCHEMA_SIGNED },
		{ .kind = SCHEMA_INTEGER, .size = 8 },
		{ .kind = SCHEMA_INTEGER, .size = 8, .flags = SCHEMA_SIGNED },
	};
	static const uint8_t little[8] = { 0xfe, 0x82, 0x83, 0x84, 0x05, 0x06, 0x07, 0x88 };
	static const uint64_t expected[8] = { 0xfe, (uint64_t)-2, 0x82fe, 0xffffffffffff82fe,
		0x848382fe, 0xffffffff848382fe, 0x88070605848382fe, 0x88070605848382fe };
	uint8_t bytes[8];
	struct made made;

	(void)state;
	for (uint32_t flags = 0; flags <= SCHEMA_BIG_ENDIAN; flags += SCHEMA_BIG_ENDIAN) {
		make(fields, 8, flags, &made);
		for (size_t i = 0; i < 8; i++) {
			for (size_t k = 0; k < fields[i].size; k++)
				bytes[flags ? fields[i].size - 1 - k : k] = little[k];
			integer_is(&made, i, bytes, fields[i].size, expected[i]);
			assert_int_equal(
				integer_fails(&made, i, bytes, fields[i].size - 1), -EBADMSG);
		}
		free(made.bytes);
	}
}

static void integers_stay_inside(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_INTEGER, .size = 4, .offset = UINT32_MAX - 4 },
		{ .kind = SCHEMA_STRING, .size = 4 }
	};
	const uint8_t bytes[8] = { 1 };
	struct made made;

	(void)state;
	make(fields, 2, 0, &made);
	assert_int_equal(integer_fails(&made, 0, bytes, sizeof(bytes)), -EBADMSG);
	assert_int_equal(integer_fails(&made, 1, bytes, sizeof(bytes)), -EINVAL);
	free(made.bytes);
}

/* ---- bytes ---- */

static void fixed_strings_end_at_their_nul_or_end(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .size = 4, .offset = 2 },
		{ .kind = SCHEMA_BYTES, .size = 4, .offset = 2, .element_size = 1, .count = 4 },
		{ .kind = SCHEMA_STRING, .size = 0, .offset = 6 },
		{ .kind = SCHEMA_INTEGER, .size = 2, .offset = 0 },
	};
	const uint8_t *bytes;
	struct made made;
	size_t size;

	(void)state;
	make(fields, 4, 0, &made);
	bytes_are(&made, 0, "..ab\0x", 6, "ab");
	bytes_are(&made, 0, "..abcd", 6, "abcd");
	bytes_are(&made, 0, "..\0bcd", 6, "");
	bytes_are(&made, 2, "..abcd", 6, "");
	bytes_are(&made, 3, "..abcd", 6, "..");
	assert_int_equal(schema_read_bytes(&made.schema, &made.schema.fields[1], "..a\0\0d", 6,
				 &bytes, &size),
		0);
	assert_int_equal(size, 4);
	assert_int_equal(bytes_fail(&made, 0, "..abc", 5), -EBADMSG);
	assert_int_equal(bytes_fail(&made, 2, "..abc", 5), -EBADMSG);
	free(made.bytes);
}

/* A payload with a location word at 4, in the byte order of the flags, and text behind it. */
static size_t located(
	uint8_t payload[64], uint32_t flags, uint32_t word_size, uint64_t word, const char *text)
{
	size_t length = strlen(text) + 1;

	memset(payload, '#', 64);
	for (uint32_t i = 0; i < word_size; i++)
		payload[4 + (flags & SCHEMA_BIG_ENDIAN ? word_size - 1 - i : i)] =
			(uint8_t)(word >> (8 * i));
	memcpy(payload + 4 + word_size, text, length);
	return 4 + word_size + length;
}

static void located_data_is_found(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 4, .offset = 4 },
		{ .kind = SCHEMA_STRING, .place = SCHEMA_REL_LOC, .size = 4, .offset = 4 },
		{ .kind = SCHEMA_BYTES,
			.place = SCHEMA_DATA_LOC,
			.size = 4,
			.offset = 4,
			.element_size = 1 },
	};
	uint8_t payload[64];
	struct made made;
	size_t size;

	(void)state;
	for (uint32_t flags = 0; flags <= SCHEMA_BIG_ENDIAN; flags += SCHEMA_BIG_ENDIAN) {
		make(fields, 3, flags, &made);
		size = located(payload, flags, 4, 8 | 6 << 16, "hello");
		bytes_are(&made, 0, payload, size, "hello");
		size = located(payload, flags, 4, 0 | 6 << 16, "hello");
		bytes_are(&made, 1, payload, size, "hello");
		size = located(payload, flags, 4, 2 | 3 << 16, "hello");
		bytes_are(&made, 1, payload, size, "llo");
		/* The length cuts a string that has no NUL of its own. */
		size = located(payload, flags, 4, 8 | 3 << 16, "hello");
		bytes_are(&made, 0, payload, size, "hel");
		bytes_are(&made, 2, payload, size, "hel");
		free(made.bytes);
	}
}

static void a_word_of_zero_is_an_empty_string(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 4, .offset = 4 },
		{ .kind = SCHEMA_STRING, .place = SCHEMA_REL_LOC, .size = 4, .offset = 4 },
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 2, .offset = 4 },
	};
	uint8_t payload[64];
	struct made made;
	size_t size;

	(void)state;
	make(fields, 3, 0, &made);
	size = located(payload, 0, 4, 0, "hello");
	for (size_t i = 0; i < 3; i++)
		bytes_are(&made, i, payload, size, "");
	/* Nothing, at the very end. */
	size = located(payload, 0, 4, 14, "hello");
	bytes_are(&made, 0, payload, size, "");
	free(made.bytes);
}

/* An empty string has its NUL. */
static void a_string_that_could_not_be_fetched(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 4, .offset = 4, .flags = SCHEMA_FALLIBLE },
	};
	uint8_t payload[64];
	struct made made;
	size_t size;

	(void)state;
	make(fields, 1, 0, &made);
	size = located(payload, 0, 4, 8, "hello");
	assert_int_equal(bytes_fail(&made, 0, payload, size), -ENODATA);
	size = located(payload, 0, 4, 8 | 1 << 16, "");
	bytes_are(&made, 0, payload, size, "");
	free(made.bytes);
}

static void located_data_stays_inside(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 4, .offset = 4 },
		{ .kind = SCHEMA_STRING, .place = SCHEMA_REL_LOC, .size = 4, .offset = 4 },
	};
	static const uint32_t lies[] = { 8 | 7 << 16, 15, 15 | 1 << 16, 65535, 65535U << 16 | 8,
		UINT32_MAX, 13 | 2 << 16 };
	uint8_t payload[64];
	struct made made;
	size_t size;

	(void)state;
	make(fields, 2, 0, &made);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		size = located(payload, 0, 4, lies[i], "hello");
		assert_int_equal(bytes_fail(&made, 0, payload, size), -EBADMSG);
		assert_int_equal(bytes_fail(&made, 1, payload, size), -EBADMSG);
	}
	/* Not even the word is there. */
	assert_int_equal(bytes_fail(&made, 0, payload, 7), -EBADMSG);
	assert_int_equal(bytes_fail(&made, 1, payload, 7), -EBADMSG);
	assert_int_equal(bytes_fail(&made, 1, payload, 0), -EBADMSG);
	free(made.bytes);
}

static void old_words_have_no_length(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .size = 2, .offset = 4 },
		{ .kind = SCHEMA_STRING, .place = SCHEMA_REL_LOC, .size = 2, .offset = 4 },
		{ .kind = SCHEMA_BYTES,
			.place = SCHEMA_DATA_LOC,
			.size = 2,
			.offset = 4,
			.element_size = 1 },
	};
	uint8_t payload[64];
	struct made made;
	size_t size;

	(void)state;
	for (uint32_t flags = 0; flags <= SCHEMA_BIG_ENDIAN; flags += SCHEMA_BIG_ENDIAN) {
		make(fields, 3, flags, &made);
		size = located(payload, flags, 2, 6, "hello");
		bytes_are(&made, 0, payload, size, "hello");
		/* To the payload's end where there is no NUL. */
		bytes_are(&made, 0, payload, size - 2, "hell");
		bytes_are(&made, 2, payload, size - 1, "hello");
		size = located(payload, flags, 2, 3, "hello");
		bytes_are(&made, 1, payload, size, "lo");
		size = located(payload, flags, 2, 13, "hello");
		assert_int_equal(bytes_fail(&made, 0, payload, size), -EBADMSG);
		free(made.bytes);
	}
}

static void tails_go_to_the_end(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_STRING, .place = SCHEMA_TAIL, .offset = 4 },
		{ .kind = SCHEMA_BYTES, .place = SCHEMA_TAIL, .offset = 4, .element_size = 8 },
	};
	struct made made;

	(void)state;
	make(fields, 2, 0, &made);
	bytes_are(&made, 0, "....tail\0", 9, "tail");
	bytes_are(&made, 0, "....tail", 8, "tail");
	bytes_are(&made, 1, "....tail", 8, "tail");
	bytes_are(&made, 0, "....", 4, "");
	assert_int_equal(bytes_fail(&made, 0, "...", 3), -EBADMSG);
	free(made.bytes);
}

/* ---- payloads from text ---- */

static void text_payloads_say_what_they_have(void **state)
{
	struct schema_field fields[9];
	uint64_t payload[10] = { 1 << 0 | 1 << 2 | 1 << 8, 10, 11, 12 };
	struct made made;

	(void)state;
	for (size_t i = 0; i < 9; i++)
		fields[i] = (struct schema_field){
			.kind = SCHEMA_INTEGER, .size = 8, .offset = 8 + 8 * (uint32_t)i
		};
	make(fields, 9, SCHEMA_TEXT | (host_big ? SCHEMA_BIG_ENDIAN : 0), &made);
	integer_is(&made, 0, payload, sizeof(payload), 10);
	assert_int_equal(integer_fails(&made, 1, payload, sizeof(payload)), -ENODATA);
	assert_int_equal(bytes_fail(&made, 1, payload, sizeof(payload)), -ENODATA);
	integer_is(&made, 2, payload, sizeof(payload), 12);
	integer_is(&made, 8, payload, sizeof(payload), 0);
	/* Too short for the field, and for the bitmap. */
	assert_int_equal(integer_fails(&made, 8, payload, sizeof(payload) - 8), -EBADMSG);
	assert_int_equal(integer_fails(&made, 0, payload, 7), -EBADMSG);
	free(made.bytes);
}

static void the_bitmap_has_a_word_per_64_fields(void **state)
{
	static const struct schema_field field = {
		.kind = SCHEMA_INTEGER, .size = 1, .offset = 16
	};
	struct schema_builder builder;
	uint64_t payload[3] = { 0, 1 << 1, 0x4242424242424242 };
	struct made made;

	(void)state;
	schema_builder_init(&builder);
	builder.header.flags = SCHEMA_TEXT;
	for (int i = 0; i < 66; i++)
		assert_int_equal(schema_builder_field(&builder, &field), i);
	assert_int_equal(schema_builder_finish(&builder, &made.bytes, &made.size), 0);
	schema_builder_release(&builder);
	assert_int_equal(schema_view(made.bytes, made.size, &made.schema), 0);
	assert_int_equal(integer_fails(&made, 1, payload, sizeof(payload)), -ENODATA);
	assert_int_equal(integer_fails(&made, 64, payload, sizeof(payload)), -ENODATA);
	integer_is(&made, 65, payload, sizeof(payload), 0x42);
	assert_int_equal(integer_fails(&made, 65, payload, 15), -EBADMSG);
	free(made.bytes);
}

/* ---- arrays ---- */

static void elements_are_integers(void **state)
{
	static const struct schema_field fields[] = {
		{ .kind = SCHEMA_BYTES,
			.size = 6,
			.element_size = 2,
			.count = 3,
			.flags = SCHEMA_SIGNED },
		{ .kind = SCHEMA_BYTES, .size = 6, .element_size = 2, .count = 2 },
		{ .kind = SCHEMA_BYTES, .size = 6, .element_size = 3, .count = 2 },
		{ .kind = SCHEMA_BYTES, .place = SCHEMA_TAIL, .offset = 1, .element_size = 2 },
		{ .kind = SCHEMA_STRING, .size = 6, .element_size = 1, .count = 6 },
		{ .kind = SCHEMA_BYTES, .size = 6, .element_size = 0, .count = 0 },
	};
	static const uint8_t bytes[6] = { 1, 0, 0xff, 0xff, 3, 0x80 };
	uint64_t value = 0xdead;
	struct made made;

	(void)state;
	make(fields, 6, 0, &made);
#define ELEMENT(f, i)                                                                              \
	schema_read_element(&made.schema, &made.schema.fields[f], bytes, sizeof(bytes), i, &value)
	assert_int_equal(ELEMENT(0, 0), 0);
	assert_int_equal(value, 1);
	assert_int_equal(ELEMENT(0, 1), 0);
	assert_int_equal(value, UINT64_MAX);
	assert_int_equal(ELEMENT(0, 2), 0);
	assert_int_equal(value, 0xffffffffffff8003);
	assert_int_equal(ELEMENT(0, 3), -ERANGE);
	assert_int_equal(ELEMENT(0, SIZE_MAX), -ERANGE);
	/* The count, not the room, says how many there are. */
	assert_int_equal(ELEMENT(1, 1), 0);
	assert_int_equal(value, 0xffff);
	assert_int_equal(ELEMENT(1, 2), -ERANGE);
	assert_int_equal(ELEMENT(2, 0), -EINVAL);
	/* Five bytes hold two whole ones. */
	assert_int_equal(ELEMENT(3, 1), 0);
	assert_int_equal(value, 0x03ff);
	assert_int_equal(ELEMENT(3, 2), -ERANGE);
	assert_int_equal(ELEMENT(4, 0), -EINVAL);
	assert_int_equal(ELEMENT(5, 0), -EINVAL);
	assert_int_equal(
		schema_read_element(&made.schema, &made.schema.fields[0], bytes, 5, 0, &value),
		-EBADMSG);
#undef ELEMENT
	free(made.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_built_is_viewed),
		cmocka_unit_test(an_empty_schema_is_a_schema),
		cmocka_unit_test(fields_are_found_by_name),
		cmocka_unit_test(impossible_fields_are_not_built),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(a_schema_that_nobody_could_view_is_not_finished),
		cmocka_unit_test(spoiled_schemas_are_refused),
		cmocka_unit_test(size_must_be_exact_and_aligned),
		cmocka_unit_test(integers_have_width_and_sign),
		cmocka_unit_test(integers_stay_inside),
		cmocka_unit_test(fixed_strings_end_at_their_nul_or_end),
		cmocka_unit_test(located_data_is_found),
		cmocka_unit_test(a_word_of_zero_is_an_empty_string),
		cmocka_unit_test(a_string_that_could_not_be_fetched),
		cmocka_unit_test(located_data_stays_inside),
		cmocka_unit_test(old_words_have_no_length),
		cmocka_unit_test(tails_go_to_the_end),
		cmocka_unit_test(text_payloads_say_what_they_have),
		cmocka_unit_test(the_bitmap_has_a_word_per_64_fields),
		cmocka_unit_test(elements_are_integers),
	};

	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
