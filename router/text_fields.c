#include "router/text_fields.h"

#include "router/text_match.h"
#include "router/text_pairs.h"
#include "router/text_payload.h"

#include <errno.h>
#include <string.h>

int text_fields_encode(const struct schema *schema, const struct text_piece *body, void *payload,
	size_t room, size_t *ret_size, bool *ret_suspect)
{
	const char *classes = schema_string(schema, schema->header->print_format);
	uint32_t count = schema->header->field_count;
	enum text_match match = TEXT_MATCH_NONE;
	struct text_payload p;
	bool suspect = false;
	int r;

	if (!(schema->header->flags & SCHEMA_TEXT) || !count || strlen(classes) < count)
		return -EINVAL;
	r = text_payload_begin(&p, schema, classes, body, payload, room);
	if (r)
		return r;
	if (classes[count] == ' ') {
		match = text_match(classes + count + 1, body, &p);
		suspect = match == TEXT_MATCH_SEVERAL;
	}
	if (match < TEXT_MATCH_ONE) {
		text_payload_reset(&p);
		if (match == TEXT_MATCH_OPEN)
			r = -EAGAIN;
		else if (count > 1 && !text_pairs_encode(body, classes[count] == ' ', &p, &suspect))
			r = -EBADMSG;
	}
	if (p.error)
		return p.error;
	*ret_size = p.used;
	*ret_suspect = suspect;
	return r;
}
