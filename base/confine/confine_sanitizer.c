/* What the run-times of the sanitizers do by themselves. They are for development only, so their rows may be wide. */
#include "base/confine/confine_calls.h"

#include "base/checked.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
	__has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)

const struct confine_call confine_calls_sanitizer[] = {
	{ "openat", "maps and symbols for a report" },
	{ "open", "maps and symbols for a report" },
	{ "read", "maps and symbols for a report" },
	{ "close", "maps and symbols for a report" },
	{ "stat", "maps and symbols for a report" },
	{ "fstat", "maps and symbols for a report" },
	{ "newfstatat", "maps and symbols for a report" },
	{ "lseek", "maps and symbols for a report" },
	{ "readlink", "its own program's name" },
	{ "readlinkat", "its own program's name" },
	{ "getppid", "its threads and children" },
	{ "prctl", "its threads' names; leave to be looked at by its leak check" },
	{ "clone", "the leak check's process" },
	{ "clone3", "the leak check's process" },
	{ "wait4", "the leak check's process" },
	{ "ptrace", "the leak check's process" },
	{ "tkill", "the leak check's process" },
	{ "getdents", "the leak check's list of threads" },
	{ "getdents64", "the leak check's list of threads" },
	{ "exit", "the leak check's process" },
	{ "process_vm_readv", "the leak check's look at memory" },
	{ "futex", "its locks" },
	{ "sched_yield", "its locks" },
	{ "sched_getaffinity", "its locks" },
	{ "getrlimit", "its stack's bounds" },
	{ "prlimit64", "its stack's bounds" },
	{ "sigaltstack", "its handlers' stack" },
	{ "rt_sigaction", "its handlers" },
	{ "rt_sigreturn", "its handlers" },
	{ "pipe2", "whether memory can be read" },
	{ "getuid", "its files' names" },
	{ "ioctl", "whether its report goes to a terminal" },
	{ "mmap", "its shadow, where it is code's, too" },
	{ "mprotect", "its shadow" },
	{ "tgkill", "its threads" },
};
const size_t confine_calls_sanitizer_count = ARRAY_SIZE(confine_calls_sanitizer);

#else

const struct confine_call confine_calls_sanitizer[1];
const size_t confine_calls_sanitizer_count;

#endif
