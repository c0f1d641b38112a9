/* Sets of integers as sorted ranges that neither touch nor overlap. Every integer comparison of a
 * filter is one of these: `x != 3` is everything below and everything above. Values are order keys:
 * the field's 64 bits with the sign bit turned over for signed fields, so that unsigned order is
 * the field's order. */
#ifndef TRACEFAN_ROUTER_FILTER_RANGES_H
#define TRACEFAN_ROUTER_FILTER_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter_range {
	uint64_t low, high; /* both belong to it */
};

struct filter_ranges {
	size_t count;
	struct filter_range *at; /* owned: free */
};

/* Sorts and joins in place what touches or overlaps. */
void filter_ranges_normalise(struct filter_ranges *ranges);
bool filter_ranges_contain(const struct filter_ranges *ranges, uint64_t key);
/* Whether all of a lies in b. */
bool filter_ranges_inside(const struct filter_ranges *a, const struct filter_ranges *b);
bool filter_ranges_equal(const struct filter_ranges *a, const struct filter_ranges *b);

/* These make a new set, owned by the caller. Return 0 or -ENOMEM. */
int filter_ranges_union(
	const struct filter_ranges *a, const struct filter_ranges *b, struct filter_ranges *ret);
int filter_ranges_intersection(
	const struct filter_ranges *a, const struct filter_ranges *b, struct filter_ranges *ret);
/* All of domain that is not in the set, which lies inside it. */
int filter_ranges_complement(
	const struct filter_ranges *ranges, struct filter_range domain, struct filter_ranges *ret);
/* The same set or a greater one of at most `most` ranges (1 or more): the narrowest gaps are
 * filled. */
int filter_ranges_coarsen(
	const struct filter_ranges *ranges, size_t most, struct filter_ranges *ret);

#endif
