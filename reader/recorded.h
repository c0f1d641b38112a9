/* The provider for a session that lies in files: probes are found, not made. */
#ifndef TRACEFAN_READER_RECORDED_H
#define TRACEFAN_READER_RECORDED_H

#include "reader/provider.h"
#include "reader/replay.h"

struct recorded {
	struct provider provider;
	const struct replay *replay;
	bool asked;       /* the router wants the events now */
	uint64_t next_id; /* of events that only a text log knows */
};

/* The replay outlives the provider. */
void recorded_open(struct recorded *recorded, const struct replay *replay);

#endif
