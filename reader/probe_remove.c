#include "reader/probe_remove.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "reader/flow.h"
#include "reader/folder.h"
#include "reader/probe_name.h"
#include "reader/tracedir.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define REMOVE_TRIES    5
#define REMOVE_PAUSE_NS 20000000

int probe_remove(struct flow *flow, int root, const char *file, const char *group, const char *event)
{
	const struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };
	char line[2 * CONTROL_NAME_MAX + 8];
	int r = 0;

	(void)snprintf(line, sizeof(line), "-:%s/%s", group, event);
	for (int i = 0; i < REMOVE_TRIES; i++) {
		r = flow_write(flow, root, file, true, line);
		if (r != -EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return r == -ENOENT ? 0 : r;
}

void probe_remove_holder(
	int root, const char *group, const char *event, char *ret_holder, size_t size)
{
	DIR *dir = folder_open(root, "instances");
	const struct dirent *entry;

	*ret_holder = '\0';
	if (!dir)
		return;
	while (!*ret_holder && (entry = readdir(dir))) {
		CLEANUP_FREE char *state = NULL;
		char path[512];

		(void)snprintf(path, sizeof(path), "instances/%.200s/events/%s/%s/enable",
			entry->d_name, group, event);
		if (entry->d_name[0] != '.' && !tracedir_read(root, path, &state, NULL) &&
			state[0] == '1')
			(void)snprintf(ret_holder, size, "%s", entry->d_name);
	}
	(void)closedir(dir);
}

/* The event's name in a line such as "p:GROUP/EVENT place args", else NULL. Cuts the line. */
static const char *event_of(char *line, const char *group)
{
	char *name = strchr(line, ':'), *end;
	size_t length = strlen(group);

	if (!name || strncmp(name + 1, group, length) != 0 || name[1 + length] != '/')
		return NULL;
	name += length + 2;
	end = strchr(name, ' ');
	if (end)
		*end = '\0';
	return name;
}

/* How many events the group has, or 0 if one of them is not to go. Cuts the list. */
static unsigned int count_all(
	char *list, const char *group, bool (*keeps)(void *context, const char *event), void *context)
{
	char *line, *next = NULL;
	unsigned int count = 0;

	for (line = strtok_r(list, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		const char *event = event_of(line, group);

		if (!event)
			continue;
		if (!probe_name_is_ours(event) || (keeps && keeps(context, event)))
			return 0;
		count++;
	}
	return count;
}

/* All of the group by one write, if all are to go: the kernel waits for its readers at each. Where it
 * refuses that (before 6.0 it can't, and it stops at an event that somebody else has enabled), they go
 * one by one. */
static int remove_together(int root, const char *file, const char *group,
	bool (*keeps)(void *context, const char *event), void *context, unsigned int *removed)
{
	CLEANUP_FREE char *list = NULL;
	char line[CONTROL_NAME_MAX + 8];
	unsigned int count;
	int r = tracedir_read(root, file, &list, NULL);

	if (r < 0)
		return r;
	count = count_all(list, group, keeps, context);
	(void)snprintf(line, sizeof(line), "-:%s/", group);
	if (count > 1 && !tracedir_append(root, file, line))
		*removed += count;
	return 0;
}

static int remove_listed(int root, const char *file, const char *group,
	bool (*keeps)(void *context, const char *event), void *context, unsigned int *removed)
{
	CLEANUP_FREE char *list = NULL;
	char *line, *next = NULL;
	int r = remove_together(root, file, group, keeps, context, removed), result = 0;

	if (!r)
		r = tracedir_read(root, file, &list, NULL);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (line = strtok_r(list, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		const char *event = event_of(line, group);

		if (!event || !probe_name_is_ours(event) || (keeps && keeps(context, event)))
			continue;
		r = probe_remove(NULL, root, file, group, event);
		if (!r)
			++*removed;
		else if (!result)
			result = r;
	}
	return result;
}

int probe_remove_group(int root, const char *group, bool (*keeps)(void *context, const char *event),
	void *context, unsigned int *ret_removed)
{
	static const char *const files[] = { PROBE_UPROBES, PROBE_KPROBES, PROBE_DYNAMIC };
	int result = 0;

	*ret_removed = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int r = remove_listed(root, files[i], group, keeps, context, ret_removed);

		if (r < 0 && !result)
			result = r;
	}
	return result;
}
