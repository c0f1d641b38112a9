#include "consumers/cli/near_name.h"

#include <string.h>

#define NEAR_NAME_MAX 64

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One row of the table: the costs of turning a's first i letters into each beginning of b. */
static void near_name_row(const char *a, size_t i, const char *b, size_t length_b, size_t rows[3][NEAR_NAME_MAX + 1])
{
	size_t *row = rows[i % 3];
	const size_t *before = rows[(i + 2) % 3];
	const size_t *two_before = rows[(i + 1) % 3];

	row[0] = i;
	for (size_t j = 1; j <= length_b; j++) {
		size_t replaced = before[j - 1] + (a[i - 1] != b[j - 1]);

		row[j] = least(replaced, least(before[j], row[j - 1]) + 1);
		if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
			row[j] = least(row[j], two_before[j - 2] + 1);
	}
}

size_t near_name_distance(const char *a, const char *b, size_t limit)
{
	size_t rows[3][NEAR_NAME_MAX + 1] = { { 0 } };
	size_t length_a = strlen(a), length_b = strlen(b);

	if (length_a > NEAR_NAME_MAX || length_b > NEAR_NAME_MAX)
		return limit;
	for (size_t j = 0; j <= length_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= length_a; i++)
		near_name_row(a, i, b, length_b, rows);
	return least(rows[length_a % 3][length_b], limit);
}

void near_name_init(struct near_name *near, const char *wanted)
{
	size_t length = strlen(wanted);

	/* A third of the letters may be wrong; of a short name, one. */
	*near = (struct near_name){ .wanted = wanted, .distance = length < 6 ? 2 : length / 3 + 1 };
}

void near_name_offer(struct near_name *near, const char *name)
{
	size_t distance = near_name_distance(near->wanted, name, near->distance);

	if (distance < near->distance) {
		near->distance = distance;
		near->best = name;
	}
}
