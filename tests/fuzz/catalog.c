/* Any bytes as a format file, and then, where that made a schema, as an event of it. The first byte picks the
 * machine: bit 0 big-endian, bit 1 a long of 4 bytes. libtraceevent's printing is left out: it can't take
 * any bytes, which is why nothing on the data path calls it. */
#include "router/catalog.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void read_field(const struct schema *schema, const struct schema_field *field, const uint8_t *data, size_t size)
{
	const uint8_t *bytes;
	uint64_t value;
	size_t length;

	(void)schema_read_integer(schema, field, data, size, &value);
	(void)schema_read_element(schema, field, data, size, 1, &value);
	if (schema_read_bytes(schema, field, data, size, &bytes, &length))
		return;
	if (bytes < data || bytes > data + size || length > (size_t)(data + size - bytes))
		abort();
}

static void check_event(const struct catalog *catalog, const struct catalog_event *event, const uint8_t *data, size_t size)
{
	const struct schema *schema = &event->schema;

	if (catalog_by_type(catalog, event->type) != event || catalog_by_name(catalog, "sys", event->name) != event)
		abort();
	if (strlen(schema_string(schema, schema->header->event)) == 0 || !schema->header->field_count)
		abort();
	for (uint32_t i = 0; i < schema->header->field_count; i++)
		read_field(schema, &schema->fields[i], data, size);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct catalog_event *event;
	struct catalog *catalog;
	const char *reason = NULL;
	int r;

	if (!size || catalog_create(bytes[0] & 1, bytes[0] & 2 ? 4 : 8, &catalog))
		return;
	r = catalog_add(catalog, "sys", (const char *)bytes + 1, size - 1, &event, &reason);
	if (!r)
		check_event(catalog, event, bytes, size);
	else if (!reason)
		abort();
	catalog_release(catalog);
}
