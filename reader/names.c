/* The names blob: a snapshot of what /proc calls each thread. */
#include "reader/facts.h"

#include "base/cleanup.h"
#include "shm/control_abi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_thread(struct facts *facts, int tasks, const char *tid)
{
	struct control_task_name name = { 0 };
	char path[64], comm[RECORD_COMM_SIZE + 1];
	CLEANUP_CLOSE int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.20s/comm", tid);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	/* A thread that has ended meanwhile needs no name. */
	n = fd < 0 ? -1 : read(fd, comm, sizeof(comm));
	if (n <= 0)
		return;
	/* The newline that the kernel puts behind the name; the name itself may hold others. */
	if (comm[n - 1] == '\n')
		n--;
	if (n > RECORD_COMM_SIZE)
		n = RECORD_COMM_SIZE;
	memcpy(name.comm, comm, (size_t)n);
	name.tid = (int32_t)strtol(tid, NULL, 10);
	facts_append(facts, &name, sizeof(name));
}

static void add_process(struct facts *facts, int proc, const char *pid)
{
	char path[64];
	const struct dirent *entry;
	DIR *dir;
	int fd;

	(void)snprintf(path, sizeof(path), "%.20s/task", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		(void)close_fd(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			add_thread(facts, fd, entry->d_name);
	}
	(void)closedir(dir);
}

int facts_of_names(void)
{
	struct facts facts = { 0 };
	const struct dirent *entry;
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r;

	/* Without /proc the session works; names come as threads are made and renamed. */
	if (!dir)
		(void)close_fd(fd);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			add_process(&facts, fd, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	r = facts_blob(&facts, "tracefan-names");
	facts_release(&facts);
	return r;
}
