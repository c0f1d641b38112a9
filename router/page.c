#include "router/page.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>

/* The header word's types; 1..28 are data of four times that many bytes. */
enum page_type {
	PAGE_TYPE_LONG_DATA = 0,
	PAGE_TYPE_DATA_MAX = 28,
	PAGE_TYPE_PADDING = 29,
	PAGE_TYPE_TIME_EXTEND = 30,
	PAGE_TYPE_TIME_STAMP = 31,
};

#define PAGE_WORD 4U

/* Of `commit`. On a 64-bit kernel the upper flag may be sign-extended over the upper half, so only the
 * lower half is looked at. */
#define PAGE_COMMIT_LENGTH ((1U << 27) - 1)
#define PAGE_COMMIT_LOST   (1U << 31)
#define PAGE_COMMIT_COUNT  (1U << 30)

#define PAGE_DELTA_BITS 27
#define PAGE_STAMP_BITS 59

static const bool page_native_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

static uint32_t load32(const uint8_t *p, bool big_endian)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return big_endian == page_native_big ? v : __builtin_bswap32(v);
}

static uint64_t load64(const uint8_t *p, bool big_endian)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return big_endian == page_native_big ? v : __builtin_bswap64(v);
}

/* A long of the traced kernel. */
static uint64_t load_long(const uint8_t *p, const struct page_layout *layout)
{
	return layout->commit_size == 8 ? load64(p, layout->big_endian) : load32(p, layout->big_endian);
}

const char *page_error_name(enum page_error error)
{
	static const char *const names[] = {
		[PAGE_OK] = "no error",
		[PAGE_SHORT] = "shorter than a page header",
		[PAGE_COMMIT_OUTSIDE] = "commit is more than the page holds",
		[PAGE_EVENT_OUTSIDE] = "event passes the committed data",
		[PAGE_ZERO_LENGTH] = "event with an impossible length",
		[PAGE_PADDING_OUTSIDE] = "discarded event passes the committed data",
		[PAGE_TIME_TRUNCATED] = "time record without its second word",
	};

	if ((size_t)error >= ARRAY_SIZE(names))
		return "unknown error";
	return names[error];
}

static int page_fail(struct page_cursor *cursor, enum page_error error, uint32_t at)
{
	cursor->error = error;
	cursor->error_at = at;
	/* No further call gets past the damage, nor into page_next's own path. */
	cursor->fast_end = 0;
	return -1;
}

/* The count stands right behind the data, where the kernel found room for it. All ones is the kernel's
 * own "unknown". */
static void page_read_missed(struct page_cursor *cursor, uint32_t commit, size_t size)
{
	const struct page_layout *layout = cursor->layout;
	uint64_t place = (uint64_t)layout->data_offset + (commit & PAGE_COMMIT_LENGTH);
	uint64_t unknown = layout->commit_size == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t count;

	cursor->missed = commit & PAGE_COMMIT_LOST;
	if (!cursor->missed || !(commit & PAGE_COMMIT_COUNT))
		return;
	if (!range_inside(place, layout->commit_size, size))
		return;
	count = load_long(cursor->base + place, layout);
	if (count == unknown)
		return;
	cursor->missed_counted = true;
	cursor->missed_count = count;
}

int page_open(struct page_cursor *cursor, const struct page_layout *layout, const void *page, size_t size)
{
	uint32_t commit, length;

	*cursor = (struct page_cursor){ .layout = layout, .base = page };
	if (size < layout->data_offset)
		return page_fail(cursor, PAGE_SHORT, (uint32_t)size);

	cursor->time = cursor->start_time = load64(cursor->base, layout->big_endian);
	commit = (uint32_t)load_long(cursor->base + layout->commit_offset, layout);
	length = commit & PAGE_COMMIT_LENGTH;
	page_read_missed(cursor, commit, size);
	if (length > size - layout->data_offset)
		return page_fail(cursor, PAGE_COMMIT_OUTSIDE, layout->commit_offset);

	cursor->at = layout->data_offset;
	cursor->end = layout->data_offset + length;
	cursor->fast_end = layout->big_endian == page_native_big ? cursor->end : 0;
	return 0;
}

size_t page_used(const struct page_layout *layout, const void *page, size_t size)
{
	struct page_cursor cursor;
	uint32_t commit;

	if (page_open(&cursor, layout, page, size) < 0)
		return size;
	commit = (uint32_t)load_long(cursor.base + layout->commit_offset, layout);
	if (!(commit & PAGE_COMMIT_COUNT) || layout->commit_size > size - cursor.end)
		return cursor.end;
	return cursor.end + layout->commit_size;
}

/* An absolute stamp has 59 bits. The others are those of the running time, one more where the stamp has
 * wrapped since. A stamp a little in the past is a clock that stepped back, no wrap of eighteen years. */
static uint64_t page_absolute_time(uint64_t stamp, uint64_t running)
{
	const uint64_t span = UINT64_C(1) << PAGE_STAMP_BITS;
	uint64_t time = (running & ~(span - 1)) | stamp;

	if (time < running && running - time > span / 2)
		time += span;
	return time;
}

/* A discarded event. Its length counts from array[0] on. Its delta counts too, for the next event's is
 * relative to it; but the kernel, to tell it from end filler, writes 1 where the delta was 0, and two
 * events of one CPU are never a nanosecond apart. */
static int page_skip_discarded(struct page_cursor *cursor, uint32_t at, uint32_t delta)
{
	uint32_t room = cursor->end - at - PAGE_WORD;
	uint32_t length;

	if (room < PAGE_WORD)
		return page_fail(cursor, PAGE_PADDING_OUTSIDE, at);
	length = load32(cursor->base + at + PAGE_WORD, cursor->layout->big_endian);
	if (length < PAGE_WORD)
		return page_fail(cursor, PAGE_ZERO_LENGTH, at);
	if (length > room)
		return page_fail(cursor, PAGE_PADDING_OUTSIDE, at);
	if (delta != 1)
		cursor->time += delta;
	/* The kernel rounds lengths itself; a length that is not rounded ends at the next word. */
	cursor->at = at + PAGE_WORD + (uint32_t)align_up(length, PAGE_WORD);
	return 0;
}

static int page_read_time(struct page_cursor *cursor, uint32_t at, uint32_t type, uint32_t delta)
{
	uint64_t value;

	if (cursor->end - at < 2 * PAGE_WORD)
		return page_fail(cursor, PAGE_TIME_TRUNCATED, at);
	value = load32(cursor->base + at + PAGE_WORD, cursor->layout->big_endian);
	value = (value << PAGE_DELTA_BITS) + delta;
	if (type == PAGE_TYPE_TIME_EXTEND)
		cursor->time += value;
	else
		cursor->time = page_absolute_time(value, cursor->time);
	cursor->at = at + 2 * PAGE_WORD;
	return 0;
}

/* Data of more than 112 bytes (of any size, on machines that want it 8-byte aligned): the length stands in
 * array[0] and counts it. */
static int page_read_long_data(struct page_cursor *cursor, uint32_t at, uint32_t delta, struct page_event *ret)
{
	uint32_t room = cursor->end - at - PAGE_WORD;
	uint32_t length;

	if (room < PAGE_WORD)
		return page_fail(cursor, PAGE_EVENT_OUTSIDE, at);
	length = load32(cursor->base + at + PAGE_WORD, cursor->layout->big_endian);
	if (length < PAGE_WORD)
		return page_fail(cursor, PAGE_ZERO_LENGTH, at);
	if (length > room)
		return page_fail(cursor, PAGE_EVENT_OUTSIDE, at);
	ret->data = cursor->base + at + PAGE_WORD + PAGE_WORD;
	ret->size = length - PAGE_WORD;
	ret->time = cursor->time += delta;
	cursor->at = at + PAGE_WORD + (uint32_t)align_up(length, PAGE_WORD);
	return 1;
}

int page_next_any(struct page_cursor *cursor, struct page_event *ret)
{
	bool big_endian = cursor->layout->big_endian;

	if (cursor->error)
		return -1;
	/* Rounding up a last length may have led past the end by less than a word. */
	while (cursor->at < cursor->end) {
		uint32_t at = cursor->at;
		uint32_t word, type, delta;

		if (cursor->end - at < PAGE_WORD)
			return page_fail(cursor, PAGE_EVENT_OUTSIDE, at);
		word = load32(cursor->base + at, big_endian);
		type = big_endian ? word >> PAGE_DELTA_BITS : word & 31;
		delta = big_endian ? word & ((1U << PAGE_DELTA_BITS) - 1) : word >> 5;

		switch (type) {
		case PAGE_TYPE_LONG_DATA:
			return page_read_long_data(cursor, at, delta, ret);
		case PAGE_TYPE_PADDING:
			/* Without a delta: nothing more in this page. */
			if (!delta) {
				cursor->at = cursor->end;
				return 0;
			}
			if (page_skip_discarded(cursor, at, delta))
				return -1;
			break;
		case PAGE_TYPE_TIME_EXTEND:
		case PAGE_TYPE_TIME_STAMP:
			if (page_read_time(cursor, at, type, delta))
				return -1;
			break;
		default:
			if (type * PAGE_WORD > cursor->end - at - PAGE_WORD)
				return page_fail(cursor, PAGE_EVENT_OUTSIDE, at);
			ret->data = cursor->base + at + PAGE_WORD;
			ret->size = type * PAGE_WORD;
			ret->time = cursor->time += delta;
			cursor->at = at + PAGE_WORD + type * PAGE_WORD;
			return 1;
		}
	}
	return 0;
}

uint32_t page_count(const struct page_cursor *cursor, uint64_t *ret_last_time)
{
	struct page_cursor walk = *cursor;
	struct page_event event;
	uint32_t count = 0;

	while (page_next(&walk, &event) > 0) {
		*ret_last_time = event.time;
		count++;
	}
	return count;
}

/* ---- events/header_page ---- */

struct header_field {
	uint32_t offset, size;
	bool found;
};

/* The number behind `key` in [text, end), which holds one line. */
static int header_number(const char *text, const char *end, const char *key, uint32_t *ret)
{
	const char *p = memmem(text, (size_t)(end - text), key, strlen(key));
	uint64_t value = 0;
	bool digits = false;

	if (!p)
		return -EBADMSG;
	for (p += strlen(key); p < end && *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		digits = true;
		if (value > PAGE_COMMIT_LENGTH)
			return -EBADMSG;
	}
	if (!digits || p == end || *p != ';')
		return -EBADMSG;
	*ret = (uint32_t)value;
	return 0;
}

/* Finds the line that declares `name`: "field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;". */
static struct header_field header_find(const char *text, size_t size, const char *name)
{
	const char *end = text + size;
	struct header_field field = { 0 };
	size_t name_length = strlen(name);

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		const char *semicolon = memchr(text, ';', (size_t)(line_end - text));

		if (semicolon && (size_t)(semicolon - text) > name_length &&
			!memcmp(semicolon - name_length, name, name_length) && semicolon[-1 - (ptrdiff_t)name_length] == ' ') {
			field.found = !header_number(semicolon, line_end, "offset:", &field.offset) &&
				!header_number(semicolon, line_end, "size:", &field.size);
			return field;
		}
		text = newline ? newline + 1 : end;
	}
	return field;
}

int page_layout_parse(const char *text, size_t size, bool big_endian, struct page_layout *ret)
{
	struct header_field timestamp = header_find(text, size, "timestamp");
	struct header_field commit = header_find(text, size, "commit");
	struct header_field data = header_find(text, size, "data");

	if (!timestamp.found || !commit.found || !data.found)
		return -EBADMSG;
	if (timestamp.offset != 0 || timestamp.size != 8 || (commit.size != 4 && commit.size != 8))
		return -EBADMSG;
	if (commit.offset < timestamp.size || commit.offset > data.offset || data.offset - commit.offset < commit.size)
		return -EBADMSG;
	*ret = (struct page_layout){
		.commit_offset = commit.offset,
		.commit_size = commit.size,
		.data_offset = data.offset,
		.size = data.offset + data.size,
		.big_endian = big_endian,
	};
	return 0;
}
