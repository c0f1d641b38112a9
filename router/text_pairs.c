#include "router/text_pairs.h"

#include "base/digit.h"

#include <string.h>

/* How many pairs a quoted string may seem to hold. A bound, so that time can't grow with the square of a
 * string that seems to hold nothing else. */
#define TRIES_MAX 64

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool is_opening(char c)
{
	return is_blank(c) || c == ',' || c == '(' || c == '{' || c == '[' || c == '|' || c == '\n';
}

/* Whether a pair's "name=" or "name: " begins at `at`; its value's beginning, or NULL. `$retval=`
 * is one. */
static const char *pair_at(const char *at, const char *end, struct text_piece *ret_name)
{
	const char *start = at;

	if (at < end && *at == '$')
		at++;
	while (at < end && is_name(*at))
		at++;
	if (at == start || at == end || is_digit(*start))
		return NULL;
	*ret_name = (struct text_piece){ start, (size_t)(at - start) };
	if (*at == '=')
		return end - at > 1 && at[1] == '=' ? NULL : at + 1;
	if (*at != ':' || at + 1 == end || !is_blank(at[1]))
		return NULL;
	while (at + 1 < end && is_blank(at[1]))
		at++;
	return at + 1;
}

/* Where the next pair begins after `at`, or the end. */
static const char *next_pair(const char *at, const char *end)
{
	struct text_piece name;

	for (; at < end; at++)
		if (is_opening(*at) && pair_at(at + 1, end, &name))
			return at;
	return end;
}

/* Without what only parts one pair from the next: blanks, commas, "==>". */
static const char *trim_end(const char *at, const char *end)
{
	static const char arrow[] = " ==>";

	for (;;) {
		while (end > at && (is_blank(end[-1]) || end[-1] == ',' || end[-1] == '\r'))
			end--;
		if ((size_t)(end - at) < sizeof(arrow) - 1 || memcmp(end - 4, arrow, sizeof(arrow) - 1) != 0)
			return end;
		end -= sizeof(arrow) - 1;
	}
}

/* The closing quote of the string that begins at `at`: the first that is the last thing before a pair, or
 * before the end. NULL: none. */
static const char *closing_quote(const char *at, const char *end)
{
	const char *limit = at;

	for (unsigned int tries = 0; tries < TRIES_MAX && limit < end; tries++) {
		const char *last;

		limit = next_pair(limit + 1, end);
		last = trim_end(at, limit);
		while (last > at + 1 && (last[-1] == ')' || last[-1] == '}'))
			last--;
		if (last > at + 1 && last[-1] == *at)
			return last - 1;
	}
	return NULL;
}

/* The bare value in [at, limit), without the bracket that closes a list of pairs. */
static struct text_piece bare_value(const char *at, const char *limit)
{
	const char *end = trim_end(at, limit);

	if (end > at && ((end[-1] == ')' && !memchr(at, '(', (size_t)(end - at))) ||
			(end[-1] == '}' && !memchr(at, '{', (size_t)(end - at)))))
		end--;
	return (struct text_piece){ at, (size_t)(end - at) };
}

/* The value of a pair. Returns where it ends. */
static const char *take_value(const char *at, const char *end, struct text_pair *ret)
{
	const char *close = at < end && (*at == '"' || *at == '\'') ? closing_quote(at, end) : NULL;

	ret->quoted = close != NULL;
	if (close)
		ret->value = (struct text_piece){ at + 1, (size_t)(close - at - 1) };
	else
		ret->value = bare_value(at, next_pair(at, end));
	return close ? close + 1 : ret->value.at + ret->value.size;
}

bool text_pairs_next(const char **at, const char *end, struct text_pair *ret)
{
	const char *start = *at;
	const char *value = pair_at(start, end, &ret->name);
	struct text_piece next;

	if (!value) {
		start = next_pair(start, end);
		if (start == end)
			return false;
		value = pair_at(start + 1, end, &ret->name);
	}
	/* "nvme0: qid: 2": what stands before the first pair may look like one without a value. */
	if (is_blank(value[-1]) && pair_at(value, end, &next))
		*at = take_value(value, value, ret);
	else
		*at = take_value(value, end, ret);
	return true;
}

/* ---- values of fields ---- */

static bool read_digits(const char *at, const char *end, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	if (at == end)
		return false;
	for (; at < end; at++) {
		unsigned int digit = digit_value(*at);

		if (digit >= base || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret = value;
	return true;
}

/* The number that the whole of [at, end) is, up to a blank or comma. In which base a bare one
 * stands the field's schema says: what the kernel prints in hex it printed without 0x for long. */
static bool read_number(const char *at, const char *end, bool hex, bool known, uint64_t *ret)
{
	const char *stop = at;
	uint64_t decimal;
	bool negative;

	while (stop < end && !is_blank(*stop) && *stop != ',')
		stop++;
	negative = at < stop && *at == '-';
	if (negative)
		at++;
	if (stop - at > 2 && at[0] == '0' && at[1] == 'x') {
		if (!read_digits(at + 2, stop, 16, ret))
			return false;
	} else {
		if (!read_digits(at, stop, hex ? 16 : 10, ret))
			return false;
		if (hex && known && *ret > 15 && read_digits(at, stop, 10, &decimal))
			return false;
	}
	if (negative)
		*ret = -*ret;
	return true;
}

/* A decimal number that would become a negative one: so a field that was taken for signed by another line is not. */
static bool is_too_large(const struct schema_field *field, const char *at, uint64_t value)
{
	return field->flags & SCHEMA_SIGNED && field->display == SCHEMA_DECIMAL && *at != '-' && value > INT64_MAX;
}

static void set_integer(struct text_payload *payload, uint32_t field, const struct text_pair *pair, bool known)
{
	const struct schema_field *f = &payload->schema->fields[field];
	const char *at = pair->value.at, *end = at + pair->value.size;
	bool hex = f->display == SCHEMA_HEX || (f->flags & SCHEMA_POINTER);
	uint64_t value;

	if (pair->value.size == 4 && memcmp(at, "true", 4) == 0)
		text_payload_integer(payload, field, 1);
	else if (pair->value.size == 5 && memcmp(at, "false", 5) == 0)
		text_payload_integer(payload, field, 0);
	else if (read_number(at, end, hex, known, &value) && (known || !is_too_large(f, at, value)))
		text_payload_integer(payload, field, value);
}

enum text_look text_pairs_look(const struct text_pair *pair)
{
	const char *at = pair->value.at, *end = at + pair->value.size;
	bool hex = pair->value.size > 2 && at[0] == '0' && at[1] == 'x';
	uint64_t value;

	if (pair->quoted || memchr(at, ' ', pair->value.size))
		return TEXT_LOOKS_STRING;
	if (!read_number(at, end, false, false, &value))
		return TEXT_LOOKS_STRING;
	if (hex)
		return TEXT_LOOKS_HEX;
	/* A negative number has its top bit set, any other must not. */
	return (*at == '-') == (value > INT64_MAX) || !value ? TEXT_LOOKS_DECIMAL : TEXT_LOOKS_STRING;
}

static bool is_fault(const struct text_pair *pair)
{
	return !pair->quoted && pair->value.size == 7 && memcmp(pair->value.at, "(fault)", 7) == 0;
}

static int field_of(const struct schema *schema, const struct text_piece *name)
{
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const char *known = schema_string(schema, schema->fields[i].name);

		if (strncmp(known, name->at, name->size) == 0 && !known[name->size])
			return (int)i;
	}
	return -1;
}

unsigned int text_pairs_encode(const struct text_piece *body, bool known, struct text_payload *payload,
	bool *ret_suspect)
{
	const char *at = body->at, *end = at + body->size;
	uint32_t last = payload->schema->header->field_count - 1;
	struct text_pair pair;
	unsigned int count = 0;

	*ret_suspect = false;
	while (text_pairs_next(&at, end, &pair)) {
		int field = field_of(payload->schema, &pair.name);

		if (field < 0 || (uint32_t)field == last || is_fault(&pair))
			continue;
		if (text_payload_has(payload, (uint32_t)field)) {
			*ret_suspect = true;
			continue;
		}
		if (payload->classes[field] == 's')
			text_payload_string(
				payload, (uint32_t)field, pair.value.at, pair.value.size);
		else
			set_integer(payload, (uint32_t)field, &pair, known);
		count += text_payload_has(payload, (uint32_t)field);
	}
	return count;
}
