/* Any bytes as JSON: printable UTF-8 that leads back to the very same bytes. As text: one printable line. */
#include "tests/support/fuzz.h"

#include "consumers/cli/escape.h"

#include <stdlib.h>
#include <string.h>

static unsigned int hex(const char *digits)
{
	char text[5] = { digits[0], digits[1], digits[2], digits[3], '\0' };
	char *end;
	unsigned long value = strtoul(text, &end, 16);

	if (*end)
		abort();
	return (unsigned int)value;
}

/* Writes a character of the basic plane as UTF-8, or the byte that it stands for. Returns how many bytes. */
static size_t decoded(unsigned int code, uint8_t *out)
{
	if (code >= 0xef80 && code <= 0xefff) {
		out[0] = (uint8_t)(code - 0xef00);
		return 1;
	}
	if (code < 0x80) {
		out[0] = (uint8_t)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | code >> 6);
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		return 2;
	}
	out[0] = (uint8_t)(0xe0 | code >> 12);
	out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
	out[2] = (uint8_t)(0x80 | (code & 0x3f));
	return 3;
}

static size_t unescape(const char *from, uint8_t *out)
{
	switch (*from) {
	case 'n':
		*out = '\n';
		return 1;
	case 'r':
		*out = '\r';
		return 1;
	case 't':
		*out = '\t';
		return 1;
	case '"':
	case '\\':
		*out = (uint8_t)*from;
		return 1;
	case 'u':
		return decoded(hex(from + 1), out);
	default:
		abort();
	}
}

static void check_back(const struct writer *json, const uint8_t *bytes, size_t size)
{
	/* A parser of JSON sees characters; the three bytes of an unescaped one are copied as they are. */
	uint8_t *back = malloc(json->used + 1);
	size_t n = 0;

	if (!back)
		abort();
	for (size_t i = 0; i < json->used; i++) {
		if (json->buffer[i] == '"')
			abort();
		if (json->buffer[i] != '\\') {
			back[n++] = (uint8_t)json->buffer[i];
			continue;
		}
		n += unescape(json->buffer + i + 1, back + n);
		i += json->buffer[i + 1] == 'u' ? 5 : 1;
	}
	if (n != size || (size > 0 && memcmp(back, bytes, size) != 0))
		abort();
	free(back);
}

static void check_printable(const struct writer *writer)
{
	const uint8_t *bytes = (const uint8_t *)writer->buffer;

	for (size_t i = 0; i < writer->used;) {
		uint32_t code;
		unsigned int length = escape_character(bytes + i, writer->used - i, &code);

		if (length == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0))
			abort();
		i += length;
	}
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct writer writer;

	if (writer_open_memory(&writer) < 0)
		return;
	/* A NUL ends it for the checks above, behind what is counted. */
	escape_json(&writer, bytes, size);
	*writer_room(&writer, 1) = '\0';
	check_printable(&writer);
	check_back(&writer, bytes, size);
	writer.used = 0;
	escape_text(&writer, bytes, size);
	check_printable(&writer);
	writer.used = 0;
	(void)escape_plain(&writer, bytes, size);
	check_printable(&writer);
	writer_close(&writer);
}
