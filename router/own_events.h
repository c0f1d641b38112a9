/* The events that the session traces for itself, to know who a thread is: how they change the tasks. */
#ifndef TRACEFAN_ROUTER_OWN_EVENTS_H
#define TRACEFAN_ROUTER_OWN_EVENTS_H

struct router;

/* Asks the reader for each of them, and waits: at the start, before anything else is asked. What a kernel or a recording
 * lacks is done without. Returns 0 or -errno. */
int own_events_start(struct router *router);

#endif
