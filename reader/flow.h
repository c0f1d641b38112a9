/* Writing to control files of tracefs, and reading them, while events flow. The kernel waits for all its CPUs when an event is switched, tens of
 * milliseconds on a busy machine, and can hang for longer than anybody expects; meanwhile its buffers fill up. */
#ifndef TRACEFAN_READER_FLOW_H
#define TRACEFAN_READER_FLOW_H

#include "reader/loop.h"
#include "reader/source.h"

struct flow {
	struct loop *loop;
	struct source *source;
	/* Of what is under way. */
	const char *path;
	uint64_t began;
	bool told; /* that it takes long */
	int error; /* of the source; the next step outside says it again */
};

/* As tracedir_write and tracedir_append (`append`). `flow` NULL: nothing goes on meanwhile. */
int flow_write(struct flow *flow, int folder, const char *path, bool append, const char *text);
/* As tracedir_read. */
int flow_read(struct flow *flow, int folder, const char *path, char **ret_data, size_t *ret_size);
/* As tracedir_clear. */
int flow_clear(struct flow *flow, int folder, const char *path);

#endif
