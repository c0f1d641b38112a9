#include "base/process.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define NOBODY 65534

/* Each step is for good, so it happens in a child; returns what `step` returned there, 0 to 125. */
static int in_child(int (*step)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(step());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* What /proc/self/status says behind `key`, as text without leading blanks. */
static const char *status_of(const char *key, char *value, size_t size)
{
	char line[512];
	FILE *file = fopen("/proc/self/status", "re");

	value[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		(void)snprintf(value, size, "%s", line + strlen(key) + strspn(line + strlen(key), " \t"));
		value[strcspn(value, "\n")] = '\0';
	}
	if (file)
		(void)fclose(file);
	return value;
}

static int status_is(const char *key, const char *expected)
{
	char value[256];

	return strcmp(status_of(key, value, sizeof(value)), expected) == 0;
}

/* The numbers count the checks, so that a failing one shows in the test's output. */
static int drop_to_nobody(void)
{
	static const gid_t groups[] = { 4, 27 };

	if (setgroups(2, groups) < 0)
		return 1;
	if (process_drop_ids(NOBODY, NOBODY) != 0)
		return 2;
	if (!status_is("Uid:", "65534\t65534\t65534\t65534") || !status_is("Gid:", "65534\t65534\t65534\t65534"))
		return 3;
	if (!status_is("Groups:", " ") && !status_is("Groups:", ""))
		return 4;
	if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0)
		return 5;
	/* Again, now as an ordinary user: a check only. */
	if (process_drop_ids(NOBODY, NOBODY) != 0)
		return 6;
	return process_drop_ids(NOBODY - 1, NOBODY) == -EPERM ? 0 : 7;
}

static int stay_root_without_groups(void)
{
	static const gid_t groups[] = { 4, 27 };

	if (setgroups(2, groups) < 0)
		return 1;
	if (process_drop_ids(0, 0) != 0)
		return 2;
	if (getgroups(0, NULL) != 0)
		return 3;
	/* Without a capability there is nothing left to give up, and that is fine. */
	if (process_drop_capabilities() != 0)
		return 4;
	return process_drop_ids(0, 0) == 0 ? 0 : 5;
}

/* Root that can't give up a foreign group must not go on as if it had. */
static int keep_no_foreign_group(void)
{
	static const gid_t groups[] = { 4 };

	if (setgroups(1, groups) < 0)
		return 1;
	if (process_drop_capabilities() != 0)
		return 2;
	return process_drop_ids(0, 0) == -EPERM ? 0 : 3;
}

static int capabilities_are_gone(void)
{
	return status_is("CapInh:", "0000000000000000") && status_is("CapPrm:", "0000000000000000") &&
		status_is("CapEff:", "0000000000000000") && status_is("CapAmb:", "0000000000000000") &&
		status_is("NoNewPrivs:", "1");
}

static int drop_all_capabilities(void)
{
	if (process_drop_capabilities() != 0)
		return 1;
	if (!capabilities_are_gone())
		return 2;
	/* As root the bounding set goes, too; else it can't be used because of no-new-privs. */
	if (geteuid() == 0 && !status_is("CapBnd:", "0000000000000000"))
		return 3;
	return process_drop_capabilities() == 0 ? 0 : 4;
}

/* uid 0 gets all capabilities back at execve(2), were it not for the bounding set. */
static int exec_gains_nothing(void)
{
	if (process_drop_capabilities() != 0)
		return 1;
	(void)execl("/bin/sh", "sh", "-c",
		"while read -r key value; do [ \"$key\" != CapEff: ] || [ \"$value\" = 0000000000000000 ] || exit 3;"
		" done < /proc/self/status", (char *)NULL);
	return 2;
}

static int drop_ids_then_capabilities(void)
{
	bool root = geteuid() == 0;

	if (process_drop_ids(NOBODY, NOBODY) != 0)
		return 1;
	if (process_drop_capabilities() != 0)
		return 2;
	/* Also what could only be given up before the ids were. */
	if (root && !status_is("CapBnd:", "0000000000000000"))
		return 4;
	if (root && !(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT_LOCKED))
		return 5;
	return capabilities_are_gone() ? 0 : 3;
}

static void ids(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	assert_int_equal(in_child(drop_to_nobody), 0);
	assert_int_equal(in_child(stay_root_without_groups), 0);
	assert_int_equal(in_child(keep_no_foreign_group), 0);
	assert_int_equal(in_child(drop_ids_then_capabilities), 0);
}

static void capabilities(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_all_capabilities), 0);
	assert_int_equal(in_child(exec_gains_nothing), 0);
}

static void notify_without_a_supervisor(void **state)
{
	int fd = 7;

	(void)state;
	(void)unsetenv("NOTIFY_SOCKET");
	assert_int_equal(process_notify_open(&fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(process_notify(fd, "READY=1"), 0);
	(void)setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(process_notify_open(&fd), 0);
	assert_int_equal(fd, -1);
}

static void notify_refuses_bad_names(void **state)
{
	char longest[200];
	int fd;

	(void)state;
	(void)setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(process_notify_open(&fd), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	(void)setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(process_notify_open(&fd), -EINVAL);
	(void)setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	assert_int_equal(process_notify_open(&fd), -ENOENT);
}

/* Plays the supervisor at `name` ('@' for the abstract namespace) and expects one READY=1. */
static void check_notify(const char *name)
{
	CLEANUP_CLOSE int listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CLEANUP_CLOSE int fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char got[64];
	ssize_t n;

	assert_true(listener >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	assert_return_code(bind(listener, (struct sockaddr *)&address,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), errno);
	(void)setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(process_notify_open(&fd), 0);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(process_notify(fd, "READY=1"), 0);
	n = recv(listener, got, sizeof(got), MSG_DONTWAIT);
	assert_int_equal(n, strlen("READY=1"));
	assert_memory_equal(got, "READY=1", (size_t)n);
	(void)unsetenv("NOTIFY_SOCKET");
}

static void notify_reaches_the_supervisor(void **state)
{
	char folder[] = "/tmp/tracefan-test.XXXXXX", path[64], abstract[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/notify", folder);
	(void)snprintf(abstract, sizeof(abstract), "@tracefan-test-%d", (int)getpid());
	check_notify(path);
	check_notify(abstract);
	assert_return_code(unlink(path), errno);
	assert_return_code(rmdir(folder), errno);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		cmocka_unit_test(capabilities),
		cmocka_unit_test(notify_without_a_supervisor),
		cmocka_unit_test(notify_refuses_bad_names),
		cmocka_unit_test(notify_reaches_the_supervisor),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
