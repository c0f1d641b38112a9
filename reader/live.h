/* The provider for a session on the running kernel. */
#ifndef TRACEFAN_READER_LIVE_H
#define TRACEFAN_READER_LIVE_H

#include "reader/instance.h"
#include "reader/kept_out.h"
#include "reader/probe.h"
#include "reader/provider.h"

struct live {
	struct provider provider;
	struct instance *instance;
	struct probes probes;
	struct kept_out kept;
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
