#include "router/filter_strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int filter_strings_add(struct filter_strings *strings, const char *text, size_t size)
{
	char *copy;

	if (strings->count == strings->room) {
		size_t room = strings->room ? 2 * strings->room : 4;
		struct filter_string *moved = realloc(strings->at, room * sizeof(*moved));

		if (!moved)
			return -ENOMEM;
		strings->at = moved;
		strings->room = room;
	}
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, text, size);
	copy[size] = '\0';
	strings->at[strings->count++] = (struct filter_string){ copy, size };
	return 0;
}

static int order(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int way = common ? memcmp(a, b, common) : 0;

	if (way)
		return way;
	return a_size < b_size ? -1 : a_size > b_size;
}

static int compare_strings(const void *left, const void *right)
{
	const struct filter_string *a = left, *b = right;

	return order(a->at, a->size, b->at, b->size);
}

void filter_strings_normalise(struct filter_strings *strings)
{
	size_t kept = 0;

	if (strings->count < 2)
		return;
	qsort(strings->at, strings->count, sizeof(strings->at[0]), compare_strings);
	for (size_t i = 1; i < strings->count; i++) {
		if (!compare_strings(&strings->at[kept], &strings->at[i]))
			free(strings->at[i].at);
		else
			strings->at[++kept] = strings->at[i];
	}
	strings->count = kept + 1;
}

void filter_strings_release(struct filter_strings *strings)
{
	for (size_t i = 0; i < strings->count; i++)
		free(strings->at[i].at);
	free(strings->at);
	*strings = (struct filter_strings){ 0 };
}

bool filter_strings_contain(const struct filter_strings *strings, const char *text, size_t size)
{
	size_t low = 0, high = strings->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int way = order(text, size, strings->at[middle].at, strings->at[middle].size);

		if (!way)
			return true;
		if (way < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

bool filter_strings_inside(const struct filter_strings *a, const struct filter_strings *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!filter_strings_contain(b, a->at[i].at, a->at[i].size))
			return false;
	return true;
}

bool filter_strings_equal(const struct filter_strings *a, const struct filter_strings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (compare_strings(&a->at[i], &b->at[i]))
			return false;
	return true;
}

/* Adds those of `from` to `to` that are (`wanted`) or are not in `others`. NULL: all. */
static int add_those(struct filter_strings *to, const struct filter_strings *from,
	const struct filter_strings *others, bool wanted)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct filter_string *string = &from->at[i];

		if (others && filter_strings_contain(others, string->at, string->size) != wanted)
			continue;
		if (filter_strings_add(to, string->at, string->size)) {
			filter_strings_release(to);
			return -ENOMEM;
		}
	}
	return 0;
}

int filter_strings_union(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret)
{
	struct filter_strings joined = { 0 };

	if (add_those(&joined, a, NULL, true) || add_those(&joined, b, a, false))
		return -ENOMEM;
	filter_strings_normalise(&joined);
	*ret = joined;
	return 0;
}

int filter_strings_intersection(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret)
{
	struct filter_strings common = { 0 };

	if (add_those(&common, a, b, true))
		return -ENOMEM;
	*ret = common;
	return 0;
}

int filter_strings_difference(
	const struct filter_strings *a, const struct filter_strings *b, struct filter_strings *ret)
{
	struct filter_strings rest = { 0 };

	if (add_those(&rest, a, b, false))
		return -ENOMEM;
	*ret = rest;
	return 0;
}
