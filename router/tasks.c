#include "router/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table that has reached this size forgets everything and begins anew with what comes: the number of
 * threads of a host is bounded (pid_max is at most 4 Mi), but those that ended are never told apart here. */
#define TASKS_MAX (1U << 20)

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

void tasks_release(struct tasks *tasks)
{
	free(tasks->places);
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
	struct tasks bigger = { .room = tasks->room * 2 };

	if (tasks->count >= TASKS_MAX) {
		for (size_t i = 0; i < tasks->room; i++)
			tasks->places[i].tid = -1;
		tasks->count = 0;
		memset(tasks->recent, 0, sizeof(tasks->recent));
		return 0;
	}
	bigger.places = places_create(bigger.room);
	if (!bigger.places)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->room; i++) {
		if (tasks->places[i].tid != -1)
			*find_place(&bigger, tasks->places[i].tid) = tasks->places[i];
	}
	free(tasks->places);
	tasks->places = bigger.places;
	tasks->room = bigger.room;
	memset(tasks->recent, 0, sizeof(tasks->recent));
	return 0;
}

int tasks_set(struct tasks *tasks, int32_t tid, const char *comm, size_t size, bool keep)
{
	struct task *task;

	if (tid < 0)
		return 0;
	task = find_place(tasks, tid);
	if (task->tid == tid && keep)
		return 0;
	if (task->tid != tid && tasks->count >= tasks->room / 2) {
		int r = tasks_grow(tasks);

		if (r < 0)
			return r;
		task = find_place(tasks, tid);
	}
	if (task->tid != tid)
		tasks->count++;
	task->tid = tid;
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, strnlen(comm, size < sizeof(task->comm) ? size : sizeof(task->comm)));
	return 0;
}

const struct task *tasks_find_slow(struct tasks *tasks, int32_t tid)
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
