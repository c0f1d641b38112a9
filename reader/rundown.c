#include "reader/rundown.h"

#include "base/cleanup.h"
#include "reader/folder.h"
#include "reader/loop.h"
#include "reader/proc_file.h"
#include "reader/proc_text.h"
#include "reader/rundown_details.h"
#include "shm/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* /proc counts start times in ticks of USER_HZ, which is 100 wherever Linux runs tracefs. */
#define TICK_NS UINT64_C(10000000)

struct rundown {
	const struct rundown_request *request;
	int proc;   /* /proc */
	int groups; /* where the unified hierarchy is mounted; -1: nowhere */
	/* The last cgroup that was looked up: neighbours are often of one. */
	char group_path[PATH_MAX];
	size_t group_size;
	uint64_t group_id;
	struct state_writer table;
	struct rundown_details details;
};

/* One process or thread while it is looked at. */
struct subject {
	int folder;
	uint64_t time;
	struct proc_stat stat;
	struct proc_status status;
};

static int open_folder(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A process's or thread's, only to find its files by. */
static int find_folder(int at, const char *path)
{
	int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* What is read by way of the folder is of this one process or thread, whoever has its number afterwards. */
static int look(int folder, struct subject *ret)
{
	struct subject subject = { .folder = folder, .time = loop_now() };
	char text[4096];
	int n = proc_file_peek(folder, "stat", text, sizeof(text)), r;

	if (n < 0)
		return n;
	r = proc_stat_parse(text, (size_t)n, &subject.stat);
	if (r < 0)
		return r;
	if (subject.stat.has_ended)
		return -ESRCH;
	n = proc_file_peek(folder, "status", text, sizeof(text));
	if (n < 0)
		return n;
	r = proc_status_parse(text, (size_t)n, &subject.status);
	if (r == 0)
		*ret = subject;
	return r;
}

static bool belongs(const struct rundown_request *request, const struct proc_status *status)
{
	const struct state_ids *ids = &status->ids;

	return !request->scoped || (ids->uid == request->uid && ids->euid == request->uid && ids->suid == request->uid);
}

static uint16_t flags_of(const struct subject *subject)
{
	uint16_t flags = STATE_IDS | STATE_IDS_PROVEN | STATE_PROVEN;

	if (subject->stat.is_kernel)
		flags |= STATE_KERNEL;
	if (subject->status.no_new_ids)
		flags |= STATE_NO_NEW_IDS;
	return flags;
}

/* ---- processes ---- */

static void find_group(struct rundown *rundown, const char *path, size_t size)
{
	struct stat folder;

	if (size >= sizeof(rundown->group_path) || (size == rundown->group_size && memcmp(path, rundown->group_path, size) == 0))
		return;
	memcpy(rundown->group_path, path, size);
	rundown->group_path[size] = '\0';
	rundown->group_size = size;
	rundown->group_id = 0;
	/* "/" alone is the root of the hierarchy. */
	if (rundown->groups >= 0 && size && fstatat(rundown->groups, size == 1 ? "." : rundown->group_path + 1, &folder, 0) == 0)
		rundown->group_id = folder.st_ino;
}

static void add_process(struct rundown *rundown, const struct subject *subject)
{
	struct state_process process = {
		.record = {
			.kind = STATE_PROCESS,
			.flags = flags_of(subject),
			.pid = subject->stat.id,
			.tid = subject->stat.id,
			.start = subject->stat.start * TICK_NS,
			.time = subject->time,
		},
		.parent = subject->stat.parent,
		.ids = subject->status.ids,
	};
	char exe[PATH_MAX], groups[PATH_MAX + 1024];
	const char *group = NULL;
	size_t group_size = 0;
	/* The kernel's own threads have none. */
	int n = subject->stat.is_kernel ? 0 : proc_file_link(subject->folder, "exe", exe, sizeof(exe));

	memcpy(process.comm, subject->stat.comm, sizeof(process.comm));
	if (n > 0) {
		process.record.flags |= STATE_EXE;
		process.exe_size = (uint32_t)n;
	}
	n = proc_file_peek(subject->folder, "cgroup", groups, sizeof(groups));
	if (n > 0 && proc_cgroup_parse(groups, (size_t)n, &group, &group_size) == 0) {
		find_group(rundown, group, group_size);
		process.record.flags |= STATE_CGROUP;
		process.cgroup = rundown->group_id;
		process.cgroup_size = (uint32_t)group_size;
	}
	state_writer_add(&rundown->table, &(struct state_piece){
		.record = &process,
		.size = sizeof(process),
		.texts = { { exe, &process.exe_size }, { group, &process.cgroup_size } },
	});
}

static void add_thread(struct rundown *rundown, const struct subject *subject, uint64_t process_start)
{
	struct state_thread thread = {
		.record = {
			.kind = STATE_THREAD,
			.flags = flags_of(subject),
			.pid = subject->status.process,
			.tid = subject->stat.id,
			.start = process_start * TICK_NS,
			.time = subject->time,
		},
		.thread_start = subject->stat.start * TICK_NS,
		.ids = subject->status.ids,
	};

	memcpy(thread.comm, subject->stat.comm, sizeof(thread.comm));
	state_writer_add(&rundown->table, &(struct state_piece){ .record = &thread, .size = sizeof(thread) });
}

static void add_threads(struct rundown *rundown, const struct subject *process)
{
	DIR *dir = folder_open(process->folder, "task");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		CLEANUP_CLOSE int folder = -1;
		struct subject thread;

		if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == process->stat.id)
			continue;
		folder = find_folder(dirfd(dir), entry->d_name);
		if (folder >= 0 && look(folder, &thread) == 0 && belongs(rundown->request, &thread.status))
			add_thread(rundown, &thread, process->stat.start);
	}
	(void)closedir(dir);
}

static void take_process(struct rundown *rundown, const char *name)
{
	CLEANUP_CLOSE int folder = find_folder(rundown->proc, name);
	struct subject process, after;
	struct rundown_subject details;

	if (folder < 0 || look(folder, &process) != 0 || !belongs(rundown->request, &process.status))
		return;
	add_process(rundown, &process);
	/* One that it makes from now on is told by an event. */
	if (process.stat.threads > 1)
		add_threads(rundown, &process);
	details = (struct rundown_subject){
		.folder = folder,
		.pid = process.stat.id,
		.parent = process.stat.parent,
		.start = process.stat.start * TICK_NS,
		.time = process.time,
		.is_kernel = process.stat.is_kernel,
	};
	rundown_details_add(&rundown->details, &details);
	/* It may have become somebody else's meanwhile, with what was read then. */
	if (rundown->request->scoped && (look(folder, &after) != 0 || !belongs(rundown->request, &after.status)))
		rundown_details_undo(&rundown->details);
}

static int take_all(struct rundown *rundown)
{
	DIR *dir = folder_open(rundown->proc, ".");
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			take_process(rundown, entry->d_name);
	}
	(void)closedir(dir);
	return 0;
}

/* One thread by its number, which need not be its process's. */
static void take_thread(struct rundown *rundown, int32_t id)
{
	CLEANUP_CLOSE int folder = -1, process = -1;
	struct subject thread, first;
	char name[32];

	(void)snprintf(name, sizeof(name), "%d", (int)id);
	folder = find_folder(rundown->proc, name);
	if (folder < 0 || look(folder, &thread) != 0 || !belongs(rundown->request, &thread.status))
		return;
	if (thread.status.process == thread.stat.id) {
		add_process(rundown, &thread);
		return;
	}
	(void)snprintf(name, sizeof(name), "%d", (int)thread.status.process);
	process = find_folder(rundown->proc, name);
	if (process >= 0 && look(process, &first) == 0)
		add_thread(rundown, &thread, first.stat.start);
}

static int open_groups(void)
{
	struct stat file;
	int fd = open_folder(AT_FDCWD, "/sys/fs/cgroup");

	if (fd < 0 || fstatat(fd, "cgroup.controllers", &file, 0) == 0)
		return fd;
	(void)close_fd(fd);
	return open_folder(AT_FDCWD, "/sys/fs/cgroup/unified");
}

static int take(struct rundown *rundown)
{
	rundown->proc = open_folder(AT_FDCWD, "/proc");
	rundown->groups = open_groups();
	if (rundown->proc < 0)
		return rundown->proc;
	if (!rundown->request->id_count)
		return take_all(rundown);
	for (uint32_t i = 0; i < rundown->request->id_count && i < CONTROL_RUNDOWN_IDS; i++)
		take_thread(rundown, rundown->request->ids[i]);
	return 0;
}

int rundown_make(const struct rundown_request *request, int *ret_table, int *ret_details)
{
	CLEANUP_FREE struct rundown *rundown = calloc(1, sizeof(*rundown));
	uint64_t began = loop_now();
	CLEANUP_CLOSE int table = -1;
	int details = -1, r;

	if (!rundown)
		return -ENOMEM;
	rundown->request = request;
	rundown->proc = rundown->groups = -1;
	r = state_writer_open(&rundown->table, "tracefan-table");
	if (r == 0)
		r = rundown_details_open(&rundown->details, request->id_count ? 0 : request->what);
	if (r == 0)
		r = take(rundown);
	if (r == 0)
		r = table = state_writer_finish(&rundown->table, began, loop_now());
	if (r >= 0)
		r = details = rundown_details_finish(&rundown->details, began);
	state_writer_release(&rundown->table);
	rundown_details_release(&rundown->details);
	(void)close_fd(rundown->proc);
	(void)close_fd(rundown->groups);
	if (r < 0)
		return r;
	*ret_table = TAKE_FD(table);
	*ret_details = details;
	return 0;
}
