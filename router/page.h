/* The parser of raw sub-buffers (trace_pipe_raw). Pure: bytes in, events out; no system calls, no logging,
 * nothing outside the page is read whatever it holds.
 *
 * Source of the format: the kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c, and the
 * traced kernel's own events/header_page. */
#ifndef TRACEFAN_ROUTER_PAGE_H
#define TRACEFAN_ROUTER_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the traced kernel lays out a sub-buffer; from its events/header_page. */
struct page_layout {
	uint32_t commit_offset, commit_size; /* `commit`: 8 or 4 bytes: the kernel's long */
	uint32_t data_offset;
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

/* A walk over one page. Members are private to page.c but for those named. */
struct page_cursor {
	const struct page_layout *layout;
	const uint8_t *base;
	uint32_t at, end;
	uint64_t time;
	enum page_error error; /* public: why page_next returned -1 */
	uint32_t error_at;     /* public: byte in the page */
	/* public, from the header: */
	uint64_t start_time;   /* the page's own time stamp */
	bool missed;           /* events were lost before this page */
	bool missed_counted;   /* and this many: */
	uint64_t missed_count;
};

/* Begins a walk over `size` bytes. Returns 0, or -1 with cursor->error set (nothing can be read). */
int page_open(struct page_cursor *cursor, const struct page_layout *layout, const void *page, size_t size);

/* The next event that is not padding, discarded or a time record: 1, 0 at the end, -1 on damage (what was
 * returned before stands; the rest of the page is lost). */
int page_next(struct page_cursor *cursor, struct page_event *ret);

/* Walks the rest of the page without returning events: how many there are; *ret_last_time is the time of
 * the last one (unchanged where there is none). The cursor itself is not moved. */
uint32_t page_count(const struct page_cursor *cursor, uint64_t *ret_last_time);

#endif
