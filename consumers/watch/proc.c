#include "consumers/watch/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool proc_path(char *path, size_t size, int pid, const char *name)
{
	int length = snprintf(path, size, "/proc/%d/%s", pid, name);

	return length > 0 && (size_t)length < size;
}

/* Twice what has come is asked for, until there is no more or enough. */
static void proc_take(int fd, struct proc_text *text)
{
	size_t room = 0;
	ssize_t n = 1;

	while (n > 0 && text->size < PROC_TEXT_MAX) {
		if (text->size == room) {
			char *more = realloc(text->bytes, room ? 2 * room : 4096);

			if (!more)
				break;
			text->bytes = more;
			room = room ? 2 * room : 4096;
		}
		n = read(fd, text->bytes + text->size, room - text->size);
		text->size += n > 0 ? (size_t)n : 0;
	}
	text->cut = n > 0;
}

void proc_read(int pid, const char *name, struct proc_text *ret)
{
	struct proc_text text = { 0 };
	char path[64];
	int fd = proc_path(path, sizeof(path), pid, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		proc_take(fd, &text);
		(void)close(fd);
	}
	*ret = text;
}

char *proc_link(int pid, const char *name)
{
	char path[64], target[PATH_MAX];
	ssize_t n = proc_path(path, sizeof(path), pid, name) ? readlink(path, target, sizeof(target) - 1) : -1;

	if (n < 0)
		return NULL;
	target[n] = '\0';
	return strdup(target);
}

int proc_process(int thread)
{
	static const char key[] = "\nTgid:\t";
	struct proc_text text;
	const char *at;
	int process = 0;

	proc_read(thread, "status", &text);
	at = text.bytes ? memmem(text.bytes, text.size, key, sizeof(key) - 1) : NULL;
	for (at = at ? at + sizeof(key) - 1 : NULL; at && at < text.bytes + text.size && *at >= '0' && *at <= '9'; at++)
		process = 10 * process + (*at - '0');
	proc_text_release(&text);
	return process;
}

void proc_text_release(struct proc_text *text)
{
	free(text->bytes);
	*text = (struct proc_text){ 0 };
}
