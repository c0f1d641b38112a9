/* The fields of a payload as a line of text: "a=1 b=\"x\" c=- d=1,2," where '-' is a field that isn't there.
 * Common and text fields are left out. For comparison in tests. */
#ifndef TRACEFAN_TESTS_SUPPORT_TEXT_SHOW_H
#define TRACEFAN_TESTS_SUPPORT_TEXT_SHOW_H

#include "shm/schema.h"

#include <errno.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text_show {
	char text[16384];
	size_t size;
};

__attribute__((format(printf, 2, 3))) static inline void text_show_add(struct text_show *show, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(show->text + show->size, sizeof(show->text) - show->size, format, arguments);
	va_end(arguments);
	assert(size >= 0 && (size_t)size < sizeof(show->text) - show->size);
	show->size += (size_t)size;
}

static inline void text_show_value(struct text_show *show, const struct schema *schema,
	const struct schema_field *field, const void *payload, size_t size)
{
	const uint8_t *bytes;
	size_t length;
	uint64_t value;
	int r = schema_read_bytes(schema, field, payload, size, &bytes, &length);

	if (r) {
		if (r == -ENODATA)
			text_show_add(show, "-");
		else
			text_show_add(show, "!%d", r);
	} else if (field->kind == SCHEMA_STRING) {
		text_show_add(show, "\"");
		for (size_t i = 0; i < length; i++)
			if (bytes[i] >= ' ' && bytes[i] < 127)
				text_show_add(show, "%c", bytes[i]);
			else
				text_show_add(show, "\\x%02x", bytes[i]);
		text_show_add(show, "\"");
	} else if (field->kind == SCHEMA_INTEGER) {
		r = schema_read_integer(schema, field, payload, size, &value);
		if (r)
			text_show_add(show, "!%d", r);
		else if (field->flags & SCHEMA_SIGNED)
			text_show_add(show, "%" PRId64, (int64_t)value);
		else
			text_show_add(show, "%" PRIu64, value);
	} else {
		for (size_t i = 0; schema_read_element(schema, field, payload, size, i, &value) == 0; i++)
			text_show_add(show, "%" PRIx64 ",", value);
	}
}

static inline const char *text_show(struct text_show *show, const struct schema *schema, const void *payload,
	size_t size)
{
	show->size = 0;
	show->text[0] = '\0';
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];

		if (field->flags & SCHEMA_COMMON)
			continue;
		if ((schema->header->flags & SCHEMA_TEXT) && i + 1 == schema->header->field_count)
			continue;
		text_show_add(show, "%s%s=", show->size ? " " : "", schema_string(schema, field->name));
		text_show_value(show, schema, field, payload, size);
	}
	return show->text;
}

#endif
