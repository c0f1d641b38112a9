#include "router/text_match.h"

#include "base/digit.h"
#include "router/text_template.h"

#include <string.h>

/* Strings and other text of unknown length in one event; a template with more is not used. */
#define SPANS_MAX 64

/* Text of unknown length between two runs. A run is what has one reading at a given place:
 * literals, numbers, and strings that the kernel could not read, which print as (fault). */
struct open_span {
	struct text_step step;
	const char *pattern; /* the run behind */
	const char *start, *end;
};

struct match {
	const char *body, *end;
	struct text_payload *payload;
	bool store;
	unsigned int count;
	struct open_span spans[SPANS_MAX];
};

static const char fault[] = "(fault)";

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Pasted lines end in blanks. */
static bool is_end(const struct match *m, const char *at)
{
	while (at < m->end && (is_blank(*at) || *at == '\r'))
		at++;
	return at == m->end;
}

/* ---- the steps of a run: each returns where it ends, NULL where it doesn't fit ---- */

static const char *match_literal(
	const struct match *m, const struct text_step *step, const char *at)
{
	if ((size_t)(m->end - at) < step->size || memcmp(at, step->text, step->size) != 0)
		return NULL;
	return at + step->size;
}

static void store_number(const struct match *m, const struct text_step *step, uint64_t value)
{
	if (!m->store)
		return;
	if (step->element == UINT32_MAX)
		text_payload_integer(m->payload, step->field, value);
	else
		text_payload_element(m->payload, step->field, step->element, step->number, value);
}

/* The digits of `base` at `at`: where they end, NULL where there are none or too many. */
static const char *read_digits(const char *at, const char *end, unsigned int base, uint64_t *ret)
{
	const char *start = at;
	uint64_t value = 0;

	for (; at < end && digit_value(*at) < base; at++) {
		if (value > (UINT64_MAX - digit_value(*at)) / base)
			return NULL;
		value = value * base + digit_value(*at);
	}
	*ret = value;
	return at > start ? at : NULL;
}

static const char *skip_blanks(const struct match *m, const char *at)
{
	while (at < m->end && *at == ' ')
		at++;
	return at;
}

static const char *match_decimal(
	const struct match *m, const struct text_step *step, const char *at)
{
	uint64_t value;
	bool negative;

	at = skip_blanks(m, at);
	negative = at < m->end && *at == '-';
	at = read_digits(at + negative, m->end, 10, &value);
	if (at)
		store_number(m, step, negative ? -value : value);
	return at;
}

/* With or without 0x. */
static const char *read_hex(const char *at, const char *end, uint64_t *ret)
{
	if (end - at > 2 && at[0] == '0' && at[1] == 'x')
		at += 2;
	return read_digits(at, end, 16, ret);
}

static const char *match_hex(const struct match *m, const struct text_step *step, const char *at)
{
	uint64_t value;

	at = read_hex(skip_blanks(m, at), m->end, &value);
	if (at)
		store_number(m, step, value);
	return at;
}

static const char *match_octal(const struct match *m, const struct text_step *step, const char *at)
{
	uint64_t value;

	at = read_digits(at, m->end, 8, &value);
	if (at)
		store_number(m, step, value);
	return at;
}

static const char *match_bool(const struct match *m, const struct text_step *step, const char *at)
{
	size_t size = (size_t)(m->end - at);

	if (size >= 4 && memcmp(at, "true", 4) == 0) {
		store_number(m, step, 1);
		return at + 4;
	}
	if (size >= 5 && memcmp(at, "false", 5) == 0) {
		store_number(m, step, 0);
		return at + 5;
	}
	return NULL;
}

/* "0x401156", "446420", "do_sys_open+0x0/0xd6 [module]". */
static const char *match_address(
	const struct match *m, const struct text_step *step, const char *at)
{
	const char *start = at;
	uint64_t value;

	while (at < m->end && *at != ')' && *at != '\n' &&
		!(m->end - at > 3 && memcmp(at, " <- ", 4) == 0))
		at++;
	if (at == start || at == m->end)
		return NULL;
	if (read_hex(start, at, &value) == at)
		store_number(m, step, value);
	return at;
}

/* A string that the kernel could not read: the field is absent. */
static const char *match_fault(const struct match *m, const char *at)
{
	if ((size_t)(m->end - at) < sizeof(fault) - 1 || memcmp(at, fault, sizeof(fault) - 1) != 0)
		return NULL;
	return at + sizeof(fault) - 1;
}

static const char *match_step(const struct match *m, const struct text_step *step, const char *at)
{
	switch (step->letter) {
	case 'l':
		return match_literal(m, step, at);
	case 'd':
		return match_decimal(m, step, at);
	case 'x':
		return match_hex(m, step, at);
	case 'u':
		if (m->end - at > 2 && at[0] == '0' && at[1] == 'x')
			return match_hex(m, step, at);
		return match_decimal(m, step, at);
	case 'o':
		return match_octal(m, step, at);
	case 'b':
		return match_bool(m, step, at);
	case 'c':
		if (at == m->end)
			return NULL;
		store_number(m, step, (uint8_t)*at);
		return at + 1;
	case 'a':
		return match_address(m, step, at);
	case 'q':
		return match_fault(m, at);
	default:
		return NULL;
	}
}

static bool is_open_ended(const struct match *m, const struct text_step *step, const char *at)
{
	return step->letter == 's' || step->letter == 'w' ||
	       (step->letter == 'q' && at < m->end && *at == '"');
}

/* Matches the run at `pattern` against the text at `at`. On success *ret_pattern is what follows
 * it: the conversion *ret_step of unknown length, or letter 0, the end, to which the text must have
 * come, too. */
static bool match_run(const struct match *m, const char *pattern, const char *at,
	const char **ret_pattern, struct text_step *ret_step, const char **ret_at)
{
	for (;;) {
		pattern = text_template_step(pattern, ret_step);
		*ret_pattern = pattern;
		*ret_at = at;
		if (!ret_step->letter)
			return is_end(m, at);
		if (is_open_ended(m, ret_step, at))
			return true;
		at = match_step(m, ret_step, at);
		if (!at)
			return false;
	}
}

/* ---- the runs' places ---- */

/* Where the string's own bytes begin: behind its quote. */
static const char *content(const struct open_span *span)
{
	return span->start + (span->step.letter == 'q');
}

/* Whether the span can end where its run is to begin at `at`. */
static bool can_end(const struct open_span *span, const char *at)
{
	if (span->step.letter != 'q')
		return at >= span->start;
	return at > span->start + 1 && at[-1] == '"';
}

static void store_span(const struct match *m, const struct open_span *span)
{
	const char *at = content(span);
	size_t size = (size_t)(span->end - at) - (span->step.letter == 'q');

	if (span->step.letter != 'w')
		text_payload_string(m->payload, span->step.field, at, size);
}

/* memmem, but for literals of a few bytes in a line: the C library's prepares a table first, which here takes
 * longer than the search. */
static const char *find_literal(const char *at, const char *end, const struct text_step *literal)
{
	while ((size_t)(end - at) >= literal->size) {
		at = memchr(at, literal->text[0], (size_t)(end - at) - literal->size + 1);
		if (!at || memcmp(at, literal->text, literal->size) == 0)
			return at;
		at++;
	}
	return NULL;
}

/* The first place at or after `from` where the span may end and its run follows. A span that is the
 * last thing of all ends with the text. */
static bool find_first(const struct match *m, struct open_span *span, const char *from,
	const char **ret_pattern, struct text_step *ret_step, const char **ret_at)
{
	struct text_step literal;

	(void)text_template_step(span->pattern, &literal);
	if (!literal.letter) {
		const char *at = m->end;

		while (span->step.letter == 'q' && at > span->start && at[-1] != '"' &&
			is_end(m, at - 1))
			at--;
		span->end = at;
		return at >= from && can_end(span, at) &&
		       match_run(m, span->pattern, at, ret_pattern, ret_step, ret_at);
	}
	if (literal.letter != 'l')
		return false;
	for (const char *at = from; (at = find_literal(at, m->end, &literal)) != NULL; at++) {
		if (!can_end(span, at) ||
			!match_run(m, span->pattern, at, ret_pattern, ret_step, ret_at))
			continue;
		span->end = at;
		return true;
	}
	return false;
}

/* The reading in which each string ends as early as it can. */
static enum text_match match_forward(struct match *m, const char *pattern)
{
	struct text_step step;
	const char *at;

	if (!match_run(m, pattern, m->body, &pattern, &step, &at))
		return TEXT_MATCH_NONE;
	for (m->count = 0; step.letter; m->count++) {
		struct open_span *span = &m->spans[m->count];

		if (m->count == SPANS_MAX)
			return TEXT_MATCH_NONE;
		*span = (struct open_span){ .step = step, .pattern = pattern, .start = at };
		if (!find_first(m, span, content(span), &pattern, &step, &at))
			return span->step.letter == 'w' ? TEXT_MATCH_NONE : TEXT_MATCH_OPEN;
		store_span(m, span);
	}
	return TEXT_MATCH_ONE;
}

/* Whether some span but the last could end later, so that the second reading is worth looking for.
 * The last one is held by the text's end. */
static bool may_differ(struct match *m)
{
	for (unsigned int i = 0; i + 1 < m->count; i++) {
		struct open_span span = m->spans[i];
		const char *pattern, *at;
		struct text_step step;

		if (find_first(m, &span, span.end + 1, &pattern, &step, &at))
			return true;
	}
	return false;
}

/* The last place up to `limit` where the span may end so that its run reaches what follows: the
 * next span, which then has to end at `next_end`, or the text's end. */
static const char *find_last(const struct match *m, const struct open_span *span,
	const struct open_span *next, const char *limit)
{
	const char *pattern, *behind;
	struct text_step step;

	for (const char *at = limit; at >= content(span); at--) {
		struct open_span following;

		if (!can_end(span, at) ||
			!match_run(m, span->pattern, at, &pattern, &step, &behind))
			continue;
		if (!next)
			return at;
		following = (struct open_span){ .step = step, .start = behind };
		if (pattern == next->pattern && can_end(&following, next->end))
			return at;
	}
	return NULL;
}

/* The reading in which each string ends as late as it can. Returns whether it is another one; the
 * fields are then stored anew. */
static bool match_backward(struct match *m)
{
	const char *limit = m->end;
	bool differs = false;

	m->store = false;
	for (unsigned int i = m->count; i-- > 0;) {
		struct open_span *span = &m->spans[i];
		const char *at = find_last(m, span, i + 1 < m->count ? span + 1 : NULL, limit);

		if (!at)
			return false;
		differs |= at != span->end;
		span->end = at;
		limit = at;
	}
	if (!differs)
		return false;
	m->store = true;
	for (unsigned int i = 0; i < m->count; i++) {
		const char *pattern, *behind;
		struct text_step step;

		store_span(m, &m->spans[i]);
		(void)match_run(m, m->spans[i].pattern, m->spans[i].end, &pattern, &step, &behind);
		if (i + 1 < m->count)
			m->spans[i + 1].start = behind;
	}
	return true;
}

static enum text_match match_template(
	const char *pattern, const struct text_piece *body, struct text_payload *payload)
{
	struct match m;
	enum text_match r;

	/* Not as a whole: the spans are many, and mostly unused. */
	m.body = body->at;
	m.end = body->at + body->size;
	m.payload = payload;
	m.store = true;
	m.count = 0;
	r = match_forward(&m, pattern);
	if (r == TEXT_MATCH_ONE && m.count > 1 && may_differ(&m) && match_backward(&m))
		return TEXT_MATCH_SEVERAL;
	return r;
}

enum text_match text_match(
	const char *pattern, const struct text_piece *body, struct text_payload *payload)
{
	enum text_match first = match_template(pattern, body, payload), r = first;

	while (r < TEXT_MATCH_ONE && (pattern = text_template_next(pattern)) != NULL) {
		text_payload_reset(payload);
		r = match_template(pattern, body, payload);
	}
	return r < TEXT_MATCH_ONE ? first : r;
}
