#include "reader/pid_lists.h"

#include "base/cleanup.h"
#include "reader/flow.h"
#include "reader/proc_file.h"
#include "reader/proc_text.h"
#include "reader/tracedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_OUT "set_event_notrace_pid"
#define LET_IN   "set_event_pid"

/* The kernel's own number for it. */
#define FIRST_NAMESPACE 0xEFFFFFFCU

/* Of any Linux, where it is not told. */
#define NUMBERS_MAX 4194304U
#define NUMBERS_RESERVED 300
/* Numbers are given out in turn. So many threads are made in a second at the most, and for so long this is relied on. */
#define MADE_EACH_SECOND UINT64_C(16000)
#define UNUSED_MAX       UINT64_C(60000000000)

/* Threads, by number. */
struct numbers {
	pid_t *all;
	size_t count, room;
};

static void numbers_release(const struct numbers *numbers)
{
	free(numbers->all);
}

#define CLEANUP_NUMBERS __attribute__((cleanup(numbers_release)))

static int add(struct numbers *numbers, pid_t number)
{
	if (numbers->count == numbers->room) {
		size_t room = numbers->room ? numbers->room * 2 : 64;
		pid_t *more = reallocarray(numbers->all, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		numbers->all = more;
		numbers->room = room;
	}
	numbers->all[numbers->count++] = number;
	return 0;
}

/* A process that is gone has none. */
static int add_threads(struct numbers *numbers, pid_t process)
{
	char path[64];
	const struct dirent *entry;
	DIR *tasks;
	int r = 0;

	/* Its other threads are the ring's, which come and go. */
	if (process == getpid())
		return add(numbers, process);
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	tasks = opendir(path);
	while (tasks && !r && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.')
			r = add(numbers, (pid_t)strtol(entry->d_name, NULL, 10));
	}
	if (tasks)
		(void)closedir(tasks);
	return r;
}

static int by_number(const void *a, const void *b)
{
	const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* In a namespace processes have numbers of its own, and the lists take the kernel's, which this process can't know there: they would hide
 * somebody else. */
static bool has_own_numbers(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_NAMESPACE;
}

/* In order. */
static int all_threads(const pid_t *processes, size_t count, struct numbers *numbers)
{
	int r = has_own_numbers() ? -ENOENT : 0;

	for (size_t i = 0; !r && i < count; i++)
		r = add_threads(numbers, processes[i]);
	if (!r && numbers->count)
		qsort(numbers->all, numbers->count, sizeof(*numbers->all), by_number);
	return r;
}

/* One text, and one write, for all: the kernel lets all CPUs come to rest after each. */
static int keep_out(const struct pid_lists *lists, const struct numbers *numbers)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	if (!numbers->count)
		return 0;
	text = malloc(numbers->count * sizeof("-2147483648 "));
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < numbers->count; i++)
		length += (size_t)sprintf(text + length, "%d ", (int)numbers->all[i]);
	return flow_write(lists->flow, lists->dir, KEPT_OUT, true, text);
}

/* The numbers that are kept out, in order, as the kernel tells them. */
static int read_listed(const struct pid_lists *lists, struct numbers *listed)
{
	CLEANUP_FREE char *text = NULL;
	int r = tracedir_read(lists->dir, KEPT_OUT, &text, NULL);
	char *at = text, *end;

	for (; !r; at = end) {
		long number = strtol(at, &end, 10);

		if (end == at)
			break;
		r = add(listed, (pid_t)number);
	}
	return r;
}

int pid_lists_read(const struct pid_lists *lists, pid_t *ret, unsigned int count)
{
	CLEANUP_NUMBERS struct numbers listed = { 0 };
	int r = read_listed(lists, &listed);

	if (r < 0)
		return r;
	if (listed.count < count)
		count = (unsigned int)listed.count;
	if (count)
		memcpy(ret, listed.all, count * sizeof(*ret));
	return (int)count;
}

int pid_lists_add(const struct pid_lists *lists, const pid_t *processes, size_t count)
{
	CLEANUP_NUMBERS struct numbers numbers = { 0 };
	int r = all_threads(processes, count, &numbers);

	if (!r)
		r = keep_out(lists, &numbers);
	return r < 0 ? r : (int)numbers.count;
}

/* Whether somebody is in the one who is not in the other. Both are in order. */
static bool has_others(const struct numbers *one, const struct numbers *other)
{
	size_t k = 0;

	for (size_t i = 0; i < one->count; i++) {
		while (k < other->count && other->all[k] < one->all[i])
			k++;
		if (k == other->count || other->all[k] != one->all[i])
			return true;
	}
	return false;
}

/* No thread's number is as large. */
static uint32_t numbers_end(void)
{
	char text[32];
	const int n = proc_file_peek(AT_FDCWD, "/proc/sys/kernel/pid_max", text, sizeof(text) - 1);
	unsigned long end;

	if (n <= 0)
		return NUMBERS_MAX;
	text[n] = '\0';
	end = strtoul(text, NULL, 10);
	return end && end < NUMBERS_MAX ? (uint32_t)end : NUMBERS_MAX;
}

/* "0.10 0.20 0.30 1/234 5678": the last one. */
uint32_t pid_lists_last(void)
{
	char text[128];
	const int n = proc_file_peek(AT_FDCWD, "/proc/loadavg", text, sizeof(text) - 1);
	const char *last;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	last = strrchr(text, ' ');
	return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

uint64_t pid_lists_start(pid_t process)
{
	char path[64], text[1024];
	struct proc_stat stat;
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	n = proc_file_peek(AT_FDCWD, path, text, sizeof(text));
	if (n <= 0 || proc_stat_parse(text, (size_t)n, &stat) < 0 || stat.has_ended)
		return 0;
	return stat.start;
}

static uint64_t time_of(uint64_t numbers)
{
	const uint64_t ns = numbers * UINT64_C(1000000000) / MADE_EACH_SECOND;

	return ns < UNUSED_MAX ? ns : UNUSED_MAX;
}

uint64_t pid_lists_until(uint32_t last, pid_t number)
{
	const uint64_t end = numbers_end(), turn = (uint64_t)number;

	if (turn > last)
		return time_of(turn - last);
	/* The first are given out but once. */
	return time_of(turn + end > last + NUMBERS_RESERVED ? turn + end - last - NUMBERS_RESERVED : 0);
}

uint64_t pid_lists_unused(void)
{
	return time_of(numbers_end());
}

bool pid_lists_passed(uint32_t before, uint32_t last, pid_t number)
{
	const uint32_t turn = (uint32_t)number;

	return before <= last ? turn > before && turn <= last : turn > before || turn <= last;
}

/* Every number below `end`, with a blank behind it, but for those of `kept`. */
static void put_numbers(char *text, uint32_t end, const struct numbers *kept)
{
	char digits[] = "0000000";
	const size_t last = sizeof(digits) - 2;
	size_t first = last, i = 0;

	for (uint32_t number = 0; number < end; number++) {
		size_t at = last;

		while (i < kept->count && kept->all[i] < (pid_t)number)
			i++;
		if (i == kept->count || kept->all[i] != (pid_t)number) {
			for (size_t k = first; k <= last; k++)
				*text++ = digits[k];
			*text++ = ' ';
		}
		for (; at && digits[at] == '9'; at--)
			digits[at] = '0';
		digits[at]++;
		if (at < first)
			first = at;
	}
	*text = '\0';
}

/* All but `kept` are let in. The text has up to 32 MiB: the memory goes back at once. */
static int let_in(const struct pid_lists *lists, const struct numbers *kept)
{
	const uint32_t end = numbers_end();
	const size_t size = (size_t)end * sizeof("4194303") + 1;
	char *text = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (text == MAP_FAILED)
		return -errno;
	put_numbers(text, end, kept);
	r = flow_write(lists->flow, lists->dir, LET_IN, true, text);
	(void)munmap(text, size);
	return r;
}

/* When the last number goes off its lists the kernel stops looking at who runs where before it stops checking, and with the first number it
 * begins to check before it has looked: it hides events of others, for up to milliseconds. It does neither while the other list
 * has numbers on it. So there is one meanwhile that lets everybody in, from its first moment on: each write holds as soon as it is made. */
static int renew(const struct pid_lists *lists, const struct numbers *kept)
{
	int r = let_in(lists, kept), end;

	if (!r)
		r = flow_clear(lists->flow, lists->dir, KEPT_OUT);
	if (!r)
		r = keep_out(lists, kept);
	end = flow_clear(lists->flow, lists->dir, LET_IN);
	return r < 0 ? r : end;
}

int pid_lists_renew(const struct pid_lists *lists, const pid_t *processes, size_t count)
{
	CLEANUP_NUMBERS struct numbers kept = { 0 };
	CLEANUP_NUMBERS struct numbers listed = { 0 };
	int r = all_threads(processes, count, &kept);

	if (!r)
		r = read_listed(lists, &listed);
	if (r < 0)
		return r;
	if (has_others(&listed, &kept))
		r = renew(lists, &kept);
	else if (has_others(&kept, &listed))
		r = keep_out(lists, &kept);
	return r < 0 ? r : (int)kept.count;
}

int pid_lists_mend(const struct pid_lists *lists)
{
	return flow_clear(lists->flow, lists->dir, LET_IN);
}
