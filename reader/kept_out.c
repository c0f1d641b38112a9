#include "reader/kept_out.h"

#include "base/log.h"
#include "reader/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In which /proc tells when a process started. */
#define TICK_NS UINT64_C(10000000)

/* A stale number is harmless until it is another process's. */
static void fall_due(struct kept_out *kept, uint64_t wait)
{
	const uint64_t now = loop_now();

	if (kept->due == LOOP_NEVER)
		kept->since = now;
	if (now + wait < kept->due)
		kept->due = now + wait;
}

/* Nobody tells when a thread ends and its process stays. */
static void look_again(struct kept_out *kept, size_t threads, size_t processes)
{
	if (threads > processes)
		fall_due(kept, pid_lists_unused());
}

int kept_out_open(struct kept_out *kept, const struct instance *instance, pid_t helper)
{
	const struct pid_lists lists = instance_lists(instance);
	int r;

	/* It is too large to go by way of the stack. */
	memset(kept, 0, sizeof(*kept));
	kept->instance = instance;
	kept->due = LOOP_NEVER;
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
	const uint32_t last = pid_lists_last();

	for (int i = 0; i < count; i++) {
		bool own = false;

		for (unsigned int k = 0; k < kept->own; k++)
			own |= numbers[i] == kept->processes[k];
		if (own)
			continue;
		kept->numbers[kept->count] = KEPT_OUT_STALE;
		kept->starts[kept->count] = 0;
		kept->lasts[kept->count] = last;
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
			kept->starts[i] = pid_lists_start(process);
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
	kept->starts[kept->count] = pid_lists_start(process);
	kept->processes[kept->count++] = process;
	look_again(kept, (size_t)r, 1);
	return 0;
}

/* Its number was another's before anybody heard that it has ended. */
static void doubt_stranger(struct kept_out *kept, unsigned int i)
{
	const uint64_t start = pid_lists_start(kept->processes[i]), now = loop_now();
	struct timespec booted = { 0 };
	uint64_t age;

	if (!start || !kept->starts[i] || start == kept->starts[i])
		return;
	(void)clock_gettime(CLOCK_BOOTTIME, &booted);
	age = (uint64_t)booted.tv_sec * 1000000000U + (uint64_t)booted.tv_nsec - start * TICK_NS;
	if (!kept->doubt)
		kept->doubt = age < now ? now - age : 1;
	fall_due(kept, 0);
}

/* A process that is on the list for another reason, too, needs no place for this one. */
static void retire(struct kept_out *kept, unsigned int i)
{
	for (unsigned int k = kept->own; k < kept->count; k++) {
		if (k == i || kept->processes[k] != kept->processes[i])
			continue;
		kept->count--;
		kept->numbers[i] = kept->numbers[kept->count];
		kept->starts[i] = kept->starts[kept->count];
		kept->lasts[i] = kept->lasts[kept->count];
		kept->processes[i] = kept->processes[kept->count];
		return;
	}
	if (kept->numbers[i] == KEPT_OUT_STALE)
		return;
	kept->numbers[i] = KEPT_OUT_STALE;
	kept->lasts[i] = pid_lists_last();
	fall_due(kept, pid_lists_until(kept->lasts[i], kept->processes[i]));
	doubt_stranger(kept, i);
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
		kept->due = loop_now() + grace;
}

static void swap(struct kept_out *kept, unsigned int a, unsigned int b)
{
	const pid_t process = kept->processes[a];
	const uint64_t number = kept->numbers[a], start = kept->starts[a];
	const uint32_t last = kept->lasts[a];

	kept->processes[a] = kept->processes[b];
	kept->numbers[a] = kept->numbers[b];
	kept->starts[a] = kept->starts[b];
	kept->lasts[a] = kept->lasts[b];
	kept->processes[b] = process;
	kept->numbers[b] = number;
	kept->starts[b] = start;
	kept->lasts[b] = last;
}

/* Moves the stale ones behind the others. Returns how many those are. */
static unsigned int stale_last(struct kept_out *kept)
{
	unsigned int left = kept->own;

	for (unsigned int i = kept->own; i < kept->count; i++) {
		if (kept->numbers[i] != KEPT_OUT_STALE)
			swap(kept, left++, i);
	}
	return left;
}

/* Whether a number that is stale may be another's, because more threads were made than there can be. */
static bool was_given_out(const struct kept_out *kept)
{
	const uint32_t last = pid_lists_last();

	for (unsigned int i = kept->own; i < kept->count; i++) {
		if (kept->numbers[i] == KEPT_OUT_STALE && pid_lists_passed(kept->lasts[i], last, kept->processes[i]))
			return true;
	}
	return false;
}

void kept_out_renew(struct kept_out *kept)
{
	const struct pid_lists lists = instance_lists(kept->instance);
	const unsigned int left = stale_last(kept);
	int r = pid_lists_renew(&lists, kept->processes, left);
	const int end = r >= 0 && kept->failed ? pid_lists_mend(&lists) : 0;

	r = end < 0 ? end : r;
	if (r < 0) {
		kept->due = loop_now() + pid_lists_unused();
		if (!kept->failed)
			log_warning("who has left is still kept out of the trace, and is to be let in later: %s", strerror(-r));
		kept->failed = true;
		return;
	}
	if (!kept->doubt && was_given_out(kept))
		kept->doubt = kept->since;
	kept->count = left;
	kept->due = LOOP_NEVER;
	kept->failed = false;
	look_again(kept, (size_t)r, left);
}

uint64_t kept_out_doubt(struct kept_out *kept)
{
	const uint64_t doubt = kept->doubt;

	kept->doubt = 0;
	return doubt;
}
