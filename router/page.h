/* The parser of raw sub-buffers (trace_pipe_raw). Pure: bytes in, events out; no system calls, no logging,
 * nothing outside the page is read whatever it holds.
 *
 *   0           commit_offset    data_offset                        data_offset + length        size
 *   +-----------+----------------+----------------------------------+---------------------------+
 *   | u64 time  | commit: a long | events, each: header word, data  | lost count, or nothing    |
 *   +-----------+----------------+----------------------------------+---------------------------+
 *
 * Source of the format: the kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c, and the
 * traced kernel's own events/header_page. */
#ifndef TRACEFAN_ROUTER_PAGE_H
#define TRACEFAN_ROUTER_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How the traced kernel lays out a sub-buffer; from its events/header_page. */
struct page_layout {
	uint32_t commit_offset, commit_size; /* `commit`: 8 or 4 bytes: the kernel's long */
	uint32_t data_offset;
	uint32_t size; /* of a whole sub-buffer, as the file says; a page may be given shorter or longer */
	bool big_endian;
};

/* Reads events/header_page (`size` bytes of text). Returns 0 or -EBADMSG. */
int page_layout_parse(const char *text, size_t size, bool big_endian, struct page_layout *ret);

/* Why a page, or the rest of it, could not be read. Distinct values; PAGE_OK is 0. */
enum page_error {
	PAGE_OK = 0,
	PAGE_SHORT,            /* fewer bytes than a header */
	PAGE_COMMIT_OUTSIDE,   /* commit is more than the page holds */
	PAGE_EVENT_OUTSIDE,    /* an event's header or data passes the commit */
	PAGE_ZERO_LENGTH,      /* type 0 with a length that cannot be */
	PAGE_PADDING_OUTSIDE,  /* a discarded event's length passes the commit */
	PAGE_TIME_TRUNCATED,   /* a time record without its second word */
};
const char *page_error_name(enum page_error error);

struct page_event {
	const uint8_t *data; /* the event, from its common fields on */
	uint32_t size;       /* bytes of data inside the page (type 1..28: 4n, so up to 3 of padding) */
	uint64_t time;       /* ns of the trace clock */
};

/* A walk over one page. Members are private to page.c and page_next but for those named. */
struct page_cursor {
	const struct page_layout *layout;
	const uint8_t *base;
	uint32_t at, end;
	uint32_t fast_end; /* `end`; 0 where the page's byte order is not this machine's */
	enum page_error error; /* public: why page_next returned -1 */
	uint64_t time;
	uint32_t error_at;     /* public: byte in the page */
	/* public, from the header: */
	bool missed;           /* events were lost before this page */
	bool missed_counted;   /* and this many: */
	uint64_t missed_count;
	uint64_t start_time;   /* the page's own time stamp */
};

/* Begins a walk over `size` bytes. Returns 0, or -1 with cursor->error set (nothing can be read; what the
 * header says of lost events is set where it could be read). */
int page_open(struct page_cursor *cursor, const struct page_layout *layout, const void *page, size_t size);

/* Every case that page_next doesn't take itself; not for others. */
int page_next_any(struct page_cursor *cursor, struct page_event *ret);

/* The next event that is not padding, discarded or a time record: 1, 0 at the end, -1 on damage (what was
 * returned before stands; the rest of the page is lost, and each further call says so again).
 *
 * Here stands the router's hottest path, so that it is inlined: a whole data event of up to 112 bytes in
 * this machine's byte order. */
static inline int page_next(struct page_cursor *cursor, struct page_event *ret)
{
	uint32_t at = cursor->at;

	if (__builtin_expect(cursor->fast_end >= at + 4, 1)) {
		uint32_t word, type, length;

		memcpy(&word, cursor->base + at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		type = word >> 27;
		word &= (1U << 27) - 1;
#else
		type = word & 31;
		word >>= 5;
#endif
		length = type * 4;
		/* One comparison for 1..28: type 0 wraps around. */
		if (__builtin_expect(type - 1 < 28 && length <= cursor->fast_end - at - 4, 1)) {
			ret->data = cursor->base + at + 4;
			ret->size = length;
			ret->time = cursor->time += word;
			cursor->at = at + 4 + length;
			return 1;
		}
	}
	return page_next_any(cursor, ret);
}

/* Walks the rest of the page without returning events: how many there are up to its end or the first
 * damage; *ret_last_time is the time of the last one (unchanged where there is none). The cursor itself is
 * not moved. */
uint32_t page_count(const struct page_cursor *cursor, uint64_t *ret_last_time);

/* How many of the page's bytes mean something; those of a page that can't be opened all do. */
size_t page_used(const struct page_layout *layout, const void *page, size_t size);

#endif
