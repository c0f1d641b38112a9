/* The names of the sessions whose sockets lie in a directory. */
#ifndef TRACEFAN_CLI_SESSION_LIST_H
#define TRACEFAN_CLI_SESSION_LIST_H

#include <stddef.h>

#define SESSION_LIST_DIRECTORY "/run/tracefan"

struct session_list {
	char **names; /* sorted */
	size_t count;
};

/* A directory that is not there holds none. Returns 0 or -errno. */
int session_list_read(const char *directory, struct session_list *ret);
void session_list_release(struct session_list *list);

#endif
