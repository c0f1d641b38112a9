/* What the state of processes is read from: the kernel's words, and of other files only those that are mapped. And the
 * helper's answer. */
#include "reader/helper.h"
#include "reader/rundown.h"
#include "shm/segment.h"
#include "shm/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Nobody's. */
#define USER 54321
#define SIZE 4096

/* A process of that user's which has the file mapped, as a program would. */
static pid_t start_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ready[2];
	char byte;
	pid_t child;

	assert_true(fd >= 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		if (mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED || setresuid(USER, USER, USER) < 0 ||
			prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(fd);
	return child;
}

/* How many executable mappings of such a path the rundown tells. */
static unsigned int count_mappings(const char *path)
{
	const struct rundown_request request = { .what = STATE_WANT_MAPPINGS, .scoped = 1, .uid = USER };
	const struct state_record *record;
	int table = -1, details = -1, r;
	unsigned int count = 0;
	void *bytes = NULL;
	size_t size = 0, at = 0;

	assert_int_equal(rundown_make(&request, &table, &details), 0);
	assert_int_equal(segment_blob_read(details, STATE_BLOB_MAX, &bytes, &size), 0);
	while ((r = state_next(bytes, size, &at, &record)) == 1) {
		const struct state_mapping *mapping = (const void *)record;

		if (record->kind == STATE_MAPPING && mapping->path_size == strlen(path))
			count += !memcmp(state_text(mapping, sizeof(*mapping), mapping->build_id_size), path, strlen(path));
	}
	assert_int_equal(r, 0);
	free(bytes);
	(void)close(table);
	(void)close(details);
	return count;
}

/* Whether the file was opened since. */
static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

/* To open a device can do something, and whose process it is says what lies at the name of the file that it has mapped. */
static void test_what_took_a_files_name_is_not_opened(void **state)
{
	char folder[] = "/tmp/rundown-XXXXXX", file[64], other[64 + sizeof(" (deleted)")];
	char bytes[SIZE] = { 0 };
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;
	pid_t child;

	(void)state;
	assert_true(watch >= 0);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	(void)snprintf(file, sizeof(file), "%s/program", folder);
	/* As the kernel tells the name of one that was removed. */
	(void)snprintf(other, sizeof(other), "%s (deleted)", file);
	fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(fd >= 0 && write(fd, bytes, sizeof(bytes)) == SIZE);
	(void)close(fd);
	child = start_program(file);
	assert_true(inotify_add_watch(watch, file, IN_OPEN) >= 0);
	assert_int_equal(count_mappings(file), 1);
	/* For its build id. */
	assert_true(was_opened(watch));
	assert_int_equal(unlink(file), 0);
	while (was_opened(watch))
		continue;
	assert_int_equal(mkfifo(other, 0666), 0);
	assert_true(inotify_add_watch(watch, other, IN_OPEN) >= 0);
	assert_int_equal(count_mappings(other), 1);
	assert_false(was_opened(watch));
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)unlink(other);
	(void)rmdir(folder);
	(void)close(watch);
}

static bool refuses; /* the kernel takes no descriptors */

ssize_t __real_sendmsg(int fd, const struct msghdr *packet, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *packet, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *packet, int flags)
{
	if (!refuses || !packet->msg_controllen)
		return __real_sendmsg(fd, packet, flags);
	errno = ETOOMANYREFS;
	return -1;
}

/* So many of a user's may be on their way, and the router, which is the same user, can have that many sent to consumers who
 * don't take them. The helper says so, and goes on. */
static void test_an_answer_without_its_descriptors(void **state)
{
	const struct rundown_request request = { .id_count = 1, .ids = { getpid() } };
	const struct helper_asker asker = { 0 };
	struct helper helper = { .fd = -1 };
	struct helper_message message;
	int fds[2];

	(void)state;
	refuses = true;
	assert_int_equal(helper_start(&helper, USER, CONFINE_BEST_EFFORT), 0);
	refuses = false;
	assert_int_equal(fcntl(helper.fd, F_SETFL, 0), 0);
	(void)alarm(60);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(helper_ask(&helper, &request, false, &asker), 0);
		assert_int_equal(helper_receive(helper.fd, &message, fds), 1);
		assert_int_equal(message.kind, HELPER_DONE);
		assert_int_equal(message.error, -ETOOMANYREFS);
		assert_true(fds[0] < 0 && fds[1] < 0);
	}
	(void)alarm(0);
	(void)close(helper.fd);
	assert_int_equal(waitpid(helper.process, NULL, 0), helper.process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_took_a_files_name_is_not_opened),
		cmocka_unit_test(test_an_answer_without_its_descriptors),
	};

	if (geteuid() != 0) {
		printf("skipped: only root can look into another user's processes\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
