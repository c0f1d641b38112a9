/* Processes whose making and end is known:
 *
 *   workload_processes churn ALIVE         ALIVE children, one after the other ended and replaced, until standard input is
 *                                          readable; then the others end, too. Prints "ready" once ALIVE are there, and at the
 *                                          end the id of each child, a line each.
 *   workload_processes reuse ROUNDS FIRST  two parents that make a child with the same id in turn; each child calls
 *                                          getpgid(FIRST + ROUND), every second one under a name of its own. Prints a line for
 *                                          each: ROUND PARENT CHILD NAME.
 *   workload_processes files COUNT         opens so many descriptors, prints "ready", and ends with standard input.
 *   workload_processes ids UID FIRST       as root: getpgid(FIRST), becomes the user, getpgid(FIRST + 1) until standard
 *                                          input is readable. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int die(const char *what)
{
	(void)fprintf(stderr, "workload_processes: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int told(const char *line)
{
	return printf("%s\n", line) < 0 || fflush(stdout) ? die("standard output") : 0;
}

static int asked_to_end(int milliseconds)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&fd, 1, milliseconds) > 0;
}

/* ---- churn ---- */

struct children {
	pid_t *ids;
	size_t count, room;
};

/* A child ends with the first byte that it gets. */
static void add_child(struct children *children, const int gate[2])
{
	pid_t child;
	char go;

	if (children->count == children->room) {
		children->room = children->room ? 2 * children->room : 1024;
		children->ids = realloc(children->ids, children->room * sizeof(pid_t));
		if (!children->ids)
			die("memory");
	}
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0)
		_exit(read(gate[0], &go, 1) == 1 ? 0 : 1);
	children->ids[children->count++] = child;
}

static void end_child(const int gate[2])
{
	if (write(gate[1], "", 1) != 1 || wait(NULL) < 0)
		die("ending a child");
}

static int churn(unsigned long alive)
{
	struct children children = { 0 };
	int gate[2];

	if (pipe(gate) < 0)
		die("pipe");
	for (unsigned long i = 0; i < alive; i++)
		add_child(&children, gate);
	told("ready");
	while (!asked_to_end(0)) {
		end_child(gate);
		add_child(&children, gate);
	}
	for (unsigned long i = 0; i < alive; i++)
		end_child(gate);
	for (size_t i = 0; i < children.count; i++)
		printf("%d\n", (int)children.ids[i]);
	free(children.ids);
	return 0;
}

/* ---- reuse ---- */

static void be_child(unsigned long round, unsigned long first, char which)
{
	char name[32];

	if (round % 2) {
		(void)snprintf(name, sizeof(name), "child-%c-%lu", which, round);
		(void)prctl(PR_SET_NAME, name);
	}
	(void)syscall(SYS_getpgid, first + round);
	_exit(0);
}

/* Makes rounds' children as they are asked for by the pipe, with the id that comes with it. */
static void be_parent(char which, int asks, int answers, unsigned long first)
{
	struct {
		unsigned long round;
		pid_t id;
	} ask;
	char name[16];

	(void)snprintf(name, sizeof(name), "parent-%c", which);
	(void)prctl(PR_SET_NAME, name);
	while (read(asks, &ask, sizeof(ask)) == sizeof(ask)) {
		struct clone_args args = {
			.exit_signal = SIGCHLD,
			.set_tid = ask.id ? (uint64_t)(uintptr_t)&ask.id : 0,
			.set_tid_size = ask.id ? 1 : 0,
		};
		pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

		if (child == 0)
			be_child(ask.round, first, which);
		if (child > 0 && waitpid(child, NULL, 0) != child)
			die("wait");
		/* Somebody else may have got the number. */
		if (child < 0 && errno != EEXIST)
			die("clone3");
		if (write(answers, &child, sizeof(child)) != sizeof(child))
			die("answer");
	}
	_exit(0);
}

static int reuse(unsigned long rounds, unsigned long first)
{
	int asks[2][2], answers[2][2];
	pid_t parents[2], id = 0;

	for (int i = 0; i < 2; i++) {
		if (pipe(asks[i]) < 0 || pipe(answers[i]) < 0)
			die("pipe");
		parents[i] = fork();
		if (parents[i] == 0) {
			for (int k = 0; k <= i; k++)
				(void)close(asks[k][1]);
			be_parent((char)('a' + i), asks[i][0], answers[i][1], first);
		}
		/* So that the end of a parent is seen. */
		(void)close(answers[i][1]);
	}
	for (unsigned long round = 0; round < rounds; round++) {
		const int i = round / 2 % 2;
		struct {
			unsigned long round;
			pid_t id;
		} ask = { round, id };
		pid_t child = -1;

		if (write(asks[i][1], &ask, sizeof(ask)) != sizeof(ask) || read(answers[i][0], &child, sizeof(child)) != sizeof(child))
			die("ask");
		if (child < 0) {
			id = 0;
			continue;
		}
		id = child;
		if (round % 2)
			printf("%lu %d %d child-%c-%lu\n", round, (int)parents[i], (int)child, 'a' + i, round);
		else
			printf("%lu %d %d parent-%c\n", round, (int)parents[i], (int)child, 'a' + i);
	}
	for (int i = 0; i < 2; i++)
		(void)close(asks[i][1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* ---- files, ids ---- */

static int files(unsigned long count)
{
	struct rlimit limit = { .rlim_cur = count + 64, .rlim_max = count + 64 };
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned long i = 1; i < count; i++) {
		if (dup(fd) < 0)
			die("dup");
	}
	told("ready");
	while (!asked_to_end(-1))
		;
	return 0;
}

static int ids(unsigned long user, unsigned long first)
{
	(void)syscall(SYS_getpgid, first);
	if (setresuid((uid_t)user, (uid_t)user, (uid_t)user) < 0)
		die("setresuid");
	told("ready");
	do
		(void)syscall(SYS_getpgid, first + 1);
	while (!asked_to_end(1));
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 0) : 0, second = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;

	if (argc == 3 && strcmp(argv[1], "churn") == 0)
		return churn(first);
	if (argc == 4 && strcmp(argv[1], "reuse") == 0)
		return reuse(first, second);
	if (argc == 3 && strcmp(argv[1], "files") == 0)
		return files(first);
	if (argc == 4 && strcmp(argv[1], "ids") == 0)
		return ids(first, second);
	(void)fprintf(stderr, "usage: workload_processes churn ALIVE | reuse ROUNDS FIRST | files COUNT | ids UID FIRST\n");
	return 2;
}
