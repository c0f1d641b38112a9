#include "router/print_format.h"

#include "base/checked.h"
#include "router/span.h"

#include <stdbool.h>
#include <string.h>

/* What the text may make us look at again and again is bounded, so that a hostile one costs little: the
 * brackets around an argument, and the length of a helper's first argument. */
#define STRIP_MAX    16
#define ARGUMENT_MAX 4096

/* ---- the format string ---- */

/* One conversion: its letter, and for 'p' the letter behind it (0: none). */
struct conversion {
	char letter, pointer;
	unsigned int stars; /* arguments for width and precision, before its own */
};

/* Reads on to the next conversion inside the string constants at s->at; false at their end. A format may
 * be several constants in a row. */
static bool next_conversion(struct span *s, bool *inside, struct conversion *ret)
{
	while (s->at < s->end) {
		char c = *s->at;

		if (!*inside) {
			if (c != '"' && !span_is_blank(c))
				return false;
			*inside = c == '"';
			s->at++;
			continue;
		}
		s->at++;
		if (c == '"') {
			*inside = false;
		} else if (c == '\\' && s->at < s->end) {
			s->at++;
		} else if (c == '%' && !span_take(s, "%")) {
			break;
		}
	}
	if (s->at >= s->end)
		return false;

	*ret = (struct conversion){ 0 };
	for (; s->at < s->end && strchr("-+ #0123456789.*hlLqjzt", *s->at) && *s->at; s->at++)
		ret->stars += *s->at == '*';
	if (s->at >= s->end || !span_is_letter(*s->at))
		return true;
	ret->letter = *s->at++;
	if (ret->letter == 'p' && s->at < s->end && span_is_letter(*s->at))
		ret->pointer = *s->at;
	return true;
}

/* ---- the arguments ---- */

struct walk {
	print_format_visit visit;
	void *context;
};

static void visit(const struct walk *walk, struct span name, enum print_format_use use)
{
	if (name.end > name.at)
		walk->visit(walk->context, name.at, (size_t)(name.end - name.at), use);
}

static struct span take_name(struct span *s)
{
	struct span name = { s->at, s->at };

	while (s->at < s->end && span_is_word(*s->at))
		s->at++;
	name.end = s->at;
	return name;
}

/* The first "REC->name" in the text; empty where there is none. */
static struct span find_field(struct span s)
{
	static const char prefix[] = "REC->";
	const char *p = memmem(s.at, (size_t)(s.end - s.at), prefix, sizeof(prefix) - 1);

	if (!p)
		return (struct span){ s.end, s.end };
	s.at = p + sizeof(prefix) - 1;
	return take_name(&s);
}

/* Strips casts and brackets around all of the text: "((unsigned long)(REC->fd))" is REC->fd. */
static struct span strip_casts(struct span s)
{
	s = span_trim(s);
	for (int i = 0; i < STRIP_MAX && s.at < s.end && *s.at == '('; i++) {
		struct span inner;

		inner = (struct span){ s.at + 1, s.end };
		span_skip_to(&inner, ')');
		if (inner.at >= s.end || *inner.at != ')')
			return s;
		if (span_trim((struct span){ inner.at + 1, s.end }).at == s.end)
			s = span_trim((struct span){ s.at + 1, inner.at });
		else
			s = span_trim((struct span){ inner.at + 1, s.end });
	}
	return s;
}

/* "REC->name" or "REC->name[...]" and nothing else; `ret_address` says whether an & stood before it. */
static bool direct_field(struct span argument, struct span *ret_name, bool *ret_address)
{
	struct span s = strip_casts(argument);

	*ret_address = span_take(&s, "&");
	s = strip_casts(s);
	if (!span_take(&s, "REC->"))
		return false;
	*ret_name = take_name(&s);
	if (span_take(&s, "[")) {
		span_skip_to(&s, ']');
		if (!span_take(&s, "]"))
			return false;
	}
	span_skip_blanks(&s);
	return s.at == s.end;
}

static enum print_format_use use_of(const struct conversion *conversion, bool address)
{
	switch (conversion->letter) {
	case 'x':
	case 'X':
		return PRINT_HEX;
	case 'p':
		if (conversion->pointer == 'b')
			return PRINT_BITMASK;
		/* %pS, %ps, %pK and plain ones show the pointer itself, the rest what it points to. */
		if (conversion->pointer && !strchr("KSsFfBx", conversion->pointer))
			return PRINT_BINARY;
		return address ? PRINT_BINARY : PRINT_HEX;
	case 'o':
		return PRINT_OCTAL;
	case 'c':
		return PRINT_CHAR;
	case 's':
		return PRINT_STRING;
	default:
		return PRINT_DECIMAL;
	}
}

/* What the kernel's helpers in an argument say of the field that their own first argument names. */
static const struct helper {
	const char *name;
	enum print_format_use use;
	bool bare; /* the argument is the field's bare name */
} helpers[] = {
	{ "__print_symbolic(", PRINT_SYMBOLIC, false },
	{ "__print_symbolic_u64(", PRINT_SYMBOLIC, false },
	{ "__print_flags(", PRINT_SYMBOLIC, false },
	{ "__print_flags_u64(", PRINT_SYMBOLIC, false },
	{ "__print_hex(", PRINT_HEX, false },
	{ "__print_hex_str(", PRINT_HEX, false },
	{ "__print_array(", PRINT_HEX, false },
	{ "__get_bitmask(", PRINT_BITMASK, true },
	{ "__get_rel_bitmask(", PRINT_BITMASK, true },
	{ "__get_cpumask(", PRINT_BITMASK, true },
	{ "__get_rel_cpumask(", PRINT_BITMASK, true },
	{ "__get_str(", PRINT_STRING, true },
	{ "__get_rel_str(", PRINT_STRING, true },
};

/* The field of a helper's first argument, which may be "REC->name", "__get_dynamic_array(name)" or, for
 * the bare kind, "name". */
static struct span helper_field(struct span argument, bool bare)
{
	static const char dynamic[] = "_dynamic_array(";
	const char *p;
	struct span name;

	if (bare) {
		argument = span_trim(argument);
		return take_name(&argument);
	}
	name = find_field(argument);
	if (name.at < name.end)
		return name;
	p = memmem(argument.at, (size_t)(argument.end - argument.at), dynamic, sizeof(dynamic) - 1);
	if (!p)
		return name;
	argument.at = p + sizeof(dynamic) - 1;
	return take_name(&argument);
}

static void walk_helpers(const struct walk *walk, struct span argument)
{
	struct span s = argument;

	while (s.at < s.end) {
		struct span word, first;

		if (*s.at == '"' || *s.at == '\'') {
			span_skip_quoted(&s);
			continue;
		}
		if (!span_is_letter(*s.at)) {
			s.at++;
			continue;
		}
		word = take_name(&s);
		for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
			struct span call = { word.at, s.end };

			if (!span_take(&call, helpers[i].name))
				continue;
			if (call.end - call.at > ARGUMENT_MAX)
				call.end = call.at + ARGUMENT_MAX;
			first = call;
			span_skip_to(&call, ',');
			first.end = call.at;
			visit(walk, helper_field(first, helpers[i].bare), helpers[i].use);
		}
	}
}

static void walk_argument(const struct walk *walk, struct span argument, const struct conversion *conversion)
{
	struct span name;
	bool address;

	if (direct_field(argument, &name, &address))
		visit(walk, name, use_of(conversion, address));
	else
		walk_helpers(walk, argument);
}

void print_format_walk(const char *text, size_t size, print_format_visit visitor, void *context)
{
	const struct walk walk = { visitor, context };
	struct span format = span_trim((struct span){ text, text + size });
	struct span arguments = format, argument;
	struct conversion conversion;
	bool inside = false;

	if (format.at == format.end || *format.at != '"')
		return;
	while (span_skip_blanks(&arguments), arguments.at < arguments.end && *arguments.at == '"')
		span_skip_quoted(&arguments);

	while (next_conversion(&format, &inside, &conversion)) {
		for (unsigned int i = 0; i < conversion.stars; i++)
			if (!span_argument(&arguments, &argument))
				return;
		if (!span_argument(&arguments, &argument))
			return;
		walk_argument(&walk, argument, &conversion);
	}
}
