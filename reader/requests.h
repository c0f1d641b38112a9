/* What the reader does for whom: the tables of requests. */
#ifndef TRACEFAN_READER_REQUESTS_H
#define TRACEFAN_READER_REQUESTS_H

#include "reader/helper.h"
#include "reader/peer.h"

/* Handle one checked message of the router and of an operator; `context` is the struct reader. What
 * stands in no row, or comes in the wrong state, ends the connection. */
int requests_of_router(void *context, struct peer *peer, struct control_message *message);
int requests_of_operator(void *context, struct peer *peer, struct control_message *message);

/* Passes the helper's answer on to the router who asked. */
helper_done_fn requests_of_helper;

#endif
