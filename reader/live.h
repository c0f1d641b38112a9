/* The provider for a session on the running kernel. */
#ifndef TRACEFAN_READER_LIVE_H
#define TRACEFAN_READER_LIVE_H

#include "reader/instance.h"
#include "reader/probe.h"
#include "reader/provider.h"

/* A process that is kept out of the trace. */
struct live_excluded {
	uint64_t number; /* the router's for the consumer; LIVE_ROUTER for the router itself */
	pid_t process;
};

#define LIVE_ROUTER       UINT64_MAX
#define LIVE_EXCLUDED_MAX 1024

struct live {
	struct provider provider;
	struct instance *instance;
	struct probes probes;
	struct live_excluded excluded[LIVE_EXCLUDED_MAX];
	unsigned int excluded_count;
};

/* The instance outlives the provider. `text`: its events are read as text. Returns 0 or -errno; ended by its close method. */
int live_open(struct live *live, struct instance *instance, const char *session, bool text);

#endif
