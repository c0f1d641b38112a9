#include "router/text_payload.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

static void set_present(struct text_payload *payload, uint32_t field)
{
	uint64_t word;
	uint8_t *at = payload->bytes + (size_t)(field / 64) * 8;

	memcpy(&word, at, sizeof(word));
	word |= UINT64_C(1) << (field % 64);
	memcpy(at, &word, sizeof(word));
}

bool text_payload_has(const struct text_payload *payload, uint32_t field)
{
	uint64_t word;

	memcpy(&word, payload->bytes + (size_t)(field / 64) * 8, sizeof(word));
	return word >> (field % 64) & 1;
}

static void set_location(struct text_payload *payload, uint32_t field, size_t offset, size_t size)
{
	uint32_t word = (uint32_t)offset | (uint32_t)size << 16;

	memcpy(payload->bytes + payload->schema->fields[field].offset, &word, sizeof(word));
}

/* The offset that a field's word holds, 0: none yet. */
static uint32_t location_of(const struct text_payload *payload, uint32_t field)
{
	uint32_t word;

	memcpy(&word, payload->bytes + payload->schema->fields[field].offset, sizeof(word));
	return word & 0xffff;
}

static bool is_class(const struct text_payload *payload, uint32_t field, const char *classes)
{
	return field < payload->schema->header->field_count &&
	       strchr(classes, payload->classes[field]);
}

void text_payload_reset(struct text_payload *payload)
{
	uint32_t last = payload->schema->header->field_count - 1;

	memset(payload->bytes, 0, payload->text_at);
	payload->error = 0;
	payload->used = payload->text_at + payload->text_size;
	set_location(payload, last, payload->text_at, payload->text_size);
	set_present(payload, last);
}

int text_payload_begin(struct text_payload *payload, const struct schema *schema,
	const char *classes, const struct text_piece *body, void *bytes, size_t room)
{
	size_t fixed = schema->header->fixed_size;

	if (room > TEXT_PAYLOAD_REACH)
		room = TEXT_PAYLOAD_REACH;
	if (fixed > room || body->size > room - fixed)
		return -ENOSPC;
	*payload = (struct text_payload){
		.schema = schema,
		.classes = classes,
		.body = body->at,
		.bytes = bytes,
		.room = room,
		.text_at = fixed,
		.text_size = body->size,
	};
	if (body->size)
		memcpy(payload->bytes + fixed, body->at, body->size);
	text_payload_reset(payload);
	return 0;
}

static uint64_t narrowed(const struct schema_field *field, uint32_t width, uint64_t value)
{
	unsigned int unused;

	if (width == 0 || width >= 8)
		return value;
	unused = 64 - width * 8;
	value <<= unused;
	if (field->flags & SCHEMA_SIGNED)
		return (uint64_t)((int64_t)value >> unused);
	return value >> unused;
}

void text_payload_integer(struct text_payload *payload, uint32_t field, uint64_t value)
{
	const struct schema_field *f = &payload->schema->fields[field];

	if (!is_class(payload, field, "1248"))
		return;
	value = narrowed(f, (uint32_t)(payload->classes[field] - '0'), value);
	memcpy(payload->bytes + f->offset, &value, sizeof(value));
	set_present(payload, field);
}

/* Room for an array behind what is used already; its offset, or 0. */
static size_t claim(struct text_payload *payload, size_t size, size_t align)
{
	size_t offset = align_up(payload->used, align);

	if (offset > payload->room || size > payload->room - offset) {
		payload->error = -ENOSPC;
		return 0;
	}
	memset(payload->bytes + payload->used, 0, offset - payload->used);
	payload->used = offset + size;
	return offset;
}

void text_payload_element(struct text_payload *payload, uint32_t field, uint32_t element,
	uint32_t width, uint64_t value)
{
	const struct schema_field *f = &payload->schema->fields[field];
	size_t offset;

	if (!is_class(payload, field, "n") || element >= f->count)
		return;
	offset = location_of(payload, field);
	if (!offset) {
		offset = claim(payload, (size_t)f->count * 8, 8);
		if (!offset)
			return;
		memset(payload->bytes + offset, 0, (size_t)f->count * 8);
		set_location(payload, field, offset, (size_t)f->count * 8);
	}
	value = narrowed(f, width, value);
	memcpy(payload->bytes + offset + (size_t)element * 8, &value, sizeof(value));
	set_present(payload, field);
}

void text_payload_string(struct text_payload *payload, uint32_t field, const char *at, size_t size)
{
	if (!is_class(payload, field, "s"))
		return;
	set_location(payload, field, payload->text_at + (size_t)(at - payload->body), size);
	set_present(payload, field);
}
