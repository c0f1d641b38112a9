#include "base/confine/confine_calls.h"

#include "base/checked.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The flags of openat(2) by which something could change; O_TMPFILE comes with O_DIRECTORY, which by itself can't. */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

const struct confine_call confine_calls_common[] = {
	{ "brk", "malloc(3)" },
	{ "mmap", "malloc(3), shared memory", CONFINE_NO_CODE },
	{ "munmap", "free(3), shared memory" },
	{ "mremap", "realloc(3)" },
	{ "mprotect", "malloc(3)", CONFINE_NO_CODE },
	{ "madvise", "free(3)" },
	{ "clock_gettime", "the time where the vDSO can't tell it" },
	{ "restart_syscall", "a wait that SIGSTOP interrupted goes on" },
	{ "write", "the log; wake-ups; what is written to tracefs, into a blob or a recording" },
	{ "writev", "the C library's last words before abort(3)" },
	{ "sysinfo", "qsort(3): how much memory it may take" },
	{ "rt_sigprocmask", "abort(3); the router's signals" },
	{ "getpid", "abort(3)" },
	{ "gettid", "abort(3)" },
	{ "tgkill", "abort(3)", CONFINE_SELF },
	{ "exit_group", "the end" },
};
const size_t confine_calls_common_count = ARRAY_SIZE(confine_calls_common);

/* Runs in the place of the call, which has not been made. The number comes first: finding the name takes memory, and the
 * heap may be what was being worked on. */
static void tell_violation(int signal_number, siginfo_t *info, void *context)
{
	const char *name;

	(void)signal_number;
	(void)context;
	log_error("system call %d is not in this process's table of permitted calls: the process ends", info->si_syscall);
	name = seccomp_syscall_resolve_num_arch(info->si_arch, info->si_syscall);
	log_error("system call %d is %s, called before address %p", info->si_syscall, name ? name : "unknown",
		info->si_call_addr);
	/* Not permitted to anybody, and the signal is blocked while its handler runs: so the kernel ends the process by
	 * SIGSYS, for its parent to see. */
	(void)syscall(SYS_acct, NULL);
	_exit(128 + SIGSYS);
}

static int add(scmp_filter_ctx filter, const struct confine_call *call)
{
	int number = seccomp_syscall_resolve_name(call->name);

	if (number == __NR_SCMP_ERROR)
		return -EINVAL;
	switch (call->argument) {
	case CONFINE_NO_CODE:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	case CONFINE_TO_READ:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, WRITING, 0));
	case CONFINE_SELF:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	case CONFINE_ANY:
		break;
	}
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static int add_all(scmp_filter_ctx filter, const struct confine_call *calls, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = add(filter, &calls[i]);
		/* A row for another architecture, or one that a rule without a condition has made needless. */
		if (r == -EDOM || r == -EEXIST)
			r = 0;
	}
	return r;
}

/* No process here runs foreign code, which is whom the kernel's brake on speculation under seccomp is for; it costs every
 * copy of an event. A library or kernel that doesn't know an attribute does without it. */
static void set_attributes(scmp_filter_ctx filter)
{
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
}

int confine_calls_enter(const struct confine_call *calls, size_t count)
{
	struct sigaction action = { .sa_sigaction = tell_violation, .sa_flags = SA_SIGINFO };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	int r;

	if (!filter)
		return -ENOSYS;
	set_attributes(filter);
	r = add_all(filter, confine_calls_common, confine_calls_common_count);
	if (r == 0)
		r = add_all(filter, confine_calls_sanitizer, confine_calls_sanitizer_count);
	if (r == 0)
		r = add_all(filter, calls, count);
	(void)sigemptyset(&action.sa_mask);
	if (r == 0 && sigaction(SIGSYS, &action, NULL) < 0)
		r = -errno;
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
