/* The stacks that belong to an event. The kernel writes them as events of their own, right behind it in its CPU's
 * buffer: of the same thread and, since it was the same interruption or none, with the same common flags. What
 * interrupted the thread in between may have events and stacks, too, but with other flags. */
#ifndef TRACEFAN_ROUTER_STACKS_H
#define TRACEFAN_ROUTER_STACKS_H

#include "router/catalog.h"
#include "router/merge.h"
#include "shm/record_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames that are kept, the innermost; the kernel has no more than eight of a program's. */
#define STACKS_KERNEL_MOST 128
#define STACKS_USER_MOST   32

/* How the kernel lays out one of its two kinds. */
struct stacks_format {
	uint16_t type;   /* 0: it isn't known */
	uint32_t caller; /* where the frames begin */
	uint32_t number; /* of kernel stacks: how many; of user stacks: the process's number */
};

struct stacks {
	struct stacks_format kernel, user;
	uint32_t flags, preempt, pid; /* offsets of the common fields */
	unsigned int long_size;
	const struct merge *merge; /* where what follows an event is looked up; NULL: nothing is */
	uint32_t slots_most;       /* with so many slots held nothing is waited for any more */
	bool impatient;            /* nor for what a sweep after the event did not find */
	/* Of the event that was looked up last. */
	struct record_stack head;
	uint64_t kernel_frames[STACKS_KERNEL_MOST], user_frames[STACKS_USER_MOST];
};

/* Takes in a format file of events/ftrace: kernel_stack or user_stack. Returns 0 or -errno. */
int stacks_learn(struct stacks *stacks, struct catalog *catalog, const char *text, size_t size, unsigned int long_size);

/* Looks for the stacks of the merge's current event. `preemptible`: its thread may have been put off its CPU before they were
 * written, as in a program's probe. False: they may still come, and what follows must wait. */
bool stacks_gather(struct stacks *stacks, const struct merge_event *event, uint8_t wanted, bool preemptible);

/* Bytes of the record, header included, for a trace that wants these (enum record_stack_kind); and the record itself,
 * for `event`, which is written already. */
uint32_t stacks_size(const struct stacks *stacks, uint8_t wanted);
void stacks_write(const struct stacks *stacks, uint8_t wanted, const struct record_header *event, struct record_header *ret);

#endif
