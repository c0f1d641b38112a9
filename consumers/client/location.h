/* From the user's text to the requests for the router: parsed, the file opened and its symbols resolved. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_LOCATION_H
#define TRACEFAN_CONSUMERS_CLIENT_LOCATION_H

#include "consumers/client/shape.h"
#include "consumers/client/tracefan.h"
#include "shm/control_abi.h"

#include <stddef.h>
#include <stdint.h>

struct location; /* opaque: holds the open file until the router has its descriptor */

/* Parses `probe` and finds its place. With `plan`, the text is the place alone, and arguments and condition are
 * the plan's. Returns 0 or -errno with the connection's failure set. *ret is the caller's: location_free. */
int location_find(struct tfan *tfan, const char *probe, const struct shape_plan *plan, struct location **ret);
void location_free(struct location *location);

const char *location_name(const struct location *location);
/* How many places it has: more than one for a static probe that was inlined. */
size_t location_count(const struct location *location);
/* The open file, or -1 for probes of the kernel; stays the location's. */
int location_fd(const struct location *location);

/* Fills in the request for place `i`. Returns 0 or -errno with the failure set. */
int location_request(struct tfan *tfan, struct location *location, size_t i, struct control_create *ret);

/* Says in the request where the kernel's functions lie that its filter names. Returns 0 or -errno with the failure set. */
int location_define(struct tfan *tfan, const struct location *location, struct control_create *request);

/* The router or the reader refused: takes over its words, with positions told in the user's text and near
 * names for an unknown tracepoint. Returns -errno. */
int location_refused(struct tfan *tfan, const struct location *location, const struct control_create *request,
	uint32_t status, const struct control_failure *from);

#endif
