#include "base/checked.h"
#include "base/confine/confine.h"
#include "base/confine/confine_calls.h"
#include "base/confine/confine_landlock.h"
#include "base/process.h"
#include "tests/support/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <cmocka.h>

static char folder[] = "/tmp/test-confine-XXXXXX";

/* ---- seccomp ---- */

static const struct confine_call few[] = {
	{ "getppid", "for the test" },
	{ "openat", "for the test", CONFINE_TO_READ },
};

static int enter_few(void)
{
	return process_drop_capabilities() || confine_calls_enter(few, ARRAY_SIZE(few));
}

static int permitted(void)
{
	void *memory = malloc(1 << 20);

	free(memory);
	return memory && getppid() > 0 && write(STDERR_FILENO, "", 0) == 0 ? 0 : 1;
}

static int not_permitted(void)
{
	(void)syscall(SYS_getpgid, 0);
	return 0;
}

static int not_permitted_with_the_signal_blocked(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	return not_permitted();
}

static int data(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int code_from_data(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(memory, 4096, PROT_READ | PROT_EXEC);
}

static int abort_itself(void)
{
	abort();
}

static int signal_another(void)
{
	return (int)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static int other_personality(void)
{
	/* x32's number of getppid: another way in to the same kernel. */
	return (int)syscall(0x40000000 + SYS_getppid);
}

static int open_to_read(void)
{
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 || open("/dev/null", O_RDONLY | O_NOCTTY) < 0;
}

static int open_to_write(void)
{
	return open("/dev/null", O_WRONLY);
}

static int open_to_read_and_write(void)
{
	return open("/dev/null", O_RDWR);
}

static int open_unnamed(void)
{
	return open("/tmp", O_TMPFILE | O_RDONLY, 0600);
}

static int open_new(void)
{
	return open("/dev/null", O_RDONLY | O_CREAT, 0600);
}

static int try(confined_step *attempt)
{
	char log[4096];

	return confined_try(enter_few, attempt, log, sizeof(log));
}

static void calls(void **state)
{
	char log[4096];

	(void)state;
	assert_int_equal(try(permitted), 0);
	assert_int_equal(confined_try(enter_few, not_permitted, log, sizeof(log)), CONFINED_KILLED);
	assert_non_null(strstr(log, "is not in this process's table"));
	assert_non_null(strstr(log, " is getpgid, "));
	/* Also when there can be no last words. */
	assert_int_equal(try(not_permitted_with_the_signal_blocked), CONFINED_KILLED);
	assert_int_equal(try(data), 0);
	assert_int_equal(try(open_to_read), 0);
	assert_int_equal(try(abort_itself), -SIGABRT);
#ifdef __x86_64__
	assert_int_equal(try(other_personality), CONFINED_KILLED);
#endif
	if (confine_calls_sanitizer_count)
		return;
	assert_int_equal(try(open_to_write), CONFINED_KILLED);
	assert_int_equal(try(open_to_read_and_write), CONFINED_KILLED);
	assert_int_equal(try(open_unnamed), CONFINED_KILLED);
	assert_int_equal(try(open_new), CONFINED_KILLED);
	assert_int_equal(try(code), CONFINED_KILLED);
	assert_int_equal(try(code_from_data), CONFINED_KILLED);
	assert_int_equal(try(signal_another), CONFINED_KILLED);
}

static void unknown_call(void **state)
{
	static const struct confine_call wrong[] = { { "getppyd", "a slip of the pen" } };

	(void)state;
	/* Refused before anything is in force. */
	assert_int_equal(confine_calls_enter(wrong, 1), -EINVAL);
	assert_true(syscall(SYS_getpgid, 0) >= 0);
}

/* ---- landlock ---- */

static int is_refused(int result, int error)
{
	return result < 0 && errno == error ? 0 : 1;
}

static int enter_landlock(void)
{
	struct confine_landlock landlock;
	int at = open(folder, O_PATH | O_CLOEXEC);
	int r = confine_landlock_open(&landlock);

	if (r == 0)
		r = confine_landlock_allow(&landlock, at, "read", CONFINE_READ);
	if (r == 0)
		r = confine_landlock_allow(&landlock, at, "write", CONFINE_READ | CONFINE_WRITE);
	if (r == 0)
		r = confine_landlock_allow(&landlock, at, "file", CONFINE_READ | CONFINE_REMOVE);
	if (r == 0)
		r = confine_landlock_allow(&landlock, at, "missing", CONFINE_READ);
	return r || process_drop_capabilities() || confine_landlock_enter(&landlock);
}

static int open_in(const char *name, int flags)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static int landlock_holds(void)
{
	char path[256];

	if (open_in("read/file", O_RDONLY) < 0)
		return 1;
	if (is_refused(open_in("read/file", O_WRONLY), EACCES))
		return 2;
	if (open_in("write/file", O_RDWR | O_TRUNC) < 0)
		return 3;
	if (is_refused(open_in("write/new", O_RDWR | O_CREAT), EACCES))
		return 4;
	if (open_in("file", O_RDONLY) < 0)
		return 5;
	if (is_refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES))
		return 6;
	(void)snprintf(path, sizeof(path), "%s/read/file", folder);
	if (is_refused(unlink(path), EACCES))
		return 7;
	(void)snprintf(path, sizeof(path), "%s/new", folder);
	return is_refused(mkdir(path, 0700), EACCES) ? 8 : 0;
}

static int removal_is_allowed(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/remove/file", folder);
	return unlink(path);
}

static int enter_removal(void)
{
	struct confine_landlock landlock;
	int at = open(folder, O_PATH | O_CLOEXEC), r = confine_landlock_open(&landlock);

	if (r == 0)
		r = confine_landlock_allow(&landlock, at, "remove", CONFINE_REMOVE);
	return r || process_drop_capabilities() || confine_landlock_enter(&landlock);
}

static void make(const char *name, bool is_folder)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (is_folder) {
		assert_int_equal(mkdir(path, 0700), 0);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void files(void **state)
{
	struct confine_landlock landlock;
	char log[4096];
	int r = confine_landlock_open(&landlock);

	(void)state;
	if (r == -ENOSYS || r == -EOPNOTSUPP) {
		print_message("this kernel has no landlock\n");
		skip();
	}
	assert_int_equal(r, 0);
	(void)close(landlock.ruleset);
	assert_non_null(mkdtemp(folder));
	make("read", true);
	make("read/file", false);
	make("write", true);
	make("write/file", false);
	make("remove", true);
	make("remove/file", false);
	make("file", false);
	assert_int_equal(confined_try(enter_landlock, landlock_holds, log, sizeof(log)), 0);
	assert_int_equal(confined_try(enter_removal, removal_is_allowed, log, sizeof(log)), 0);
}

static int remove_folder(void **state)
{
	char command[300];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return strchr(folder, 'X') ? 0 : system(command);
}

static void modes(void **state)
{
	enum confine_mode mode = CONFINE_BEST_EFFORT;

	(void)state;
	assert_int_equal(confine_mode_parse("require", &mode), 0);
	assert_int_equal(mode, CONFINE_REQUIRE);
	assert_int_equal(confine_mode_parse("best-effort", &mode), 0);
	assert_int_equal(mode, CONFINE_BEST_EFFORT);
	assert_int_equal(confine_mode_parse("off", &mode), -EINVAL);
	assert_int_equal(confine_lacks(CONFINE_BEST_EFFORT, "nothing", -ENOSYS), 0);
	assert_int_equal(confine_lacks(CONFINE_REQUIRE, "nothing", -ENOSYS), -ENOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls),
		cmocka_unit_test(unknown_call),
		cmocka_unit_test_teardown(files, remove_folder),
		cmocka_unit_test(modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
