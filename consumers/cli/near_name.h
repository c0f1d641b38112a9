/* "Did you mean": which of the known names was probably meant. */
#ifndef TRACEFAN_CLI_NEAR_NAME_H
#define TRACEFAN_CLI_NEAR_NAME_H

#include <stddef.h>

/* The edit distance of two names, neighbouring letters swapped counting as one. `limit` or more is told as
 * `limit`. */
size_t near_name_distance(const char *a, const char *b, size_t limit);

struct near_name {
	const char *wanted;
	const char *best; /* NULL: nothing is near */
	size_t distance;
};

void near_name_init(struct near_name *near, const char *wanted);
void near_name_offer(struct near_name *near, const char *name);

#endif
