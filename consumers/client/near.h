/* Near names: what a user may have meant, by edit distance. Pure. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_NEAR_H
#define TRACEFAN_CONSUMERS_CLIENT_NEAR_H

#include <stddef.h>

#define NEAR_BEST     3
#define NEAR_NAME_MAX 128

struct near {
	const char *wanted; /* borrowed for as long as names are offered */
	size_t wanted_size;
	unsigned int limit; /* names further away are of no help */
	size_t count;
	struct {
		unsigned int distance;
		char name[NEAR_NAME_MAX];
	} best[NEAR_BEST];
};

void near_init(struct near *near, const char *wanted);

/* Offers one name; kept if it is among the nearest so far. Names that are longer than NEAR_NAME_MAX - 1
 * bytes are passed over. */
void near_offer(struct near *near, const char *name);

/* Edits (insert, delete, replace, swap of neighbours) from one text to the other, or limit + 1 when there
 * are more than `limit`. Texts longer than NEAR_NAME_MAX - 1 are that far from all. */
unsigned int near_distance(const char *a, size_t a_size, const char *b, size_t b_size, unsigned int limit);

/* "; did you mean a, b or c?", or "" when nothing is near. Returns text. */
const char *near_text(const struct near *near, char *text, size_t size);

#endif
