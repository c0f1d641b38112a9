#include "reader/kept_out.h"

#include "base/log.h"
#include "reader/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* A stale number is harmless until it is another process's, and whoever comes and goes all the time causes no more work than this. */
static void fall_due(struct kept_out *kept, uint64_t least)
{
	const uint64_t unused = pid_lists_unused();

	kept->due = loop_now() + (unused > least ? unused : least);
}

/* Nobody tells when a thread ends and its process stays. */
static void look_again(struct kept_out *kept, size_t threads, size_t processes)
{
	if (threads > processes && kept->due == LOOP_NEVER)
		fall_due(kept, 0);
}

int kept_out_open(struct kept_out *kept, const struct instance *instance, pid_t helper)
{
	const struct pid_lists lists = instance_lists(instance);
	int r;

	*kept = (struct kept_out){ .instance = instance, .due = LOOP_NEVER };
	kept->processes[kept->count++] = getpid();
	if (helper > 0)
		kept->processes[kept->count++] = helper;
	kept->own = kept->count;
	/* At once: the kernel waits for its readers at each write but the first. */
	r = pid_lists_add(&lists, kept->processes, kept->count);
	/* A kernel that lacks the means (before 5.7) traces them, too. */
	return r < 0 && r != -ENOENT ? r : 0;
}

void kept_out_adopt(struct kept_out *kept, uint64_t grace)
{
	const struct pid_lists lists = instance_lists(kept->instance);
	pid_t numbers[KEPT_OUT_MAX / 2];
	int count = pid_lists_read(&lists, numbers, KEPT_OUT_MAX / 2);

	for (int i = 0; i < count; i++) {
		bool own = false;

		for (unsigned int k = 0; k < kept->own; k++)
			own |= numbers[i] == kept->processes[k];
		if (own)
			continue;
		kept->numbers[kept->count] = KEPT_OUT_STALE;
		kept->processes[kept->count++] = numbers[i];
	}
	if (kept->count > kept->own)
		fall_due(kept, grace);
}

/* Whether the process is on the kernel's list; a place that is stale becomes `number`'s. */
static bool find(struct kept_out *kept, pid_t process, uint64_t number, bool *ret_taken)
{
	bool listed = false;

	*ret_taken = false;
	for (unsigned int i = kept->own; i < kept->count; i++) {
		if (kept->processes[i] != process)
			continue;
		listed = true;
		if (kept->numbers[i] == KEPT_OUT_STALE) {
			kept->numbers[i] = number;
			*ret_taken = true;
			break;
		}
	}
	return listed;
}

int kept_out_add(struct kept_out *kept, uint64_t number, pid_t process)
{
	const struct pid_lists lists = instance_lists(kept->instance);
	bool listed, taken;
	int r;

	/* A process that this namespace can't see has no number to write. */
	if (process <= 0)
		return 0;
	if (kept->count == KEPT_OUT_MAX)
		kept_out_renew(kept);
	listed = find(kept, process, number, &taken);
	if (taken)
		return 0;
	/* Its own events are a nuisance, and no reason to send anybody away. */
	if (kept->count == KEPT_OUT_MAX) {
		log_note("process %d is not kept out of the trace: so many are", (int)process);
		return 0;
	}
	/* The kernel waits for its readers at each, and a process may be many consumers. */
	r = listed ? 0 : pid_lists_add(&lists, &process, 1);
	if (r < 0)
		return r;
	kept->numbers[kept->count] = number;
	kept->processes[kept->count++] = process;
	look_again(kept, (size_t)r, 1);
	return 0;
}

/* A process that is on the list for another reason, too, needs no place for this one. */
static void retire(struct kept_out *kept, unsigned int i)
{
	for (unsigned int k = kept->own; k < kept->count; k++) {
		if (k == i || kept->processes[k] != kept->processes[i])
			continue;
		kept->count--;
		kept->numbers[i] = kept->numbers[kept->count];
		kept->processes[i] = kept->processes[kept->count];
		return;
	}
	kept->numbers[i] = KEPT_OUT_STALE;
	if (kept->due == LOOP_NEVER)
		fall_due(kept, 0);
}

void kept_out_leave(struct kept_out *kept, uint64_t number)
{
	/* The first are the session's own. */
	for (unsigned int i = kept->count; i-- > kept->own;) {
		if (kept->numbers[i] == number)
			retire(kept, i);
	}
}

void kept_out_leave_all(struct kept_out *kept, uint64_t grace)
{
	for (unsigned int i = kept->count; i-- > kept->own;)
		retire(kept, i);
	if (kept->count > kept->own)
		fall_due(kept, grace);
}

static void drop_stale(struct kept_out *kept)
{
	unsigned int left = kept->own;

	for (unsigned int i = kept->own; i < kept->count; i++) {
		if (kept->numbers[i] == KEPT_OUT_STALE)
			continue;
		kept->numbers[left] = kept->numbers[i];
		kept->processes[left++] = kept->processes[i];
	}
	kept->count = left;
}

void kept_out_renew(struct kept_out *kept)
{
	const struct pid_lists lists = instance_lists(kept->instance);
	struct kept_out left = *kept;
	int r;

	left.due = LOOP_NEVER;
	left.failed = false;
	drop_stale(&left);
	r = pid_lists_renew(&lists, left.processes, left.count);
	if (r >= 0) {
		look_again(&left, (size_t)r, left.count);
		*kept = left;
		return;
	}
	fall_due(kept, 0);
	if (!kept->failed)
		log_warning("who has left is still kept out of the trace, and is to be let in later: %s", strerror(-r));
	kept->failed = true;
}
