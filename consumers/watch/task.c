#include "consumers/watch/task.h"

#include "consumers/watch/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TASK_MOST 65536

/* Of clone(2), whose header has them for programs with threads alone. */
#define TASK_CLONE_FS    0x200
#define TASK_CLONE_FILES 0x400

/* A current folder, which several threads may share. */
struct task_folder {
	unsigned int users;
	char *path;    /* NULL: it isn't known */
	uint64_t asked; /* ns: /proc said so then; what happened before is part of it. 0: events told it */
};

struct task {
	struct table_entry entry; /* by thread */
	uint64_t files;
	struct task_folder *folder; /* NULL: nobody has asked */
};

struct task_cloned {
	int pid;
	uint64_t clone_flags;
};

static const struct tfan_member task_cloned_members[] = {
	{ TFAN_MEMBER(struct task_cloned, pid) },
	{ TFAN_MEMBER(struct task_cloned, clone_flags) },
};

struct task_gone {
	int pid;
};

static const struct tfan_member task_gone_members[] = {
	{ TFAN_MEMBER(struct task_gone, pid) },
};

static void task_folder_leave(struct task_folder *folder)
{
	if (!folder || --folder->users > 0)
		return;
	free(folder->path);
	free(folder);
}

static void task_release(struct table_entry *entry)
{
	struct task *task = (struct task *)entry;

	task_folder_leave(task->folder);
	free(task);
}

int task_set_init(struct task_set *set, bool with_folders)
{
	set->with_folders = with_folders;
	return table_init(&set->tasks, TASK_MOST, task_release);
}

void task_set_free(struct task_set *set)
{
	table_free(&set->tasks);
}

void task_set_forget(struct task_set *set)
{
	table_clear(&set->tasks);
}

static uint64_t task_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Takes the path. */
static struct task_folder *task_folder_make(char *path, uint64_t asked)
{
	struct task_folder *folder = calloc(1, sizeof(*folder));

	if (!folder) {
		free(path);
		return NULL;
	}
	*folder = (struct task_folder){ .users = 1, .path = path, .asked = asked };
	return folder;
}

static struct task *task_put(struct task_set *set, int thread, uint64_t files, struct task_folder *folder)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task) {
		task_folder_leave(folder);
		return NULL;
	}
	task->files = files;
	task->folder = folder;
	table_put(&set->tasks, (uint64_t)thread, &task->entry);
	return task;
}

/* The folder is read after the clock, so that a change that it does not show yet is later. */
static struct task_folder *task_ask_folder(int thread)
{
	uint64_t asked = task_now();

	return task_folder_make(proc_link(thread, "cwd"), asked);
}

/* Of a thread that was there before we were: threads of one process nearly always share both. */
static struct task *task_ask(struct task_set *set, int thread)
{
	int process = proc_process(thread);
	const struct task *first;
	struct task_folder *folder = NULL;

	if (process > 0 && process != thread) {
		first = (const struct task *)table_find(&set->tasks, (uint64_t)process);
		if (!first)
			first = task_ask(set, process);
		folder = first ? first->folder : NULL;
		if (folder)
			folder->users++;
	} else if (set->with_folders) {
		folder = task_ask_folder(thread);
	}
	return task_put(set, thread, (uint64_t)(process > 0 ? process : thread), folder);
}

static struct task *task_of(struct task_set *set, int thread)
{
	struct task *task = (struct task *)table_find(&set->tasks, (uint64_t)thread);

	return task ? task : task_ask(set, thread);
}

uint64_t task_files(struct task_set *set, int thread)
{
	const struct task *task = task_of(set, thread);

	return task ? task->files : (uint64_t)thread;
}

const char *task_folder(struct task_set *set, int thread)
{
	const struct task *task = task_of(set, thread);

	return task && task->folder ? task->folder->path : NULL;
}

void task_set_folder(struct task_set *set, int thread, const char *path, uint64_t time)
{
	const struct task *task = task_of(set, thread);
	char *copy;

	if (!task || !task->folder || time < task->folder->asked)
		return;
	copy = strdup(path);
	if (!copy)
		return;
	free(task->folder->path);
	task->folder->path = copy;
	task->folder->asked = 0;
}

static void task_cloned(void *context, const struct tfan_event *event, const void *filled)
{
	const struct task_cloned *cloned = filled;
	struct task_set *set = context;
	struct task *parent = task_of(set, tfan_event_pid(event));
	struct task_folder *folder = parent ? parent->folder : NULL;
	uint64_t files = cloned->clone_flags & TASK_CLONE_FILES && parent ? parent->files : (uint64_t)cloned->pid;

	if (folder && cloned->clone_flags & TASK_CLONE_FS)
		folder->users++;
	else if (folder)
		folder = task_folder_make(folder->path ? strdup(folder->path) : NULL, folder->asked);
	(void)task_put(set, cloned->pid, files, folder);
}

static void task_gone(void *context, const struct tfan_event *event, const void *filled)
{
	struct task_set *set = context;

	(void)event;
	table_remove(&set->tasks, (uint64_t)((const struct task_gone *)filled)->pid);
}

int task_set_trace(struct watch *watch, struct task_set *set)
{
	static const struct tfan_shape cloned = TFAN_SHAPE(struct task_cloned, task_cloned_members);
	static const struct tfan_shape gone = TFAN_SHAPE(struct task_gone, task_gone_members);
	int r = observer_trace_for(watch, "tracepoint:task:task_newtask", &cloned, task_cloned, set);

	return r < 0 ? r : observer_trace_for(watch, "tracepoint:sched:sched_process_exit", &gone, task_gone, set);
}

void task_set_ask(struct task_set *set)
{
	DIR *all = opendir("/proc");
	const struct dirent *one;

	while (all && (one = readdir(all))) {
		if (isdigit((unsigned char)one->d_name[0]))
			(void)task_of(set, (int)strtol(one->d_name, NULL, 10));
	}
	if (all)
		(void)closedir(all);
}
