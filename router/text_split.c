#include "router/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void text_split_init(struct text_split *split)
{
	*split = (struct text_split){ NULL, 0, 0 };
}

void text_split_release(struct text_split *split)
{
	free(split->held);
	text_split_init(split);
}

static int hold(struct text_split *split, const char *bytes, size_t size)
{
	size_t room = split->held_room ? split->held_room : 4096;

	while (room < split->held_size + size)
		room *= 2;
	if (room != split->held_room) {
		char *held = realloc(split->held, room);

		if (!held)
			return -ENOMEM;
		split->held = held;
		split->held_room = room;
	}
	memcpy(split->held + split->held_size, bytes, size);
	split->held_size += size;
	return 0;
}

/* One whole line that needs no holding, in pieces where it is too long. */
static int pass_on(const char *text, size_t size,
	int (*line)(void *context, const char *line, size_t size), void *context)
{
	int r = 0;

	while (r == 0 && size > TEXT_LINE_MAX) {
		r = line(context, text, TEXT_LINE_MAX);
		text += TEXT_LINE_MAX;
		size -= TEXT_LINE_MAX;
	}
	return r ? r : line(context, text, size);
}

static int pass_held(struct text_split *split,
	int (*line)(void *context, const char *line, size_t size), void *context)
{
	size_t size = split->held_size;

	split->held_size = 0;
	return line(context, split->held, size);
}

int text_split_feed(struct text_split *split, const char *bytes, size_t size,
	int (*line)(void *context, const char *line, size_t size), void *context)
{
	while (size) {
		const char *newline = memchr(bytes, '\n', size);
		size_t take = newline ? (size_t)(newline - bytes) : size;
		int r;

		if (newline && split->held_size == 0) {
			r = pass_on(bytes, take, line, context);
			take++;
		} else if (take && split->held_size == TEXT_LINE_MAX) {
			r = pass_held(split, line, context);
			take = 0;
		} else if (take > TEXT_LINE_MAX - split->held_size) {
			take = TEXT_LINE_MAX - split->held_size;
			r = hold(split, bytes, take);
		} else {
			r = hold(split, bytes, take);
			if (r == 0 && newline) {
				r = pass_held(split, line, context);
				take++;
			}
		}
		if (r)
			return r;
		bytes += take;
		size -= take;
	}
	return 0;
}

int text_split_end(struct text_split *split,
	int (*line)(void *context, const char *line, size_t size), void *context)
{
	return split->held_size ? pass_held(split, line, context) : 0;
}
