/* What threads share, as far as events and /proc tell it: the table of descriptors and the current folder. A process that
 * is gone can't be asked, so what its parent had is handed down as the kernel does. */
#ifndef TRACEFAN_WATCH_TASK_H
#define TRACEFAN_WATCH_TASK_H

#include "consumers/watch/observer.h"
#include "consumers/watch/table.h"

#include <stdbool.h>
#include <stdint.h>

struct task_set {
	struct table tasks;
	bool with_folders;
};

/* Returns 0 or -ENOMEM. */
int task_set_init(struct task_set *set, bool with_folders);
void task_set_free(struct task_set *set);
/* Traces of what keeps it up to date; `set` is handed to the handlers. Returns as observer_trace. */
int task_set_trace(struct watch *watch, struct task_set *set);
/* Asks /proc about every process that there is. */
void task_set_ask(struct task_set *set);
void task_set_forget(struct task_set *set);

/* A number that threads with one table of descriptors have in common. */
uint64_t task_files(struct task_set *set, int thread);
/* NULL: it isn't known. Valid until the next call. */
const char *task_folder(struct task_set *set, int thread);
/* The thread, and all that share it with it, went to another one at `time`. */
void task_set_folder(struct task_set *set, int thread, const char *path, uint64_t time);

#endif
