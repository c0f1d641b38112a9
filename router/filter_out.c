#include "router/filter_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct filter_out *out, size_t more)
{
	size_t room = out->room ? out->room : 256;
	char *moved;

	if (more >= out->limit - out->size)
		out->full = true;
	if (out->full || out->failed)
		return false;
	while (out->size + more + 1 > room)
		room *= 2;
	if (room == out->room)
		return true;
	moved = realloc(out->at, room);
	if (!moved) {
		out->failed = true;
		return false;
	}
	out->at = moved;
	out->room = room;
	return true;
}

void filter_out_add(struct filter_out *out, const char *format, ...)
{
	va_list arguments;
	char small[128];
	int size;

	va_start(arguments, format);
	size = vsnprintf(small, sizeof(small), format, arguments);
	va_end(arguments);
	if (size < 0 || !make_room(out, (size_t)size))
		return;
	if ((size_t)size < sizeof(small)) {
		memcpy(out->at + out->size, small, (size_t)size + 1);
	} else {
		va_start(arguments, format);
		(void)vsnprintf(out->at + out->size, (size_t)size + 1, format, arguments);
		va_end(arguments);
	}
	out->size += (size_t)size;
}

void filter_out_quoted(struct filter_out *out, const char *text, size_t size)
{
	char quote = memchr(text, '"', size) ? '\'' : '"';

	if (!make_room(out, size + 2))
		return;
	out->at[out->size++] = quote;
	memcpy(out->at + out->size, text, size);
	out->size += size;
	out->at[out->size++] = quote;
	out->at[out->size] = '\0';
}
