/* An event's text by any format file. The input: a format file, a NUL, a body. */
#include "router/catalog.h"
#include "router/text_fields.h"
#include "tests/support/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void read_all(const struct schema *schema, const void *payload, size_t size)
{
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];
		const uint8_t *bytes;
		uint64_t value;
		size_t length;
		int r = schema_read_bytes(schema, field, payload, size, &bytes, &length);

		/* What is said to be there can be read. */
		require(r == 0 || r == -ENODATA);
		if (r == 0 && length)
			require(bytes >= (const uint8_t *)payload && bytes + length <= (const uint8_t *)payload + size);
		if (field->kind == SCHEMA_INTEGER)
			require(schema_read_integer(schema, field, payload, size, &value) == r);
		for (size_t e = 0; e < 4; e++)
			(void)schema_read_element(schema, field, payload, size, e, &value);
	}
}

static void encode(const struct schema *schema, const char *body, size_t body_size, size_t room)
{
	const struct text_piece piece = { body, body_size };
	const struct schema_field *text = &schema->fields[schema->header->field_count - 1];
	uint8_t *payload = aligned_alloc(8, (room + 8) & ~(size_t)7);
	const uint8_t *bytes;
	size_t size = 0, length;
	bool suspect;
	int r;

	require(payload != NULL);
	r = text_fields_encode(schema, &piece, payload, room, &size, &suspect);
	require(r == 0 || r == -EBADMSG || r == -EAGAIN || r == -ENOSPC);
	if (r != -ENOSPC) {
		require(size <= room);
		require(schema_read_bytes(schema, text, payload, size, &bytes, &length) == 0);
		require(length <= body_size && memcmp(bytes, body, length) == 0);
		read_all(schema, payload, size);
	}
	free(payload);
}

/* The body as a line of a log without format files, later ones like it. */
static void infer(const char *body, size_t size)
{
	const struct text_piece piece = { body, size };
	struct schema schema;
	size_t made_size;
	void *made;

	require(text_schema_infer(&piece, "", "event", &made, &made_size) == 0);
	require(schema_view(made, made_size, &schema) == 0);
	encode(&schema, body, size, schema.header->fixed_size + size);
	encode(&schema, body, size / 2, schema.header->fixed_size + size);
	free(made);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = size ? memchr(bytes, 0, size) : NULL;
	struct catalog *catalog = NULL;
	struct catalog_event *event;
	struct schema schema;
	const char *reason;
	void *made = NULL;
	size_t made_size;

	if (!end)
		return;
	infer((const char *)end + 1, size - (size_t)(end + 1 - bytes));
	require(catalog_create(false, 8, &catalog) == 0);
	if (catalog_add(catalog, "system", (const char *)bytes, (size_t)(end - bytes), &event, &reason) == 0) {
		int r = text_schema_make(&event->schema, "system", event->name, &made, &made_size);

		require(r == 0 || r == -E2BIG);
		if (r == 0) {
			size_t body_size = size - (size_t)(end + 1 - bytes);

			require(schema_view(made, made_size, &schema) == 0);
			(void)text_schema_is_guarded(&schema);
			encode(&schema, (const char *)end + 1, body_size, schema.header->fixed_size + body_size + 64);
			encode(&schema, (const char *)end + 1, body_size, 65536);
			encode(&schema, (const char *)end + 1, body_size, schema.header->fixed_size);
		}
		free(made);
	}
	catalog_release(catalog);
}
