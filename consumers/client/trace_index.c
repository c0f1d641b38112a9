#include "consumers/client/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void trace_index_release(struct trace_index *index)
{
	free(index->rows);
	memset(index, 0, sizeof(*index));
}

static void index_put(struct trace_index *index, struct trace_part *part)
{
	size_t i = trace_index_place(index, part->id);

	while (index->rows[i].part)
		i = (i + 1) & (index->room - 1);
	index->rows[i].id = part->id;
	index->rows[i].part = part;
	index->used++;
}

/* Builds the table anew with this room, leaving `but` out. */
static int index_rebuild(struct trace_index *index, size_t room, const struct trace_part *but)
{
	struct trace_index new = { .rows = calloc(room, sizeof(*new.rows)), .room = room };

	if (!new.rows)
		return -ENOMEM;
	for (size_t i = 0; i < index->room; i++)
		if (index->rows[i].part && index->rows[i].part != but)
			index_put(&new, index->rows[i].part);
	free(index->rows);
	*index = new;
	return 0;
}

int trace_index_add(struct trace_index *index, struct trace_part *part)
{
	int rc = 0;

	if (trace_index_find(index, part->id))
		return -EEXIST;
	if (2 * (index->used + 1) > index->room)
		rc = index_rebuild(index, index->room ? 2 * index->room : 16, NULL);
	if (rc == 0)
		index_put(index, part);
	return rc;
}

/* Takes the row out in place and moves the rows behind it that would no longer be found. */
void trace_index_remove(struct trace_index *index, const struct trace_part *part)
{
	size_t mask = index->room - 1, hole, i;

	if (trace_index_find(index, part->id) != part)
		return;
	for (hole = trace_index_place(index, part->id); index->rows[hole].part != part;)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; index->rows[i].part; i = (i + 1) & mask) {
		size_t home = trace_index_place(index, index->rows[i].id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		index->rows[hole] = index->rows[i];
		hole = i;
	}
	index->rows[hole].part = NULL;
	index->used--;
}

