/* From inside the router's sandbox: what it must not be able to do, tried one by one. */
#include "base/confine/confine_calls.h"
#include "base/confine/confine_landlock.h"
#include "router/confine.h"
#include "tests/support/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <cmocka.h>

#define NOBODY 65534

static int listener = -1;

static int enter(void)
{
	return geteuid() == 0 ? confine_router(NOBODY, NOBODY, CONFINE_BEST_EFFORT)
			      : confine_router(geteuid(), getegid(), CONFINE_BEST_EFFORT);
}

/* Each returns 0 when the kernel let it. */
#define ATTEMPT(name, expression)                                                                                      \
	static int name(void)                                                                                          \
	{                                                                                                              \
		return (expression) < 0 ? errno : 0;                                                                   \
	}

static int connect_to(int domain)
{
	/* A socket that was open before is no help either. */
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(9) };

	(void)domain;
	return connect(listener, (struct sockaddr *)&address, sizeof(address));
}

static int run_shell(void)
{
	char *const words[] = { "/bin/true", NULL };

	return execve(words[0], words, NULL);
}

ATTEMPT(open_file, syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY))
ATTEMPT(create_file, syscall(SYS_openat, AT_FDCWD, "/tmp/tracefan-must-not-be", O_WRONLY | O_CREAT, 0600))
ATTEMPT(open_tracefs, syscall(SYS_openat, AT_FDCWD, "/sys/kernel/tracing/trace_pipe", O_RDONLY))
ATTEMPT(write_tracefs, syscall(SYS_openat, AT_FDCWD, "/sys/kernel/tracing/uprobe_events", O_WRONLY | O_APPEND))
ATTEMPT(open_other_way, syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0))
ATTEMPT(open_own_memory, syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR))
ATTEMPT(look_at_file, syscall(SYS_faccessat, AT_FDCWD, "/etc/passwd", R_OK))
ATTEMPT(remove_file, syscall(SYS_unlinkat, AT_FDCWD, "/tmp/tracefan-must-not-be", 0))
ATTEMPT(make_folder, syscall(SYS_mkdirat, AT_FDCWD, "/tmp/tracefan-must-not-be", 0700))
ATTEMPT(unix_socket, socket(AF_UNIX, SOCK_SEQPACKET, 0))
ATTEMPT(internet_socket, socket(AF_INET, SOCK_STREAM, 0))
ATTEMPT(netlink_socket, socket(AF_NETLINK, SOCK_RAW, 0))
ATTEMPT(connect_socket, connect_to(AF_INET))
ATTEMPT(trace_parent, ptrace(PTRACE_ATTACH, getppid(), NULL, NULL))
ATTEMPT(read_memory, syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0))
ATTEMPT(execute, run_shell())
ATTEMPT(fork_process, syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL))
ATTEMPT(signal_parent, kill(getppid(), 0))
ATTEMPT(other_ring, syscall(SYS_io_uring_setup, 8, NULL))
ATTEMPT(load_bpf, syscall(SYS_bpf, 0, NULL, 0))
ATTEMPT(count_events, syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0))
ATTEMPT(become_root, syscall(SYS_setresuid, 0, 0, 0))
ATTEMPT(new_namespace, syscall(SYS_unshare, 0x10000000))
ATTEMPT(new_handler, syscall(SYS_rt_sigaction, SIGSYS, NULL, NULL, 8))
ATTEMPT(another_filter, syscall(SYS_seccomp, 1, 0, NULL))
ATTEMPT(take_descriptor, syscall(SYS_pidfd_getfd, 0, 0, 0))

/* What the attempts would show of a sandbox that lets everything pass. */
ATTEMPT(accept_consumer, accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) < 0 && errno != EAGAIN ? -1 : 0)

static const struct attempt {
	const char *name;
	confined_step *attempt;
	bool sanitizer; /* the sanitizers' run-time needs this call, too */
} attempts[] = {
	{ "open a file", open_file, true },
	{ "create a file", create_file, true },
	{ "open trace_pipe", open_tracefs, true },
	{ "write uprobe_events", write_tracefs, true },
	{ "open by openat2", open_other_way, false },
	{ "open its own memory", open_own_memory, true },
	{ "look whether a file is there", look_at_file, false },
	{ "remove a file", remove_file, false },
	{ "make a folder", make_folder, false },
	{ "make a unix socket", unix_socket, false },
	{ "make an internet socket", internet_socket, false },
	{ "make a netlink socket", netlink_socket, false },
	{ "connect a socket", connect_socket, false },
	{ "ptrace", trace_parent, true },
	{ "read another's memory", read_memory, true },
	{ "execve", execute, false },
	{ "fork", fork_process, true },
	{ "signal another", signal_parent, false },
	{ "make a ring", other_ring, false },
	{ "bpf", load_bpf, false },
	{ "perf_event_open", count_events, false },
	{ "become root", become_root, false },
	{ "make a namespace", new_namespace, false },
	{ "handle its end itself", new_handler, true },
	{ "change its filter", another_filter, false },
	{ "take another's descriptor", take_descriptor, false },
};

static void refused(void **state)
{
	char log[4096] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int r;

		if (attempts[i].sanitizer && confine_calls_sanitizer_count)
			continue;
		r = confined_try(enter, attempts[i].attempt, log, sizeof(log));
		print_message("%-30s %s\n", attempts[i].name, r == CONFINED_KILLED ? "refused" : "NOT REFUSED");
		assert_int_equal(r, CONFINED_KILLED);
	}
	assert_int_equal(access("/tmp/tracefan-must-not-be", F_OK), -1);
}

static void its_work_is_not(void **state)
{
	char log[4096] = "";

	(void)state;
	assert_int_equal(confined_try(enter, accept_consumer, log, sizeof(log)), 0);
	assert_null(strstr(log, "table of permitted"));
}

/* ---- where the kernel lacks it ---- */

/* Makes this kernel one without landlock (`number`: its first call), or without seccomp: both its doors. */
static int lose(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number == SYS_seccomp ? SYS_prctl : ~0U, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0;
}

static int enter_as(enum confine_mode mode)
{
	return geteuid() == 0 ? confine_router(NOBODY, NOBODY, mode) : confine_router(geteuid(), getegid(), mode);
}

static int without_landlock(void)
{
	return lose(SYS_landlock_create_ruleset) || enter_as(CONFINE_BEST_EFFORT);
}

static int without_seccomp(void)
{
	return lose(SYS_seccomp) || enter_as(CONFINE_BEST_EFFORT);
}

static int required_without_landlock(void)
{
	return lose(SYS_landlock_create_ruleset) || enter_as(CONFINE_REQUIRE) != -ENOSYS;
}

static int required_without_seccomp(void)
{
	return lose(SYS_seccomp) || enter_as(CONFINE_REQUIRE) == 0;
}

static int go_on(void)
{
	return 0;
}

static unsigned int lines_of(const char *log)
{
	unsigned int lines = 0;

	for (; *log; log++)
		lines += *log == '\n';
	return lines;
}

static void the_kernel_lacks_it(void **state)
{
	struct confine_landlock landlock;
	char log[4096] = "";

	(void)state;
	if (confine_landlock_open(&landlock) == 0) {
		(void)close(landlock.ruleset);
		/* Told once; the other layer holds. */
		assert_int_equal(confined_try(without_landlock, go_on, log, sizeof(log)), 0);
		assert_non_null(strstr(log, "going on without landlock"));
		assert_int_equal(lines_of(log), 1);
		assert_int_equal(confined_try(without_landlock, unix_socket, log, sizeof(log)), CONFINED_KILLED);
		assert_int_equal(confined_try(without_seccomp, go_on, log, sizeof(log)), 0);
		assert_non_null(strstr(log, "going on without seccomp"));
		assert_int_equal(lines_of(log), 1);
		if (!confine_calls_sanitizer_count)
			assert_int_equal(confined_try(without_seccomp, open_file, log, sizeof(log)), EACCES);
	}
	assert_int_equal(confined_try(required_without_landlock, go_on, log, sizeof(log)), 0);
	assert_non_null(strstr(log, "this kernel refuses landlock"));
	assert_non_null(strstr(log, "best-effort"));
	assert_int_equal(confined_try(required_without_seccomp, go_on, log, sizeof(log)), 0);
	assert_non_null(strstr(log, "confinement is required"));
}

static int listen_somewhere(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)state;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A name that the kernel picks. */
	return listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0 || listen(listener, 1) < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(its_work_is_not),
		cmocka_unit_test(the_kernel_lacks_it),
	};

	return cmocka_run_group_tests(tests, listen_somewhere, NULL);
}
