/* Who is kept out of the session's trace: the session's own processes, and consumers, that of writing an event would make the next. */
#ifndef TRACEFAN_READER_KEPT_OUT_H
#define TRACEFAN_READER_KEPT_OUT_H

#include "reader/instance.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The router's own place among the numbers that it gives its consumers. */
#define KEPT_OUT_ROUTER UINT64_MAX
/* Of a process that need not be kept out any more, but is still on the kernel's list. */
#define KEPT_OUT_STALE (UINT64_MAX - 1)
/* Children of the helper: this and their process's number. */
#define KEPT_OUT_HELPER (UINT64_C(1) << 62)
#define KEPT_OUT_MAX    2048

struct kept_out {
	const struct instance *instance;
	/* The reader itself is the first, its helper the second if it has one. */
	pid_t processes[KEPT_OUT_MAX];
	uint64_t numbers[KEPT_OUT_MAX]; /* the router's for the consumer, or one of the above */
	uint64_t starts[KEPT_OUT_MAX]; /* as pid_lists_start told when it was added; 0: not known */
	uint32_t lasts[KEPT_OUT_MAX]; /* of a stale one: the last number that had been given out when it became so */
	unsigned int count, own;
	uint64_t due; /* when kept_out_renew is to be called; LOOP_NEVER: nobody is stale, nor can be unseen */
	uint64_t since; /* when that was set */
	uint64_t doubt; /* since when somebody may have been kept out unseen; 0: nobody */
	bool failed;  /* that it failed has been told */
};

/* Keeps out this process and `helper` (0: none). Returns 0 or -errno. */
int kept_out_open(struct kept_out *kept, const struct instance *instance, pid_t helper);
/* Takes over what a dead reader kept out: stale, until it is named again. */
void kept_out_adopt(struct kept_out *kept, uint64_t grace);

/* Keeps a process out, `number` is the router's for it. Returns 0 or -errno (-ENOENT: the kernel can't do it). */
int kept_out_add(struct kept_out *kept, uint64_t number, pid_t process);
/* Who has this number need not be kept out any more. */
void kept_out_leave(struct kept_out *kept, uint64_t number);
/* Nobody but the session's own; they have `grace` ns to be named again. */
void kept_out_leave_all(struct kept_out *kept, uint64_t grace);

/* Takes the stale ones off the kernel's list, and threads that have ended. */
void kept_out_renew(struct kept_out *kept);
/* Since when, in ns, events of others may have been kept out, because a number was another's too early; 0: none were. Tells it once. */
uint64_t kept_out_doubt(struct kept_out *kept);

#endif
