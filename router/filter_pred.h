/* One comparison of a compiled filter: a field and the values that it accepts. Immutable once made
 * and counted by reference, so that trees, programs and indexes share it. False for an event that
 * lacks the field, whether or not it is negated. */
#ifndef TRACEFAN_ROUTER_FILTER_PRED_H
#define TRACEFAN_ROUTER_FILTER_PRED_H

#include "router/filter_field.h"
#include "router/filter_glob.h"
#include "router/filter_regex.h"
#include "router/filter_strings.h"

enum pred_kind {
	PRED_RANGES,  /* a number is in `ranges` (order keys) */
	PRED_BITS,    /* number & mask == value */
	PRED_STRINGS, /* a string is in `strings` */
	PRED_PATTERN, /* a string has the form `shape` of `text` */
	PRED_REGEX,   /* a string matches `text` */
	PRED_CPUS,    /* a cpumask has one of the CPUs in `ranges`, or (`whole`) just them */
};

struct filter_pred {
	uint32_t refs;
	enum pred_kind kind;
	bool negated; /* never for PRED_RANGES */
	bool whole;
	enum filter_glob_shape shape;
	uint64_t hash;
	struct filter_field field;
	struct filter_ranges ranges;
	uint64_t mask, value;
	struct filter_strings strings;
	char *text; /* with a NUL behind it */
	size_t text_size;
	struct filter_regex *regex;
};

/* A new comparison with the field, with its own reference to the field's schema; the maker fills in
 * the rest, then calls filter_pred_seal. NULL: no memory. */
struct filter_pred *filter_pred_create(const struct filter_field *field, enum pred_kind kind);
/* Computes the hash. Nothing changes afterwards. */
void filter_pred_seal(struct filter_pred *pred);
struct filter_pred *filter_pred_ref(struct filter_pred *pred);
void filter_pred_release(struct filter_pred *pred);

bool filter_pred_test(const struct filter_pred *pred, const struct filter_event *event);
/* The same; adds 1 to *limited where a regular expression gave up. */
static inline bool filter_pred_count(
	const struct filter_pred *pred, const struct filter_event *event, uint64_t *limited)
{
	uint64_t before;
	bool said;

	if (pred->kind != PRED_REGEX)
		return filter_pred_test(pred, event);
	before = filter_regex_limited(pred->regex);
	said = filter_pred_test(pred, event);
	*limited += filter_regex_limited(pred->regex) - before;
	return said;
}
bool filter_pred_test_text(const struct filter_pred *pred, const char *text, size_t size);

bool filter_pred_equal(const struct filter_pred *a, const struct filter_pred *b);
/* Whether every event that a accepts is accepted by b. False when it isn't known. */
bool filter_pred_implies(const struct filter_pred *a, const struct filter_pred *b);
/* Accepts no event at all. */
bool filter_pred_is_empty(const struct filter_pred *pred);
/* One comparison for both: a || b, or (`both`) a && b. Returns 1 with *ret, 0 when there is none,
 * -ENOMEM. */
int filter_pred_merge(const struct filter_pred *a, const struct filter_pred *b, bool both,
	struct filter_pred **ret);
/* An order for lists of comparisons: first those that cost little, then as in the schema. */
int filter_pred_compare(const struct filter_pred *a, const struct filter_pred *b);

/* Mixes 64 bits so that any change of the input changes about half of them. */
static inline uint64_t filter_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}
uint64_t filter_hash_text(uint64_t seed, const char *text, size_t size);

#endif
