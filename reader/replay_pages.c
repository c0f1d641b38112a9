/* A folder of raw pages, laid out as tracefs lays them: per_cpu/cpuN/trace_pipe_raw,
 * events/header_page, events/SYSTEM/EVENT/format, and, where they are, events/header_event,
 * printk_formats and saved_cmdlines.
 *
 * Pages are handed over in the order of their first event's time, each behind a word to the router
 * that nothing older is left: so no CPU's pages pile up behind another's. */
#include "reader/replay.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/folder.h"
#include "reader/page_head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CPUS_MAX     4096
#define ORDER_SAMPLE 64 /* pages whose heads are asked for the byte order */

struct page_file {
	int fd;
	uint64_t size, at;
	uint64_t time; /* of the page at `at`; UINT64_MAX at the end */
};

struct pages {
	struct replay replay;
	int folder;
	struct page_head head;
	struct page_file *cpus;
	bool told; /* the router knows that nothing older is left than the next page */
};

static void look_ahead(struct pages *pages, struct page_file *file)
{
	uint8_t bytes[PAGE_HEAD_BYTES];
	uint64_t left = file->size - file->at;
	size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

	file->time = UINT64_MAX;
	if (!size || file->fd < 0)
		return;
	file->time = replay_read(file->fd, file->at, bytes, size) < 0
			     ? 0
			     : page_head_time(&pages->head, bytes, size);
	/* All ones mean the end here. */
	if (file->time == UINT64_MAX)
		file->time--;
}

static int next(struct replay *replay, struct replay_item *ret)
{
	struct pages *pages = (struct pages *)replay;
	struct page_file *file = NULL;
	uint64_t left;

	for (uint32_t i = 0; i < replay->cpu_count; i++) {
		if (pages->cpus[i].time != UINT64_MAX &&
			(!file || pages->cpus[i].time < file->time))
			file = &pages->cpus[i];
	}
	if (!file)
		return 0;
	pages->told = !pages->told;
	if (pages->told) {
		*ret = (struct replay_item){ .entry = { .kind = POOL_SWEEP, .time = file->time } };
		return 1;
	}
	left = file->size - file->at;
	*ret = (struct replay_item){
		.entry = {
			.kind = POOL_DATA,
			.cpu = (uint32_t)(file - pages->cpus),
			.length = left < pages->head.page_size ? (uint32_t)left : pages->head.page_size,
		},
		.fd = file->fd,
		.offset = file->at,
	};
	ret->stored = ret->entry.length;
	file->at += ret->entry.length;
	look_ahead(pages, file);
	return 1;
}

static void pages_close(struct replay *replay)
{
	struct pages *pages = (struct pages *)replay;

	for (uint32_t i = 0; pages->cpus && i < replay->cpu_count; i++)
		(void)close_fd(pages->cpus[i].fd);
	free(pages->cpus);
	(void)close_fd(pages->folder);
	free(pages);
}

static const struct replay_ops pages_ops = { .next = next, .close = pages_close };

static int count_cpus(struct pages *pages)
{
	DIR *dir = folder_open(pages->folder, "per_cpu");
	const struct dirent *entry;
	unsigned int cpu;

	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "cpu%u", &cpu) == 1 && cpu < CPUS_MAX &&
			cpu + 1 > pages->replay.cpu_count)
			pages->replay.cpu_count = cpu + 1;
	}
	if (dir)
		(void)closedir(dir);
	return pages->replay.cpu_count ? 0 : -ENOENT;
}

static int open_cpus(struct pages *pages)
{
	int r = count_cpus(pages);

	if (r < 0)
		return r;
	pages->cpus = calloc(pages->replay.cpu_count, sizeof(*pages->cpus));
	if (!pages->cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < pages->replay.cpu_count; i++)
		pages->cpus[i].fd = -1;
	for (uint32_t i = 0; i < pages->replay.cpu_count; i++) {
		struct page_file *file = &pages->cpus[i];
		char path[64];
		struct stat st;

		(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", i);
		file->fd = openat(pages->folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		/* A CPU without a file had no events. */
		if (file->fd < 0 && errno != ENOENT)
			return -errno;
		if (file->fd >= 0 && !fstat(file->fd, &st) && S_ISREG(st.st_mode))
			file->size = (uint64_t)st.st_size;
	}
	return 0;
}

/* The byte order in which more of the pages' heads make sense. An empty or ambiguous dump is taken
 * for this machine's. */
static bool guess_order(const struct pages *pages)
{
	const uint16_t probe = 1;
	unsigned int fits[2] = { 0, 0 }, looked = 0;
	bool native = *(const uint8_t *)&probe == 0;

	for (uint32_t i = 0; i < pages->replay.cpu_count; i++) {
		const struct page_file *file = &pages->cpus[i];

		for (uint64_t at = 0; at < file->size && looked < ORDER_SAMPLE;
			at += pages->head.page_size, looked++) {
			uint8_t bytes[PAGE_HEAD_BYTES];

			if (replay_read(file->fd, at, bytes, sizeof(bytes)) < 0)
				continue;
			fits[0] += (unsigned int)page_head_fits(
				&pages->head, bytes, sizeof(bytes), false);
			fits[1] += (unsigned int)page_head_fits(
				&pages->head, bytes, sizeof(bytes), true);
		}
	}
	return fits[0] == fits[1] ? native : fits[1] > fits[0];
}

static int add_event(struct pages *pages, const char *system, const char *event)
{
	struct replay_format format = { .kind = PROBE_TRACEPOINT };
	CLEANUP_FREE char *text = NULL;
	char path[600];
	int r;

	(void)snprintf(path, sizeof(path), "events/%.255s/%.255s/format", system, event);
	r = tracedir_read(pages->folder, path, &text, &format.format_size);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (strlen(system) >= sizeof(format.system) || strlen(event) >= sizeof(format.event)) {
		log_warning("%s:%s has too long a name and is left out", system, event);
		return 0;
	}
	memcpy(format.system, system, strlen(system));
	memcpy(format.event, event, strlen(event));
	/* Shown in full: two systems may have events of one name. */
	(void)snprintf(format.name, sizeof(format.name), "%s:%s", system, event);
	format.format = text;
	return replay_add_format(&pages->replay, &format);
}

static int add_system(struct pages *pages, const char *system)
{
	const struct dirent *entry;
	char path[300];
	DIR *dir;
	int r = 0;

	(void)snprintf(path, sizeof(path), "events/%.255s", system);
	dir = folder_open(pages->folder, path);
	while (dir && !r && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			r = add_event(pages, system, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int add_events(struct pages *pages)
{
	DIR *dir = folder_open(pages->folder, "events");
	const struct dirent *entry;
	int r = dir ? 0 : -ENOENT;

	while (dir && !r && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			r = add_system(pages, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

/* A line each: thread id, blank, name. */
static void add_names(struct pages *pages)
{
	CLEANUP_FREE char *text = NULL;
	char *line, *next_line = NULL;

	if (tracedir_read(pages->folder, "saved_cmdlines", &text, NULL) < 0)
		return;
	for (line = strtok_r(text, "\n", &next_line); line;
		line = strtok_r(NULL, "\n", &next_line)) {
		struct control_task_name name = { 0 };
		char *comm;

		name.tid = (int32_t)strtol(line, &comm, 10);
		if (comm == line || *comm != ' ')
			continue;
		comm++;
		memcpy(name.comm, comm, strnlen(comm, sizeof(name.comm) - 1));
		facts_append(&pages->replay.names, &name, sizeof(name));
	}
}

static void add_file(struct pages *pages, const char *path, uint32_t fact)
{
	CLEANUP_FREE char *data = NULL;
	size_t size;

	if (!tracedir_read(pages->folder, path, &data, &size))
		facts_add(&pages->replay.facts, fact, 0, data, size);
}

static int read_folder(struct pages *pages, const char *path, struct tracedir_problem *problem)
{
	CLEANUP_FREE char *text = NULL;
	uint8_t big_endian;
	int r = tracedir_read(pages->folder, "events/header_page", &text, NULL);

	if (r < 0)
		return replay_problem(
			problem, EXIT_LOCATION, r, "%.250s/events/header_page: %s", path, strerror(-r));
	r = page_head_parse(text, &pages->head);
	if (r < 0)
		return replay_problem(
			problem, EXIT_USAGE, r, "%.250s/events/header_page does not describe pages", path);
	r = open_cpus(pages);
	if (r < 0)
		return replay_problem(
			problem, EXIT_LOCATION, r, "%.250s/per_cpu/cpuN/trace_pipe_raw: %s", path, strerror(-r));
	pages->head.big_endian = guess_order(pages);
	big_endian = pages->head.big_endian;
	facts_add(&pages->replay.facts, FACT_MACHINE, 0, &big_endian, sizeof(big_endian));
	add_file(pages, "events/header_page", FACT_HEADER_PAGE);
	add_file(pages, "events/header_event", FACT_HEADER_EVENT);
	add_file(pages, "printk_formats", FACT_PRINTK_FORMATS);
	add_names(pages);
	r = add_events(pages);
	if (r < 0)
		return replay_problem(problem, EXIT_LOCATION, r, "%.250s/events: %s", path, strerror(-r));
	for (uint32_t i = 0; i < pages->replay.cpu_count; i++)
		look_ahead(pages, &pages->cpus[i]);
	pages->replay.slot_size = pages->head.page_size;
	return 0;
}

int replay_pages_open(const char *path, struct replay **ret, struct tracedir_problem *ret_problem)
{
	struct pages *pages = calloc(1, sizeof(*pages));
	int r;

	if (!pages)
		return replay_problem(ret_problem, EXIT_FAILED, -ENOMEM, "%s", strerror(ENOMEM));
	pages->replay.ops = &pages_ops;
	pages->replay.source = SOURCE_RAW;
	pages->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pages->folder < 0)
		r = replay_problem(ret_problem,
			errno == EACCES ? EXIT_NOT_PERMITTED : EXIT_LOCATION, -errno, "%.250s: %s",
			path, strerror(errno));
	else
		r = read_folder(pages, path, ret_problem);
	if (r < 0) {
		replay_close(&pages->replay);
		return r;
	}
	*ret = &pages->replay;
	return 0;
}
