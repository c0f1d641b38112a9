/* What the router told of the session's consumers. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_CONSUMERS_H
#define TRACEFAN_CONSUMERS_CLIENT_CONSUMERS_H

struct consumer_list;

/* Takes NULL. */
void consumer_list_free(struct consumer_list *list);

#endif
