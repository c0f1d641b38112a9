/* Places in the stream at which something is due: each is asked of the reader, whose mark then comes by in the stream, and is
 * settled once what was committed before it has been told, or counted. What asks for one is in stream.h. */
#ifndef TRACEFAN_ROUTER_STREAM_MARKS_H
#define TRACEFAN_ROUTER_STREAM_MARKS_H

#include <stdint.h>

struct router;

/* A flush's mark has come by, at this time. */
void stream_marks_flushed(struct router *router, uint64_t reader_cookie, uint64_t time);
/* An account's. */
void stream_marks_accounted(struct router *router, uint64_t reader_cookie);
/* After the end of the stream no mark comes by any more: each is where the stream ended. */
void stream_marks_end(struct router *router);
/* Tells the flushes whose time the merged stream has passed. */
void stream_marks_settle(struct router *router);

#endif
