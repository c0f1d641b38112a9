#include "consumers/cli/session_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int session_list_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int session_list_add(struct session_list *list, const char *name)
{
	char **bigger = realloc(list->names, (list->count + 1) * sizeof(char *));

	if (!bigger)
		return -ENOMEM;
	list->names = bigger;
	list->names[list->count] = strdup(name);
	if (!list->names[list->count])
		return -ENOMEM;
	list->count++;
	return 0;
}

int session_list_read(const char *directory, struct session_list *ret)
{
	struct session_list list = { 0 };
	const struct dirent *entry;
	DIR *dir = opendir(directory);
	int r = 0;

	if (!dir && errno != ENOENT)
		return -errno;
	while (dir && r == 0 && (entry = readdir(dir))) {
		char path[NAME_MAX + 32];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/consumers.sock", entry->d_name);
		if (entry->d_name[0] != '.' && fstatat(dirfd(dir), path, &st, 0) == 0)
			r = session_list_add(&list, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	if (r < 0) {
		session_list_release(&list);
		return r;
	}
	if (list.count > 1)
		qsort(list.names, list.count, sizeof(char *), session_list_compare);
	*ret = list;
	return 0;
}

void session_list_release(struct session_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
	*list = (struct session_list){ 0 };
}
