/* ftrace's text: lines, and events joined from them, in pieces of any size. The first byte says how large
 * the pieces are, the second how the emitter answers. */
#include "router/text_join.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

struct taken {
	unsigned int answers;
	size_t lines, bytes;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void require_inside(const struct text_line *line, const struct text_piece *piece)
{
	require(piece->at >= line->whole.at && piece->at + piece->size <= line->whole.at + line->whole.size);
}

static int take(void *context, const struct text_joined *joined)
{
	const struct text_line *line = &joined->line;
	struct taken *taken = context;
	struct text_line again;
	char name[64];
	unsigned int answer = taken->answers & 3;

	require(line->kind >= TEXT_EVENT && line->kind <= TEXT_TOO_BIG);
	require_inside(line, &line->comm);
	require_inside(line, &line->flags);
	require_inside(line, &line->name);
	require_inside(line, &line->body);
	(void)text_event_name(line, name, sizeof(name));
	taken->answers = taken->answers >> 2 | answer << 6;
	if (line->kind == TEXT_EVENT && answer == TEXT_JOIN_OPEN && !joined->last)
		return TEXT_JOIN_OPEN;
	if (line->kind == TEXT_EVENT) {
		/* Newlines of its own don't change what an event is. */
		text_line_parse(line->whole.at, line->whole.size, &again);
		require(again.kind == TEXT_EVENT && again.pid == line->pid && again.time == line->time &&
			again.body.at == line->body.at && again.body.size == line->body.size);
	}
	taken->lines++;
	taken->bytes += line->whole.size;
	return answer == 2 ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct taken taken = { 0 };
	struct text_join join;
	size_t piece;

	if (size < 2)
		return;
	piece = bytes[0] ? bytes[0] : 65536;
	taken.answers = bytes[1];
	text_join_init(&join);
	for (size_t at = 2; at < size; at += piece) {
		const size_t left = size - at;

		require(text_join_feed(&join, (const char *)bytes + at, left < piece ? left : piece, take, &taken) == 0);
		if (at % 3 == 0)
			require(text_join_flush(&join, take, &taken) == 0);
	}
	require(text_join_end(&join, take, &taken) == 0);
	/* Nothing is shown twice, whatever was swallowed and given back. */
	require(taken.bytes <= size - 2);
	text_join_release(&join);
}
