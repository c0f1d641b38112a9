/* The payload of one event of a text source, as it is filled in. Layout: see router/text_fields.h. Pure. */
#ifndef TRACEFAN_ROUTER_TEXT_PAYLOAD_H
#define TRACEFAN_ROUTER_TEXT_PAYLOAD_H

#include "router/text.h"
#include "shm/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets and lengths of strings have 16 bits. */
#define TEXT_PAYLOAD_REACH 65535U

struct text_payload {
	const struct schema *schema;
	const char *classes; /* one character per field: see router/text_template.h */
	const char *body;    /* the text, whose copy in the payload is what strings point into */
	uint8_t *bytes;
	size_t room, text_at, text_size, used;
	int error; /* -ENOSPC: an array found no room */
};

/* Writes the empty bitmap, the words and the text. Returns 0 or -ENOSPC. */
int text_payload_begin(struct text_payload *payload, const struct schema *schema, const char *classes,
	const struct text_piece *body, void *bytes, size_t room);

/* Forgets every field but the text. */
void text_payload_reset(struct text_payload *payload);

/* Sets an integer: what the kernel's own has no room for is cut off, and the sign, for a signed field, is
 * taken from there. A field of another kind is left alone, as in all of these. `width` of an element: its
 * bytes in the kernel. */
void text_payload_integer(struct text_payload *payload, uint32_t field, uint64_t value);
void text_payload_element(struct text_payload *payload, uint32_t field, uint32_t element, uint32_t width,
	uint64_t value);
/* `at` lies in the body. */
void text_payload_string(struct text_payload *payload, uint32_t field, const char *at, size_t size);
bool text_payload_has(const struct text_payload *payload, uint32_t field);

#endif
