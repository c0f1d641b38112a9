#include "router/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table that has reached this size forgets everything and begins anew with what comes: the number of
 * threads of a host is bounded (pid_max is at most 4 Mi). */
#define TASKS_MAX (1U << 20)

/* clone(2) */
#define FLAG_PARENT      0x8000U
#define FLAG_THREAD      0x10000U
#define FLAG_INTO_CGROUP UINT64_C(0x200000000)

/* ---- processes ---- */

/* Those that go are kept for those that come, as many as there are that ended: between what comes and goes with
 * consumers they would keep pieces of the heap from being joined again. */
static struct process *process_make(struct tasks *tasks, int32_t pid)
{
	struct process *process = tasks->spare;

	if (process) {
		tasks->spare = process->next_spare;
		tasks->spare_count--;
	} else {
		process = malloc(sizeof(*process));
	}
	if (process)
		*process = (struct process){ .references = 1, .pid = pid, .parent = -1 };
	return process;
}

static void process_drop(struct tasks *tasks, struct process **process)
{
	struct process *gone = *process;

	*process = NULL;
	if (!gone || --gone->references)
		return;
	task_text_drop(&gone->exe);
	task_text_drop(&gone->cgroup_path);
	if (tasks->spare_count == TASKS_DEAD) {
		free(gone);
		return;
	}
	gone->next_spare = tasks->spare;
	tasks->spare = gone;
	tasks->spare_count++;
}

static void process_set(struct tasks *tasks, struct task *task, struct process *process)
{
	if (process)
		process->references++;
	process_drop(tasks, &task->process);
	task->process = process;
}

/* ---- places ---- */

static size_t place_of(const struct tasks *tasks, int32_t tid)
{
	/* Fibonacci hashing: thread ids are dense, so the multiplication alone spreads them. */
	uint32_t hash = (uint32_t)tid * 2654435769U;

	return hash & (tasks->room - 1);
}

static struct task *places_create(size_t room)
{
	struct task *places = calloc(room, sizeof(*places));

	for (size_t i = 0; places && i < room; i++)
		places[i].tid = -1;
	return places;
}

int tasks_init(struct tasks *tasks)
{
	memset(tasks, 0, sizeof(*tasks));
	tasks->room = 1024;
	tasks->places = places_create(tasks->room);
	return tasks->places ? 0 : -ENOMEM;
}

static void tasks_clear(struct tasks *tasks)
{
	for (size_t i = 0; tasks->places && i < tasks->room; i++) {
		process_drop(tasks, &tasks->places[i].process);
		tasks->places[i].tid = -1;
	}
	tasks->count = 0;
	tasks->dead_count = 0;
	memset(tasks->recent, 0, sizeof(tasks->recent));
}

void tasks_release(struct tasks *tasks)
{
	tasks_clear(tasks);
	free(tasks->places);
	while (tasks->spare) {
		struct process *spare = tasks->spare;

		tasks->spare = spare->next_spare;
		free(spare);
	}
	task_texts_release(&tasks->texts);
	memset(tasks, 0, sizeof(*tasks));
}

static struct task *find_place(const struct tasks *tasks, int32_t tid)
{
	size_t i = place_of(tasks, tid);

	while (tasks->places[i].tid != -1 && tasks->places[i].tid != tid)
		i = (i + 1) & (tasks->room - 1);
	return &tasks->places[i];
}

static int tasks_grow(struct tasks *tasks)
{
	const size_t room = tasks->room;
	struct task *const places = tasks->places;
	struct task *bigger;

	if (tasks->count >= TASKS_MAX) {
		tasks_clear(tasks);
		tasks->query_all = true;
		return 0;
	}
	bigger = places_create(2 * room);
	if (!bigger)
		return -ENOMEM;
	tasks->places = bigger;
	tasks->room = 2 * room;
	for (size_t i = 0; i < room; i++) {
		if (places[i].tid != -1)
			*find_place(tasks, places[i].tid) = places[i];
	}
	free(places);
	memset(tasks->recent, 0, sizeof(tasks->recent));
	return 0;
}

/* The place of an id, which is emptied if somebody else had it before. NULL: no memory. */
static struct task *take_place(struct tasks *tasks, int32_t tid)
{
	struct task *task = find_place(tasks, tid);

	if (task->tid != tid && tasks->count >= tasks->room / 2) {
		if (tasks_grow(tasks) < 0)
			return NULL;
		task = find_place(tasks, tid);
	}
	if (task->tid != tid)
		tasks->count++;
	process_drop(tasks, &task->process);
	*task = (struct task){ .tid = tid };
	return task;
}

/* Takes a thread out of the table. Those behind it that stand here only because it stood before them move up. */
static void give_place(struct tasks *tasks, struct task *task)
{
	size_t hole = (size_t)(task - tasks->places), mask = tasks->room - 1;

	process_drop(tasks, &task->process);
	tasks->count--;
	for (size_t i = (hole + 1) & mask; tasks->places[i].tid != -1; i = (i + 1) & mask) {
		size_t home = place_of(tasks, tasks->places[i].tid);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		tasks->places[hole] = tasks->places[i];
		hole = i;
	}
	tasks->places[hole] = (struct task){ .tid = -1 };
}

struct task *tasks_find_slow(struct tasks *tasks, int32_t tid)
{
	struct task *task;

	if (tid < 0)
		return NULL;
	task = find_place(tasks, tid);
	if (task->tid != tid)
		return NULL;
	tasks->recent[(uint32_t)tid % TASKS_RECENT] = task;
	return task;
}

static void set_comm(struct task *task, const char *comm, size_t size)
{
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, strnlen(comm, size < sizeof(task->comm) ? size : sizeof(task->comm)));
}

/* ---- what is asked ---- */

bool tasks_ids_are(const struct task *task, uint32_t uid)
{
	return task->flags & TASK_IDS && task->ids.uid == uid && task->ids.euid == uid && task->ids.suid == uid;
}

bool tasks_owner(const struct tasks *tasks, const struct task *task, uint64_t time, uint32_t uid)
{
	return task && tasks_ids_proven(tasks, task, time) && tasks_ids_are(task, uid);
}

int32_t tasks_parent(struct tasks *tasks, const struct process *process)
{
	const struct task *task;
	const struct process *parent;

	/* The first of all, and those of the kernel, have none. */
	if (process->parent <= 0)
		return process->parent;
	task = tasks_find_slow(tasks, process->parent);
	parent = task ? task->process : NULL;
	/* One that is younger than its child has got a dead one's number. */
	if (!parent || parent->flags & PROCESS_DEAD || parent->start > process->start)
		return -1;
	return process->parent;
}

static void query(struct tasks *tasks, int32_t tid)
{
	if (tasks->query_count == TASKS_QUERIES)
		tasks->query_all = true;
	else
		tasks->queries[tasks->query_count++] = tid;
}

/* ---- events ---- */

/* What a child has of the thread that made it. */
static int inherit(struct tasks *tasks, struct task *task, const struct task *creator, const struct task_fork *fork)
{
	struct process *from = creator ? creator->process : NULL;
	struct process *process;

	if (creator && creator->flags & TASK_IDS) {
		task->ids = creator->ids;
		task->flags |= creator->flags & (TASK_IDS | TASK_NO_NEW_IDS);
		if (tasks_ids_proven(tasks, creator, fork->time))
			task->proven = fork->time;
	}
	if (fork->flags & FLAG_THREAD) {
		process_set(tasks, task, from);
		return 0;
	}
	process = process_make(tasks, fork->tid);
	if (!process)
		return -ENOMEM;
	process->start = task->start;
	if (from) {
		process->parent = fork->flags & FLAG_PARENT ? from->parent : from->pid;
		process->flags = from->flags & PROCESS_KERNEL;
		process->exe = task_text_share(from->exe);
		if (!(fork->flags & FLAG_INTO_CGROUP)) {
			process->cgroup = from->cgroup;
			process->cgroup_path = task_text_share(from->cgroup_path);
		}
	}
	process_drop(tasks, &task->process);
	task->process = process;
	return 0;
}

int tasks_fork(struct tasks *tasks, const struct task_fork *fork)
{
	const struct task *creator = tasks_find(tasks, fork->creator, fork->time);
	struct task copy = { 0 }, *task;
	int r;

	if (fork->tid <= 0)
		return 0;
	/* Making room may move it. */
	if (creator) {
		copy = *creator;
		if (copy.process)
			copy.process->references++;
	}
	task = take_place(tasks, fork->tid);
	if (!task) {
		process_drop(tasks, &copy.process);
		return -ENOMEM;
	}
	set_comm(task, fork->comm, fork->comm_size);
	task->flags = TASK_BORN;
	task->since = task->seen = task->changed = fork->time;
	task->start = fork->time + (uint64_t)tasks->boot_offset;
	r = inherit(tasks, task, creator ? &copy : NULL, fork);
	if (!task->proven && (tasks->asks || !task->process || !creator))
		query(tasks, fork->tid);
	process_drop(tasks, &copy.process);
	return r;
}

static void note(struct task *task, uint64_t time)
{
	task->seen = task->changed = time;
}

/* A thread that executes takes over the id of its process's first thread, which has ended before. */
static struct task *take_over(struct tasks *tasks, int32_t tid, int32_t old_tid)
{
	struct task *old = tasks_find_slow(tasks, old_tid), *task;
	struct task copy;

	if (!old)
		return tasks_find_slow(tasks, tid);
	copy = *old;
	copy.tid = tid;
	old->process = NULL;
	give_place(tasks, old);
	task = tasks_find_slow(tasks, tid);
	if (task) {
		copy.start = task->start;
		copy.since = task->since;
	}
	task = take_place(tasks, tid);
	if (task)
		*task = copy;
	else
		process_drop(tasks, &copy.process);
	return task;
}

int tasks_exec(struct tasks *tasks, uint64_t time, int32_t tid, int32_t old_tid, const char *file, size_t size)
{
	struct task *task = tid == old_tid ? tasks_find_slow(tasks, tid) : take_over(tasks, tid, old_tid);

	if (!task)
		return 0;
	note(task, time);
	task->flags &= ~(uint32_t)TASK_DEAD;
	if (task->process) {
		task->process->flags &= ~(uint32_t)(PROCESS_DEAD | PROCESS_KERNEL);
		task_text_set(&tasks->texts, &task->process->exe, file, size);
	}
	/* What was read after this event knows of it. */
	if (task->proven < time && !(task->flags & TASK_NO_NEW_IDS))
		task->proven = 0;
	if (!task->proven && (tasks->asks || !task->process))
		query(tasks, tid);
	return 0;
}

void tasks_rename(struct tasks *tasks, uint64_t time, int32_t tid, const char *comm, size_t size)
{
	struct task *task = tasks_find_slow(tasks, tid);

	if (!task && tid >= 0) {
		task = take_place(tasks, tid);
		if (task)
			query(tasks, tid);
	}
	if (!task)
		return;
	set_comm(task, comm, size);
	note(task, time);
}

void tasks_ids_changed(struct tasks *tasks, uint64_t time, int32_t tid)
{
	struct task *task = tasks_find_slow(tasks, tid);

	if (!task)
		return;
	note(task, time);
	if (task->proven < time)
		task->proven = 0;
	if (!task->proven && (tasks->asks || !task->process))
		query(tasks, tid);
}

void tasks_moved(struct tasks *tasks, uint64_t time, int32_t tid, uint64_t cgroup, const char *path, size_t size)
{
	struct task *task = tasks_find_slow(tasks, tid);

	if (!task || !task->process)
		return;
	note(task, time);
	task->process->cgroup = cgroup;
	task_text_set(&tasks->texts, &task->process->cgroup_path, path, size);
}

/* Threads that ended go when so many more have ended. */
static void bury(struct tasks *tasks, uint64_t time, int32_t tid)
{
	const uint32_t i = tasks->dead_count++ % TASKS_DEAD;
	struct task *oldest = tasks->dead_count > TASKS_DEAD ? tasks_find_slow(tasks, tasks->dead[i].tid) : NULL;

	if (oldest && oldest->flags & TASK_DEAD && oldest->changed == tasks->dead[i].time)
		give_place(tasks, oldest);
	tasks->dead[i].tid = tid;
	tasks->dead[i].time = time;
}

static bool any_lives(const struct tasks *tasks, const struct process *process)
{
	for (size_t i = 0; process->references > 1 && i < tasks->room; i++) {
		const struct task *task = &tasks->places[i];

		if (task->tid != -1 && task->process == process && !(task->flags & TASK_DEAD))
			return true;
	}
	return false;
}

void tasks_exit(struct tasks *tasks, uint64_t time, int32_t tid, int last)
{
	struct task *task = tasks_find_slow(tasks, tid);
	struct process *process = task ? task->process : NULL;

	if (!task)
		return;
	note(task, time);
	task->flags |= TASK_DEAD;
	if (process && (last > 0 || (last < 0 && !any_lives(tasks, process))))
		process->flags |= PROCESS_DEAD;
	bury(tasks, time, tid);
}

void tasks_doubt(struct tasks *tasks, uint64_t time)
{
	if (time > tasks->doubt)
		tasks->doubt = time;
	tasks->query_all = true;
}

void tasks_unseen(struct tasks *tasks)
{
	if (++tasks->unseen < TASKS_UNSEEN)
		return;
	tasks->unseen = 0;
	tasks->query_all = true;
}

/* ---- what was read ---- */

int tasks_set(struct tasks *tasks, int32_t tid, const char *comm, size_t size, bool keep)
{
	struct task *task = tid < 0 ? NULL : find_place(tasks, tid);

	if (tid < 0 || (task->tid == tid && keep))
		return 0;
	if (task->tid != tid)
		task = take_place(tasks, tid);
	if (!task)
		return -ENOMEM;
	set_comm(task, comm, size);
	return 0;
}

bool tasks_same(const struct task *task, const struct task_read *read)
{
	if (!task->start)
		return true;
	return task->flags & TASK_BORN ? task->start >= read->start : task->start == read->start;
}

static int learn_process(struct tasks *tasks, struct task *task, const struct task_read *read)
{
	const struct task *first = read->tid == read->pid ? task : tasks_find_slow(tasks, read->pid);
	struct process *process;

	if (task->process && task->process->pid == read->pid)
		return 0;
	if (first && first != task && first->process) {
		process_set(tasks, task, first->process);
		return 0;
	}
	process = process_make(tasks, read->pid);
	if (!process)
		return -ENOMEM;
	process->start = read->process_start;
	process_drop(tasks, &task->process);
	task->process = process;
	return 0;
}

static void learn_ids(struct task *task, const struct task_read *read, bool newer)
{
	if (!read->has_ids || (!newer && task->flags & TASK_IDS))
		return;
	task->ids = read->ids;
	task->flags |= TASK_IDS;
	if (!newer)
		return;
	task->proven = read->time;
	task->flags = (task->flags & ~(uint32_t)TASK_NO_NEW_IDS) | (read->no_new_ids ? TASK_NO_NEW_IDS : 0);
}

static void learn_first(struct task_texts *texts, struct process *process, const struct task_read *read, bool newer)
{
	if (newer || process->parent < 0)
		process->parent = read->parent;
	process->flags = (process->flags & ~(uint32_t)PROCESS_KERNEL) | (read->is_kernel ? PROCESS_KERNEL : 0);
	if (read->exe && (newer || !process->exe))
		task_text_set(texts, &process->exe, read->exe, read->exe_size);
	if (read->cgroup_path && (newer || !process->cgroup_path)) {
		process->cgroup = read->cgroup;
		task_text_set(texts, &process->cgroup_path, read->cgroup_path, read->cgroup_size);
	}
}

static void learn_facts(struct task_texts *texts, struct task *task, struct process *process, const struct task_read *read,
	bool newer)
{
	if (newer)
		memcpy(task->comm, read->comm, sizeof(task->comm));
	learn_ids(task, read, newer);
	if (process && read->tid == read->pid)
		learn_first(texts, process, read, newer);
}

int tasks_learn(struct tasks *tasks, const struct task_read *read)
{
	struct task *task = tasks_find_slow(tasks, read->tid);
	bool newer;
	int r;

	/* It began after what was read, which was of the last one of this id. */
	if (task && task->flags & TASK_BORN && task->since > read->time)
		return 0;
	if (!task || !tasks_same(task, read)) {
		task = take_place(tasks, read->tid);
		if (!task)
			return -ENOMEM;
		memcpy(task->comm, read->comm, sizeof(task->comm));
	}
	if (!task->start) {
		uint64_t exact = read->start + TASKS_TICK_NS;

		task->start = read->start;
		/* Within a tick the id may have been another's. */
		task->since = exact > (uint64_t)tasks->boot_offset ? exact - (uint64_t)tasks->boot_offset : 0;
		if (task->since > read->time)
			task->since = read->time;
	}
	newer = task->changed < read->time;
	r = learn_process(tasks, task, read);
	learn_facts(&tasks->texts, task, task->process, read, newer);
	if (task->seen < read->time)
		task->seen = read->time;
	if (!task->proven && tasks->asks)
		query(tasks, task->tid);
	return r;
}

void tasks_forget(struct tasks *tasks, uint64_t time)
{
	for (size_t i = 0; i < tasks->room;) {
		struct task *task = &tasks->places[i];

		/* Another may have moved up into the place. */
		if (task->tid > 0 && task->seen < time && !(task->flags & TASK_DEAD))
			give_place(tasks, task);
		else
			i++;
	}
}

/* ---- snapshots ---- */

static int by_tid(const void *a, const void *b)
{
	const struct tasks_copy *left = a, *right = b;

	return (left->task.tid > right->task.tid) - (left->task.tid < right->task.tid);
}

static void copy_one(struct tasks *tasks, const struct task *task, struct tasks_copy *ret)
{
	*ret = (struct tasks_copy){ .task = *task, .has_process = task->process != NULL };
	ret->task.process = NULL;
	if (!task->process)
		return;
	ret->process = *task->process;
	ret->process.parent = tasks_parent(tasks, task->process);
	(void)task_text_share(ret->process.exe);
	(void)task_text_share(ret->process.cgroup_path);
}

/* A process lives as long as any of its threads, also when the first has ended. */
static bool lives(const struct task *task)
{
	const struct process *process = task->process;

	return !(task->flags & TASK_DEAD) || (process && process->pid == task->tid && !(process->flags & PROCESS_DEAD));
}

int tasks_copy_all(struct tasks *tasks, uint64_t time, struct tasks_snapshot *ret)
{
	struct tasks_snapshot snapshot = { .copies = calloc(tasks->count + 1, sizeof(*snapshot.copies)) };

	if (!snapshot.copies)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->room; i++) {
		const struct task *task = &tasks->places[i];

		/* Id 0 is no thread: what a CPU does when there is none. */
		if (task->tid > 0 && lives(task) && task->since <= time)
			copy_one(tasks, task, &snapshot.copies[snapshot.count++]);
	}
	qsort(snapshot.copies, snapshot.count, sizeof(*snapshot.copies), by_tid);
	*ret = snapshot;
	return 0;
}

void tasks_snapshot_release(struct tasks_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->count; i++) {
		task_text_drop(&snapshot->copies[i].process.exe);
		task_text_drop(&snapshot->copies[i].process.cgroup_path);
	}
	free(snapshot->copies);
	*snapshot = (struct tasks_snapshot){ 0 };
}

int tasks_snapshot_add(struct tasks_snapshot *snapshot, const struct task_read *read)
{
	struct tasks_copy *more = realloc(snapshot->copies, (snapshot->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	snapshot->copies = more;
	more[snapshot->count] = (struct tasks_copy){ .task = { .tid = read->tid, .start = read->start, .seen = read->time } };
	tasks_copy_learn(&more[snapshot->count++], read, true);
	return 0;
}

void tasks_snapshot_sort(struct tasks_snapshot *snapshot)
{
	if (snapshot->count)
		qsort(snapshot->copies, snapshot->count, sizeof(*snapshot->copies), by_tid);
}

struct tasks_copy *tasks_snapshot_find(const struct tasks_snapshot *snapshot, int32_t tid)
{
	const struct tasks_copy key = { .task.tid = tid };

	return snapshot->count ? bsearch(&key, snapshot->copies, snapshot->count, sizeof(key), by_tid) : NULL;
}

void tasks_copy_learn(struct tasks_copy *copy, const struct task_read *read, bool fresh)
{
	if (!copy->has_process) {
		copy->process = (struct process){ .pid = read->pid, .parent = -1, .start = read->process_start };
		copy->has_process = true;
	}
	learn_facts(NULL, &copy->task, &copy->process, read, fresh);
}
