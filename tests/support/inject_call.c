/* Makes another process issue a system call, as somebody who has taken it over would, and says what came of it.
 *
 *   inject_call PID CALL [ARGUMENT]...
 *
 * CALL is a number; an argument is a number or "@TEXT", which is put onto the process's stack. Waits until the
 * process sleeps in a system call. Prints "returned N" and lets it go on as if nothing had been, or "killed by signal N". x86-64 only. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Copies a text below the stack's red zone. Returns its address there. */
static unsigned long long push_text(pid_t pid, unsigned long long *stack, const char *text)
{
	size_t size = (strlen(text) + 8) & ~(size_t)7;

	*stack = (*stack - size) & ~15ULL;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, text + i, strlen(text) + 1 - i < 8 ? strlen(text) + 1 - i : 8);
		if (ptrace(PTRACE_POKEDATA, pid, *stack + i, word) < 0)
			die("POKEDATA");
	}
	return *stack;
}

/* Waits for the next stop; ends this program when the other process has ended. Returns the signal. */
static int wait_stop(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		die("waitpid");
	if (WIFSIGNALED(status)) {
		printf("killed by signal %d\n", WTERMSIG(status));
		exit(EXIT_SUCCESS);
	}
	if (WIFEXITED(status)) {
		printf("exited with %d\n", WEXITSTATUS(status));
		exit(EXIT_SUCCESS);
	}
	return WSTOPSIG(status);
}

static bool is_pending(pid_t pid, int signal_number)
{
	unsigned long long pending = 0;
	char path[64], line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "SigPnd: %llx", &pending) != 1)
		;
	if (file)
		(void)fclose(file);
	return pending & 1ULL << (signal_number - 1);
}

/* Whether it was taken out of a call that has done nothing yet, and can be made again. What has just returned from one
 * would do it twice. */
static bool is_interrupted(const struct user_regs_struct *regs)
{
	const long long result = (long long)regs->rax;

	/* The kernel's own ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK. */
	return (long long)regs->orig_rax >= 0 &&
		(result == -EINTR || result == -512 || result == -513 || result == -514 || result == -516);
}

/* Stops it in its sleep. */
static void stop_asleep(pid_t pid, struct user_regs_struct *ret)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		die("SEIZE");
	for (;;) {
		if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
			die("INTERRUPT");
		(void)wait_stop(pid);
		if (ptrace(PTRACE_GETREGS, pid, 0, ret) < 0)
			die("GETREGS");
		if (is_interrupted(ret))
			return;
		if (ptrace(PTRACE_CONT, pid, 0, 0) < 0)
			die("CONT");
		(void)usleep(1000);
	}
}

int main(int argc, char **argv)
{
	struct user_regs_struct saved, regs;
	unsigned long long arguments[6] = { 0 }, stack;
	pid_t pid = argc > 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	int signal_number;

	if (pid <= 0)
		return 2;
	stop_asleep(pid, &saved);
	stack = saved.rsp - 256;
	for (int i = 0; i < 6 && i + 3 < argc; i++)
		arguments[i] = argv[i + 3][0] == '@' ? push_text(pid, &stack, argv[i + 3] + 1) : strtoull(argv[i + 3], NULL, 0);
	regs = saved;
	/* Two bytes back lies the instruction by which it entered the kernel. */
	regs.rip = saved.rip - 2;
	regs.rax = strtoull(argv[2], NULL, 0);
	regs.orig_rax = ~0ULL;
	regs.rdi = arguments[0];
	regs.rsi = arguments[1];
	regs.rdx = arguments[2];
	regs.r10 = arguments[3];
	regs.r8 = arguments[4];
	regs.r9 = arguments[5];
	regs.rsp = stack - 128;
	if (ptrace(PTRACE_SETREGS, pid, 0, &regs) < 0)
		die("SETREGS");
	/* Into the call, then out of it. */
	for (int stops = 0; stops < 2; stops += wait_stop(pid) == (SIGTRAP | 0x80))
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0)
			die("SYSCALL");
	/* A forbidden one leaves with the signal waiting, and goes its way to the end. */
	if (is_pending(pid, SIGSYS)) {
		for (signal_number = 0; ptrace(PTRACE_CONT, pid, 0, signal_number) == 0;)
			signal_number = wait_stop(pid);
		die("CONT");
	}
	if (ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
		die("GETREGS");
	printf("returned %lld\n", (long long)regs.rax);
	/* Again what it was in. */
	saved.rip -= 2;
	saved.rax = saved.orig_rax;
	saved.orig_rax = ~0ULL;
	if (ptrace(PTRACE_SETREGS, pid, 0, &saved) < 0 || ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		die("DETACH");
	return EXIT_SUCCESS;
}

#else

int main(void)
{
	printf("skipped: for x86-64 only\n");
	return 77;
}

#endif
