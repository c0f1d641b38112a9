#include "router/state_table.h"

#include "shm/control_abi.h"
#include "shm/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct task_ids *ids_of(const struct state_ids *ids)
{
	_Static_assert(sizeof(struct task_ids) == sizeof(struct state_ids), "the same members");
	return (const struct task_ids *)(const void *)ids;
}

/* False: the record is no thread's. */
static bool read_of(const struct state_record *record, struct task_read *ret)
{
	const struct state_process *process = (const void *)record;
	const struct state_thread *thread = (const void *)record;
	struct task_read read = {
		.time = record->time,
		.tid = record->tid,
		.pid = record->pid,
		.parent = -1,
		.start = record->start,
		.process_start = record->start,
		.has_ids = record->flags & STATE_IDS,
		.no_new_ids = record->flags & STATE_NO_NEW_IDS,
		.is_kernel = record->flags & STATE_KERNEL,
	};

	if (record->tid <= 0 || record->pid <= 0)
		return false;
	if (record->kind == STATE_THREAD) {
		read.start = thread->thread_start;
		read.ids = *ids_of(&thread->ids);
		memcpy(read.comm, thread->comm, sizeof(read.comm));
	} else if (record->kind == STATE_PROCESS) {
		read.parent = process->parent;
		read.ids = *ids_of(&process->ids);
		memcpy(read.comm, process->comm, sizeof(read.comm));
		if (record->flags & STATE_EXE)
			read.exe = state_text(process, sizeof(*process), 0);
		read.exe_size = process->exe_size;
		if (record->flags & STATE_CGROUP)
			read.cgroup_path = state_text(process, sizeof(*process), process->exe_size);
		read.cgroup_size = process->cgroup_size;
		read.cgroup = process->cgroup;
	} else {
		return false;
	}
	*ret = read;
	return true;
}

int state_table_learn(struct tasks *tasks, const void *bytes, size_t size, bool whole)
{
	const struct state_record *record = NULL;
	size_t at = 0;
	int r;

	while ((r = state_next(bytes, size, &at, &record)) == 1) {
		struct task_read read;

		if (read_of(record, &read))
			r = tasks_learn(tasks, &read);
		if (r < 0)
			return r;
	}
	if (r == 0 && whole && !((const struct state_end *)(const void *)record)->left_out)
		tasks_forget(tasks, ((const struct state_end *)(const void *)record)->began);
	return r;
}

int state_table_names(const void *bytes, size_t size, void **ret, size_t *ret_size)
{
	const struct state_record *record = NULL;
	struct control_task_name *names = calloc(size / sizeof(*record) + 1, sizeof(*names));
	size_t at = 0, count = 0;
	int r;

	if (!names)
		return -ENOMEM;
	while ((r = state_next(bytes, size, &at, &record)) == 1) {
		struct task_read read;

		if (!read_of(record, &read))
			continue;
		names[count].tid = read.tid;
		memcpy(names[count++].comm, read.comm, sizeof(read.comm));
	}
	if (r < 0) {
		free(names);
		return r;
	}
	*ret = names;
	*ret_size = count * sizeof(*names);
	return 0;
}

/* ---- for a consumer ---- */

static uint16_t flags_of(const struct tasks *tasks, const struct task *task, const struct process *process, uint64_t time)
{
	uint16_t flags = 0;

	if (task->flags & TASK_IDS)
		flags |= STATE_IDS;
	if (tasks_ids_proven(tasks, task, time))
		flags |= STATE_IDS_PROVEN;
	if (tasks_is_proven(tasks, task))
		flags |= STATE_PROVEN;
	if (task->flags & TASK_NO_NEW_IDS)
		flags |= STATE_NO_NEW_IDS;
	if (process->flags & PROCESS_KERNEL)
		flags |= STATE_KERNEL;
	if (process->exe)
		flags |= STATE_EXE;
	if (process->cgroup_path)
		flags |= STATE_CGROUP;
	return flags;
}

static struct state_record head_of(const struct state_table_of *what, const struct tasks_copy *copy, enum state_kind kind)
{
	/* What was read has its own time, which is later than the place. */
	const uint64_t time = copy->task.proven > what->due ? copy->task.proven : what->due;

	return (struct state_record){
		.kind = (uint16_t)kind,
		.flags = flags_of(what->tasks, &copy->task, &copy->process, time),
		.pid = copy->has_process ? copy->process.pid : copy->task.tid,
		.tid = copy->task.tid,
		.start = copy->process.start,
		.time = what->due,
	};
}

static void add_process(struct state_writer *writer, const struct state_table_of *what, const struct tasks_copy *copy)
{
	const struct task_text *exe = copy->process.exe, *group = copy->process.cgroup_path;
	struct state_process process = {
		.record = head_of(what, copy, STATE_PROCESS),
		.parent = copy->has_process ? copy->process.parent : -1,
		.cgroup = copy->process.cgroup,
		.exe_size = exe ? exe->size : 0,
		.cgroup_size = group ? group->size : 0,
	};

	memcpy(&process.ids, &copy->task.ids, sizeof(process.ids));
	memcpy(process.comm, copy->task.comm, sizeof(process.comm));
	state_writer_add(writer, &(struct state_piece){
		.record = &process,
		.size = sizeof(process),
		.texts = { { exe ? exe->bytes : NULL, &process.exe_size }, { group ? group->bytes : NULL, &process.cgroup_size } },
	});
}

static void add_thread(struct state_writer *writer, const struct state_table_of *what, const struct tasks_copy *copy)
{
	struct state_thread thread = { .record = head_of(what, copy, STATE_THREAD), .thread_start = copy->task.start };

	memcpy(&thread.ids, &copy->task.ids, sizeof(thread.ids));
	memcpy(thread.comm, copy->task.comm, sizeof(thread.comm));
	state_writer_add(writer, &(struct state_piece){ .record = &thread, .size = sizeof(thread) });
}

static bool is_first(const struct tasks_copy *copy)
{
	return !copy->has_process || copy->process.pid == copy->task.tid;
}

/* Completes the snapshot by what was read after its place, and marks those that were found there. */
static int complete(const struct state_table_of *what, bool *found)
{
	const struct state_record *record = NULL;
	size_t at = 0;
	int r;

	while ((r = state_next(what->read, what->read_size, &at, &record)) == 1) {
		const struct task *now;
		struct tasks_copy *copy;
		struct task_read read;

		if (!read_of(record, &read))
			continue;
		copy = tasks_snapshot_find(what->snapshot, read.tid);
		if (!copy || !tasks_same(&copy->task, &read))
			continue;
		found[copy - what->snapshot->copies] = true;
		now = tasks_find_slow(what->tasks, read.tid);
		/* What no event has changed since the place was so at the place, too; and what it was there is not told to a user
		 * whose it became only then. */
		tasks_copy_learn(copy, &read, (now && now->changed == copy->task.changed && copy->task.changed < what->due) ||
			(what->scoped && !tasks_ids_are(&copy->task, what->uid)));
		if (copy->task.seen < read.time)
			copy->task.seen = read.time;
	}
	return r;
}

/* What was read is what the reader lets the user see; what was gone by then has to be proven to be theirs. */
static void keep_own(const struct state_table_of *what, bool *found)
{
	for (size_t i = 0; what->scoped && i < what->snapshot->count; i++)
		found[i] = tasks_owner(what->tasks, &what->snapshot->copies[i].task, what->due, what->uid);
}

/* One that wasn't found later, and whose end no event has told, had ended before. */
static bool lives(const struct state_table_of *what, const struct tasks_copy *copy, bool found)
{
	const struct task *now = found || what->scoped ? NULL : tasks_find_slow(what->tasks, copy->task.tid);

	if (found || what->scoped)
		return found;
	return !now || now->flags & TASK_DEAD || now->start != copy->task.start;
}

/* Threads that were read and that nobody knows of, now that the stream is further than the reading: whoever made them is
 * kept out of the trace, so no event will tell of them. */
static int add_unknown(const struct state_table_of *what)
{
	const struct state_record *record = NULL;
	size_t at = 0;
	int r;

	while ((r = state_next(what->read, what->read_size, &at, &record)) == 1) {
		struct task_read read;

		if (!read_of(record, &read) || tasks_find_slow(what->tasks, read.tid))
			continue;
		r = tasks_learn(what->tasks, &read);
		if (r == 0)
			r = tasks_snapshot_add(what->snapshot, &read);
		if (r < 0)
			return r;
	}
	tasks_snapshot_sort(what->snapshot);
	return r;
}

static void add_all(struct state_writer *writer, const struct state_table_of *what, const bool *found)
{
	for (int threads = 0; threads < 2; threads++) {
		for (size_t i = 0; i < what->snapshot->count; i++) {
			const struct tasks_copy *copy = &what->snapshot->copies[i];

			if (is_first(copy) == threads || !lives(what, copy, found[i]))
				continue;
			if (threads)
				add_thread(writer, what, copy);
			else
				add_process(writer, what, copy);
		}
	}
}

int state_table_make(const struct state_table_of *what)
{
	struct state_writer writer;
	bool *found = NULL;
	int r = state_writer_open(&writer, "tracefan-table");

	if (r == 0)
		r = add_unknown(what);
	if (r == 0)
		found = calloc(what->snapshot->count + 1, sizeof(*found));
	if (r == 0 && !found)
		r = -ENOMEM;
	if (r == 0)
		keep_own(what, found);
	if (r == 0)
		r = complete(what, found);
	if (r == 0) {
		add_all(&writer, what, found);
		r = state_writer_finish(&writer, what->due, what->due);
	}
	state_writer_release(&writer);
	free(found);
	return r;
}
