#include "reader/instance.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/folder.h"
#include "reader/holder.h"
#include "reader/lock.h"
#include "reader/probe_name.h"
#include "reader/probe_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <tracefs.h>
#include <unistd.h>

/* How often the removal of an instance is tried, after pauses that double up to a most: two seconds
 * in all. */
#define REMOVE_TRIES        24
#define REMOVE_PAUSE_NS     2000000
#define REMOVE_PAUSE_MAX_NS 100000000

/* A new instance copies its options from the top-level one, where anybody may have changed them. */
static const struct {
	const char *name;
	const char *value;
} instance_options[] = {
	{ "overwrite", "1" },
	{ "context-info", "1" },
	{ "irq-info", "1" },
	{ "markers", "1" },
	{ "record-tgid", "0" },
	{ "record-cmd", "1" },
	{ "latency-format", "0" },
	{ "raw", "0" },
	{ "hex", "0" },
	{ "bin", "0" },
	{ "block", "0" },
	{ "annotate", "0" },
	{ "event-fork", "0" },
	{ "stacktrace", "0" },
	{ "userstacktrace", "0" },
	{ "fields", "0" },
	{ "disable_on_free", "0" },
	{ "sym-userobj", "0" },
	{ "copy_trace_marker", "0" },
};

static int fail(
	struct tracedir_problem *problem, int status, int error, const char *what, const char *name)
{
	(void)snprintf(problem->message, sizeof(problem->message), "%s \"%s\": %s", what, name,
		strerror(-error));
	problem->status = status;
	return error;
}

static int set_number(int dir, const char *file, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return tracedir_write(dir, file, text);
}

static int get_number(int dir, const char *file, uint64_t *ret)
{
	CLEANUP_FREE char *text = NULL;
	unsigned long long value;
	int r = tracedir_read(dir, file, &text, NULL);

	if (r < 0)
		return r;
	/* "7 (expanded: 1408)" before the first use of a buffer; the first number is what holds. */
	if (sscanf(text, "%llu", &value) != 1)
		return -EBADMSG;
	*ret = value;
	return 0;
}

/* Large enough that the reading of a full one costs little for each event. Not larger, because for
 * one event a whole one is cleared and copied, too, and because what is in the one that is being
 * filled is copied event by event. */
#define SUBBUF_USUAL (16U << 10)

static int set_subbuf_size(struct instance *instance, uint64_t wish)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), effective;
	uint64_t size = wish ? wish : page > SUBBUF_USUAL ? page : SUBBUF_USUAL;
	int r = 0;

	if (size != page)
		r = set_number(instance->dir, "buffer_subbuf_size_kb", size / 1024);
	/* Who asked for nothing is not told that it can't be had. */
	if (r < 0 && !wish)
		r = 0;
	if (r == -ENOENT)
		log_note(
			"this kernel's sub-buffers have %llu bytes, the wished %llu need Linux 6.8",
			(unsigned long long)page, (unsigned long long)wish);
	else if (r < 0)
		log_note("sub-buffers of %llu bytes were refused: %s", (unsigned long long)wish,
			strerror(-r));
	r = get_number(instance->dir, "buffer_subbuf_size_kb", &effective);
	effective = r < 0 ? page : effective * 1024;
	/* The size that counts is the one which the kernel says now. */
	instance->subbuf_size = (uint32_t)effective;
	return 0;
}

/* All CPUs' buffers together stay under an eighth of the memory. */
static uint64_t clamp_buffer_size(uint64_t wish)
{
	struct sysinfo info;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t most;

	if (sysinfo(&info) < 0 || cpus < 1)
		return wish;
	most = (uint64_t)info.totalram * info.mem_unit / 8 / (uint64_t)cpus;
	if (wish <= most)
		return wish;
	log_note("buffer of %llu KiB per CPU cut to %llu KiB: %ld CPUs stay under an eighth of the "
		 "memory",
		(unsigned long long)(wish / 1024), (unsigned long long)(most / 1024), cpus);
	return most;
}

static int set_buffer_size(struct instance *instance, uint64_t wish)
{
	uint64_t effective, size = clamp_buffer_size(wish);
	int r = set_number(instance->dir, "buffer_size_kb", size / 1024);

	if (r < 0)
		return r;
	r = get_number(instance->dir, "buffer_size_kb", &effective);
	if (r < 0)
		return r;
	instance->buffer_size = effective * 1024;
	/* The kernel rounds up to whole sub-buffers and keeps one more; anything else is worth a
	 * word. */
	if (instance->buffer_size < size / 1024 * 1024)
		log_note("buffer is %llu KiB per CPU, %llu were asked for",
			(unsigned long long)effective, (unsigned long long)(size / 1024));
	return 0;
}

static int count_cpus(struct instance *instance)
{
	DIR *dir = folder_open(instance->dir, "per_cpu");
	const struct dirent *entry;
	unsigned int cpu;

	if (!dir)
		return -ENOENT;
	instance->cpu_count = 0;
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "cpu%u", &cpu) == 1 && cpu + 1 > instance->cpu_count)
			instance->cpu_count = cpu + 1;
	}
	(void)closedir(dir);
	return instance->cpu_count ? 0 : -ENOENT;
}

static void set_options(struct instance *instance)
{
	for (size_t i = 0; i < ARRAY_SIZE(instance_options); i++) {
		char path[64];

		/* An option that this kernel lacks can't be in the way. */
		(void)snprintf(path, sizeof(path), "options/%s", instance_options[i].name);
		(void)tracedir_write(instance->dir, path, instance_options[i].value);
	}
}

static int set_up(struct instance *instance, const struct instance_wish *wish,
	struct tracedir_problem *problem)
{
	int r = tracedir_write(instance->dir, "trace_clock", "mono");

	if (r < 0)
		return fail(problem, EXIT_MISSING, r, "trace clock \"mono\" in", instance->name);
	set_options(instance);
	/* 50 would keep a poll silent until a CPU's buffer is half full. Kernels before 5.0 lack
	 * the file and wake at every event. */
	r = tracedir_write(instance->dir, "buffer_percent", "0");
	if (r < 0 && r != -ENOENT)
		return fail(problem, EXIT_FAILED, r, "buffer_percent of", instance->name);
	r = set_subbuf_size(instance, wish->subbuf_size);
	if (!r)
		r = set_buffer_size(instance, wish->buffer_size);
	if (r < 0)
		return fail(problem, EXIT_FAILED, r, "buffer size of", instance->name);
	r = count_cpus(instance);
	return r < 0 ? fail(problem, EXIT_MISSING, r, "per_cpu of", instance->name) : 0;
}

static void instance_path(const char *session, char *path, size_t size)
{
	(void)snprintf(path, size, "instances/tracefan-%s", session);
}

static int hold(int dir, const char *name, struct tracedir_problem *problem)
{
	pid_t holder = 0;
	int r = lock_take(dir, &holder);

	if (r != -EBUSY)
		return r < 0 ? fail(problem, EXIT_FAILED, r, "lock of", name) : 0;
	problem->status = EXIT_BUSY;
	(void)snprintf(problem->message, sizeof(problem->message),
		"session's instance %s is held by process %d", name, (int)holder);
	return r;
}

/* Waits before try number `tries` of a removal; false when it has been tried for long enough. */
static bool try_again(int tries)
{
	struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

	if (tries >= REMOVE_TRIES)
		return false;
	for (int i = 0; i < tries && pause.tv_nsec < REMOVE_PAUSE_MAX_NS; i++)
		pause.tv_nsec *= 2;
	(void)nanosleep(&pause, NULL);
	return true;
}

static int remove_folder(int root, const char *path)
{
	int tries = 0;

	do {
		if (!unlinkat(root, path, AT_REMOVEDIR) || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
	} while (try_again(tries++));
	return -EBUSY;
}

/* Opens and holds what is there. Returns 1, 0 when nothing is, or -errno. */
static int take(int root, const char *path, int *ret_dir, struct tracedir_problem *problem)
{
	CLEANUP_CLOSE int dir = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir < 0)
		return errno == ENOENT ? 0 : fail(problem, EXIT_FAILED, -errno, "opening of", path);
	r = hold(dir, path, problem);
	if (r < 0)
		return r;
	/* Who holds it may remove it. */
	r = lock_is_of(dir, root, path);
	if (r <= 0)
		return r < 0 ? fail(problem, EXIT_FAILED, r, "look at", path) : 0;
	*ret_dir = TAKE_FD(dir);
	return 1;
}

/* The folder stays while somebody reads a file of it. */
static int fail_removal(int root, const char *path, int error, struct tracedir_problem *problem)
{
	CLEANUP_CLOSE int dir =
		error == -EBUSY ? openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	pid_t holder = dir < 0 ? 0 : holder_find(dir, NULL);

	if (!holder)
		return fail(problem, error == -EBUSY ? EXIT_BUSY : EXIT_FAILED, error, "removal of",
			path);
	problem->status = EXIT_BUSY;
	(void)snprintf(problem->message, sizeof(problem->message),
		"%s can't be removed: process %d has a file of it open", path, (int)holder);
	return error;
}

/* It is held until it is gone, so that nobody's who is quicker is removed. */
static int remove_left_folder(int root, const char *path, struct tracedir_problem *problem)
{
	CLEANUP_CLOSE int dir = -1;
	int r = take(root, path, &dir, problem);

	if (r <= 0)
		return r;
	log_note("removing %s, which an earlier reader left behind", path);
	(void)tracedir_write(dir, "events/enable", "0");
	r = remove_folder(root, path);
	return r < 0 ? fail_removal(root, path, r, problem) : 0;
}

static void remove_left_probes(int root, const char *session)
{
	char group[CONTROL_NAME_MAX];
	unsigned int removed = 0;
	int r;

	probe_name_group(session, group, sizeof(group));
	r = probe_remove_group(root, group, NULL, NULL, &removed);
	if (removed)
		log_note("removed %u probes of %s, which an earlier reader left behind", removed,
			group);
	if (r < 0)
		log_warning("some probes of %s could not be removed: %s", group, strerror(-r));
}

int instance_remove_leftovers(int root, const char *session, struct tracedir_problem *ret_problem)
{
	char path[sizeof("instances/tracefan-") + CONTROL_SESSION_MAX];
	int r;

	instance_path(session, path, sizeof(path));
	r = remove_left_folder(root, path, ret_problem);
	if (!r)
		remove_left_probes(root, session);
	return r;
}

/* One that a reader of the same name, in another directory, is quicker to hold is that one's. Returns 1, 0
 * (another try may tell whose it is) or -errno. */
static int make_once(struct instance *instance, const char *path, struct tracedir_problem *problem)
{
	int r = remove_left_folder(instance->root, path, problem);

	if (r < 0)
		return r;
	instance->handle = tracefs_instance_create(instance->name);
	if (!instance->handle && errno == EEXIST)
		return 0;
	if (!instance->handle)
		return fail(problem,
			errno == EACCES || errno == EPERM ? EXIT_NOT_PERMITTED : EXIT_FAILED,
			errno ? -errno : -EIO, "making of instance", instance->name);
	r = take(instance->root, path, &instance->dir, problem);
	if (r == 1)
		return r;
	if (r < 0 && r != -EBUSY && tracefs_instance_is_new(instance->handle))
		(void)tracefs_instance_destroy(instance->handle);
	tracefs_instance_free(instance->handle);
	instance->handle = NULL;
	return r;
}

/* Makes the instance and holds it. */
static int make(struct instance *instance, const char *path, struct tracedir_problem *problem)
{
	int tries = 0, r;

	do
		r = make_once(instance, path, problem);
	while (!r && try_again(tries++));
	if (r)
		return r < 0 ? r : 0;
	return fail(problem, EXIT_FAILED, -EEXIST, "making of instance", instance->name);
}

int instance_create(int root, const char *session, const struct instance_wish *wish,
	struct instance *ret, struct tracedir_problem *ret_problem)
{
	struct instance instance = { .root = root, .dir = -1 };
	char path[sizeof("instances/tracefan-") + CONTROL_SESSION_MAX];
	int r;

	instance_path(session, path, sizeof(path));
	(void)snprintf(instance.name, sizeof(instance.name), "%s", path + strlen("instances/"));
	r = make(&instance, path, ret_problem);
	if (r < 0)
		return r;
	/* Only now: those of another who has the instance are in use. */
	remove_left_probes(root, session);
	r = set_up(&instance, wish, ret_problem);
	if (r < 0) {
		instance.root = -1;
		(void)instance_remove(&instance);
		return r;
	}
	*ret = instance;
	return 0;
}

/* The dead reader's lock goes a moment after it. */
static int hold_after(int dir, const char *name, struct tracedir_problem *problem)
{
	int tries = 0, r;

	do
		r = hold(dir, name, problem);
	while (r == -EBUSY && try_again(tries++));
	return r;
}

static int read_sizes(struct instance *instance)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), effective;
	int r = get_number(instance->dir, "buffer_size_kb", &effective);

	if (r < 0)
		return r;
	instance->buffer_size = effective * 1024;
	r = get_number(instance->dir, "buffer_subbuf_size_kb", &effective);
	instance->subbuf_size = (uint32_t)(r < 0 ? page : effective * 1024);
	return count_cpus(instance);
}

static int adopt_lists(const struct instance *instance)
{
	const struct pid_lists lists = instance_lists(instance);
	const pid_t self = getpid();
	int r = pid_lists_add(&lists, &self, 1);

	return r < 0 ? r : pid_lists_mend(&lists);
}

int instance_adopt(
	int root, const char *session, struct instance *ret, struct tracedir_problem *ret_problem)
{
	struct instance instance = { .root = -1, .dir = -1 };
	char path[sizeof("instances/tracefan-") + CONTROL_SESSION_MAX];
	int r;

	instance_path(session, path, sizeof(path));
	(void)snprintf(instance.name, sizeof(instance.name), "%s", path + strlen("instances/"));
	instance.dir = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (instance.dir < 0)
		return fail(ret_problem, EXIT_FAILED, -errno, "opening of", path);
	r = hold_after(instance.dir, path, ret_problem);
	if (!r) {
		r = read_sizes(&instance);
		if (!r)
			r = adopt_lists(&instance);
		if (!r || r == -ENOENT)
			instance.handle = tracefs_instance_create(instance.name);
		r = instance.handle ? 0 : r ? r : -EIO;
		if (r < 0)
			(void)fail(ret_problem, EXIT_FAILED, r, "taking over of", path);
	}
	if (r < 0) {
		(void)close_fd(instance.dir);
		return r;
	}
	instance.root = root;
	*ret = instance;
	return 0;
}

struct pid_lists instance_lists(const struct instance *instance)
{
	return (struct pid_lists){ .dir = instance->dir, .flow = instance->flow };
}

int instance_disable(const struct instance *instance)
{
	return tracedir_write(instance->dir, "events/enable", "0");
}

int instance_reset(const struct instance *instance)
{
	return tracedir_clear(instance->dir, "trace");
}

int instance_mark(const struct instance *instance, const char *text)
{
	return tracedir_write(instance->dir, "trace_marker", text);
}

void instance_release(struct instance *instance)
{
	instance->dir = close_fd(instance->dir);
	tracefs_instance_free(instance->handle);
	instance->handle = NULL;
	instance->root = close_fd(instance->root);
}

int instance_remove(struct instance *instance)
{
	int r = 0, tries = 0;

	do {
		r = instance->handle && tracefs_instance_destroy(instance->handle) ? -errno : 0;
	} while (r == -EBUSY && try_again(tries++));
	/* Held until it is gone: nobody else's of that name can be there before. */
	instance->dir = close_fd(instance->dir);
	tracefs_instance_free(instance->handle);
	instance->handle = NULL;
	instance->root = close_fd(instance->root);
	return r;
}

/* The number behind "NAME: ", 0 where there is none. */
static uint64_t stats_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

int instance_count(const struct instance *instance, struct instance_counts *ret)
{
	struct instance_counts counts = { 0 };

	for (uint32_t cpu = 0; cpu < instance->cpu_count; cpu++) {
		CLEANUP_FREE char *text = NULL;
		char path[64];
		int r;

		(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
		r = tracedir_read(instance->dir, path, &text, NULL);
		/* A CPU that has never been online has no buffer. */
		if (r == -ENODEV || r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		counts.read += stats_number(text, "\nread events: ");
		counts.overrun += stats_number(text, "\noverrun: ");
		counts.dropped += stats_number(text, "\ndropped events: ") + stats_number(text, "commit overrun: ");
		counts.waiting += stats_number(text, "entries: ");
	}
	*ret = counts;
	return 0;
}
