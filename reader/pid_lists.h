/* The kernel's two lists of threads in an instance, by number: set_event_notrace_pid, whose events are not recorded, and set_event_pid,
 * which keeps all others out as long as it isn't empty. Either can be added to, and cleared; nothing can be taken off. */
#ifndef TRACEFAN_READER_PID_LISTS_H
#define TRACEFAN_READER_PID_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flow;

/* The instance's folder, and what goes on while the kernel is busy with a list (NULL: nothing). */
struct pid_lists {
	int dir;
	struct flow *flow;
};

/* The numbers that are kept out, up to `count` of them. Returns how many, or -errno. */
int pid_lists_read(const struct pid_lists *lists, pid_t *ret, unsigned int count);

/* Keeps the threads of these processes out of the trace, beside those that are kept out already. A process that is gone is
 * passed over. Returns how many threads they have, or -errno (-ENOENT: the kernel can't do it, or not for a
 * process in a namespace of its own). */
int pid_lists_add(const struct pid_lists *lists, const pid_t *processes, size_t count);

/* Keeps them out, and nobody else any more, and no event of anybody else is missed by that; does nothing if that is so.
 * Returns how many threads they have, or -errno: then as before, or to be done again, behind pid_lists_mend. */
int pid_lists_renew(const struct pid_lists *lists, const pid_t *processes, size_t count);

/* Takes back what a renewal that failed, or whose reader died, has left behind. Who is to be kept out has been added before. */
int pid_lists_mend(const struct pid_lists *lists);

/* Numbers are given out in turn. The last one, 0: not known. */
uint32_t pid_lists_last(void);
/* How long, in ns, it takes at least until it is this one's turn; and all of them's. */
uint64_t pid_lists_until(uint32_t last, pid_t number);
uint64_t pid_lists_unused(void);
/* When the process that has this number started, in ticks of 10 ms of CLOCK_BOOTTIME; 0: none has it, or it has ended. */
uint64_t pid_lists_start(pid_t process);
/* Whether it was this one's turn between the one and the other last number. */
bool pid_lists_passed(uint32_t before, uint32_t last, pid_t number);

#endif
