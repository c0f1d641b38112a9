/* The router's start: from the reader's socket to a state in which events can be taken. */
#ifndef TRACEFAN_ROUTER_CONNECT_H
#define TRACEFAN_ROUTER_CONNECT_H

struct router;

/* Connects to the session's reader, takes over what it hands out, gives up every privilege, and prepares
 * catalog, merge and fan-out. Returns an enum exit_status; logs why. What it made is the router's to release. */
int connect_reader(struct router *router);

#endif
