#include "router/text_print.h"

#include <stdlib.h>
#include <string.h>

/* ---- the format string ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

void text_print_skip_blanks(struct text_span *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool take(struct text_span *s, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0)
		return false;
	s->at += size;
	return true;
}

/* One character of a string constant; false at its closing quote or the text's end. */
static bool take_char(struct text_span *s, char *ret)
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

char *text_print_format(struct text_span *s)
{
	char *text = malloc((size_t)(s->end - s->at) + 1);
	size_t size = 0;

	while (text && (text_print_skip_blanks(s), take(s, "\""))) {
		while (take_char(s, &text[size]))
			size++;
		(void)take(s, "\"");
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
	if (ret->letter == 'p' && is_word(*at) && !is_digit(*at))
		ret->pointer = *at++;
	while (ret->pointer && is_word(*at))
		at++;
	return at;
}

/* ---- the arguments ---- */

static void skip_quoted(struct text_span *s)
{
	char quote = *s->at++;

	while (s->at < s->end && *s->at != quote)
		s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
	if (s->at < s->end)
		s->at++;
}

/* Moves to the first `stop` outside constants and brackets, or to the end. */
static void skip_to(struct text_span *s, char stop)
{
	unsigned int depth = 0;

	while (s->at < s->end && (depth || *s->at != stop)) {
		if (*s->at == '"' || *s->at == '\'') {
			skip_quoted(s);
			continue;
		}
		if (strchr("([{", *s->at))
			depth++;
		else if (strchr(")]}", *s->at) && depth-- == 0)
			return;
		s->at++;
	}
}

static struct text_span trim(struct text_span s)
{
	text_print_skip_blanks(&s);
	while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t' || s.end[-1] == '\n'))
		s.end--;
	return s;
}

/* Strips casts and brackets around the whole: "((unsigned long)(REC->fd))" is "REC->fd". */
static struct text_span strip(struct text_span s)
{
	for (;;) {
		struct text_span inner;

		s = trim(s);
		if (s.at == s.end || *s.at != '(')
			return s;
		inner = (struct text_span){ s.at + 1, s.end };
		skip_to(&inner, ')');
		if (inner.at >= s.end || *inner.at != ')')
			return s;
		if (trim((struct text_span){ inner.at + 1, s.end }).at >= s.end)
			s = (struct text_span){ s.at + 1, inner.at };
		else
			s.at = inner.at + 1;
	}
}

/* A field's name and perhaps [index] at s->at. Returns the binary schema's index, or -1. The
 * strings of an array are fields of their own there, with the index in the name. */
static int take_field(const struct schema *schema, struct text_span *s, int64_t *ret_element)
{
	char name[128];
	size_t size = 0, stem;
	int64_t element = 0;
	int field;

	while (s->at < s->end && is_word(*s->at) && size < sizeof(name) / 2)
		name[size++] = *s->at++;
	name[size] = '\0';
	*ret_element = -1;
	if (s->at == s->end || *s->at != '[')
		return schema_find(schema, name);
	stem = size;
	name[size++] = *s->at++;
	for (; s->at < s->end && is_digit(*s->at) && element < SCHEMA_FIELDS_MAX; s->at++) {
		name[size++] = *s->at;
		element = element * 10 + (*s->at - '0');
	}
	if (!take(s, "]"))
		return -1;
	memcpy(name + size, "]", 2);
	field = schema_find(schema, name);
	if (field >= 0)
		return field;
	name[stem] = '\0';
	*ret_element = element;
	return schema_find(schema, name);
}

static bool take_string_call(struct text_span *s)
{
	return take(s, "__get_str(") || take(s, "__get_rel_str(");
}

int text_print_field(const struct schema *schema, struct text_span argument, int64_t *ret_element,
	bool *ret_truth)
{
	struct text_span s = strip(argument);
	int field;

	*ret_truth = false;
	if (take_string_call(&s)) {
		text_print_skip_blanks(&s);
		field = take_field(schema, &s, ret_element);
		text_print_skip_blanks(&s);
		if (!take(&s, ")"))
			return -1;
	} else if (take(&s, "REC->")) {
		field = take_field(schema, &s, ret_element);
		text_print_skip_blanks(&s);
		*ret_truth = take(&s, "? \"true\" : \"false\"");
	} else {
		return -1;
	}
	text_print_skip_blanks(&s);
	return s.at == s.end ? field : -1;
}

bool text_print_argument(struct text_span *s, struct text_span *ret)
{
	text_print_skip_blanks(s);
	if (!take(s, ","))
		return false;
	ret->at = s->at;
	skip_to(s, ',');
	ret->end = s->at;
	return true;
}
