/* The provider for a session on the running kernel. */
#ifndef TRACEFAN_READER_LIVE_H
#define TRACEFAN_READER_LIVE_H

#include "reader/instance.h"
#include "reader/probe.h"
#include "reader/provider.h"

/* The router's own place among the numbers that it gives its consumers. */
#define LIVE_ROUTER UINT64_MAX
/* Of a process that need not be kept out any more, but is still on the kernel's list. */
#define LIVE_STALE        (UINT64_MAX - 1)
#define LIVE_STALE_MAX    1024
#define LIVE_EXCLUDED_MAX (1024 + LIVE_STALE_MAX)
/* Children of the helper: this and their process's number. */
#define LIVE_HELPER (UINT64_C(1) << 62)

struct live {
	struct provider provider;
	struct instance *instance;
	struct probes probes;
	/* The processes that are kept out of the trace; the reader itself is the first, its helper the
	 * second if it has one. */
	pid_t processes[LIVE_EXCLUDED_MAX];
	uint64_t numbers[LIVE_EXCLUDED_MAX]; /* the router's for the consumer, LIVE_ROUTER or
						LIVE_STALE */
	unsigned int excluded_count, own_count;
	uint64_t purged; /* ns: when the kernel's list was written anew while somebody was attached */
};

/* The instance and `legacy` outlive the provider. `text`: its events are read as text. `helper`: its process, 0: none. Returns 0 or -errno;
 * ended by its close method. */
int live_open(struct live *live, struct instance *instance, const char *session, bool text,
	pid_t helper, struct legacy *legacy);
/* The same for an instance that was taken over, with the probes in it: `tag` is the dead reader's. */
int live_adopt(struct live *live, struct instance *instance, const char *session, bool text,
	pid_t helper, struct legacy *legacy, const char *tag);
/* Ends a provider, and leaves everything in the kernel to the next reader. */
void live_abandon(struct live *live);

#endif
