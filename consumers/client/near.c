#include "consumers/client/near.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void near_init(struct near *near, const char *wanted)
{
	memset(near, 0, sizeof(*near));
	near->wanted = wanted;
	near->wanted_size = strlen(wanted);
	near->limit = (unsigned int)(near->wanted_size / 3);
	if (near->limit == 0)
		near->limit = 1;
	if (near->limit > 8)
		near->limit = 8;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int near_distance(const char *a, size_t a_size, const char *b, size_t b_size, unsigned int limit)
{
	uint8_t rows[3][NEAR_NAME_MAX]; /* the present row and two before it, for swapped neighbours */
	size_t difference = a_size > b_size ? a_size - b_size : b_size - a_size;

	if (a_size >= NEAR_NAME_MAX || b_size >= NEAR_NAME_MAX || difference > limit)
		return limit + 1;
	for (size_t j = 0; j <= b_size; j++)
		rows[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= a_size; i++) {
		const uint8_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
		uint8_t *row = rows[i % 3];
		unsigned int row_least = (unsigned int)i;

		row[0] = (uint8_t)i;
		for (size_t j = 1; j <= b_size; j++) {
			unsigned int d = above[j - 1] + (a[i - 1] != b[j - 1]);

			d = least(d, least(above[j], row[j - 1]) + 1U);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, above2[j - 2] + 1U);
			row[j] = (uint8_t)d;
			row_least = least(row_least, d);
		}
		if (row_least > limit)
			return limit + 1;
	}
	return least(rows[a_size % 3][b_size], limit + 1);
}

/* A name that holds the wanted one whole is nearer than its length says: "openat" for "do_sys_openat2". */
static unsigned int distance_to(const struct near *near, const char *name, size_t size)
{
	unsigned int d = near_distance(near->wanted, near->wanted_size, name, size, near->limit);

	if (d > near->limit && near->wanted_size >= 4 && strstr(name, near->wanted))
		d = near->limit;
	return d;
}

void near_offer(struct near *near, const char *name)
{
	size_t size = strlen(name), at;
	unsigned int d;

	if (size == 0 || size >= NEAR_NAME_MAX)
		return;
	d = distance_to(near, name, size);
	if (d > near->limit)
		return;
	for (size_t i = 0; i < near->count; i++)
		if (strcmp(near->best[i].name, name) == 0)
			return;
	for (at = near->count; at > 0 && near->best[at - 1].distance > d; at--)
		;
	if (at == NEAR_BEST)
		return;
	if (near->count < NEAR_BEST)
		near->count++;
	memmove(&near->best[at + 1], &near->best[at], (near->count - 1 - at) * sizeof(near->best[0]));
	near->best[at].distance = d;
	memcpy(near->best[at].name, name, size + 1);
}

const char *near_text(const struct near *near, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < near->count && used < size; i++) {
		const char *before = i == 0 ? "; did you mean " : i + 1 < near->count ? ", " : " or ";
		const char *after = i + 1 == near->count ? "?" : "";
		int n = snprintf(text + used, size - used, "%s%s%s", before, near->best[i].name, after);

		if (n < 0)
			break;
		used += (size_t)n;
	}
	return text;
}
