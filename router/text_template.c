#include "router/text_template.h"

#include "base/checked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More conversions than any event of the kernel has; a probe has at most 128 arguments. */
#define CONVERSIONS_MAX 512

struct span {
	const char *at, *end;
};

/* One conversion of the kernel's format string. */
struct conversion {
	char letter;
	char pointer; /* the letter behind %p, 0: none */
	bool padded;  /* a width or a precision is given */
	unsigned int stars;
};

/* The template as it grows. */
struct writer {
	const struct schema *binary;
	const int32_t *map;
	char *text;
	size_t size, room;
	size_t last;   /* where the last conversion begins */
	bool adjacent; /* nothing was written since */
	int error;     /* -ENOMEM, or -EINVAL: not to be understood */
	uint32_t count;
};

static void put(struct writer *w, const char *bytes, size_t size)
{
	if (w->error)
		return;
	if (w->size + size + 1 > w->room) {
		size_t room = (w->size + size + 1) * 2;
		char *text = realloc(w->text, room);

		if (!text) {
			w->error = -ENOMEM;
			return;
		}
		w->text = text;
		w->room = room;
	}
	memcpy(w->text + w->size, bytes, size);
	w->size += size;
	w->text[w->size] = '\0';
}

static void put_literal(struct writer *w, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(w, bytes[i] == '%' ? "%%" : &bytes[i], bytes[i] == '%' ? 2 : 1);
	if (size)
		w->adjacent = false;
}

static void put_string(struct writer *w, const char *text)
{
	put_literal(w, text, strlen(text));
}

/* Takes `text` off the template's end if it is what was written last. */
static bool take_back(struct writer *w, const char *text)
{
	size_t size = strlen(text);
	size_t least = w->count ? w->last : 0;

	if (w->adjacent || w->size < least + size ||
		memcmp(w->text + w->size - size, text, size) != 0)
		return false;
	w->size -= size;
	w->text[w->size] = '\0';
	return true;
}

/* Two conversions side by side can't be told apart: both become text of no field. */
static void put_conversion(
	struct writer *w, char letter, uint32_t field, uint32_t number, int64_t element)
{
	char text[64];
	int size;

	if (w->adjacent && w->count && !w->error) {
		w->size = w->last;
		letter = 'w';
	}
	if (letter == 'w')
		size = snprintf(text, sizeof(text), "%%w;");
	else if (element < 0)
		size = snprintf(text, sizeof(text), "%%%c%u/%u;", letter, field, number);
	else
		size = snprintf(text, sizeof(text), "%%%c%u/%u.%u;", letter, field, number,
			(uint32_t)element);
	if (w->count++ == CONVERSIONS_MAX)
		w->error = w->error ? w->error : -EINVAL;
	w->last = w->size;
	put(w, text, (size_t)size);
	w->adjacent = true;
}

/* ---- the format string ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static void skip_blanks(struct span *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool take(struct span *s, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0)
		return false;
	s->at += size;
	return true;
}

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

/* Joins the constants at s->at, "..." "...", into one text of the caller's to free. */
static char *take_format(struct span *s)
{
	char *text = malloc((size_t)(s->end - s->at) + 1);
	size_t size = 0;

	while (text && (skip_blanks(s), take(s, "\""))) {
		while (take_char(s, &text[size]))
			size++;
		(void)take(s, "\"");
	}
	if (text)
		text[size] = '\0';
	return text;
}

/* Reads what follows a '%' and returns where the text goes on. */
static const char *take_conversion(const char *at, struct conversion *ret)
{
	*ret = (struct conversion){ 0 };
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

static void skip_quoted(struct span *s)
{
	char quote = *s->at++;

	while (s->at < s->end && *s->at != quote)
		s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
	if (s->at < s->end)
		s->at++;
}

/* Moves to the first `stop` outside constants and brackets, or to the end. */
static void skip_to(struct span *s, char stop)
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

static struct span trim(struct span s)
{
	skip_blanks(&s);
	while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t' || s.end[-1] == '\n'))
		s.end--;
	return s;
}

/* Strips casts and brackets around the whole: "((unsigned long)(REC->fd))" is "REC->fd". */
static struct span strip(struct span s)
{
	for (;;) {
		struct span inner;

		s = trim(s);
		if (s.at == s.end || *s.at != '(')
			return s;
		inner = (struct span){ s.at + 1, s.end };
		skip_to(&inner, ')');
		if (inner.at >= s.end || *inner.at != ')')
			return s;
		if (trim((struct span){ inner.at + 1, s.end }).at >= s.end)
			s = (struct span){ s.at + 1, inner.at };
		else
			s.at = inner.at + 1;
	}
}

/* A field's name and perhaps [index] at s->at. Returns the binary schema's index, or -1. The
 * strings of an array are fields of their own there, with the index in the name. */
static int take_field(const struct writer *w, struct span *s, int64_t *ret_element)
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
		return schema_find(w->binary, name);
	stem = size;
	name[size++] = *s->at++;
	for (; s->at < s->end && is_digit(*s->at) && element < SCHEMA_FIELDS_MAX; s->at++) {
		name[size++] = *s->at;
		element = element * 10 + (*s->at - '0');
	}
	if (!take(s, "]"))
		return -1;
	memcpy(name + size, "]", 2);
	field = schema_find(w->binary, name);
	if (field >= 0)
		return field;
	name[stem] = '\0';
	*ret_element = element;
	return schema_find(w->binary, name);
}

static bool take_string_call(struct span *s)
{
	return take(s, "__get_str(") || take(s, "__get_rel_str(");
}

/* What an argument shows, when it is a field and nothing else: its index, else -1. */
static int argument_field(
	const struct writer *w, struct span argument, int64_t *ret_element, bool *ret_truth)
{
	struct span s = strip(argument);
	int field;

	*ret_truth = false;
	if (take_string_call(&s)) {
		skip_blanks(&s);
		field = take_field(w, &s, ret_element);
		skip_blanks(&s);
		if (!take(&s, ")"))
			return -1;
	} else if (take(&s, "REC->")) {
		field = take_field(w, &s, ret_element);
		skip_blanks(&s);
		*ret_truth = take(&s, "? \"true\" : \"false\"");
	} else {
		return -1;
	}
	skip_blanks(&s);
	return s.at == s.end ? field : -1;
}

static bool next_argument(struct span *s, struct span *ret)
{
	skip_blanks(s);
	if (!take(s, ","))
		return false;
	ret->at = s->at;
	skip_to(s, ',');
	ret->end = s->at;
	return true;
}

/* ---- both together ---- */

/* The letter for an argument that is `field`, or 'w' where the text doesn't give the field's value.
 */
static char letter_for(const struct schema_field *field, const struct conversion *conversion,
	bool truth, int64_t element)
{
	bool integer = element < 0 ? field->kind == SCHEMA_INTEGER : field->kind == SCHEMA_BYTES;

	switch (conversion->letter) {
	case 'd':
	case 'i':
	case 'u':
		return integer ? 'd' : 'w';
	case 'x':
	case 'X':
		return integer ? 'x' : 'w';
	case 'c':
		return integer && element < 0 ? 'c' : 'w';
	case 's':
		if (truth)
			return integer ? 'b' : 'w';
		/* What is filled up with blanks can't be told from blanks of its own. */
		return field->kind == SCHEMA_STRING && element < 0 && !conversion->padded ? 's'
											  : 'w';
	default:
		/* %p is hashed in text, %pS a symbol, and so on: none is what the field holds. */
		return 'w';
	}
}

static uint32_t number_for(const struct schema_field *field, char letter, int64_t element)
{
	if (letter == 's' || letter == 'q')
		return field->kind == SCHEMA_STRING && field->place == SCHEMA_FIXED ? field->size
										    : 0;
	return element < 0 ? field->size : field->element_size;
}

/* Writes the conversion for one argument; returns how many bytes of the format string behind the
 * conversion were used up, too. */
static size_t put_argument(struct writer *w, struct span argument,
	const struct conversion *conversion, const char *rest)
{
	int64_t element = -1;
	bool truth;
	int field = argument_field(w, argument, &element, &truth);
	char letter = 'w';
	size_t used = 0;

	if (field >= 0 && w->map[field] >= 0)
		letter = letter_for(&w->binary->fields[field], conversion, truth, element);
	/* Whether a number has its 0x is not the same in all kernels. */
	if (letter == 'x')
		(void)take_back(w, "0x");
	if (letter == 's' && *rest == '"' && take_back(w, "\"")) {
		letter = 'q';
		used = 1;
	}
	if (letter == 'w')
		put_conversion(w, 'w', 0, 0, -1);
	else
		put_conversion(w, letter, (uint32_t)w->map[field],
			number_for(&w->binary->fields[field], letter, element), element);
	return used;
}

/* Writes the format string's literals and conversions from `format` on. */
static void put_format(struct writer *w, const char *format, struct span arguments)
{
	while (*format && !w->error) {
		struct conversion conversion;
		struct span argument = arguments;
		size_t literal = strcspn(format, "%");

		put_literal(w, format, literal);
		format += literal;
		if (!*format)
			break;
		if (format[1] == '%') {
			put_literal(w, "%", 1);
			format += 2;
			continue;
		}
		format = take_conversion(format + 1, &conversion);
		for (unsigned int i = 0; i < conversion.stars; i++)
			if (!next_argument(&arguments, &argument))
				w->error = w->error ? w->error : -EINVAL;
		if (!conversion.letter || !next_argument(&arguments, &argument))
			w->error = w->error ? w->error : -EINVAL;
		else
			format += put_argument(w, argument, &conversion, format);
	}
}

/* "(0x401156)", for a return probe "(0x4012d6 <- 0x401156)": the return address stands first in the
 * text, although the print format names it last. */
static void put_address(struct writer *w, const char *name)
{
	int field = schema_find(w->binary, name);

	if (field < 0 || w->map[field] < 0)
		w->error = w->error ? w->error : -EINVAL;
	else
		put_conversion(w, 'a', (uint32_t)w->map[field], w->binary->fields[field].size, -1);
}

static void put_probe(struct writer *w, const char *format, struct span arguments)
{
	bool returns = schema_find(w->binary, "__probe_ret_ip") >= 0;
	const char *close = strchr(format, ')');
	struct span skipped;

	if (format[0] != '(' || !close || !next_argument(&arguments, &skipped) ||
		(returns && !next_argument(&arguments, &skipped))) {
		w->error = -EINVAL;
		return;
	}
	put_string(w, "(");
	put_address(w, returns ? "__probe_ret_ip" : "__probe_ip");
	if (returns) {
		put_string(w, " <- ");
		put_address(w, "__probe_func");
	}
	put_format(w, close, arguments);
}

/* The kernel prints system calls by code of its own: "sys_openat(dfd: ..., ...)", "sys_openat ->
 * 0x3". */
static void put_syscall(
	struct writer *w, const char *event, const char *format, struct span arguments)
{
	bool enter = strncmp(event, "sys_enter_", 10) == 0;

	if (!enter && strncmp(event, "sys_exit_", 9) != 0) {
		w->error = -EINVAL;
		return;
	}
	put_string(w, "sys_");
	put_string(w, event + (enter ? 10 : 9));
	put_string(w, enter ? "(" : " -> ");
	put_format(w, format, arguments);
	if (enter)
		put_string(w, ")");
}

/* Where the print format begins with a symbol and a colon (markers: "%ps: %s"), a line's parser takes that
 * for the event's name. */
static void put_plain(struct writer *w, const char *format, struct span arguments)
{
	struct conversion conversion;
	struct span skipped;
	const char *behind = format[0] == '%' ? take_conversion(format + 1, &conversion) : format;

	if (behind > format && conversion.letter == 'p' && strncmp(behind, ": ", 2) == 0 &&
		next_argument(&arguments, &skipped))
		format = behind + 2;
	put_format(w, format, arguments);
}

int text_template_make(const struct schema *binary, const int32_t *map, char **ret)
{
	const char *print = schema_string(binary, binary->header->print_format);
	const char *event = schema_string(binary, binary->header->event);
	struct writer w = { .binary = binary, .map = map };
	struct span s = { print, print + strlen(print) };
	char *format;

	skip_blanks(&s);
	if (s.at == s.end || *s.at != '"') {
		*ret = NULL;
		return 0;
	}
	format = take_format(&s);
	if (!format)
		return -ENOMEM;
	if (schema_find(binary, "__syscall_nr") >= 0)
		put_syscall(&w, event, format, s);
	else if (schema_find(binary, "__probe_ip") >= 0 || schema_find(binary, "__probe_func") >= 0)
		put_probe(&w, format, s);
	else
		put_plain(&w, format, s);
	put(&w, "", 0);
	free(format);
	if (w.error) {
		free(w.text);
		w.text = NULL;
	}
	if (w.error == -ENOMEM)
		return -ENOMEM;
	*ret = w.text;
	return 0;
}

/* ---- reading ---- */

static const char *read_number(const char *at, uint32_t *ret)
{
	uint32_t value = 0;

	for (; is_digit(*at); at++)
		value = value * 10 + (uint32_t)(*at - '0');
	*ret = value;
	return at;
}

const char *text_template_step(const char *at, struct text_step *ret)
{
	*ret = (struct text_step){ .letter = 'l', .text = at, .element = UINT32_MAX };
	if (!*at) {
		ret->letter = 0;
		return at;
	}
	if (*at != '%') {
		ret->size = strcspn(at, "%");
		return at + ret->size;
	}
	if (at[1] == '%' || !at[1]) {
		ret->size = 1;
		return at + (at[1] ? 2 : 1);
	}
	ret->letter = at[1];
	at = read_number(at + 2, &ret->field);
	if (*at == '/')
		at = read_number(at + 1, &ret->number);
	if (*at == '.')
		at = read_number(at + 1, &ret->element);
	return *at == ';' ? at + 1 : at;
}
