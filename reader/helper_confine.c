/* The helper's table. docs/trust.md shows the same rows; a test compares them.
 *
 * There is no landlock: who is in a landlock domain may not look into a process outside of it, and that is all the helper
 * is for. */
#include "reader/helper_confine.h"

#include "base/checked.h"
#include "base/confine/confine_calls.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

/* A group that owns nothing. */
#define NOGROUP 65534

static const struct confine_call helper_calls[] = {
	{ "poll", "requests, and the ends of its children" },
	{ "ppoll", "the same, by other C libraries" },
	{ "recvmsg", "requests" },
	{ "sendmsg", "answers, with descriptors" },
	{ "openat", "files of /proc; of mapped files for their build ids", CONFINE_TO_READ },
	{ "read", "the same; signals" },
	{ "pread64", "build ids" },
	{ "close", "what was opened" },
	{ "fstat", "whether a file is the mapped one" },
	{ "newfstatat", "ids of cgroups and of network namespaces" },
	{ "readlinkat", "executables, open files" },
	{ "getdents64", "lists of processes, threads, descriptors" },
	{ "memfd_create", "the blob for who asked" },
	{ "ftruncate", "the same: what turned out to be somebody else's is taken back; the log, when it is full" },
	{ "lseek", "the same; folders" },
	{ "fcntl", "seals; folders" },
	{ "getrandom", "malloc(3)" },
	{ "pipe2", "a child waits until it is kept out of the trace" },
	{ "clone", "a child per request of a consumer" },
	{ "clone3", "the same, by other C libraries" },
	{ "set_robust_list", "fork(2) by the C library" },
	{ "rseq", "the same" },
	{ "rt_sigaction", "a child's alarm" },
	{ "rt_sigreturn", "the same" },
	{ "alarm", "the same" },
	{ "setitimer", "the same, where there is no alarm" },
	{ "wait4", "the ends of its children" },
	{ "kill", "children that outlive the session" },
};

int helper_confine(uid_t uid, enum confine_mode mode)
{
	const uint64_t kept = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH;
	int r = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = process_drop_ids(uid, NOGROUP);
	if (r == 0)
		r = process_keep_capabilities(kept);
	if (r < 0) {
		log_error("the helper: becoming uid %u with two capabilities: %s", uid, strerror(-r));
		return r;
	}
	r = confine_calls_enter(helper_calls, ARRAY_SIZE(helper_calls));
	return r < 0 ? confine_lacks(mode, "seccomp", r) : 0;
}
