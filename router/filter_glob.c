#include "router/filter_glob.h"

#include <stdint.h>

/* Matches one character against the class that begins behind glob[at], which is '['. Returns the
 * place behind the class, or 0 if it is never closed. A first ']' belongs to the class. */
static size_t match_class(
	const char *glob, size_t size, size_t at, unsigned char c, bool *ret_match)
{
	bool inverted = at + 1 < size && glob[at + 1] == '!', match = false;
	size_t next = at + 1 + inverted, first = next;

	while (next < size && (glob[next] != ']' || next == first)) {
		unsigned char low = (unsigned char)glob[next], high = low;

		if (next + 2 < size && glob[next + 1] == '-' && glob[next + 2] != ']') {
			high = (unsigned char)glob[next + 2];
			next += 2;
		}
		match |= low <= c && c <= high;
		next++;
	}
	if (next >= size)
		return 0;
	*ret_match = match != inverted;
	return next + 1;
}

/* One step of the glob that is no '*', against c. Returns the place behind the step, 0 for no
 * match. */
static size_t match_one(const char *glob, size_t size, size_t at, unsigned char c)
{
	bool match;
	size_t next;

	switch (glob[at]) {
	case '?':
		return at + 1;
	case '[':
		next = match_class(glob, size, at, c, &match);
		if (next)
			return match ? next : 0;
		break;
	case '\\':
		if (++at == size)
			return 0;
		break;
	default:
		break;
	}
	return (unsigned char)glob[at] == c ? at + 1 : 0;
}

/* Whether the rest of the glob matches the end of the text. To the kernel a last backslash escapes
 * the NUL behind it, and so matches just there. */
static bool match_end(const char *glob, size_t size, size_t at)
{
	return at == size || (at + 1 == size && glob[at] == '\\');
}

/* Only the last '*' is ever tried again, one byte further each time: glob times text steps. */
bool filter_glob_match(const char *glob, size_t glob_size, const char *text, size_t size)
{
	size_t at = 0, i = 0, star = SIZE_MAX, star_text = 0;

	for (;;) {
		if (at < glob_size && glob[at] == '*') {
			star = ++at;
			star_text = i;
			continue;
		}
		if (i == size)
			return match_end(glob, glob_size, at);
		if (at < glob_size) {
			size_t next = match_one(glob, glob_size, at, (unsigned char)text[i]);

			if (next) {
				at = next;
				i++;
				continue;
			}
		}
		if (star == SIZE_MAX)
			return false;
		at = star;
		i = ++star_text;
	}
}

enum filter_glob_shape filter_glob_shape(
	const char *glob, size_t glob_size, char *text, size_t *ret_size)
{
	size_t at = 0, end = glob_size, used = 0;
	bool front = false, back = false;

	while (at < end && glob[at] == '*') {
		front = true;
		at++;
	}
	for (; at < end; at++) {
		if (glob[at] == '*')
			break;
		if (glob[at] == '?' || glob[at] == '[')
			return GLOB_GENERAL;
		if (glob[at] == '\\' && ++at == end)
			return GLOB_GENERAL;
		text[used++] = glob[at];
	}
	for (; at < end; at++) {
		if (glob[at] != '*')
			return GLOB_GENERAL;
		back = true;
	}
	*ret_size = used;
	if (front && (back || !used))
		return GLOB_SUBSTRING;
	if (front)
		return GLOB_SUFFIX;
	return back ? GLOB_PREFIX : GLOB_LITERAL;
}
