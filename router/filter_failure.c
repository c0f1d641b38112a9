/* What was wrong with a filter, in words: the message, the place, and names that may have been
 * meant. */
#include "router/filter_ast.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int filter_fail(struct filter_failure *failure, struct ast_piece where, const char *format, ...)
{
	va_list arguments;

	failure->position = (int32_t)where.at;
	failure->length = where.size ? (int32_t)where.size : 1;
	failure->near[0] = '\0';
	va_start(arguments, format);
	(void)vsnprintf(failure->message, sizeof(failure->message), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;

	return least < c ? least : c;
}

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* How many letters have to be added, taken away, changed or swapped with their neighbour; case
 * counts nothing. Names of 47 letters and fewer only. */
static unsigned int distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	unsigned int rows[3][48] = { 0 };
	unsigned int *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_size; j++)
		last[j] = (unsigned int)j;
	for (size_t i = 1; i <= a_size; i++) {
		unsigned int *spare = before;

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= b_size; j++) {
			unsigned int changed = fold(a[i - 1]) != fold(b[j - 1]);

			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + changed);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
				fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[b_size];
}

void filter_near_begin(struct filter_near *near, const char *wanted, size_t size)
{
	*near = (struct filter_near){ .wanted = wanted, .size = size };
}

static bool contains(const char *name, size_t size, const char *part, size_t part_size)
{
	if (part_size < 3)
		return false;
	for (size_t i = 0; i + part_size <= size; i++) {
		size_t same = 0;

		while (same < part_size && fold(name[i + same]) == fold(part[same]))
			same++;
		if (same == part_size)
			return true;
	}
	return false;
}

void filter_near_offer(struct filter_near *near, const char *name, size_t size)
{
	unsigned int far, slot;

	if (size >= sizeof(near->best[0].name) || near->size >= sizeof(near->best[0].name) || !size)
		return;
	far = distance(near->wanted, near->size, name, size);
	if (far > 1 + near->size / 3) {
		/* A name that holds the wanted one is near, however long the rest is. */
		if (!contains(name, size, near->wanted, near->size))
			return;
		far = 2 + (unsigned int)near->size / 3;
	}
	for (slot = 0; slot < near->count; slot++)
		if (strlen(near->best[slot].name) == size &&
			!memcmp(near->best[slot].name, name, size))
			return;
	for (slot = near->count; slot > 0 && near->best[slot - 1].distance > far; slot--)
		if (slot < FILTER_NEAR_MAX)
			near->best[slot] = near->best[slot - 1];
	if (slot == FILTER_NEAR_MAX)
		return;
	memcpy(near->best[slot].name, name, size);
	near->best[slot].name[size] = '\0';
	near->best[slot].distance = far;
	if (near->count < FILTER_NEAR_MAX)
		near->count++;
}

void filter_near_end(const struct filter_near *near, struct filter_failure *failure)
{
	size_t used = 0;

	for (unsigned int i = 0; i < near->count; i++)
		used += (size_t)snprintf(failure->near + used, sizeof(failure->near) - used, "%s%s",
			i ? ", " : "", near->best[i].name);
}

/* The line of the text in which the failure lies, and where in it. */
static void failing_line(
	const struct filter_failure *failure, const char *text, size_t *ret_start, size_t *ret_size)
{
	size_t size = strlen(text), at = failure->position < 0 ? 0 : (size_t)failure->position;
	size_t start, end;

	if (at > size)
		at = size;
	for (start = at; start > 0 && text[start - 1] != '\n'; start--)
		;
	for (end = at; end < size && text[end] != '\n'; end++)
		;
	*ret_start = start;
	*ret_size = end - start;
}

/* snprintf that goes on where the last one ended and keeps counting past the end. */
__attribute__((format(printf, 4, 5))) static void append(
	char *out, size_t room, size_t *used, const char *format, ...)
{
	va_list arguments;
	int written;

	va_start(arguments, format);
	written = vsnprintf(*used < room ? out + *used : NULL, *used < room ? room - *used : 0,
		format, arguments);
	va_end(arguments);
	if (written > 0)
		*used += (size_t)written;
}

int filter_failure_show(
	const struct filter_failure *failure, const char *text, char *out, size_t room)
{
	size_t start, size, used = 0;

	failing_line(failure, text, &start, &size);
	if (failure->position >= 0) {
		size_t column = (size_t)failure->position - start;
		size_t marks = (size_t)failure->length;

		if (column > size)
			column = size;
		if (marks > size - column)
			marks = size - column ? size - column : 1;
		append(out, room, &used, "  ");
		for (size_t i = 0; i < size; i++) {
			unsigned char c = (unsigned char)text[start + i];

			append(out, room, &used, "%c",
				c == '\t'              ? ' '
				: c < ' ' || c == 0x7f ? '?'
						       : c);
		}
		append(out, room, &used, "\n  %*s^", (int)column, "");
		for (size_t i = 1; i < marks; i++)
			append(out, room, &used, "~");
		append(out, room, &used, "\n");
	}
	append(out, room, &used, "%s", failure->message);
	if (failure->near[0])
		append(out, room, &used, "; near: %s", failure->near);
	append(out, room, &used, "\n");
	return (int)used;
}
