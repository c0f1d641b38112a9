/* Shows that memory may not be written: a child process tries, and the kernel ends it. */
#ifndef TRACEFAN_TESTS_SUPPORT_FAULT_H
#define TRACEFAN_TESTS_SUPPORT_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* True when a write to `address` is answered with SIGSEGV. The byte keeps its value in any case. */
static inline bool fault_on_write(const void *address)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		volatile uint8_t *byte = (uint8_t *)address;
		const struct rlimit none = { 0, 0 };

		/* A sanitizer's handler would turn the signal into an exit. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)setrlimit(RLIMIT_CORE, &none);
		*byte = *byte;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

#endif
