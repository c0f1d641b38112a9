/* A time namespace gives its processes a CLOCK_MONOTONIC of their own. The kernel notes the times of events by the machine's. */
#ifndef TRACEFAN_BASE_TIME_NAMESPACE_H
#define TRACEFAN_BASE_TIME_NAMESPACE_H

#include <stdint.h>

/* How many ns this process's CLOCK_MONOTONIC is ahead of the machine's: 0 outside of such a namespace, and where nobody tells. Opens a
 * file of /proc, so it is asked before the process is confined. */
int64_t time_namespace_ahead(void);

#endif
