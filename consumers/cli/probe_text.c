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

char *probe_text_add_filter(const char *probe, const char *filter)
{
	const char *own = probe_text_if(probe);
	int before = (int)(own - probe);
	char *text;
	int n;

	if (*own)
		n = asprintf(&text, "%.*sif (%s) && (%s)", before, probe, own + 2 + strspn(own + 2, " \t\n"), filter);
	else
		n = asprintf(&text, "%.*s if %s", before, probe, filter);
	return n < 0 ? NULL : text;
}

static bool probe_text_names_kind(const char *probe)
{
	static const char *const kinds[] = { "tracepoint:", "kprobe:", "kretprobe:", "uprobe:", "uretprobe:", "usdt:" };
	size_t name = strcspn(probe, "=: \t\n");

	if (probe[name] == '=')
		probe += name + 1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(probe, kinds[i], strlen(kinds[i])) == 0)
			return true;
	}
	return false;
}

char *probe_text_recorded(const char *probe)
{
	char *text;

	return asprintf(&text, "%s%s", probe_text_names_kind(probe) ? "" : "tracepoint:", probe) < 0 ? NULL : text;
}
