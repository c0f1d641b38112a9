/* Who a thread id is: names, ids and processes, as of a place in the merged stream. Fed by a rundown of /proc and by
 * the session's own events, in their order. Pure but for memory.
 *
 * A thread is its id and its start time, so a reused id is another thread: an entry counts from its `since` on, and
 * a new one of the same id takes its place. The threads of a process share a struct process.
 *
 * What is known is either proven or guessed:
 *   identity   that the id is still this thread. Guessed after events were lost (tasks_doubt), which may have been
 *              of its end and another's beginning, until something is seen of it again.
 *   ids        uid and gid. Forking hands them on. Executing a program may change them (the set-user-id bit), and so
 *              may the system calls that are there for it, and no event tells to what: from then on they are guessed,
 *              until they were read again.
 * What is shown to a user because it is theirs has to be proven: tasks_owner. */
#ifndef TRACEFAN_ROUTER_TASKS_H
#define TRACEFAN_ROUTER_TASKS_H

#include "router/task_text.h"
#include "shm/record_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASKS_RECENT  64
/* Threads that ended and are still known, for what others do to them; the oldest is forgotten first. */
#define TASKS_DEAD    4096
/* Threads whose ids wait to be read again. */
#define TASKS_QUERIES 256
/* Processes that may have ended unseen before all are read again. */
#define TASKS_UNSEEN  64

enum process_flag {
	PROCESS_KERNEL = 1 << 0, /* a thread of the kernel: it has no executable */
	PROCESS_DEAD = 1 << 1,   /* all its threads have ended */
};

struct process {
	uint32_t references; /* threads in the table */
	int32_t pid;         /* the kernel's tgid */
	int32_t parent;      /* of its making, or as it was read; -1: not known. See tasks_parent */
	uint32_t flags;      /* enum process_flag */
	uint64_t start;      /* ns, CLOCK_BOOTTIME; of a process that was read about: rounded down to a tick; 0: not known */
	struct task_text *exe; /* NULL: not known */
	uint64_t cgroup;       /* id in the unified hierarchy; 0: not known */
	struct task_text *cgroup_path;
	struct process *next_spare; /* of those that are nobody's */
};

struct task_ids {
	uint32_t uid, euid, suid, gid, egid;
};

enum task_flag {
	TASK_IDS = 1 << 0,  /* ids are known, proven or not */
	TASK_BORN = 1 << 1, /* it was seen to begin, so its start is exact */
	TASK_DEAD = 1 << 2,
	TASK_NO_NEW_IDS = 1 << 3, /* no_new_privs: executing a program can't change its ids */
};

struct task {
	int32_t tid; /* -1: an empty place */
	char comm[RECORD_COMM_SIZE]; /* NUL-padded */
	uint32_t flags;              /* enum task_flag */
	uint64_t since;              /* ns, CLOCK_MONOTONIC: before this the id was somebody else's */
	struct process *process;     /* NULL: not known */
	uint64_t start;              /* ns, CLOCK_BOOTTIME, as struct process's */
	uint64_t seen;               /* ns: the last that was seen of it, which proves its identity until a doubt */
	uint64_t proven;             /* ns: its ids are proven from here on; 0: they aren't */
	uint64_t changed;            /* ns: of the last event that changed what is known here */
	struct task_ids ids;
};

struct tasks {
	struct task *places; /* open addressing; a power of two */
	size_t room, count;
	/* Those found last, by the low bits of their ids: the threads that run now, one on each CPU, come again and
	 * again. */
	struct task *recent[TASKS_RECENT];
	int64_t boot_offset; /* ns: CLOCK_BOOTTIME - CLOCK_MONOTONIC; set by the owner */
	uint64_t doubt;      /* ns: before this, events may have been missed */
	struct {
		int32_t tid;
		uint64_t time;
	} dead[TASKS_DEAD]; /* ring */
	uint32_t dead_count;
	uint32_t asks;       /* so many need proven ids: queries are noted */
	int32_t queries[TASKS_QUERIES];
	uint32_t query_count;
	bool query_all;      /* more than could be noted, or a doubt */
	uint32_t unseen;
	struct task_texts texts;
	struct process *spare; /* TASKS_DEAD at most */
	uint32_t spare_count;
};

/* Returns 0 or -ENOMEM. */
int tasks_init(struct tasks *tasks);
void tasks_release(struct tasks *tasks);

struct task *tasks_find_slow(struct tasks *tasks, int32_t tid);

/* The thread that had this id at that time, or NULL when it isn't known. Valid until the table is changed. */
static inline const struct task *tasks_find(struct tasks *tasks, int32_t tid, uint64_t time)
{
	const struct task *task = tasks->recent[(uint32_t)tid % TASKS_RECENT];

	if (!task || task->tid != tid)
		task = tasks_find_slow(tasks, tid);
	return task && task->since <= time ? task : NULL;
}

/* Whether it is known for sure that this is the thread. */
static inline bool tasks_is_proven(const struct tasks *tasks, const struct task *task)
{
	return task->seen > tasks->doubt;
}

/* Whether its ids at that time are known for sure. */
static inline bool tasks_ids_proven(const struct tasks *tasks, const struct task *task, uint64_t time)
{
	return task->proven && task->proven <= time && task->proven > tasks->doubt && tasks_is_proven(tasks, task);
}

/* Whether its real, effective and saved user, as far as it is known or guessed, are all this one. */
bool tasks_ids_are(const struct task *task, uint32_t uid);
/* Whether it is proven that the thread is this user's and nobody else's at that time: its real, effective and saved
 * user are the same, as the kernel asks of who wants to look into another process. `task` may be NULL. */
bool tasks_owner(const struct tasks *tasks, const struct task *task, uint64_t time, uint32_t uid);

/* Somebody more needs proven ids: while `asks` isn't 0 the ids of threads for which they aren't are asked for. */
static inline void tasks_ask(struct tasks *tasks)
{
	tasks->query_all = tasks->query_all || !tasks->asks;
	tasks->asks++;
}

/* The parent of a process, or -1 when it isn't known: children of one that ended get another, and no event says whom. */
int32_t tasks_parent(struct tasks *tasks, const struct process *process);

/* ---- events, in the order of the stream ---- */

struct task_fork {
	uint64_t time;
	int32_t creator, tid;
	const char *comm; /* as in tasks_set */
	size_t comm_size;
	uint64_t flags;   /* of clone(2) */
};

int tasks_fork(struct tasks *tasks, const struct task_fork *fork);
/* `old_tid`: what the thread's id was, which a thread that isn't the first of its process gives up. */
int tasks_exec(struct tasks *tasks, uint64_t time, int32_t tid, int32_t old_tid, const char *file, size_t size);
void tasks_rename(struct tasks *tasks, uint64_t time, int32_t tid, const char *comm, size_t size);
/* `last`: no thread of its process is left; -1: the event doesn't tell. */
void tasks_exit(struct tasks *tasks, uint64_t time, int32_t tid, int last);
/* Its user or group was changed to something. */
void tasks_ids_changed(struct tasks *tasks, uint64_t time, int32_t tid);
/* Its process was moved to another cgroup. */
void tasks_moved(struct tasks *tasks, uint64_t time, int32_t tid, uint64_t cgroup, const char *path, size_t size);
/* Events before this time were lost, and nobody knows which. */
void tasks_doubt(struct tasks *tasks, uint64_t time);
/* A process of which nothing is recorded may have ended: no event says so, and it would be known for ever. */
void tasks_unseen(struct tasks *tasks);

/* ---- what was read ---- */

/* The clock of start times in /proc. */
#define TASKS_TICK_NS UINT64_C(10000000)

/* Sets a thread's name without knowing anything else of it; `comm` has RECORD_COMM_SIZE bytes at most, NUL-ended if
 * shorter. `keep` leaves a known name alone (a snapshot that came after events). Returns 0 or -ENOMEM. */
int tasks_set(struct tasks *tasks, int32_t tid, const char *comm, size_t size, bool keep);

/* A thread as /proc showed it. */
struct task_read {
	uint64_t time;  /* ns, CLOCK_MONOTONIC: before the first look at it */
	int32_t tid, pid, parent;
	uint64_t start, process_start; /* ns, CLOCK_BOOTTIME, rounded down to a tick */
	char comm[RECORD_COMM_SIZE];
	bool has_ids;
	struct task_ids ids;
	bool no_new_ids, is_kernel;
	const char *exe, *cgroup_path; /* NULL: not known */
	size_t exe_size, cgroup_size;
	uint64_t cgroup;
};

/* Takes what is newer than what events have told; a process comes before its threads. 0 or -ENOMEM. */
int tasks_learn(struct tasks *tasks, const struct task_read *read);
/* Forgets those that a rundown which began at that time did not find, and that nothing was seen of since. */
void tasks_forget(struct tasks *tasks, uint64_t time);

/* ---- snapshots ---- */

/* A copy of a thread, with what its process was at that moment. */
struct tasks_copy {
	struct task task;       /* its process is NULL */
	bool has_process;
	struct process process; /* holds its texts */
};

struct tasks_snapshot {
	struct tasks_copy *copies; /* by tid */
	size_t count;
};

/* Copies all threads that live at that time. Returns 0 or -ENOMEM. */
int tasks_copy_all(struct tasks *tasks, uint64_t time, struct tasks_snapshot *ret);
void tasks_snapshot_release(struct tasks_snapshot *snapshot);
/* Adds one that was read; afterwards they have to be sorted again. Returns 0 or -ENOMEM. */
int tasks_snapshot_add(struct tasks_snapshot *snapshot, const struct task_read *read);
void tasks_snapshot_sort(struct tasks_snapshot *snapshot);
struct tasks_copy *tasks_snapshot_find(const struct tasks_snapshot *snapshot, int32_t tid);
/* Takes what was read later into a copy: all of it (`fresh`), or only what isn't known. */
void tasks_copy_learn(struct tasks_copy *copy, const struct task_read *read, bool fresh);
/* Whether what was read is of this thread. */
bool tasks_same(const struct task *task, const struct task_read *read);

#endif
