#include "consumers/client/probe_spec.h"

#include "base/checked.h"
#include "base/digit.h"
#include "consumers/client/near.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest PLACE: a path, a symbol, and what stands around them. */
#define WORD_MAX (PROBE_SPEC_PATH_MAX + 2 * CONTROL_SYMBOL_MAX)

/* The definition's first word with its quoting undone: where each byte came from, and whether it was
 * quoted, so that it is no separator. */
struct word {
	size_t size;
	char text[WORD_MAX];
	bool literal[WORD_MAX];
	uint16_t position[WORD_MAX + 1]; /* one more: the word's end */
};

struct parser {
	const char *text;
	size_t size, at;
	struct probe_spec *spec;
	struct probe_spec_error *error;
	struct word word;
};

static const struct {
	const char *name;
	enum control_probe_kind kind;
	bool in_file;
} kinds[] = {
	{ "tracepoint", PROBE_TRACEPOINT, false },
	{ "kprobe", PROBE_KPROBE, false },
	{ "kretprobe", PROBE_KRETPROBE, false },
	{ "uprobe", PROBE_UPROBE, true },
	{ "uretprobe", PROBE_URETPROBE, true },
	{ "usdt", PROBE_USDT, true },
};

const char *probe_spec_kind_name(enum control_probe_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].kind == kind)
			return kinds[i].name;
	return kind == PROBE_EVENT ? "tracepoint" : "probe";
}

bool probe_spec_in_file(enum control_probe_kind kind)
{
	return kind == PROBE_UPROBE || kind == PROBE_URETPROBE || kind == PROBE_USDT;
}

__attribute__((format(printf, 3, 4))) static int fail(struct parser *p, size_t position, const char *format,
	...)
{
	va_list ap;

	p->error->position = (int)position;
	p->error->argument = NULL;
	va_start(ap, format);
	(void)vsnprintf(p->error->message, sizeof(p->error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* ASCII only, whatever the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static void skip_blanks(struct parser *p)
{
	while (is_blank(p->text[p->at]))
		p->at++;
}

/* ---- the first word ---- */

static int word_add(struct parser *p, size_t position, char c, bool literal)
{
	struct word *w = &p->word;

	if (w->size == WORD_MAX)
		return fail(p, position, "the place is longer than %d bytes", WORD_MAX);
	w->text[w->size] = c;
	w->literal[w->size] = literal;
	w->position[w->size++] = (uint16_t)position;
	return 0;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* What stands behind a backslash in double quotes: as the output writes it, or any byte for itself. */
static int read_escape(struct parser *p, size_t position, char *ret)
{
	static const char names[] = "nrt", bytes[] = "\n\r\t";
	char c = p->text[p->at++];
	const char *name = strchr(names, c);
	int high, low;

	*ret = name ? bytes[name - names] : c;
	if (c != 'x')
		return 0;
	high = hex_digit(p->text[p->at]);
	low = high < 0 ? -1 : hex_digit(p->text[p->at + 1]);
	if (low < 0 || (high == 0 && low == 0))
		return fail(p, position, "\\x takes two hexadecimal digits, and not 00");
	*ret = (char)(high << 4 | low);
	p->at += 2;
	return 0;
}

static int read_quoted(struct parser *p, char quote)
{
	size_t begin = p->at++;
	int rc;

	for (;;) {
		size_t position = p->at;
		char c = p->text[p->at];

		if (c == '\0')
			return fail(p, begin, "this quote is not closed; one that is part of a name stands behind a backslash");
		p->at++;
		if (c == quote)
			return 0;
		rc = c == '\\' && quote == '"' && p->text[p->at] ? read_escape(p, position, &c) : 0;
		if (rc)
			return rc;
		rc = word_add(p, position, c, true);
		if (rc)
			return rc;
	}
}

static int read_word(struct parser *p)
{
	int rc = 0;

	p->word.size = 0;
	while (rc == 0) {
		size_t position = p->at;
		char c = p->text[p->at];

		if (c == '\0' || is_blank(c))
			break;
		if (c == '"' || c == '\'') {
			rc = read_quoted(p, c);
			continue;
		}
		p->at++;
		if (c != '\\') {
			rc = word_add(p, position, c, false);
			continue;
		}
		if (p->text[p->at] == '\0')
			return fail(p, position, "a backslash at the end escapes nothing");
		rc = word_add(p, position, p->text[p->at++], true);
	}
	p->word.position[p->word.size] = (uint16_t)p->at;
	return rc;
}

/* The place of the first or last unquoted `c` in [from, to) of the word, or `to`. */
static size_t find_first(const struct word *w, size_t from, size_t to, char c)
{
	for (size_t i = from; i < to; i++)
		if (w->text[i] == c && !w->literal[i])
			return i;
	return to;
}

static size_t find_last(const struct word *w, size_t from, size_t to, char c)
{
	for (size_t i = to; i > from; i--)
		if (w->text[i - 1] == c && !w->literal[i - 1])
			return i - 1;
	return to;
}

/* Copies [from, to) of the word as one part of the definition. With `any`, bytes that are quoted may be any. */
static int copy_bytes(struct parser *p, size_t from, size_t to, char *out, size_t size, const char *what, bool any)
{
	const struct word *w = &p->word;

	if (from == to)
		return fail(p, w->position[from], "%s is missing here", what);
	if (to - from >= size)
		return fail(p, w->position[from], "%s is longer than %zu bytes", what, size - 1);
	for (size_t i = from; i < to; i++)
		if (is_control(w->text[i]) && !(any && w->literal[i]))
			return fail(p, w->position[i], "a control character in %s%s", what, any ? ", which must be quoted" : "");
	memcpy(out, w->text + from, to - from);
	out[to - from] = '\0';
	return 0;
}

static int copy_part(struct parser *p, size_t from, size_t to, char *out, size_t size, const char *what)
{
	return copy_bytes(p, from, to, out, size, what, false);
}

static int copy_name(struct parser *p, size_t from, size_t to, char *out, size_t size, const char *what,
	const char *also)
{
	int rc = copy_part(p, from, to, out, size, what);

	if (rc)
		return rc;
	for (size_t i = from; i < to; i++)
		if (!is_word(p->word.text[i]) && !strchr(also, p->word.text[i]))
			return fail(p, p->word.position[i], "%s can't hold '%c'", what, p->word.text[i]);
	return 0;
}

/* A number of the word's [from, to): decimal, or hex behind 0x. */
static int read_number(struct parser *p, size_t from, size_t to, const char *what, uint64_t *ret)
{
	const struct word *w = &p->word;
	bool hex = to - from > 2 && w->text[from] == '0' && (w->text[from + 1] | 0x20) == 'x';
	uint64_t base = hex ? 16 : 10, value = 0;

	if (from == to)
		return fail(p, w->position[from], "%s is missing here", what);
	for (size_t i = hex ? from + 2 : from; i < to; i++) {
		unsigned int digit = digit_value(w->text[i]);

		if (digit >= base)
			return fail(p, w->position[i], "%s must be a number, decimal or 0x hexadecimal", what);
		if (value > (UINT64_MAX - digit) / base)
			return fail(p, w->position[from], "%s does not fit into 64 bits", what);
		value = value * base + digit;
	}
	*ret = value;
	return 0;
}

/* ---- places ---- */

static int parse_tracepoint(struct parser *p, size_t from, size_t to)
{
	struct probe_spec *spec = p->spec;
	size_t colon = find_first(&p->word, from, to, ':');
	int rc = copy_name(p, from, colon, spec->system, sizeof(spec->system), "the tracepoint's system", "-.");

	if (rc)
		return rc;
	if (colon == to)
		return fail(p, p->word.position[to], "a tracepoint is tracepoint:SYSTEM:EVENT: the event is missing");
	spec->symbol_position = p->word.position[colon + 1];
	for (size_t i = colon + 1; i < to; i++)
		if (strchr("*?[", p->word.text[i]))
			return fail(p, p->word.position[i],
				"the tracepoint's event can't hold '%c': a probe is of one event; tracefan ls '%s:*' lists them",
				p->word.text[i], spec->system);
	return copy_name(p, colon + 1, to, spec->event, sizeof(spec->event), "the tracepoint's event", "-.");
}

static int parse_kprobe(struct parser *p, size_t from, size_t to)
{
	struct probe_spec *spec = p->spec;
	size_t plus = find_last(&p->word, from, to, '+');
	int rc = copy_name(p, from, plus, spec->symbol, sizeof(spec->symbol), "the kernel symbol", ".$:");

	if (rc || plus == to)
		return rc;
	return read_number(p, plus + 1, to, "the offset", &spec->offset);
}

static int parse_kretprobe(struct parser *p, size_t from, size_t to)
{
	static const char word[] = "maxactive=";
	struct probe_spec *spec = p->spec;
	size_t plus = find_last(&p->word, from, to, '+'), size = sizeof(word) - 1;
	uint64_t value = 0;
	int rc = copy_name(p, from, plus, spec->symbol, sizeof(spec->symbol), "the kernel symbol", ".$:");

	if (rc || plus == to)
		return rc;
	if (to - plus - 1 < size || memcmp(p->word.text + plus + 1, word, size) != 0)
		return fail(p, p->word.position[plus], "a return probe takes +maxactive=N and no offset");
	rc = read_number(p, plus + 1 + size, to, "maxactive", &value);
	if (rc)
		return rc;
	if (value < 1 || value > PROBE_SPEC_MAXACTIVE_MAX)
		return fail(p, p->word.position[plus + 1 + size], "maxactive must be between 1 and %d",
			PROBE_SPEC_MAXACTIVE_MAX);
	spec->maxactive = (uint32_t)value;
	return 0;
}

static int parse_path(struct parser *p, size_t from, size_t to)
{
	return copy_bytes(p, from, to, p->spec->path, sizeof(p->spec->path), "the file's path", true);
}

static bool is_hex_number(const struct word *w, size_t from, size_t to)
{
	return to - from >= 2 && w->text[from] == '0' && w->text[from + 1] == 'x' && !w->literal[from];
}

static int parse_uprobe(struct parser *p, size_t from, size_t to)
{
	struct probe_spec *spec = p->spec;
	size_t colon = find_last(&p->word, from, to, ':'), plus;
	int rc;

	if (colon == to)
		return fail(p, p->word.position[to], "a %s is %s:PATH:SYMBOL or %s:PATH:0xOFFSET: the symbol is missing",
			probe_spec_kind_name(spec->kind), probe_spec_kind_name(spec->kind),
			probe_spec_kind_name(spec->kind));
	rc = parse_path(p, from, colon);
	if (rc)
		return rc;
	spec->symbol_position = p->word.position[colon + 1];
	if (is_hex_number(&p->word, colon + 1, to)) {
		spec->by_offset = true;
		return read_number(p, colon + 1, to, "the file offset", &spec->offset);
	}
	plus = find_last(&p->word, colon + 1, to, '+');
	rc = copy_part(p, colon + 1, plus, spec->symbol, sizeof(spec->symbol), "the symbol");
	if (rc || plus == to)
		return rc;
	if (spec->kind == PROBE_URETPROBE)
		return fail(p, p->word.position[plus], "a return probe has no offset");
	return read_number(p, plus + 1, to, "the offset", &spec->offset);
}

static int parse_usdt(struct parser *p, size_t from, size_t to)
{
	struct probe_spec *spec = p->spec;
	size_t second = find_last(&p->word, from, to, ':');
	size_t first = second == to ? to : find_last(&p->word, from, second, ':');
	int rc;

	if (second == to || first == second)
		return fail(p, p->word.position[to], "a static probe is usdt:PATH:PROVIDER:NAME");
	rc = parse_path(p, from, first);
	if (rc)
		return rc;
	spec->symbol_position = p->word.position[first + 1];
	rc = copy_part(p, first + 1, second, spec->system, sizeof(spec->system), "the provider");
	if (rc)
		return rc;
	rc = copy_part(p, second + 1, to, spec->event, sizeof(spec->event), "the probe's name");
	if (rc)
		return rc;
	(void)snprintf(spec->symbol, sizeof(spec->symbol), "%s:%s", spec->system, spec->event);
	return 0;
}

static int parse_place(struct parser *p, size_t from, size_t to)
{
	p->spec->place_position = p->word.position[from];
	p->spec->symbol_position = p->word.position[from];
	switch (p->spec->kind) {
	case PROBE_TRACEPOINT:
		return parse_tracepoint(p, from, to);
	case PROBE_KPROBE:
		return parse_kprobe(p, from, to);
	case PROBE_KRETPROBE:
		return parse_kretprobe(p, from, to);
	case PROBE_USDT:
		return parse_usdt(p, from, to);
	case PROBE_UPROBE:
	case PROBE_URETPROBE:
	default:
		return parse_uprobe(p, from, to);
	}
}

/* Whether the word is SYSTEM:EVENT from `from` on, as ftrace and `tracefan ls` write it. */
static bool is_event(const struct word *w, size_t from)
{
	size_t colon = find_first(w, from, w->size, ':');

	for (size_t i = from; i < w->size; i++)
		if (i != colon && !is_word(w->text[i]) && !strchr("-.", w->text[i]))
			return false;
	return colon > from && colon + 1 < w->size;
}

static int parse_kind(struct parser *p, size_t from, size_t colon)
{
	char wanted[NEAR_NAME_MAX], words[96 + NEAR_NAME_MAX];
	struct near near;
	int rc = copy_part(p, from, colon, wanted, sizeof(wanted), "the kind of probe");

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, wanted) == 0) {
			p->spec->kind = kinds[i].kind;
			return 0;
		}
	}
	near_init(&near, wanted);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		near_offer(&near, kinds[i].name);
	if (!near.count && is_event(&p->word, from))
		return fail(p, p->word.position[from], "\"%.60s\" is no kind of probe; did you mean tracepoint:%.*s?", wanted,
			(int)(p->word.size - from), p->word.text + from);
	return fail(p, p->word.position[from],
		"\"%.60s\" is no kind of probe%s (kinds: tracepoint, kprobe, kretprobe, uprobe, uretprobe, usdt)",
		wanted, near_text(&near, words, sizeof(words)));
}

/* How long a NAME= is at the word's begin, with the '='; 0: there is none. A path may hold '=', but only
 * behind the kind's colon. */
static size_t name_length(const struct word *w)
{
	size_t i = 0;

	while (i < w->size && (is_word(w->text[i]) || w->text[i] == '-' || w->text[i] == '.') && !w->literal[i])
		i++;
	return i < w->size && w->text[i] == '=' && !w->literal[i] ? i + 1 : 0;
}

static void default_name(struct probe_spec *spec)
{
	if (spec->kind == PROBE_TRACEPOINT)
		(void)snprintf(spec->name, sizeof(spec->name), "%s:%s", spec->system, spec->event);
	else if (spec->by_offset)
		(void)snprintf(spec->name, sizeof(spec->name), "0x%llx", (unsigned long long)spec->offset);
	else
		memcpy(spec->name, spec->symbol, sizeof(spec->name));
}

static int parse_definition(struct parser *p)
{
	size_t from, colon;
	int rc;

	skip_blanks(p);
	rc = read_word(p);
	if (rc)
		return rc;
	if (p->word.size == 0)
		return fail(p, p->at, "a probe is KIND:PLACE, for example tracepoint:sched:sched_switch");
	from = name_length(&p->word);
	colon = find_first(&p->word, from, p->word.size, ':');
	if (from == 1)
		return fail(p, p->word.position[0], "a name is missing in front of '='; a probe without one is KIND:PLACE");
	if (from > 0) {
		rc = copy_part(p, 0, from - 1, p->spec->name, sizeof(p->spec->name), "the probe's name");
		if (rc)
			return rc;
	}
	rc = parse_kind(p, from, colon);
	if (rc)
		return rc;
	if (colon == p->word.size)
		return fail(p, p->word.position[colon], "\"%s\" needs a place behind a colon",
			probe_spec_kind_name(p->spec->kind));
	rc = parse_place(p, colon + 1, p->word.size);
	if (rc == 0 && from == 0)
		default_name(p->spec);
	return rc;
}

/* ---- arguments and filter ---- */

/* The argument's end, and its unquoted type colon (or its end). */
static int scan_argument(struct parser *p, size_t *ret_colon, size_t *ret_end)
{
	size_t i = p->at, colon = SIZE_MAX, quote = SIZE_MAX;

	for (; p->text[i] && (quote != SIZE_MAX || !is_blank(p->text[i])); i++) {
		if (is_control(p->text[i]))
			return fail(p, i, "a control character in a fetch argument");
		if (p->text[i] == '"')
			quote = quote == SIZE_MAX ? i : SIZE_MAX;
		else if (p->text[i] == ':' && quote == SIZE_MAX && colon == SIZE_MAX)
			colon = i;
	}
	if (quote != SIZE_MAX)
		return fail(p, quote, "this quote is not closed");
	*ret_end = i;
	*ret_colon = colon == SIZE_MAX ? i : colon;
	return 0;
}

static int keep_text(struct parser *p, size_t from, size_t to, uint16_t *ret)
{
	struct probe_spec *spec = p->spec;

	if (to - from >= sizeof(spec->fetch) - spec->fetch_size)
		return fail(p, from, "the fetch arguments are longer than %zu bytes in all", sizeof(spec->fetch) - 1);
	*ret = (uint16_t)spec->fetch_size;
	memcpy(spec->fetch + spec->fetch_size, p->text + from, to - from);
	spec->fetch_size += to - from;
	spec->fetch[spec->fetch_size++] = '\0';
	return 0;
}

static int parse_argument_name(struct parser *p, struct probe_spec_arg *arg, size_t end, size_t *ret_after)
{
	size_t i = p->at;

	while (i < end && is_word(p->text[i]))
		i++;
	if (i == end || p->text[i] != '=')
		return fail(p, i, "an argument is NAME=FETCH[:TYPE]; a filter begins with \"if\"");
	if (i == p->at || is_digit(p->text[p->at]))
		return fail(p, p->at, "an argument's name begins with a letter or '_'");
	if (i - p->at >= sizeof(arg->name))
		return fail(p, p->at, "an argument's name has at most %zu bytes", sizeof(arg->name) - 1);
	memcpy(arg->name, p->text + p->at, i - p->at);
	arg->name[i - p->at] = '\0';
	*ret_after = i + 1;
	return 0;
}

static int parse_argument(struct parser *p)
{
	struct probe_spec *spec = p->spec;
	struct probe_spec_arg *arg = &spec->args[spec->arg_count];
	size_t colon = 0, end = 0, fetch = 0;
	int rc;

	if (spec->arg_count == PROBE_SPEC_ARGS_MAX)
		return fail(p, p->at, "a probe has at most %d arguments", PROBE_SPEC_ARGS_MAX);
	rc = scan_argument(p, &colon, &end);
	if (rc == 0)
		rc = parse_argument_name(p, arg, end, &fetch);
	if (rc)
		return rc;
	for (size_t i = 0; i < spec->arg_count; i++)
		if (strcmp(spec->args[i].name, arg->name) == 0)
			return fail(p, p->at, "two arguments are named \"%s\"", arg->name);
	if (fetch >= colon)
		return fail(p, fetch, "\"%s\" says nothing to fetch", arg->name);
	if (colon < end && colon + 1 == end)
		return fail(p, end, "the type is missing behind the colon");
	arg->position = (int)p->at;
	arg->fetch_position = (int)fetch;
	rc = keep_text(p, fetch, colon, &arg->fetch);
	if (rc == 0)
		rc = keep_text(p, colon < end ? colon + 1 : end, end, &arg->type);
	spec->arg_count++;
	/* What a tracepoint does not record another probe on it fetches. */
	if (spec->kind == PROBE_TRACEPOINT)
		spec->kind = PROBE_EVENT;
	p->at = end;
	return rc;
}

static int parse_filter(struct parser *p)
{
	struct probe_spec *spec = p->spec;
	size_t end = p->size;

	p->at += 2;
	skip_blanks(p);
	while (end > p->at && is_blank(p->text[end - 1]))
		end--;
	if (p->at == end)
		return fail(p, p->at, "a filter is missing behind \"if\"");
	if (end - p->at >= sizeof(spec->filter))
		return fail(p, p->at, "the filter is longer than %zu bytes", sizeof(spec->filter) - 1);
	spec->filter_position = (int)p->at;
	memcpy(spec->filter, p->text + p->at, end - p->at);
	p->at = p->size;
	return 0;
}

/* "stack" and "ustack". */
static bool parse_stack(struct parser *p)
{
	const char *rest = p->text + p->at;
	bool is_user = *rest == 'u';

	rest += is_user;
	if (strncmp(rest, "stack", 5) != 0 || (rest[5] != '\0' && !is_blank(rest[5])))
		return false;
	*(is_user ? &p->spec->ustack : &p->spec->stack) = true;
	p->at += 5U + is_user;
	return true;
}

/* What follows the place. */
static int parse_rest(struct parser *p, bool may_filter)
{
	for (;;) {
		const char *rest;
		int rc;

		skip_blanks(p);
		rest = p->text + p->at;
		if (*rest == '\0')
			return 0;
		if (parse_stack(p))
			continue;
		if (may_filter && rest[0] == 'i' && rest[1] == 'f' && (rest[2] == '\0' || is_blank(rest[2])))
			rc = parse_filter(p);
		else
			rc = parse_argument(p);
		if (rc)
			return rc;
	}
}

static int parser_init(struct parser *p, const char *text, struct probe_spec *spec, struct probe_spec_error *error)
{
	p->text = text;
	p->size = strlen(text);
	p->at = 0;
	p->spec = spec;
	p->error = error;
	p->word.size = 0;
	if (p->size > PROBE_SPEC_TEXT_MAX)
		return fail(p, PROBE_SPEC_TEXT_MAX, "the definition is longer than %d bytes", PROBE_SPEC_TEXT_MAX);
	return 0;
}

int probe_spec_parse(const char *text, struct probe_spec *ret, struct probe_spec_error *ret_error)
{
	struct parser p;
	int rc = parser_init(&p, text, ret, ret_error);

	memset(ret, 0, sizeof(*ret));
	if (rc == 0)
		rc = parse_definition(&p);
	return rc ? rc : parse_rest(&p, true);
}

int probe_spec_add_arguments(const char *text, struct probe_spec *spec, struct probe_spec_error *ret_error)
{
	struct parser p;
	int rc = parser_init(&p, text, spec, ret_error);

	return rc ? rc : parse_rest(&p, false);
}
