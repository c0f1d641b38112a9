/* Sets of strings, sorted, each once. */
#ifndef TRACEFAN_ROUTER_FILTER_STRINGS_H
#define TRACEFAN_ROUTER_FILTER_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

struct filter_string {
	char *at; /* owned, with a NUL behind it */
	size_t size;
};

struct filter_strings {
	size_t count, room;
	struct filter_string *at; /* owned */
};

/* Puts a copy in, whether or not it is in already; filter_strings_normalise comes after the last. 0
 * or -ENOMEM. */
int filter_strings_add(struct filter_strings *strings, const char *text, size_t size);
void filter_strings_normalise(struct filter_strings *strings);
void filter_strings_release(struct filter_strings *strings);

bool filter_strings_contain(const struct filter_strings *strings, const char *text, size_t size);
bool filter_strings_inside(const struct filter_strings *a, const struct filter_strings *b);
bool filter_strings_equal(const struct filter_strings *a, const struct filter_strings *b);

/* These make a new set, owned by the caller: what is in one or both, in both, in a only. 0 or
 * -ENOMEM. */
int filter_strings_union(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret);
int filter_strings_intersection(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret);
int filter_strings_difference(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret);

#endif
