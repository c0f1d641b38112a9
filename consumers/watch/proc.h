/* What /proc says of a process, with this program's own rights, and as it is by now. */
#ifndef TRACEFAN_WATCH_PROC_H
#define TRACEFAN_WATCH_PROC_H

#include <stdbool.h>
#include <stddef.h>

/* `bytes` is NULL where there is nothing. */
struct proc_text {
	char *bytes;
	size_t size;
	bool cut;
};

#define PROC_TEXT_MAX (128U << 10)

/* A file of the process's folder; empty when it can't be read. */
void proc_read(int pid, const char *name, struct proc_text *ret);
/* Where a link of it points, NULL-ended; NULL: it can't be read. The caller's to free. */
char *proc_link(int pid, const char *name);
/* The process that a thread is of; 0: it is not known. */
int proc_process(int thread);
void proc_text_release(struct proc_text *text);

#endif
