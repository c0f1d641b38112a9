#include "router/span.h"

#include <stddef.h>
#include <string.h>

void span_skip_blanks(struct span *s)
{
	while (s->at < s->end && span_is_blank(*s->at))
		s->at++;
}

struct span span_trim(struct span s)
{
	span_skip_blanks(&s);
	while (s.end > s.at && span_is_blank(s.end[-1]))
		s.end--;
	return s;
}

bool span_take(struct span *s, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
		return false;
	s->at += length;
	return true;
}

void span_skip_quoted(struct span *s)
{
	char quote = *s->at++;

	while (s->at < s->end && *s->at != quote)
		s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
	if (s->at < s->end)
		s->at++;
}

void span_skip_to(struct span *s, char stop)
{
	unsigned int depth = 0;

	while (s->at < s->end) {
		char c = *s->at;

		if (c == '"' || c == '\'') {
			span_skip_quoted(s);
			continue;
		}
		if (!depth && c == stop)
			return;
		if (c == '(' || c == '[' || c == '{') {
			depth++;
		} else if (c == ')' || c == ']' || c == '}') {
			if (!depth)
				return;
			depth--;
		}
		s->at++;
	}
}

bool span_argument(struct span *s, struct span *ret)
{
	span_skip_blanks(s);
	if (!span_take(s, ","))
		return false;
	ret->at = s->at;
	span_skip_to(s, ',');
	ret->end = s->at;
	return true;
}
