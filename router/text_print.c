#include "router/text_print.h"

#include <stdlib.h>
#include <string.h>

/* ---- the format string ---- */

/* One character of a string constant; false at its closing quote or the text's end. */
static bool take_char(struct span *s, char *ret)
{
	static const char escapes[] = "n\nt\tr\r";

	if (s->at == s->end || *s->at == '"')
		return false;
	*ret = *s->at++;
	if (*ret == '\\' && s->at < s->end) {
		*ret = *s->at++;
		for (size_t i = 0; escapes[i]; i += 2) {
			if (escapes[i] == *ret) {
				*ret = escapes[i + 1];
				break;
			}
		}
	}
	return true;
}

char *text_print_format(struct span *s)
{
	char *text = malloc((size_t)(s->end - s->at) + 1);
	size_t size = 0;

	while (text && (span_skip_blanks(s), span_take(s, "\""))) {
		while (take_char(s, &text[size]))
			size++;
		(void)span_take(s, "\"");
	}
	if (text)
		text[size] = '\0';
	return text;
}

const char *text_print_conversion(const char *at, struct text_conversion *ret)
{
	*ret = (struct text_conversion){ 0 };
	for (; *at && strchr("-+ #0123456789.*hlLqjzt", *at); at++) {
		ret->stars += *at == '*';
		/* A width of numbers only adds blanks or noughts in front. */
		ret->padded |= *at == '*' || *at == '.' || *at == '-' || (*at >= '1' && *at <= '9');
	}
	if (*at)
		ret->letter = *at++;
	if (ret->letter == 'p' && span_is_word(*at) && !span_is_digit(*at))
		ret->pointer = *at++;
	while (ret->pointer && span_is_word(*at))
		at++;
	return at;
}

/* ---- the arguments ---- */

/* Strips casts and brackets around the whole: "((unsigned long)(REC->fd))" is "REC->fd". */
static struct span strip(struct span s)
{
	for (;;) {
		struct span inner;

		s = span_trim(s);
		if (s.at == s.end || *s.at != '(')
			return s;
		inner = (struct span){ s.at + 1, s.end };
		span_skip_to(&inner, ')');
		if (inner.at >= s.end || *inner.at != ')')
			return s;
		if (span_trim((struct span){ inner.at + 1, s.end }).at >= s.end)
			s = (struct span){ s.at + 1, inner.at };
		else
			s.at = inner.at + 1;
	}
}

/* A field's name and perhaps [index] at s->at. Returns the binary schema's index, or -1. The
 * strings of an array are fields of their own there, with the index in the name. */
static int take_field(const struct schema *schema, struct span *s, int64_t *ret_element)
{
	char name[128];
	size_t size = 0, stem;
	int64_t element = 0;
	int field;

	while (s->at < s->end && span_is_word(*s->at) && size < sizeof(name) / 2)
		name[size++] = *s->at++;
	name[size] = '\0';
	*ret_element = -1;
	if (s->at == s->end || *s->at != '[')
		return schema_find(schema, name);
	stem = size;
	name[size++] = *s->at++;
	for (; s->at < s->end && span_is_digit(*s->at) && element < SCHEMA_FIELDS_MAX; s->at++) {
		name[size++] = *s->at;
		element = element * 10 + (*s->at - '0');
	}
	if (!span_take(s, "]"))
		return -1;
	memcpy(name + size, "]", 2);
	field = schema_find(schema, name);
	if (field >= 0)
		return field;
	name[stem] = '\0';
	*ret_element = element;
	return schema_find(schema, name);
}

static bool take_string_call(struct span *s)
{
	return span_take(s, "__get_str(") || span_take(s, "__get_rel_str(");
}

int text_print_field(const struct schema *schema, struct span argument, int64_t *ret_element,
	bool *ret_truth)
{
	struct span s = strip(argument);
	int field;

	*ret_truth = false;
	if (take_string_call(&s)) {
		span_skip_blanks(&s);
		field = take_field(schema, &s, ret_element);
		span_skip_blanks(&s);
		if (!span_take(&s, ")"))
			return -1;
	} else if (span_take(&s, "REC->")) {
		field = take_field(schema, &s, ret_element);
		span_skip_blanks(&s);
		*ret_truth = span_take(&s, "? \"true\" : \"false\"");
	} else {
		return -1;
	}
	span_skip_blanks(&s);
	return s.at == s.end ? field : -1;
}
