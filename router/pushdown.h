/* The kernel's half of the filters: the union of what all traces of a route want, in the probe's `filter`
 * file, so that what nobody wants is never recorded.
 *
 * Wider before somebody is admitted, narrower after somebody left. The reader carries requests out in the
 * order in which they were sent, and each union is made of all claims at its sending; so whichever was
 * carried out last covers every trace that is enabled. */
#ifndef TRACEFAN_ROUTER_PUSHDOWN_H
#define TRACEFAN_ROUTER_PUSHDOWN_H

#include <stdbool.h>
#include <stdint.h>

struct route;
struct router;

/* What to do once the kernel's filter covers all claims. Remembered by number: consumer and trace may be
 * gone by then. */
struct pushdown_next {
	void (*then)(struct router *router, const struct pushdown_next *next);
	uint64_t consumer, trace, cookie;
};

/* Brings the kernel's filter in line with the route's claims and then calls next->then (which may be at
 * once; NULL: nothing). A union that the kernel refuses is widened to no filter at all. */
void pushdown_update(struct router *router, struct route *route, const struct pushdown_next *next);

/* The same for every route, once it is known who has come back. */
void pushdown_all(struct router *router);

/* The text that the route's claims come to; "0": no filter. The caller's to free; NULL: no memory. */
char *pushdown_text(const struct route *route, bool *ret_exact);

#endif
