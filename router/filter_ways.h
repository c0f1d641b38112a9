/* The ways in to many filters: an event that has a value in a field may be for those who want that
 * value there. Also which part of a filter is best looked up. */
#ifndef TRACEFAN_ROUTER_FILTER_WAYS_H
#define TRACEFAN_ROUTER_FILTER_WAYS_H

#include "router/filter_code.h"
#include "router/filter_table.h"

struct group;

struct way_in {
	struct table_link link; /* of its field's values */
	struct group *group;
	uint64_t value;                 /* an order key; of a string its size */
	const char *text;               /* NULL: a number; else borrowed from the group's tree */
	struct filter_code *rest;       /* NULL: nothing else is asked */
};

/* The ways in by one field. */
struct ways_field {
	struct ways_field *next;
	struct filter_field field; /* borrowed from `pred` */
	struct filter_pred *pred;
	struct filter_table values;
};

struct filter_ways {
	uint64_t seed;
	struct ways_field *fields;
};

/* What it is to find a tree's events by the values of one field or several. */
struct ways_cover {
	size_t values; /* 0: they can't be found so */
	size_t others; /* ways in that others have by the rarest of them */
};

/* An event that a conjunction accepts is accepted by each of its parts, so one of them will do:
 * *ret_best, whose values are the rarest. What all consumers ask alike is not what they are told
 * apart by. */
struct ways_cover filter_ways_cover(
	const struct filter_ways *ways, const struct filter_node *node, size_t *ret_best);

/* The field of a comparison, made if it isn't there; NULL: no memory. */
struct ways_field *filter_ways_field(struct filter_ways *ways, struct filter_pred *pred);
/* Adds a way like `model`, whose group and rest count, to the comparison's field for each of its
 * values: into `room`, which has as many places as the comparison's cover has values. Returns how
 * many. */
size_t filter_ways_add(struct filter_ways *ways, const struct filter_pred *pred,
	struct ways_field *field, struct way_in model, struct way_in *room);

/* All ways have been removed. */
void filter_ways_release(struct filter_ways *ways);

static inline void filter_ways_remove(struct ways_field *field, struct way_in *way)
{
	filter_table_remove(&field->values, &way->link);
}

static inline uint64_t filter_ways_hash(const struct filter_ways *ways, uint64_t value)
{
	return filter_mix(value ^ ways->seed);
}

/* A string's size is its value; `text` is NULL for numbers. */
static inline bool filter_ways_equal(const struct way_in *way, const char *text, uint64_t value)
{
	return way->value == value && (!text || !memcmp(way->text, text, value));
}

#endif
