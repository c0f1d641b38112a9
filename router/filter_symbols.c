#include "router/filter_symbols.h"

#include "base/digit.h"

#include <string.h>

/* Parentheses and unary operators inside each other; print formats have a dozen. */
#define EXPRESSION_DEPTH_MAX 64
/* Calls in one format; a hostile recording could hold any number inside each other. */
#define CALLS_MAX 256

/* A stretch of the format that is read from its front. */
struct reader {
	const char *at, *end;
	unsigned int depth;
};

static bool is_name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end &&
		(*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n'))
		reader->at++;
}

static bool take(struct reader *reader, const char *token)
{
	size_t size = strlen(token);

	skip_blanks(reader);
	if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, token, size) != 0)
		return false;
	reader->at += size;
	return true;
}

/* ---- constant expressions ---- */

static bool read_number(struct reader *reader, uint64_t *ret)
{
	uint64_t value = 0, base = 10;
	const char *start;

	if (take(reader, "0x") || take(reader, "0X"))
		base = 16;
	else if (reader->at < reader->end && *reader->at == '0')
		base = 8;
	start = reader->at;
	while (reader->at < reader->end && digit_value(*reader->at) < base) {
		uint64_t digit = digit_value(*reader->at++);

		if (__builtin_mul_overflow(value, base, &value) ||
			__builtin_add_overflow(value, digit, &value))
			return false;
	}
	if (reader->at == start)
		return false;
	while (reader->at < reader->end && strchr("uUlL", *reader->at))
		reader->at++;
	*ret = value;
	return reader->at == reader->end || !is_name_char(*reader->at);
}

/* A cast's parenthesis holds nothing but a type: names, blanks and stars. */
static bool skip_cast(struct reader *reader)
{
	struct reader inside = *reader;

	if (!take(&inside, "("))
		return false;
	skip_blanks(&inside);
	if (inside.at == inside.end || is_digit(*inside.at) || !is_name_char(*inside.at))
		return false;
	while (inside.at < inside.end &&
		(is_name_char(*inside.at) || *inside.at == ' ' || *inside.at == '*'))
		inside.at++;
	if (!take(&inside, ")"))
		return false;
	*reader = inside;
	return true;
}

static bool read_expression(struct reader *reader, unsigned int least, uint64_t *ret);

static bool read_unary(struct reader *reader, uint64_t *ret)
{
	bool good = false;

	if (++reader->depth > EXPRESSION_DEPTH_MAX)
		return false;
	if (take(reader, "~")) {
		good = read_unary(reader, ret);
		*ret = ~*ret;
	} else if (take(reader, "-")) {
		good = read_unary(reader, ret);
		*ret = -*ret;
	} else if (take(reader, "!")) {
		good = read_unary(reader, ret);
		*ret = !*ret;
	} else if (skip_cast(reader)) {
		good = read_unary(reader, ret);
	} else if (take(reader, "(")) {
		good = read_expression(reader, 0, ret) && take(reader, ")");
	} else {
		skip_blanks(reader);
		good = reader->at < reader->end && is_digit(*reader->at) &&
		       read_number(reader, ret);
	}
	reader->depth--;
	return good;
}

struct binary {
	const char *token;
	unsigned int binds; /* tighter when greater */
};

static const struct binary *take_binary(struct reader *reader, unsigned int least)
{
	static const struct binary operators[] = {
		{ "<<", 4 },
		{ ">>", 4 },
		{ "|", 1 },
		{ "^", 2 },
		{ "&", 3 },
		{ "+", 5 },
		{ "-", 5 },
		{ "*", 6 },
		{ "/", 6 },
		{ "%", 6 },
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		struct reader ahead = *reader;

		if (operators[i].binds < least || !take(&ahead, operators[i].token))
			continue;
		*reader = ahead;
		return &operators[i];
	}
	return NULL;
}

static bool apply(char operator, uint64_t left, uint64_t right, uint64_t *ret)
{
	switch (operator) {
	case '|':
		*ret = left | right;
		return true;
	case '^':
		*ret = left ^ right;
		return true;
	case '&':
		*ret = left & right;
		return true;
	case '<':
		*ret = right < 64 ? left << right : 0;
		return true;
	case '>':
		*ret = right < 64 ? left >> right : 0;
		return true;
	case '+':
		*ret = left + right;
		return true;
	case '-':
		*ret = left - right;
		return true;
	case '*':
		*ret = left * right;
		return true;
	default:
		if (!right)
			return false;
		*ret = operator== '/' ? left / right : left % right;
		return true;
	}
}

static bool read_expression(struct reader *reader, unsigned int least, uint64_t *ret)
{
	const struct binary *operator;
	uint64_t right;

	if (!read_unary(reader, ret))
		return false;
	while ((operator= take_binary(reader, least)))
		if (!read_expression(reader, operator->binds + 1, &right) ||
			!apply(operator->token[0], *ret, right, ret))
			return false;
	return true;
}

bool filter_symbols_constant(const char *text, size_t size, uint64_t *ret)
{
	struct reader reader = { text, text + size, 0 };
	uint64_t value;

	if (!read_expression(&reader, 0, &value))
		return false;
	skip_blanks(&reader);
	if (reader.at != reader.end)
		return false;
	*ret = value;
	return true;
}

/* ---- calls in the format ---- */

/* Moves past a string literal whose quote has been read. */
static void skip_literal(struct reader *reader)
{
	while (reader->at < reader->end && *reader->at != '"')
		reader->at += *reader->at == '\\' && reader->at + 1 < reader->end ? 2 : 1;
	if (reader->at < reader->end)
		reader->at++;
}

/* Reads up to one of `ends` outside of parentheses, braces and strings; leaves it unread. */
static struct reader read_until(struct reader *reader, const char *ends)
{
	struct reader piece = { reader->at, reader->at, 0 };
	unsigned int depth = 0;

	while (reader->at < reader->end) {
		char c = *reader->at;

		if (!depth && strchr(ends, c))
			break;
		reader->at++;
		if (c == '"')
			skip_literal(reader);
		else if (c == '(' || c == '{')
			depth++;
		else if ((c == ')' || c == '}') && depth)
			depth--;
	}
	piece.end = reader->at;
	return piece;
}

/* What is printed: REC->field with casts and parentheses around it, or that & a constant. */
static bool read_subject(struct reader subject, const char *field, uint64_t *ret_mask)
{
	size_t size = strlen(field);

	while (skip_cast(&subject) || take(&subject, "("))
		;
	if (!take(&subject, "REC->") || (size_t)(subject.end - subject.at) < size ||
		memcmp(subject.at, field, size) != 0)
		return false;
	subject.at += size;
	if (subject.at < subject.end && is_name_char(*subject.at))
		return false;
	while (take(&subject, ")"))
		;
	*ret_mask = UINT64_MAX;
	if (take(&subject, "&") && !read_expression(&subject, 0, ret_mask))
		return false;
	while (take(&subject, ")"))
		;
	skip_blanks(&subject);
	return subject.at == subject.end;
}

/* One { value, "name" }, whose { has been read. */
static bool read_entry(struct reader *reader, uint64_t mask, struct filter_symbol *ret)
{
	struct reader value = read_until(reader, ",}"), name;
	bool good;

	if (!take(reader, ","))
		return false;
	name = read_until(reader, "}");
	if (!take(reader, "}"))
		return false;
	good = take(&name, "\"");
	ret->name = name.at;
	skip_literal(&name);
	if (!good || name.at == ret->name || name.at[-1] != '"')
		return false;
	ret->size = (size_t)(name.at - 1 - ret->name);
	ret->mask = mask;
	ret->valued =
		filter_symbols_constant(value.at, (size_t)(value.end - value.at), &ret->value);
	/* A name in several pieces is none that could be pointed at. */
	skip_blanks(&name);
	return name.at == name.end;
}

/* The arguments of one call, whose ( has been read. */
static bool read_call(struct reader *reader, bool flags, const char *field,
	bool (*symbol)(void *context, const struct filter_symbol *symbol), void *context)
{
	struct reader subject = read_until(reader, ",)");
	struct filter_symbol entry;
	uint64_t mask;

	if (!read_subject(subject, field, &mask))
		return false;
	if (flags && take(reader, ","))
		(void)read_until(reader, ",)");
	while (take(reader, ",")) {
		if (!take(reader, "{")) {
			(void)read_until(reader, ",)");
			continue;
		}
		if (read_entry(reader, mask, &entry) && symbol(context, &entry))
			return true;
		(void)read_until(reader, ",)");
	}
	return false;
}

bool filter_symbols_each(const char *format, const char *field,
	bool (*symbol)(void *context, const struct filter_symbol *symbol), void *context)
{
	static const char flags[] = "flags", symbolic[] = "symbolic";
	const char *end = format + strlen(format);
	unsigned int calls = 0;

	for (const char *at = strstr(format, "__print_"); at && calls < CALLS_MAX;
		at = strstr(at, "__print_"), calls++) {
		struct reader reader = { at + strlen("__print_"), end, 0 };
		bool is_flags = take(&reader, flags);

		at = reader.at;
		if (!is_flags && !take(&reader, symbolic))
			continue;
		(void)take(&reader, "_u64");
		if (take(&reader, "(") && read_call(&reader, is_flags, field, symbol, context))
			return true;
	}
	return false;
}
