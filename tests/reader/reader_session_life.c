/* A session's life: who may hold it, what a killed reader leaves behind, what a failed start leaves
 * (nothing), and what the process looks like while it runs. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/tracedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TRACEFS "/sys/kernel/tracing/"
#define MARK    "session test mark"

static const char *const plain_args[] = { "--router-user", "65534", "--buffer-size", "256K", NULL };
static const char *const root_args[] = { "--router-user", "0", "--buffer-size", "256K", NULL };

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool instance_exists(const struct session *session)
{
	char path[128];

	snprintf(path, sizeof(path), TRACEFS "instances/tracefan-%s", session->name);
	return exists(path);
}

static bool folder_exists(const struct session *session)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", session->directory, session->name);
	return exists(path);
}

static void check_mode(const struct session *session, const char *name, mode_t mode, uid_t uid)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/%s", session->directory, session->name, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, uid);
}

static void test_modes_under_any_umask(void **state)
{
	static const mode_t umasks[] = { 0, 077, 0777 };

	(void)state;
	for (size_t i = 0; i < sizeof(umasks) / sizeof(umasks[0]); i++) {
		static const char *const args[] = { "--router-user", "65534", "--group", "nogroup",
			"--buffer-size", "256K", NULL };
		mode_t before = umask(umasks[i]);
		struct session session;
		bool ready = session_start(&session, args);

		umask(before);
		assert_true(ready);
		check_mode(&session, "", 0755, 0);
		check_mode(&session, "router.sock", 0600, 65534);
		check_mode(&session, "consumers.sock", 0660, 0);
		check_mode(&session, "control.sock", 0600, 0);
		assert_int_equal(session_stop(&session, NULL, NULL), 0);
		assert_false(folder_exists(&session));
		session_release(&session);
	}
}

static void test_second_start_is_busy(void **state)
{
	struct session first, second;
	char log[1024], pid[32];

	(void)state;
	assert_true(session_start(&first, plain_args));
	assert_false(session_start_at(&second, first.directory, first.name, plain_args));
	assert_int_equal(session_wait(&second, log, sizeof(log)), EXIT_BUSY);
	snprintf(pid, sizeof(pid), "process %d", (int)first.reader);
	assert_non_null(strstr(log, pid));
	/* The same instance by way of another folder. */
	assert_false(session_start_at(
		&second, "/tmp/tracefan-reader-test-other", first.name, plain_args));
	assert_int_equal(session_wait(&second, log, sizeof(log)), EXIT_BUSY);
	assert_non_null(strstr(log, pid));
	assert_false(folder_exists(&second));
	rmdir(second.directory);
	/* The first one has not noticed. */
	assert_int_equal(kill(first.reader, 0), 0);
	assert_true(instance_exists(&first));
	assert_int_equal(session_stop(&first, NULL, NULL), 0);
	session_release(&first);
}

static char *probe_list(void)
{
	char *text = NULL;

	assert_int_equal(tracedir_read(AT_FDCWD, TRACEFS "uprobe_events", &text, NULL), 0);
	return text;
}

/* Ours in the group of the session, someone else's in it, and one of a session whose name begins
 * like ours. */
static void test_leftovers_go_and_others_stay(void **state)
{
	static const char place[] = "/bin/true:0x1000";
	struct session session, again;
	char ours[256], foreign[256], neighbour[256], line[400];
	CLEANUP_FREE char *before = NULL, *after = NULL;

	(void)state;
	assert_true(session_start(&session, root_args));
	session_connect(&session);
	snprintf(ours, sizeof(ours), "%s/x_0000000000000001_%s", session.welcome.group,
		session.welcome.tag);
	snprintf(foreign, sizeof(foreign), "%s/handmade", session.welcome.group);
	snprintf(neighbour, sizeof(neighbour), "%s_x/x_0000000000000001_%s", session.welcome.group,
		session.welcome.tag);
	snprintf(line, sizeof(line), "p:%s %s\n", ours, place);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	snprintf(line, sizeof(line), "p:%s %s\n", foreign, place);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	snprintf(line, sizeof(line), "p:%s %s\n", neighbour, place);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	snprintf(line, sizeof(line), "events/%s/enable", ours);
	assert_int_equal(session_write(&session, line, "1"), 0);
	kill(session.reader, SIGKILL);
	assert_int_equal(session_wait(&session, NULL, 0), 128 + SIGKILL);
	assert_true(instance_exists(&session));
	before = probe_list();
	assert_non_null(strstr(before, ours));

	assert_true(session_start_at(&again, session.directory, session.name, root_args));
	after = probe_list();
	assert_null(strstr(after, ours));
	assert_non_null(strstr(after, foreign));
	assert_non_null(strstr(after, neighbour));
	assert_int_equal(session_stop(&again, NULL, NULL), 0);
	free(after);
	after = probe_list();
	assert_non_null(strstr(after, foreign));
	snprintf(line, sizeof(line), "-:%s\n", foreign);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	snprintf(line, sizeof(line), "-:%s\n", neighbour);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	session_release(&session);
	session_release(&again);
}

static void test_remove(void **state)
{
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	kill(session.reader, SIGKILL);
	assert_int_equal(session_wait(&session, NULL, 0), 128 + SIGKILL);
	assert_true(instance_exists(&session));
	/* Is tracefan-reader --remove. */
	session_release(&session);
	assert_false(instance_exists(&session));
	assert_false(folder_exists(&session));
}

static void test_owner_ends_it(void **state)
{
	struct session session;
	char number[16];
	const char *args[] = { "--router-user", "0", "--owner-fd", number, NULL };
	int pipe_fds[2];

	(void)state;
	/* The reader inherits the reading end, and nobody but this test has the other. */
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(fcntl(pipe_fds[1], F_SETFD, FD_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", pipe_fds[0]);
	assert_true(session_start(&session, args));
	close(pipe_fds[0]);
	/* Bytes are no end. */
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	session_connect(&session);
	assert_int_equal(session.ends, 0);
	close(pipe_fds[1]);
	session_disconnect(&session);
	assert_int_equal(session_wait(&session, NULL, 0), 0);
	assert_false(instance_exists(&session));
	assert_false(folder_exists(&session));
	session_release(&session);
}

static void refused_start(const char *const *args, int status, const char *word)
{
	struct session session;
	char log[2048];

	assert_false(session_start(&session, args));
	assert_int_equal(session_wait(&session, log, sizeof(log)), status);
	if (!strstr(log, word))
		fail_msg("\"%s\" lacks \"%s\"", log, word);
	assert_false(instance_exists(&session));
	assert_false(folder_exists(&session));
	session_release(&session);
}

static void test_failed_start_leaves_nothing(void **state)
{
	static const char *const group[] = { "--group", "no-such-group", NULL };
	static const char *const user[] = { "--router-user", "no-such-user", NULL };
	static const char *const tracefs[] = { "--tracefs", "/tmp", NULL };
	static const char *const absent[] = { "--tracefs", "/no/such/folder", NULL };
	static const char *const usage[] = { "--interval", "soon", NULL };
	static const char *const recording[] = { "--replay", "/no/such/file", NULL };
	static const char *const no_recording[] = { "--replay", "/bin/true", NULL };
	static const char *const pages[] = { "--pages", "/tmp", NULL };

	(void)state;
	refused_start(group, EXIT_USAGE, "no-such-group");
	refused_start(user, EXIT_USAGE, "no-such-user");
	refused_start(tracefs, EXIT_MISSING, "mount -t tracefs");
	refused_start(absent, EXIT_MISSING, "/no/such/folder");
	refused_start(usage, EXIT_USAGE, "--interval");
	refused_start(recording, EXIT_LOCATION, "/no/such/file");
	refused_start(no_recording, EXIT_USAGE, "not a tracefan recording");
	refused_start(pages, EXIT_LOCATION, "header_page");
}

static char *read_proc(pid_t pid, const char *file)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	assert_int_equal(tracedir_read(AT_FDCWD, path, &text, NULL), 0);
	return text;
}

static void test_process(void **state)
{
	static const char *const expected[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Uid:\t0\t0\t0\t0",
	};
	struct session session;
	CLEANUP_FREE char *status = NULL;
	char path[64], target[300];
	const struct dirent *entry;
	DIR *fds;

	(void)state;
	assert_true(session_start(&session, plain_args));
	status = read_proc(session.reader, "status");
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		if (!strstr(status, expected[i]))
			fail_msg("no \"%s\" in its status", expected[i]);
	}
	/* Of tracefs it holds the two folders, and its own CPUs' pipes. */
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)session.reader);
	fds = opendir(path);
	assert_non_null(fds);
	while ((entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (strncmp(target, TRACEFS, strlen(TRACEFS)) != 0 ||
			!strcmp(target, TRACEFS "instances"))
			continue;
		if (!strstr(target, session.name))
			fail_msg("it has %s open", target);
	}
	closedir(fds);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* ---- the operator ---- */

static void operator_call(int fd, uint16_t type, struct control_message *reply)
{
	struct control_id request = { .id = 0 };

	control_header_init(&request.header, type, sizeof(request), 77);
	assert_int_equal(control_call(fd, &request, NULL, 0, reply), 0);
}

static void test_operator(void **state)
{
	const struct control_session_status *status;
	struct control_message reply;
	struct session session;
	int fd;

	(void)state;
	assert_true(session_start(&session, root_args));
	fd = session_connect_socket(&session, "control.sock");
	assert_true(fd >= 0);
	operator_call(fd, CONTROL_SESSION_STATUS, &reply);
	status = (const void *)reply.bytes;
	assert_int_equal(status->reader_pid, session.reader);
	assert_int_equal(status->router_pid, 0);
	assert_int_equal(status->source, SOURCE_RAW);
	assert_string_equal(status->session, session.name);
	assert_true(status->buffer_size >= 256 << 10);
	assert_true(status->subbuf_size >= 4096 && status->cpu_count >= 1 && status->started);
	assert_int_equal(status->probes, 0);
	session_connect(&session);
	operator_call(fd, CONTROL_SESSION_STATUS, &reply);
	assert_int_equal(
		((const struct control_session_status *)reply.bytes)->router_pid, getpid());
	operator_call(fd, CONTROL_SESSION_FLUSH, &reply);
	assert_int_equal(((const struct control_status *)reply.bytes)->status, 0);
	session_disconnect(&session);
	/* The answer comes when nothing is left. */
	operator_call(fd, CONTROL_SESSION_STOP, &reply);
	assert_int_equal(((const struct control_status *)reply.bytes)->status, 0);
	assert_false(instance_exists(&session));
	assert_false(folder_exists(&session));
	close(fd);
	assert_int_equal(session_wait(&session, NULL, 0), 0);
	session_release(&session);
}

/* ---- another router ---- */

struct marks {
	unsigned int seen, republished, wanted;
	uint64_t sequence;
};

static void count_marks(void *context, const struct pool_entry *entry, const void *bytes)
{
	struct marks *marks = context;

	marks->seen += session_count(bytes, entry->length, MARK);
	marks->republished += entry->flags & POOL_REPUBLISHED ? 1 : 0;
	assert_true(entry->sequence > marks->sequence);
	marks->sequence = entry->sequence;
}

static bool marks_done(const struct session *session, void *context)
{
	const struct marks *marks = context;

	(void)session;
	return marks->seen >= marks->wanted;
}

/* Takes data and returns no slot. */
static unsigned int take_without_return(struct session *session)
{
	struct pool_entry entry;
	unsigned int count = 0;

	while (pool_reader_next(&session->pool, &entry) == 1)
		count += entry.kind == POOL_DATA;
	return count;
}

static void test_next_router_gets_what_was_not_returned(void **state)
{
	struct marks marks = { .wanted = 150 };
	struct session session;
	unsigned int held;

	(void)state;
	assert_true(session_start(&session, root_args));
	session_connect(&session);
	for (int i = 0; i < 100; i++)
		assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
	/* Looked at and kept: as if the router had died with it. */
	do {
		usleep(1000);
		held = take_without_return(&session);
	} while (!held);
	session_disconnect(&session);
	for (int i = 0; i < 50; i++)
		assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
	session_connect(&session);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	assert_int_equal(marks.seen, 150);
	assert_true(marks.republished > 0);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 150);
	session_release(&session);
}

static void test_one_router_at_a_time(void **state)
{
	struct session session;
	char byte;
	int fd;

	(void)state;
	assert_true(session_start(&session, root_args));
	session_connect(&session);
	fd = session_connect_socket(&session, "router.sock");
	assert_true(fd >= 0);
	/* It is closed. */
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_under_any_umask),
		cmocka_unit_test(test_second_start_is_busy),
		cmocka_unit_test(test_leftovers_go_and_others_stay),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_owner_ends_it),
		cmocka_unit_test(test_failed_start_leaves_nothing),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_operator),
		cmocka_unit_test(test_next_router_gets_what_was_not_returned),
		cmocka_unit_test(test_one_router_at_a_time),
	};

	if (!session_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
