/* Names of threads by id: binary events hold no name. Fed by a snapshot and by the session's own events. */
#ifndef TRACEFAN_ROUTER_TASKS_H
#define TRACEFAN_ROUTER_TASKS_H

#include "shm/record_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASKS_RECENT 64

struct task {
	int32_t tid; /* -1: an empty place */
	char comm[RECORD_COMM_SIZE]; /* NUL-padded */
};

struct tasks {
	struct task *places; /* open addressing; a power of two */
	size_t room, count;
	/* Those found last, by the low bits of their ids: the threads that run now, one on each CPU, come again and
	 * again. */
	struct task *recent[TASKS_RECENT];
};

/* Returns 0 or -ENOMEM. */
int tasks_init(struct tasks *tasks);
void tasks_release(struct tasks *tasks);

/* Sets a thread's name; `comm` has RECORD_COMM_SIZE bytes at most, NUL-ended if shorter. `keep` leaves a
 * known name alone (a snapshot that came after events). Returns 0 or -ENOMEM. */
int tasks_set(struct tasks *tasks, int32_t tid, const char *comm, size_t size, bool keep);

const struct task *tasks_find_slow(struct tasks *tasks, int32_t tid);

/* The thread, or NULL when its name isn't known. Valid until the next tasks_set. */
static inline const struct task *tasks_find(struct tasks *tasks, int32_t tid)
{
	const struct task *task = tasks->recent[(uint32_t)tid % TASKS_RECENT];

	return task && task->tid == tid ? task : tasks_find_slow(tasks, tid);
}

#endif
