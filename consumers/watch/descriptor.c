#include "consumers/watch/descriptor.h"

#include "consumers/watch/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTORS_MAX 65536

struct descriptor {
	struct table_entry entry; /* by table and descriptor */
	char *path;
};

static void descriptor_release(struct table_entry *entry)
{
	free(((struct descriptor *)entry)->path);
	free(entry);
}

static uint64_t descriptor_key(const struct descriptor_set *set, int thread, int fd)
{
	return task_files(set->tasks, thread) << 32 | (uint32_t)fd;
}

static const struct descriptor *descriptor_find(const struct descriptor_set *set, uint64_t key)
{
	return (const struct descriptor *)table_find(&set->paths, key);
}

int descriptor_set_init(struct descriptor_set *set, struct task_set *tasks)
{
	set->tasks = tasks;
	return table_init(&set->paths, DESCRIPTORS_MAX, descriptor_release);
}

void descriptor_set_free(struct descriptor_set *set)
{
	table_free(&set->paths);
}

void descriptor_set_forget(struct descriptor_set *set)
{
	table_clear(&set->paths);
}

static void descriptor_keep_at(struct descriptor_set *set, uint64_t key, const char *path)
{
	struct descriptor *descriptor = path ? calloc(1, sizeof(*descriptor)) : NULL;

	if (descriptor)
		descriptor->path = strdup(path);
	if (descriptor && descriptor->path) {
		table_put(&set->paths, key, &descriptor->entry);
		return;
	}
	free(descriptor);
	table_remove(&set->paths, key);
}

void descriptor_keep(struct descriptor_set *set, int thread, int fd, const char *path)
{
	descriptor_keep_at(set, descriptor_key(set, thread, fd), path);
}

void descriptor_copy(struct descriptor_set *set, int thread, int from, int to)
{
	const struct descriptor *known = descriptor_find(set, descriptor_key(set, thread, from));

	/* Where both are one, what is kept would be released before it is copied. */
	if (from != to)
		descriptor_keep_at(set, descriptor_key(set, thread, to), known ? known->path : NULL);
}

char *descriptor_path(const struct descriptor_set *set, int thread, int fd)
{
	const struct descriptor *known = descriptor_find(set, descriptor_key(set, thread, fd));
	char name[32], *path;

	if (known)
		return strdup(known->path);
	(void)snprintf(name, sizeof(name), "fd/%d", fd);
	path = proc_link(thread, name);
	if (path && path[0] == '/')
		return path;
	free(path);
	return NULL;
}
