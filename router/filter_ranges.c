#include "router/filter_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_low(const void *left, const void *right)
{
	const struct filter_range *a = left, *b = right;

	return a->low < b->low ? -1 : a->low > b->low;
}

static bool is_sorted(const struct filter_ranges *ranges)
{
	for (size_t i = 1; i < ranges->count; i++)
		if (ranges->at[i].low < ranges->at[i - 1].low)
			return false;
	return true;
}

/* Joins sorted ranges that touch or overlap. */
static void join_neighbours(struct filter_ranges *ranges)
{
	size_t kept = 0;

	if (ranges->count < 2)
		return;
	for (size_t i = 1; i < ranges->count; i++) {
		struct filter_range *last = &ranges->at[kept], next = ranges->at[i];

		if (last->high == UINT64_MAX || next.low <= last->high + 1) {
			if (next.high > last->high)
				last->high = next.high;
		} else {
			ranges->at[++kept] = next;
		}
	}
	ranges->count = kept + 1;
}

void filter_ranges_normalise(struct filter_ranges *ranges)
{
	if (!is_sorted(ranges))
		qsort(ranges->at, ranges->count, sizeof(ranges->at[0]), compare_low);
	join_neighbours(ranges);
}

bool filter_ranges_contain(const struct filter_ranges *ranges, uint64_t key)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (key > ranges->at[middle].high)
			low = middle + 1;
		else if (key < ranges->at[middle].low)
			high = middle;
		else
			return true;
	}
	return false;
}

bool filter_ranges_inside(const struct filter_ranges *a, const struct filter_ranges *b)
{
	size_t j = 0;

	for (size_t i = 0; i < a->count; i++) {
		while (j < b->count && b->at[j].high < a->at[i].low)
			j++;
		if (j == b->count || a->at[i].low < b->at[j].low || a->at[i].high > b->at[j].high)
			return false;
	}
	return true;
}

bool filter_ranges_equal(const struct filter_ranges *a, const struct filter_ranges *b)
{
	return a->count == b->count &&
	       (!a->count || !memcmp(a->at, b->at, a->count * sizeof(a->at[0])));
}

/* Room for `count` ranges; an empty set has some, too, so that NULL always means no memory. */
static struct filter_range *room_for(size_t count)
{
	return calloc(count ? count : 1, sizeof(struct filter_range));
}

int filter_ranges_union(
	const struct filter_ranges *a, const struct filter_ranges *b, struct filter_ranges *ret)
{
	struct filter_ranges joined = { 0, room_for(a->count + b->count) };
	size_t i = 0, j = 0;

	if (!joined.at)
		return -ENOMEM;
	while (i < a->count || j < b->count) {
		bool first = j == b->count || (i < a->count && a->at[i].low <= b->at[j].low);

		joined.at[joined.count++] = first ? a->at[i++] : b->at[j++];
	}
	join_neighbours(&joined);
	*ret = joined;
	return 0;
}

int filter_ranges_intersection(
	const struct filter_ranges *a, const struct filter_ranges *b, struct filter_ranges *ret)
{
	struct filter_ranges common = { 0, room_for(a->count + b->count) };
	size_t i = 0, j = 0;

	if (!common.at)
		return -ENOMEM;
	while (i < a->count && j < b->count) {
		uint64_t low = a->at[i].low > b->at[j].low ? a->at[i].low : b->at[j].low;
		uint64_t high = a->at[i].high < b->at[j].high ? a->at[i].high : b->at[j].high;

		if (low <= high)
			common.at[common.count++] = (struct filter_range){ low, high };
		if (a->at[i].high < b->at[j].high)
			i++;
		else
			j++;
	}
	*ret = common;
	return 0;
}

int filter_ranges_complement(
	const struct filter_ranges *ranges, struct filter_range domain, struct filter_ranges *ret)
{
	struct filter_ranges rest = { 0, room_for(ranges->count + 1) };
	uint64_t low = domain.low;
	bool open = true;

	if (!rest.at)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->at[i].low > low)
			rest.at[rest.count++] = (struct filter_range){ low, ranges->at[i].low - 1 };
		open = ranges->at[i].high < domain.high;
		if (!open)
			break;
		low = ranges->at[i].high + 1;
	}
	if (open)
		rest.at[rest.count++] = (struct filter_range){ low, domain.high };
	*ret = rest;
	return 0;
}

static int compare_number(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The widest gap that has to be filled so that `most` ranges are left; `equal` of just that width
 * are filled, the others stay. */
static int widest_filled(
	const struct filter_ranges *ranges, size_t most, uint64_t *ret_width, size_t *ret_equal)
{
	size_t gaps = ranges->count - 1, fill = ranges->count - most;
	uint64_t *widths = calloc(gaps, sizeof(*widths));

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < gaps; i++)
		widths[i] = ranges->at[i + 1].low - ranges->at[i].high;
	qsort(widths, gaps, sizeof(*widths), compare_number);
	*ret_width = widths[fill - 1];
	*ret_equal = 0;
	for (size_t i = 0; i < fill; i++)
		*ret_equal += widths[i] == *ret_width;
	free(widths);
	return 0;
}

int filter_ranges_coarsen(
	const struct filter_ranges *ranges, size_t most, struct filter_ranges *ret)
{
	struct filter_ranges coarse = { 0, NULL };
	uint64_t width = 0;
	size_t equal = 0;

	if (ranges->count > most && widest_filled(ranges, most, &width, &equal))
		return -ENOMEM;
	coarse.at = room_for(ranges->count);
	if (!coarse.at)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->count; i++) {
		uint64_t gap = i ? ranges->at[i].low - ranges->at[i - 1].high : 0;

		if (i && (gap < width || (gap == width && equal))) {
			equal -= gap == width;
			coarse.at[coarse.count - 1].high = ranges->at[i].high;
		} else {
			coarse.at[coarse.count++] = ranges->at[i];
		}
	}
	*ret = coarse;
	return 0;
}
