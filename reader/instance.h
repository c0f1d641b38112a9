/* The session's own instance in tracefs. The top-level buffer and other instances are never
 * touched. */
#ifndef TRACEFAN_READER_INSTANCE_H
#define TRACEFAN_READER_INSTANCE_H

#include "reader/pid_lists.h"
#include "reader/tracedir.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct flow;
struct tracefs_instance;

/* The kernel's counts of a buffer's events, of all CPUs together. */
struct instance_counts {
	uint64_t read, overrun, dropped;
	uint64_t waiting; /* committed and not read yet */
};

struct instance {
	int root; /* folder of tracefs */
	int dir;  /* folder of the instance; its flock says who holds it */
	char name[CONTROL_NAME_MAX];
	struct tracefs_instance *handle;
	uint64_t buffer_size; /* bytes per CPU, effective */
	uint32_t subbuf_size; /* bytes, effective */
	uint32_t cpu_count;   /* per_cpu/cpu0 .. cpu_count - 1: every possible CPU */
	bool stopped;         /* no more events are wanted, and the buffers may be off */
	struct flow *flow; /* what goes on while the kernel is busy with a control file; NULL: nothing */
	/* What the kernel had counted before it last cleared the buffers and its counts. */
	struct instance_counts cleared;
};
#define INSTANCE_NONE                                                                              \
	{                                                                                          \
		.root = -1, .dir = -1                                                              \
	}

/* What the command line asks for; `instance_create` says in the log what it had to change. */
struct instance_wish {
	uint64_t buffer_size;
	uint64_t subbuf_size; /* 0: the usual one, where the kernel lets choose */
};

/* Makes and sets up the instance of a session, taking `root` over on success. What a dead reader of
 * the same session left behind is removed first; if a living one holds it, returns -EBUSY. On
 * failure nothing is left and *ret_problem says why. */
int instance_create(int root, const char *session, const struct instance_wish *wish,
	struct instance *ret, struct tracedir_problem *ret_problem);

/* Takes over the instance of a reader that died, as it is: its buffers, counts, events. The rest as
 * instance_create; -ENOENT when there is none. */
int instance_adopt(
	int root, const char *session, struct instance *ret, struct tracedir_problem *ret_problem);

/* Whose events it records. */
struct pid_lists instance_lists(const struct instance *instance);

/* Disables all events of the instance. Returns 0 or -errno. */
int instance_disable(const struct instance *instance);

/* Empties the buffers; the kernel's counts start at 0 again. */
int instance_reset(const struct instance *instance);

/* Adds up the CPUs' stats. Returns 0 or -errno. */
int instance_count(const struct instance *instance, struct instance_counts *ret);

/* Writes one text to the instance's trace_marker. */
int instance_mark(const struct instance *instance, const char *text);

/* Closes all, and leaves the instance to another reader. */
void instance_release(struct instance *instance);

/* Removes the instance; the kernel may hold it for a moment after the last descriptor is closed, so
 * this tries again for a bounded time. Returns 0 or -errno; closes everything either way. */
int instance_remove(struct instance *instance);

/* Removes what a dead reader of the session left: instance and probes. Returns 0 (also when there
 * was nothing), -EBUSY when it is held, or -errno. */
int instance_remove_leftovers(int root, const char *session, struct tracedir_problem *ret_problem);

#endif
