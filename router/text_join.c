#include "router/text_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The width of a name's column. */
#define COMM_WIDTH 16

void text_join_init(struct text_join *join)
{
	memset(join, 0, sizeof(*join));
	text_split_init(&join->split);
}

void text_join_release(struct text_join *join)
{
	text_split_release(&join->split);
	free(join->held.at);
	free(join->spare.at);
	free(join->named.at);
	text_join_init(join);
}

/* Appends `size` bytes behind a newline, which is left out at the beginning. */
static int buffer_add(struct text_buffer *buffer, const char *bytes, size_t size, bool newline)
{
	size_t want = buffer->size + size + newline;

	if (want > buffer->room) {
		size_t room = buffer->room ? buffer->room : 1024;
		char *at;

		while (room < want)
			room *= 2;
		at = realloc(buffer->at, room);
		if (!at)
			return -ENOMEM;
		buffer->at = at;
		buffer->room = room;
	}
	if (newline)
		buffer->at[buffer->size++] = '\n';
	if (size)
		memcpy(buffer->at + buffer->size, bytes, size);
	buffer->size += size;
	return 0;
}

/* ---- emitting ---- */

/* The kernel cuts markers where its buffers end, not the same in all versions: at 1024 bytes of old, at
 * a little less than a page now. */
static bool is_cut_marker(const struct text_line *line)
{
	static const char marker[] = "tracing_mark_write";
	size_t size = line->body.size;

	return line->name.size == sizeof(marker) - 1 && (size == 1023 || size == 1024 || size >= 4000) &&
	       memcmp(line->name.at, marker, sizeof(marker) - 1) == 0;
}

static void move_piece(struct text_piece *piece, const char *from, const char *to)
{
	piece->at = to + (piece->at - from);
}

/* Shows the first `size` bytes of the event that is held. */
static int show_event(struct text_join *join, size_t size, bool swallowed, bool last)
{
	struct text_joined joined = {
		.line = join->event,
		.swallowed = swallowed,
		.doubtful = join->doubtful,
		.partial = join->cut,
		.last = last,
	};
	const char *text = join->held.at, *from = join->event.whole.at;

	move_piece(&joined.line.comm, from, text);
	move_piece(&joined.line.flags, from, text);
	move_piece(&joined.line.name, from, text);
	move_piece(&joined.line.body, from, text);
	joined.line.whole = (struct text_piece){ text, size };
	joined.line.body.size = (size_t)(text + size - joined.line.body.at);
	joined.partial |= is_cut_marker(&joined.line);
	return join->emit(join->context, &joined);
}

/* The event has been taken, with `verdict`. */
static void drop_event(struct text_join *join, int verdict)
{
	if (join->multiple && verdict != TEXT_JOIN_SURE && join->held.size < TEXT_EVENT_MAX)
		join->doubt = TEXT_EVENT_MAX - join->held.size;
	join->has_event = false;
}

static int show_other(struct text_join *join, const struct text_line *line)
{
	struct text_joined joined = { .line = *line, .doubtful = join->doubt > 0, .last = true };
	int r = join->emit(join->context, &joined);

	return r < 0 ? r : 0;
}

/* ---- lines, one after the other ---- */

static int take_line(struct text_join *join, const struct text_line *line);

static int begin_event(struct text_join *join, const struct text_line *line)
{
	int r;

	join->held.size = 0;
	r = buffer_add(&join->held, line->whole.at, line->whole.size, false);
	if (r)
		return r;
	join->event = *line;
	join->own_size = join->filled_size = join->held.size;
	join->has_event = true;
	join->swallowed = join->cut = join->multiple = false;
	join->doubtful = join->doubt > 0;
	return 0;
}

/* One more line for the event that is held. */
static int extend_event(struct text_join *join, const struct text_line *line, bool swallowed)
{
	int r = buffer_add(&join->held, line->whole.at, line->whole.size, true);

	if (r)
		return r;
	join->multiple = true;
	join->swallowed |= swallowed;
	if (!join->swallowed)
		join->own_size = join->held.size;
	if (swallowed || line->kind != TEXT_EMPTY)
		join->filled_size = join->held.size;
	return 0;
}

/* The event never ended: passes on its own lines, and takes the swallowed ones for what they look like. */
static int give_back(struct text_join *join)
{
	struct text_buffer taken = join->held;
	size_t at = join->own_size;
	int r;

	join->cut = true;
	r = show_event(join, join->own_size, false, true);
	if (r < 0)
		return r;
	drop_event(join, r);
	if (!join->swallowed)
		return 0;
	join->doubt = TEXT_EVENT_MAX;
	join->held = join->spare;
	join->spare = taken;
	join->returning = true;
	for (r = 0; r == 0 && at < taken.size;) {
		const char *start = taken.at + at + 1;
		const char *newline = memchr(start, '\n', taken.size - at - 1);
		size_t size = newline ? (size_t)(newline - start) : taken.size - at - 1;
		struct text_line line;

		text_line_parse(start, size, &line);
		r = take_line(join, &line);
		at += size + 1;
	}
	join->returning = false;
	return r;
}

/* The event that is held has come to its end, unless `next` belongs to it, too. *ret_taken says so. */
static int end_event(struct text_join *join, const struct text_line *next, bool *ret_taken)
{
	bool fits = next && join->held.size + next->whole.size < TEXT_EVENT_MAX;
	size_t size = join->swallowed ? join->held.size : join->filled_size;
	int r;

	*ret_taken = false;
	r = show_event(join, size, join->swallowed, join->returning);
	if (r < 0)
		return r;
	if (r != TEXT_JOIN_OPEN || join->returning) {
		drop_event(join, r);
		return 0;
	}
	if (!fits)
		return give_back(join);
	*ret_taken = true;
	return extend_event(join, next, true);
}

/* No event of the kernel is that long: what follows stands alone. */
static int cut_event(struct text_join *join)
{
	int r;

	join->cut = true;
	r = show_event(join, join->held.size, join->swallowed, true);
	if (r < 0)
		return r;
	drop_event(join, r);
	return 0;
}

/* A line that is not part of a name. */
static int take_line(struct text_join *join, const struct text_line *line)
{
	size_t size = line->whole.size + 1;
	bool taken = false;
	int r = 0;

	if (line->kind == TEXT_CONTINUATION || line->kind == TEXT_EMPTY) {
		if (join->has_event && join->held.size + size > TEXT_LINE_MAX)
			r = cut_event(join);
		if (r == 0)
			r = join->has_event ? extend_event(join, line, false) : show_other(join, line);
	} else {
		/* Lines that are given back may leave an event in their turn. */
		while (r == 0 && join->has_event && !taken)
			r = end_event(join, line, &taken);
		if (r == 0 && !taken)
			r = line->kind == TEXT_EVENT ? begin_event(join, line) : show_other(join, line);
	}
	join->doubt -= join->doubt < size ? join->doubt : size;
	return r;
}

/* ---- names that hold newlines ---- */

/* The kept lines up to `size` were no name. */
static int let_fragments_go(struct text_join *join, size_t size)
{
	char kept[sizeof(join->fragment)];
	int r = 0;

	memcpy(kept, join->fragment, size);
	join->fragment_size -= size;
	memmove(join->fragment, join->fragment + size, join->fragment_size);
	for (size_t at = 0; at < size && r == 0;) {
		const char *newline = memchr(kept + at, '\n', size - at);
		size_t length = newline ? (size_t)(newline - kept) - at : size - at;
		struct text_line line;

		text_line_parse(kept + at, length, &line);
		r = take_line(join, &line);
		at += length + 1;
	}
	return r;
}

/* Keeps a line that may be part of a name: its head, then padded by a blank at least, or its middle. Kept
 * lines that leave it no room were none. */
static int keep_fragment(struct text_join *join, const struct text_line *line, bool *ret_kept)
{
	size_t size = line->whole.size + 1;
	int r = 0;

	*ret_kept = false;
	if (line->kind == TEXT_EVENT || size > COMM_WIDTH)
		return 0;
	while (r == 0 && join->fragment_size && join->fragment_size + size > COMM_WIDTH) {
		size_t first = 0;

		do
			first += 1 + (size_t)((char *)memchr(join->fragment + first, '\n', COMM_WIDTH - first) -
				(join->fragment + first));
		while (first < join->fragment_size && join->fragment[first] != ' ');
		r = let_fragments_go(join, first);
	}
	if (r || (!join->fragment_size && (size == 1 || line->whole.at[0] != ' ')))
		return r;
	memcpy(join->fragment + join->fragment_size, line->whole.at, size - 1);
	join->fragment_size += size;
	join->fragment[join->fragment_size - 1] = '\n';
	*ret_kept = true;
	return 0;
}

/* Where in the kept lines the name of this event begins, or fragment_size: not in them. */
static size_t find_head(const struct text_join *join, const struct text_line *line)
{
	size_t width = (size_t)(line->comm.at + line->comm.size - line->whole.at);

	if (line->kind != TEXT_EVENT)
		return join->fragment_size;
	for (size_t at = 0; at < join->fragment_size; at++) {
		bool begins = at == 0 || join->fragment[at - 1] == '\n';

		if (begins && join->fragment[at] == ' ' && join->fragment_size - at + width == COMM_WIDTH)
			return at;
	}
	return join->fragment_size;
}

static int take_named_line(struct text_join *join, const struct text_line *line)
{
	size_t head = find_head(join, line), size = join->fragment_size;
	struct text_line named;
	char name[COMM_WIDTH];
	int r;

	memcpy(name, join->fragment + head, size - head);
	r = let_fragments_go(join, head);
	join->fragment_size = 0;
	if (r)
		return r;
	if (head == size)
		return take_line(join, line);
	join->named.size = 0;
	r = buffer_add(&join->named, name, size - head, false);
	if (r == 0)
		r = buffer_add(&join->named, line->whole.at, line->whole.size, false);
	if (r)
		return r;
	text_line_parse(join->named.at, join->named.size, &named);
	return take_line(join, &named);
}

static int on_line(void *context, const char *text, size_t size)
{
	struct text_join *join = context;
	struct text_line line;
	bool kept;
	int r;

	text_line_parse(text, size, &line);
	r = keep_fragment(join, &line, &kept);
	if (r || kept)
		return r;
	return join->fragment_size ? take_named_line(join, &line) : take_line(join, &line);
}

/* ---- the interface ---- */

int text_join_feed(struct text_join *join, const char *bytes, size_t size, text_join_emit emit, void *context)
{
	join->emit = emit;
	join->context = context;
	return text_split_feed(&join->split, bytes, size, on_line, join);
}

int text_join_flush(struct text_join *join, text_join_emit emit, void *context)
{
	bool taken;
	int r;

	join->emit = emit;
	join->context = context;
	if (join->split.held_size)
		return 0;
	r = let_fragments_go(join, join->fragment_size);
	while (r == 0 && join->has_event)
		r = end_event(join, NULL, &taken);
	return r;
}

uint32_t text_join_held(const struct text_join *join)
{
	struct text_line line;

	if (!join->split.held_size)
		return join->has_event;
	text_line_parse(join->split.held, join->split.held_size, &line);
	return join->has_event + (line.kind == TEXT_EVENT);
}

int text_join_end(struct text_join *join, text_join_emit emit, void *context)
{
	int r;

	join->emit = emit;
	join->context = context;
	r = text_split_end(&join->split, on_line, join);
	return r ? r : text_join_flush(join, emit, context);
}
