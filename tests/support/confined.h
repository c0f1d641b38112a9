/* Tries in a child of what is for good: a way to confine itself, then what should not be possible any more. */
#ifndef TRACEFAN_TESTS_SUPPORT_CONFINED_H
#define TRACEFAN_TESTS_SUPPORT_CONFINED_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child ended with: its exit status, or minus the signal that ended it. */
#define CONFINED_KILLED (-SIGSYS)

typedef int confined_step(void);

/* Runs `confine` and then `attempt`, both of which return 0 for "worked". *ret_log (of `size` bytes, NUL-ended) is what
 * came to standard error. Returns the attempt's result, 100 when confining failed, or minus a signal. */
static inline int confined_try(confined_step *confine, confined_step *attempt, char *ret_log, size_t size)
{
	const struct rlimit none = { 0, 0 };
	size_t length = 0;
	int ends[2], status;
	ssize_t n;
	pid_t child;

	if (pipe(ends) < 0)
		return 101;
	child = fork();
	if (child == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(ends[1], STDERR_FILENO);
		(void)close(ends[0]);
		(void)close(ends[1]);
		_exit(confine() ? 100 : attempt());
	}
	(void)close(ends[1]);
	while (length + 1 < size && (n = read(ends[0], ret_log + length, size - length - 1)) > 0)
		length += (size_t)n;
	ret_log[length] = '\0';
	(void)close(ends[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 102;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
