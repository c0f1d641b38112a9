/* A process's table of permitted system calls, enforced by seccomp. Whatever is not in the table ends the process:
 * a call that nobody foresaw is a mistake or an attack, and an error code would let either go on. The end is loud:
 * the last lines of its log name the call, and it dies by SIGSYS. */
#ifndef TRACEFAN_BASE_CONFINE_CONFINE_CALLS_H
#define TRACEFAN_BASE_CONFINE_CONFINE_CALLS_H

#include <stddef.h>

enum confine_argument {
	CONFINE_ANY,
	CONFINE_NO_CODE, /* of mmap and mprotect: without PROT_EXEC */
	CONFINE_TO_READ, /* of openat: without any flag that writes or creates */
	CONFINE_SELF,    /* the first argument is this process's own id */
};

/* A row. Each has its reason; docs/trust.md shows the same rows, and a test compares them. */
struct confine_call {
	const char *name;
	const char *why;
	enum confine_argument argument;
};

/* Restricts the process to the table's calls and to those that the C library makes by itself, for good. Comes last:
 * loading it needs no-new-privs and calls that the table needn't have. Returns 0, -EINVAL (a row's name is unknown) or
 * another -errno (the kernel has no seccomp). */
int confine_calls_enter(const struct confine_call *calls, size_t count);

/* The rows that every process gets. */
extern const struct confine_call confine_calls_common[];
extern const size_t confine_calls_common_count;

/* Those of a build with a sanitizer, whose run-time looks around by itself; none in any other build. */
extern const struct confine_call confine_calls_sanitizer[];
extern const size_t confine_calls_sanitizer_count;

#endif
