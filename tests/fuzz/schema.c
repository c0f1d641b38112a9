/* Any bytes as a schema, and then others as a payload that it describes. The first two bytes are
 * the schema's size, little-endian; the payload is the rest. */
#include "shm/schema.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* A block of exactly this size, so that the sanitizer sees each step outside. */
static uint8_t *block(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, bytes, size);
	return copy;
}

static void read_field(const struct schema *schema, const struct schema_field *field,
	const uint8_t *payload, size_t size)
{
	const uint8_t *bytes;
	uint64_t value;
	size_t length;

	(void)schema_read_integer(schema, field, payload, size, &value);
	for (size_t i = 0; i < 4; i++)
		(void)schema_read_element(schema, field, payload, size, i, &value);
	(void)schema_read_element(schema, field, payload, size, SIZE_MAX, &value);
	if (schema_read_bytes(schema, field, payload, size, &bytes, &length) < 0)
		return;
	if (bytes < payload || bytes > payload + size || length > (size_t)(payload + size - bytes))
		abort();
}

static void use(const struct schema *schema, const uint8_t *payload, size_t size)
{
	const struct schema_header *header = schema->header;

	(void)strlen(schema_string(schema, header->system));
	(void)strlen(schema_string(schema, header->event));
	(void)strlen(schema_string(schema, header->print_format));
	for (uint32_t i = 0; i < header->field_count; i++) {
		const char *name = schema_string(schema, schema->fields[i].name);
		int found = schema_find(schema, name);

		if (found < 0 ||
			strcmp(schema_string(schema, schema->fields[found].name), name) != 0)
			abort();
		(void)strlen(schema_string(schema, schema->fields[i].type));
		read_field(schema, &schema->fields[i], payload, size);
	}
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct schema schema;
	uint8_t *view, *payload;
	size_t view_size;

	if (size < 2)
		return;
	view_size = bytes[0] | (size_t)bytes[1] << 8;
	if (view_size > size - 2)
		view_size = size - 2;
	view = block(bytes + 2, view_size);
	payload = block(bytes + 2 + view_size, size - 2 - view_size);
	if (schema_view(view, view_size, &schema) == 0)
		use(&schema, payload, size - 2 - view_size);
	free(payload);
	free(view);
}
