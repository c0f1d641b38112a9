/* What descriptors were opened as, as far as events tell it: a process that is gone can't be asked. */
#ifndef TRACEFAN_WATCH_DESCRIPTOR_H
#define TRACEFAN_WATCH_DESCRIPTOR_H

#include "consumers/watch/task.h"

struct descriptor_set {
	struct table paths;
	struct task_set *tasks; /* not owned: which threads share their descriptors */
};

/* Returns 0 or -ENOMEM. */
int descriptor_set_init(struct descriptor_set *set, struct task_set *tasks);
void descriptor_set_free(struct descriptor_set *set);
void descriptor_set_forget(struct descriptor_set *set);

/* The thread opened this path as `fd`. Without a path, nothing is known of it from here on. */
void descriptor_keep(struct descriptor_set *set, int thread, int fd, const char *path);
/* What is known of `from` is known of `to`. */
void descriptor_copy(struct descriptor_set *set, int thread, int from, int to);
/* What was opened as this descriptor, or, of one that was there before, what /proc says. The caller's to free; NULL: it
 * isn't known, or has no path. */
char *descriptor_path(const struct descriptor_set *set, int thread, int fd);

#endif
