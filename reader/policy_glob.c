#include "reader/policy_glob.h"

#include <stddef.h>
#include <string.h>

/* Where to go on when what follows a star doesn't match: the star takes one character more. */
struct star {
	const char *after; /* in the pattern; NULL: no such star yet */
	const char *name;  /* what it hasn't taken */
};

static bool retry(struct star *star, bool deep, const char **pattern, const char **name)
{
	if (!star->after || !*star->name || (!deep && *star->name == '/'))
		return false;
	*name = ++star->name;
	*pattern = star->after;
	return true;
}

/* The last star of each kind is all that has to be tried again: what an earlier one could take, the
 * later can, too. A "*" can't go past a '/', but the "**" before it can. */
bool policy_glob(const char *pattern, const char *name)
{
	struct star star = { 0 }, deep = { 0 };

	for (;;) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += strspn(pattern, "*");
			deep = (struct star){ .after = pattern, .name = name };
			star = (struct star){ 0 };
		} else if (*pattern == '*') {
			star = (struct star){ .after = ++pattern, .name = name };
		} else if (!*pattern && !*name) {
			return true;
		} else if (*pattern && *name &&
			   (*pattern == *name || (*pattern == '?' && *name != '/'))) {
			pattern++;
			name++;
		} else if (!retry(&star, false, &pattern, &name)) {
			star = (struct star){ 0 };
			if (!retry(&deep, true, &pattern, &name))
				return false;
		}
	}
}

bool policy_glob_is_exact(const char *pattern)
{
	return !strpbrk(pattern, "*?");
}
