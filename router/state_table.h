/* Between state records (shm/state_abi.h) and the tasks. Pure but for memory. */
#ifndef TRACEFAN_ROUTER_STATE_TABLE_H
#define TRACEFAN_ROUTER_STATE_TABLE_H

#include "router/tasks.h"

/* Takes what was read into the tasks; `whole`: whoever isn't in it has ended. Returns 0, -EBADMSG or -ENOMEM. */
int state_table_learn(struct tasks *tasks, const void *bytes, size_t size, bool whole);

/* The names in it, as an array of struct control_task_name: the caller's. */
int state_table_names(const void *bytes, size_t size, void **ret, size_t *ret_size);

struct state_table_of {
	struct tasks *tasks; /* as they are now, later than what was read */
	struct tasks_snapshot *snapshot;
	uint64_t due;        /* the place that the snapshot is of */
	bool scoped;         /* only the user's */
	uint32_t uid;
	const void *read;    /* what was read after that */
	size_t read_size;
};

/* Makes the table for a consumer: the snapshot, and of what was read what completes it. Returns a descriptor, owned by
 * the caller, or -errno. */
int state_table_make(const struct state_table_of *what);

#endif
