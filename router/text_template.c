#include "router/text_template.h"

#include "router/span.h"
#include "router/text_print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More conversions than any event of the kernel has; a probe has at most 128 arguments. */
#define CONVERSIONS_MAX 512

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
	bool decimal; /* numbers that the print format has in hex are printed in decimal, unless with 0x */
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

/* ---- both together ---- */

/* The letter for an argument that is `field`, or 'w' where the text doesn't give the field's value. */
static char letter_for(const struct schema_field *field, const struct text_conversion *conversion,
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
	case 'o':
		return integer ? 'o' : 'w';
	case 'c':
		return integer ? 'c' : 'w';
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
	const struct text_conversion *conversion, const char *rest)
{
	int64_t element = -1;
	bool truth;
	int field = text_print_field(w->binary, argument, &element, &truth);
	char letter = 'w';
	size_t used = 0;

	if (field >= 0 && w->map[field] >= 0)
		letter = letter_for(&w->binary->fields[field], conversion, truth, element);
	/* Whether a number has its 0x is not the same in all kernels. */
	if (letter == 'x' && take_back(w, "0x") && w->decimal)
		letter = 'u';
	/* Bytes of a buffer: "(68:65:6c) \"hel\"", of which the print format has no more than "(%s)". */
	if (*rest == ')' && memmem(argument.at, (size_t)(argument.end - argument.at), "__print_dynamic_array(", 22))
		used = 1;
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
		struct text_conversion conversion;
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
		format = text_print_conversion(format + 1, &conversion);
		for (unsigned int i = 0; i < conversion.stars; i++)
			if (!span_argument(&arguments, &argument))
				w->error = w->error ? w->error : -EINVAL;
		if (!conversion.letter || !span_argument(&arguments, &argument))
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

	if (format[0] != '(' || !close || !span_argument(&arguments, &skipped) ||
		(returns && !span_argument(&arguments, &skipped))) {
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

static void put_call(struct writer *w, const char *name, const char *format, struct span arguments)
{
	put_string(w, "sys_");
	put_string(w, name);
	put_string(w, "(");
	put_format(w, format, arguments);
	put_string(w, ")");
}

/* The kernel prints system calls by code of its own: "sys_openat(dfd: ..., ...)", "sys_openat -> 0x3". Where
 * it knows the flags' names, its numbers are decimal, and the last argument, a mode, may be left out. */
static void put_syscall(struct writer *w, const char *event, char *format, struct span arguments)
{
	char *last = strrchr(format, ',');

	if (strncmp(event, "sys_exit_", 9) == 0) {
		put_string(w, "sys_");
		put_string(w, event + 9);
		put_string(w, " -> ");
		put_format(w, format, arguments);
		return;
	}
	if (strncmp(event, "sys_enter_", 10) != 0) {
		w->error = -EINVAL;
		return;
	}
	w->decimal = memmem(arguments.at, (size_t)(arguments.end - arguments.at), "__print_flags(", 14) != NULL;
	put_call(w, event + 10, format, arguments);
	if (!w->decimal || !last)
		return;
	*last = '\0';
	put(w, "%|", 2);
	w->adjacent = false;
	put_call(w, event + 10, format, arguments);
}

/* Where the print format begins with a symbol and a colon (markers: "%ps: %s"), a line's parser takes that
 * for the event's name. */
static void put_plain(struct writer *w, const char *format, struct span arguments)
{
	struct text_conversion conversion;
	struct span skipped;
	const char *behind = format[0] == '%' ? text_print_conversion(format + 1, &conversion) : format;

	if (behind > format && conversion.letter == 'p' && strncmp(behind, ": ", 2) == 0 &&
		span_argument(&arguments, &skipped))
		format = behind + 2;
	/* An event probe prints the event that it is attached to before that: "(sched.sched_switch) n=1". */
	if (format[0] == ' ') {
		put_string(w, "(");
		put_conversion(w, 'w', 0, 0, -1);
		put_string(w, ")");
	}
	put_format(w, format, arguments);
}

int text_template_make(const struct schema *binary, const int32_t *map, char **ret)
{
	const char *print = schema_string(binary, binary->header->print_format);
	const char *event = schema_string(binary, binary->header->event);
	struct writer w = { .binary = binary, .map = map };
	struct span s = { print, print + strlen(print) };
	char *format;

	span_skip_blanks(&s);
	if (s.at == s.end || *s.at != '"') {
		*ret = NULL;
		return 0;
	}
	format = text_print_format(&s);
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

const char *text_template_next(const char *pattern)
{
	while ((pattern = strchr(pattern, '%')) != NULL && pattern[1] != '|' && pattern[1])
		pattern += 2;
	return pattern && pattern[1] ? pattern + 2 : NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

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
	if (at[1] == '|') {
		ret->letter = 0;
		return at;
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
