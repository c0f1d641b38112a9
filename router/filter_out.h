/* Text that grows up to a limit. */
#ifndef TRACEFAN_ROUTER_FILTER_OUT_H
#define TRACEFAN_ROUTER_FILTER_OUT_H

#include <stdbool.h>
#include <stddef.h>

struct filter_out {
	char *at; /* owned, NUL-ended once something was added */
	size_t size, room;
	size_t limit; /* most bytes, the NUL included */
	bool full;    /* the limit was reached: the text is cut */
	bool failed;  /* no memory */
};

void filter_out_add(struct filter_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* In the kind of quotes that the text itself doesn't hold. */
void filter_out_quoted(struct filter_out *out, const char *text, size_t size);

#endif
