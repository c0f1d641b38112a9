#include "consumers/cli/probe_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The end of the first word, the place: a blank that is neither in quotes nor behind a backslash. */
static const char *probe_text_place_end(const char *text)
{
	char quote = 0;

	for (; *text && (quote || !is_blank(*text)); text++) {
		if (*text == '\\' && quote != '\'' && text[1])
			text++;
		else if (quote && *text == quote)
			quote = 0;
		else if (!quote && (*text == '"' || *text == '\''))
			quote = *text;
	}
	return text;
}

/* The end of an argument, where only double quotes count. */
static const char *probe_text_argument_end(const char *text)
{
	bool quoted = false;

	for (; *text && (quoted || !is_blank(*text)); text++)
		quoted ^= *text == '"';
	return text;
}

/* The word "if" that begins the probe's own filter, or the text's end. */
static const char *probe_text_if(const char *probe)
{
	const char *at = probe_text_place_end(probe);

	for (;;) {
		const char *end;

		while (is_blank(*at))
			at++;
		end = probe_text_argument_end(at);
		if (!*at || (end - at == 2 && memcmp(at, "if", 2) == 0))
			return at;
		at = end;
	}
}

/* The next word behind *at and before `filter`, which *at is moved past; NULL: there is none. */
static const char *probe_text_word(const char **at, const char *filter, size_t *ret_size)
{
	const char *word = *at;

	while (is_blank(*word))
		word++;
	if (word >= filter)
		return NULL;
	*at = probe_text_argument_end(word);
	*ret_size = (size_t)(*at - word);
	return word;
}

/* Bits of those that the word asks for: 1 the kernel's, 2 the program's. */
static unsigned int probe_text_stack(const char *word, size_t size)
{
	if (size == 5 && memcmp(word, "stack", 5) == 0)
		return 1;
	return size == 6 && memcmp(word, "ustack", 6) == 0 ? 2 : 0;
}

/* Which stacks are asked for, as the words that ask for them. */
static const char *probe_text_stacks(const char *probe)
{
	static const char *const words[] = { "", " stack", " ustack", " stack ustack" };
	const char *at = probe_text_place_end(probe), *filter = probe_text_if(probe), *word;
	unsigned int which = 0;
	size_t size;

	while ((word = probe_text_word(&at, filter, &size)))
		which |= probe_text_stack(word, size);
	return words[which];
}

const char *probe_text_argument(const char *probe, size_t i, size_t *ret_size)
{
	const char *at = probe_text_place_end(probe), *filter = probe_text_if(probe), *word;

	while ((word = probe_text_word(&at, filter, ret_size))) {
		if (!probe_text_stack(word, *ret_size) && i-- == 0)
			break;
	}
	return word;
}

/* A definition's first word in parts; each is `size` bytes at `text`. */
struct part {
	const char *text;
	int size;
};

struct place {
	struct part name; /* empty: none was given */
	struct part kind; /* empty: it names none */
	struct part rest; /* behind the kind's colon */
};

static struct place probe_text_place(const char *probe)
{
	static const char *const kinds[] = { "tracepoint", "kprobe", "kretprobe", "uprobe", "uretprobe", "usdt" };
	const char *end = probe_text_place_end(probe);
	size_t name = strcspn(probe, "=:/ \t\n");
	struct place place = { .name = { probe, 0 }, .kind = { probe, 0 } };
	const char *rest = probe;

	if (probe[name] == '=') {
		place.name.size = (int)name;
		rest = probe + name + 1;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i]);

		if (strncmp(rest, kinds[i], length) == 0 && rest[length] == ':') {
			place.kind = (struct part){ rest, (int)length };
			rest += length + 1;
			break;
		}
	}
	place.rest = (struct part){ rest, (int)(end - rest) };
	return place;
}

/* What is left of a part behind its n-th last colon. */
static struct part probe_text_behind_colon(struct part part, int n)
{
	for (int i = part.size; i > 0; i--) {
		if (part.text[i - 1] == ':' && --n == 0)
			return (struct part){ part.text + i, part.size - i };
	}
	return part;
}

/* The name that a probe has by default: its symbol, or PROVIDER:NAME. */
static struct part probe_text_symbol(const struct place *place)
{
	struct part symbol = place->rest;
	const char *plus;

	if (place->kind.size > 0 && place->kind.text[0] == 'u')
		symbol = probe_text_behind_colon(symbol, strncmp(place->kind.text, "usdt", 4) == 0 ? 2 : 1);
	plus = memchr(symbol.text, '+', (size_t)symbol.size);
	if (plus)
		symbol.size = (int)(plus - symbol.text);
	return symbol;
}

static bool probe_text_is_tracepoint(const struct place *place)
{
	if (place->kind.size > 0)
		return place->kind.text[0] == 't';
	return memchr(place->rest.text, ':', (size_t)place->rest.size) != NULL;
}

char *probe_text_recorded(const char *probe)
{
	struct place place = probe_text_place(probe);
	const char *filter = probe_text_if(probe);
	const char *blank = *filter ? " " : "", *stacks = probe_text_stacks(probe);
	struct part symbol;
	char *text;
	int n;

	if (probe_text_is_tracepoint(&place)) {
		n = asprintf(&text, "%.*s%stracepoint:%.*s%s%s%s", place.name.size, place.name.text, place.name.size ? "=" : "",
			place.rest.size, place.rest.text, stacks, blank, filter);
	} else if (place.name.size > 0) {
		n = asprintf(&text, "%.*s=kprobe:recorded%s%s%s", place.name.size, place.name.text, stacks, blank, filter);
	} else {
		symbol = probe_text_symbol(&place);
		n = asprintf(&text, "kprobe:%.*s%s%s%s", symbol.size, symbol.text, stacks, blank, filter);
	}
	return n < 0 ? NULL : text;
}

int probe_text_position(const char *probe, const char *recorded, int position)
{
	struct place place = probe_text_place(probe);
	size_t size = strlen(recorded), filter = strlen(probe_text_if(probe));

	if (position < 0 || (size_t)position > size)
		return position;
	/* The filter is the end of both. */
	if (filter && size - (size_t)position <= filter)
		return (int)(strlen(probe) - (size - (size_t)position));
	if (probe_text_is_tracepoint(&place))
		return (int)(place.rest.text - probe);
	return place.name.size > 0 ? 0 : (int)(probe_text_symbol(&place).text - probe);
}
