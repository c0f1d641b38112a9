#include "consumers/cli/escape.h"

#include <stdbool.h>
#include <string.h>

/* The private range that stands for single bytes, 0xef80 for 0x80 to 0xefff for 0xff. */
#define ESCAPE_BYTES_BASE  0xef00U
#define ESCAPE_BYTES_FIRST 0xef80U
#define ESCAPE_BYTES_LAST  0xefffU

enum escape_class {
	ESCAPE_WORD = 0,    /* printable ASCII, as it is everywhere */
	ESCAPE_BLANK = 1,   /* blank and '=': as they are, but text puts quotes around */
	ESCAPE_QUOTE = 2,   /* '"' and '\\': a backslash before them */
	ESCAPE_CONTROL = 3,
	ESCAPE_WIDE = 4,    /* 0x80 and above */
};

static const uint8_t escape_classes[256] = {
	[0x00 ... 0x1f] = ESCAPE_CONTROL,
	[0x7f] = ESCAPE_CONTROL,
	[' '] = ESCAPE_BLANK,
	['='] = ESCAPE_BLANK,
	['"'] = ESCAPE_QUOTE,
	['\\'] = ESCAPE_QUOTE,
	[0x80 ... 0xff] = ESCAPE_WIDE,
};

unsigned int escape_character(const uint8_t *bytes, size_t size, uint32_t *ret_code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int length;
	uint32_t code;

	if (size == 0)
		return 0;
	if (bytes[0] < 0x80)
		length = 1;
	else if ((bytes[0] & 0xe0) == 0xc0)
		length = 2;
	else if ((bytes[0] & 0xf0) == 0xe0)
		length = 3;
	else if ((bytes[0] & 0xf8) == 0xf0)
		length = 4;
	else
		return 0;
	if (size < length)
		return 0;
	code = length == 1 ? bytes[0] : bytes[0] & (0x7fU >> length);
	for (unsigned int i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	/* Overlong forms, surrogates and what lies past Unicode's end are no characters. */
	if (code < least[length] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff)
		return 0;
	*ret_code = code;
	return length;
}

static bool escape_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	if (code >= 0x2028 && code <= 0x202e)
		return false;
	return code != 0x200e && code != 0x200f && code != 0x61c && !(code >= 0x2066 && code <= 0x2069) &&
	       code != 0xfeff;
}

/* How many of the first bytes need nothing done, up to `size`. */
static size_t escape_run(const uint8_t *bytes, size_t size, enum escape_class up_to)
{
	size_t n = 0;

	while (n < size && escape_classes[bytes[n]] <= up_to)
		n++;
	return n;
}

static void escape_json_code(struct writer *writer, uint32_t code)
{
	char *p = writer_room(writer, 6);

	memcpy(p, "\\u", 2);
	for (int i = 0; i < 4; i++)
		p[2 + i] = "0123456789abcdef"[code >> (12 - 4 * i) & 0xf];
	writer_done(writer, p + 6);
}

static char escape_short(uint8_t byte)
{
	switch (byte) {
	case '\n':
		return 'n';
	case '\t':
		return 't';
	case '\r':
		return 'r';
	case '"':
	case '\\':
		return (char)byte;
	default:
		return 0;
	}
}

static bool escape_backslash(struct writer *writer, uint8_t byte)
{
	char c = escape_short(byte);
	char *p;

	if (!c)
		return false;
	p = writer_room(writer, 2);
	p[0] = '\\';
	p[1] = c;
	writer_done(writer, p + 2);
	return true;
}

/* One character, or one byte where there is none. Returns how many bytes it took. */
static size_t escape_json_one(struct writer *writer, const uint8_t *bytes, size_t size)
{
	uint32_t code;
	unsigned int length = escape_character(bytes, size, &code);

	/* Of a real character from the private range only the first byte is taken; the other two are no
	 * character by themselves and come here next. */
	if (length == 0 || (code >= ESCAPE_BYTES_FIRST && code <= ESCAPE_BYTES_LAST)) {
		escape_json_code(writer, ESCAPE_BYTES_BASE + bytes[0]);
		return 1;
	}
	if (length == 1 && escape_backslash(writer, bytes[0]))
		return 1;
	if (escape_printable(code))
		writer_bytes(writer, bytes, length);
	else
		escape_json_code(writer, code);
	return length;
}

void escape_json(struct writer *writer, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	for (;;) {
		size_t n = escape_run(from, size, ESCAPE_BLANK);

		writer_bytes(writer, from, n);
		from += n;
		size -= n;
		if (size == 0)
			return;
		n = escape_json_one(writer, from, size);
		from += n;
		size -= n;
	}
}

static void escape_hex(struct writer *writer, uint8_t byte)
{
	char *p = writer_room(writer, 4);

	p[0] = '\\';
	p[1] = 'x';
	p[2] = "0123456789abcdef"[byte >> 4];
	p[3] = "0123456789abcdef"[byte & 0xf];
	writer_done(writer, p + 4);
}

static size_t escape_text_one(struct writer *writer, const uint8_t *bytes, size_t size)
{
	uint32_t code;
	unsigned int length = escape_character(bytes, size, &code);

	if (length == 1 && escape_backslash(writer, bytes[0]))
		return 1;
	if (length > 0 && escape_printable(code)) {
		writer_bytes(writer, bytes, length);
		return length;
	}
	if (length == 0)
		length = 1;
	for (unsigned int i = 0; i < length; i++)
		escape_hex(writer, bytes[i]);
	return length;
}

/* Whether text needs no quotes: one word, nothing to escape. */
static bool escape_is_word(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at < size) {
		uint32_t code;
		unsigned int length;

		at += escape_run(bytes + at, size - at, ESCAPE_WORD);
		if (at == size)
			break;
		if (escape_classes[bytes[at]] != ESCAPE_WIDE)
			return false;
		length = escape_character(bytes + at, size - at, &code);
		if (length == 0 || !escape_printable(code))
			return false;
		at += length;
	}
	return size > 0;
}

void escape_text(struct writer *writer, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	size_t n;

	if (escape_is_word(from, size)) {
		writer_bytes(writer, from, size);
		return;
	}
	writer_char(writer, '"');
	while (size > 0) {
		n = escape_run(from, size, ESCAPE_BLANK);
		writer_bytes(writer, from, n);
		from += n;
		size -= n;
		if (size == 0)
			break;
		n = escape_text_one(writer, from, size);
		from += n;
		size -= n;
	}
	writer_char(writer, '"');
}

size_t escape_plain(struct writer *writer, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	size_t columns = 0;

	while (size > 0) {
		uint32_t code;
		unsigned int length = escape_character(from, size, &code);

		if (length > 0 && escape_printable(code)) {
			writer_bytes(writer, from, length);
			columns++;
		} else {
			length = length ? length : 1;
			for (unsigned int i = 0; i < length; i++)
				escape_hex(writer, from[i]);
			columns += 4UL * length;
		}
		from += length;
		size -= length;
	}
	return columns;
}
