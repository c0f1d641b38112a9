/* The state of the host's processes, read from /proc into blobs of state records (shm/state_abi.h). Runs in the
 * helper (reader/helper.h), the one process that has the right to look into others. */
#ifndef TRACEFAN_READER_RUNDOWN_H
#define TRACEFAN_READER_RUNDOWN_H

#include "shm/control_abi.h"
#include "shm/state_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct rundown_request {
	uint32_t what;     /* enum state_what */
	uint32_t scoped;   /* 1: only processes that are `uid`'s alone */
	uint32_t uid;
	uint32_t id_count; /* threads to read, without anything else; 0: all processes and threads */
	int32_t ids[CONTROL_RUNDOWN_IDS];
};

/* Makes the table and the details. Returns 0 or -errno; the descriptors are owned by the caller. */
int rundown_make(const struct rundown_request *request, int *ret_table, int *ret_details);

#endif
