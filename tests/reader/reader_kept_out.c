/* Who is kept out of the trace, and that nobody else's event is missed when the kernel's list of them is written anew. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/kept_out.h"
#include "reader/loop.h"
#include "shm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const plain_args[] = { "--router-user", "0", "--buffer-size", "256K", NULL };

static int set_up(void **state)
{
	struct session *session = calloc(1, sizeof(*session));

	assert_true(session_start(session, plain_args));
	session_connect(session);
	*state = session;
	return 0;
}

static int tear_down(void **state)
{
	session_release(*state);
	free(*state);
	return 0;
}

/* Is the process on the list of those that are kept out? */
static bool excluded(const struct session *session, pid_t pid)
{
	CLEANUP_FREE char *list = session_read(session, "set_event_notrace_pid");
	char *line, *next = NULL;

	assert_non_null(list);
	for (line = strtok_r(list, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		if (strtol(line, NULL, 10) == pid)
			return true;
	}
	return false;
}

/* How long a number may take to go, and far more. */
static unsigned int patience_ms(void)
{
	return (unsigned int)(pid_lists_unused() / 1000000) + SESSION_PATIENCE_MS;
}

/* Nobody tells when the list changes, so this looks again. */
static void await_let_in(const struct session *session, pid_t pid)
{
	CLEANUP_FREE char *let_in = NULL;

	for (unsigned int ms = 0; ms < patience_ms() && excluded(session, pid); ms += 20)
		usleep(20000);
	assert_false(excluded(session, pid));
	/* The other list has been taken back, or is being so. */
	for (unsigned int ms = 0; ms < patience_ms(); ms += 20) {
		free(let_in);
		let_in = session_read(session, "set_event_pid");
		if (let_in && !*let_in)
			return;
		usleep(20000);
	}
	fail_msg("set_event_pid is not empty");
}

/* A process that has connected as a consumer and lives until `hold` is closed. */
static pid_t start_observer(struct session *session, int ready[2], int hold[2])
{
	pid_t child = fork();
	char byte;
	int client;

	if (!child) {
		/* The router's connection is to end with the router. */
		session_disconnect(session);
		client = session_connect_socket(session, "consumers.sock");
		(void)!write(ready[1], "x", 1);
		close(hold[1]);
		(void)!read(hold[0], &byte, 1);
		_exit(client < 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	return child;
}

/* Says as the router does what became of a consumer. */
static uint32_t tell_of(struct session *session, struct control_consumer *note, int consumer)
{
	return session_status_call(session, note, CONTROL_CONSUMER, sizeof(*note), &consumer, 1, NULL);
}

static void test_observers_are_kept_out(void **state)
{
	struct session *session = *state;
	struct control_consumer note = { .state = CONSUMER_ATTACHED, .consumer = 1 };
	int ready[2], hold[2], consumer;
	pid_t child;

	assert_true(excluded(session, session->reader));
	/* This process is the router. */
	assert_true(excluded(session, getpid()));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(hold), 0);
	child = start_observer(session, ready, hold);
	consumer = accept(session->consumers, NULL, NULL);
	assert_true(consumer >= 0);
	assert_false(excluded(session, child));
	note.flags = ATTACH_INCLUDE_SELF;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	assert_false(excluded(session, child));
	note.flags = 0;
	/* Who is attached can't attach. */
	assert_int_equal(tell_of(session, &note, consumer), EXIT_FAILED);
	note.consumer = 2;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	assert_true(excluded(session, child));
	/* A process may be more than one. */
	note.consumer = 3;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	note.state = CONSUMER_LEFT;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	assert_true(excluded(session, child));
	note.consumer = 2;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	await_let_in(session, child);
	assert_true(excluded(session, getpid()));
	assert_true(excluded(session, session->reader));
	note.state = CONSUMER_ATTACHED;
	assert_int_equal(tell_of(session, &note, consumer), 0);
	/* The consumers of a router that is gone come back. */
	session_disconnect(session);
	session_connect(session);
	assert_true(excluded(session, child));
	assert_int_equal(tell_of(session, &note, consumer), 0);
	assert_true(excluded(session, child));
	close(hold[1]);
	close(consumer);
	for (int i = 0; i < 2; i++)
		close(ready[i]);
	close(hold[0]);
	waitpid(child, NULL, 0);
}

/* Says hello and hears nothing more. */
static pid_t start_brief_router(struct session *session)
{
	struct control_router_hello hello;
	pid_t child = fork();
	int router;

	if (!child) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		router = session_connect_socket(session, "router.sock");
		control_header_init(&hello.header, CONTROL_ROUTER, sizeof(hello), 1);
		if (control_send(router, &hello, NULL, 0) < 0 || close(router) < 0)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	return child;
}

/* It is kept out before it is answered, and when that comes too late it was no router. */
static void test_a_router_that_goes_at_once_is_let_in(void **state)
{
	struct session *session = *state;
	pid_t child;

	session_disconnect(session);
	session_await_no_router(session);
	child = start_brief_router(session);
	for (unsigned int ms = 0; ms < SESSION_PATIENCE_MS && !excluded(session, child); ms += 10)
		usleep(10000);
	assert_true(excluded(session, child));
	session_await_no_router(session);
	session_connect(session);
	await_let_in(session, child);
	assert_true(excluded(session, getpid()));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ---- the list itself, in an instance of this test's ---- */

/* No descriptor is as large. */
#define CALLS_FD   0x40000000
#define RENEWALS   12
#define BUSY       4
#define BRIEF      2
#define BRIEF_MADE 5

/* Shared with the children. */
struct shared {
	atomic_bool end;
	atomic_ulong made[BUSY + BRIEF];
};

struct ground {
	struct instance instance;
	struct kept_out kept;
	struct shared *shared;
	pid_t children[2 * BUSY + BRIEF];
	unsigned int count;
};

static void call(void)
{
	(void)syscall(SYS_close, CALLS_FD);
}

/* Counts what it makes, all of which is to be recorded. */
static void make_events(struct shared *shared, unsigned int which)
{
	while (!shared->end) {
		for (int i = 0; i < 20; i++)
			call();
		shared->made[which] += 20;
		sched_yield();
	}
}

/* Processes that are new, and soon gone. */
static void make_processes(struct shared *shared, unsigned int which)
{
	while (!shared->end) {
		pid_t child = fork();

		if (!child) {
			for (int i = 0; i < BRIEF_MADE; i++)
				call();
			_exit(0);
		}
		if (child > 0 && waitpid(child, NULL, 0) == child)
			shared->made[which] += BRIEF_MADE;
	}
}

/* Runs in between, so that the kernel has just left out somebody when its list goes; its own calls are to be left out. */
static void be_kept_out(struct shared *shared, unsigned int which)
{
	(void)which;
	while (!shared->end) {
		call();
		sched_yield();
	}
}

static pid_t start(struct ground *ground, void (*act)(struct shared *, unsigned int), unsigned int which)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		act(ground->shared, which);
		_exit(0);
	}
	ground->children[ground->count++] = child;
	return child;
}

static int set_up_ground(void **state)
{
	const struct instance_wish wish = { .buffer_size = 1U << 20 };
	struct tracedir_problem problem = { 0 };
	struct ground *ground = calloc(1, sizeof(*ground));
	char name[32];
	int root = tracedir_open(NULL, &problem);

	snprintf(name, sizeof(name), "kept-out-%d", (int)getpid());
	assert_true(root >= 0);
	if (instance_create(root, name, &wish, &ground->instance, &problem) < 0)
		fail_msg("%s", problem.message);
	assert_int_equal(kept_out_open(&ground->kept, &ground->instance, 0), 0);
	ground->shared = mmap(NULL, sizeof(*ground->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ground->shared != MAP_FAILED);
	*state = ground;
	return 0;
}

static void end_children(struct ground *ground)
{
	ground->shared->end = true;
	while (ground->count)
		waitpid(ground->children[--ground->count], NULL, 0);
}

static int tear_down_ground(void **state)
{
	struct ground *ground = *state;

	end_children(ground);
	(void)instance_disable(&ground->instance);
	assert_int_equal(instance_remove(&ground->instance), 0);
	munmap(ground->shared, sizeof(*ground->shared));
	free(ground);
	return 0;
}

static void assert_nobody_let_in(const struct ground *ground)
{
	CLEANUP_FREE char *text = NULL;

	assert_int_equal(tracedir_read(ground->instance.dir, "set_event_pid", &text, NULL), 0);
	assert_string_equal(text, "");
}

/* The kernel's list is just this. */
static void assert_listed(const struct ground *ground, const pid_t *wanted, int count)
{
	const struct pid_lists lists = instance_lists(&ground->instance);
	pid_t found[64];

	assert_int_equal(pid_lists_read(&lists, found, 64), count);
	for (int i = 0; i < count; i++) {
		int k = 0;

		while (k < count && found[k] != wanted[i])
			k++;
		assert_true(k < count);
	}
	assert_nobody_let_in(ground);
}

static void test_nothing_is_missed(void **state)
{
	struct ground *ground = *state;
	struct instance_counts counts;
	uint64_t made = 0, recorded;

	for (unsigned int i = 0; i < BUSY; i++)
		assert_int_equal(kept_out_add(&ground->kept, i, start(ground, be_kept_out, i)), 0);
	assert_int_equal(tracedir_write(ground->instance.dir, "events/syscalls/sys_enter_close/filter", "fd == 0x40000000"), 0);
	assert_int_equal(tracedir_write(ground->instance.dir, "events/syscalls/sys_enter_close/enable", "1"), 0);
	for (unsigned int i = 0; i < BUSY; i++)
		start(ground, make_events, i);
	for (unsigned int i = 0; i < BRIEF; i++)
		start(ground, make_processes, BUSY + i);
	for (unsigned int i = 0; i < RENEWALS; i++) {
		/* One that is no more; its number may be anybody's. */
		assert_int_equal(kept_out_add(&ground->kept, BUSY + i, getpid()), 0);
		kept_out_leave(&ground->kept, BUSY + i);
		kept_out_renew(&ground->kept);
		assert_int_equal(ground->kept.due, LOOP_NEVER);
		assert_nobody_let_in(ground);
	}
	end_children(ground);
	for (unsigned int i = 0; i < BUSY + BRIEF; i++)
		made += ground->shared->made[i];
	assert_int_equal(instance_count(&ground->instance, &counts), 0);
	recorded = counts.read + counts.overrun + counts.dropped + counts.waiting;
	assert_true(made > 0);
	/* Nor is any of those that are kept out among them. */
	assert_int_equal(recorded, made);
}

/* Numbers of whom there is nobody any more; the list takes the threads of who is there. */
static void test_who_has_left_is_let_in(void **state)
{
	struct ground *ground = *state;
	const pid_t one = start(ground, be_kept_out, 0), two = start(ground, be_kept_out, 1), self = getpid();

	assert_int_equal(kept_out_add(&ground->kept, 1, one), 0);
	assert_int_equal(kept_out_add(&ground->kept, 2, two), 0);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
	kept_out_leave(&ground->kept, 1);
	assert_true(ground->kept.due > loop_now() && ground->kept.due <= loop_now() + pid_lists_unused());
	assert_listed(ground, (const pid_t[]){ self, one, two }, 3);
	/* Back before it was taken off: there is nothing to do then. */
	assert_int_equal(kept_out_add(&ground->kept, 3, one), 0);
	kept_out_renew(&ground->kept);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
	assert_listed(ground, (const pid_t[]){ self, one, two }, 3);
	kept_out_leave(&ground->kept, 3);
	kept_out_renew(&ground->kept);
	assert_listed(ground, (const pid_t[]){ self, two }, 2);
	kept_out_leave_all(&ground->kept, 0);
	kept_out_renew(&ground->kept);
	assert_listed(ground, &self, 1);
}

static void *wait_for_byte(void *fd)
{
	char byte;

	return read(*(int *)fd, &byte, 1) < 0 ? fd : NULL;
}

/* Two threads, the second of which ends when `go` has a byte; says so on `said`. */
static void have_a_thread(int go, int said)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_byte, &go) || write(said, "x", 1) != 1 || pthread_join(thread, NULL) || write(said, "x", 1) != 1)
		_exit(1);
	(void)pause();
}

/* A thread that was joined is there for a moment still, and nobody tells when it isn't. */
static void await_gone(pid_t thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)thread);
	for (int ms = 0; ms < SESSION_PATIENCE_MS && !access(path, F_OK); ms += 10)
		usleep(10000);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_threads_that_end_are_let_in(void **state)
{
	struct ground *ground = *state;
	int go[2], said[2];
	pid_t child, found[8];
	char byte;
	const struct pid_lists lists = instance_lists(&ground->instance);

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		have_a_thread(go[0], said[1]);
		_exit(0);
	}
	assert_int_equal(read(said[0], &byte, 1), 1);
	assert_int_equal(kept_out_add(&ground->kept, 1, child), 0);
	assert_int_equal(pid_lists_read(&lists, found, 8), 3);
	assert_int_not_equal(ground->kept.due, LOOP_NEVER);
	/* It is there still, and looked for again. */
	kept_out_renew(&ground->kept);
	assert_int_equal(pid_lists_read(&lists, found, 8), 3);
	assert_int_not_equal(ground->kept.due, LOOP_NEVER);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(read(said[0], &byte, 1), 1);
	for (int i = 0; i < 3; i++) {
		if (found[i] != getpid() && found[i] != child)
			await_gone(found[i]);
	}
	kept_out_renew(&ground->kept);
	assert_listed(ground, (const pid_t[]){ getpid(), child }, 2);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(said[i]);
	}
}

/* So many come and go that there is no place left. */
static void test_a_full_list_is_renewed_at_once(void **state)
{
	struct ground *ground = *state;
	const pid_t one = start(ground, be_kept_out, 0);

	assert_int_equal(kept_out_add(&ground->kept, 1, one), 0);
	while (ground->kept.count < KEPT_OUT_MAX) {
		ground->kept.numbers[ground->kept.count] = KEPT_OUT_STALE;
		ground->kept.processes[ground->kept.count++] = 1;
	}
	assert_int_equal(kept_out_add(&ground->kept, 2, start(ground, be_kept_out, 1)), 0);
	assert_listed(ground, (const pid_t[]){ getpid(), one, ground->children[1] }, 3);
	assert_int_equal(ground->kept.count, 3);
}

/* A reader was killed while it had everybody let in, but for its session's own. */
static void test_the_next_reader_takes_it_back(void **state)
{
	struct ground *ground = *state;
	const struct pid_lists lists = instance_lists(&ground->instance);
	const pid_t self = getpid();
	struct kept_out next;

	assert_int_equal(tracedir_append(ground->instance.dir, "set_event_pid", "0 1 2"), 0);
	assert_int_equal(tracedir_append(ground->instance.dir, "set_event_notrace_pid", "4711 4712"), 0);
	assert_int_equal(pid_lists_mend(&lists), 0);
	assert_listed(ground, (const pid_t[]){ self, 4711, 4712 }, 3);
	assert_int_equal(kept_out_open(&next, &ground->instance, 0), 0);
	kept_out_adopt(&next, 0);
	assert_int_not_equal(next.due, LOOP_NEVER);
	kept_out_renew(&next);
	assert_listed(ground, &self, 1);
}

/* The file that can't be appended to, or cleared. */
static const char *append_fails, *clear_fails;

int __real_tracedir_append(int folder, const char *path, const char *text);
int __wrap_tracedir_append(int folder, const char *path, const char *text);
int __wrap_tracedir_append(int folder, const char *path, const char *text)
{
	return append_fails && !strcmp(path, append_fails) ? -ENOMEM : __real_tracedir_append(folder, path, text);
}

int __real_tracedir_clear(int folder, const char *path);
int __wrap_tracedir_clear(int folder, const char *path);
int __wrap_tracedir_clear(int folder, const char *path)
{
	return clear_fails && !strcmp(path, clear_fails) ? -ENOMEM : __real_tracedir_clear(folder, path);
}

/* What failed half-way is done by the next try, which finds nobody on the list who is to go. */
static void test_what_failed_is_done_again(void **state)
{
	struct ground *ground = *state;
	const pid_t one = start(ground, be_kept_out, 0), self = getpid();
	pid_t found[8];

	assert_int_equal(kept_out_add(&ground->kept, 1, one), 0);
	assert_int_equal(kept_out_add(&ground->kept, 2, start(ground, be_kept_out, 1)), 0);
	kept_out_leave(&ground->kept, 2);
	append_fails = "set_event_notrace_pid";
	kept_out_renew(&ground->kept);
	append_fails = NULL;
	assert_int_equal(pid_lists_read(&(struct pid_lists){ .dir = ground->instance.dir }, found, 8), 0);
	assert_int_not_equal(ground->kept.due, LOOP_NEVER);
	kept_out_renew(&ground->kept);
	assert_listed(ground, (const pid_t[]){ self, one }, 2);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
	kept_out_leave(&ground->kept, 1);
	clear_fails = "set_event_pid";
	kept_out_renew(&ground->kept);
	clear_fails = NULL;
	assert_int_not_equal(ground->kept.due, LOOP_NEVER);
	kept_out_renew(&ground->kept);
	assert_listed(ground, &self, 1);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
}

/* Numbers go round, and the first of them are given out but once. */
static void test_the_turn_of_a_number(void **state)
{
	const uint64_t all = pid_lists_unused(), one = pid_lists_until(100, 101);

	(void)state;
	assert_true(one > 0 && one < all);
	assert_int_equal(pid_lists_until(100, 164), 64 * one);
	/* The last one has just been given out. */
	assert_true(pid_lists_until(5000, 5000) > pid_lists_until(5000, 5001));
	assert_true(pid_lists_until(5000, 5000) <= all);
	assert_true(pid_lists_until(5000, 4000) <= pid_lists_until(5000, 5000));

	assert_true(pid_lists_passed(1000, 2000, 1001));
	assert_true(pid_lists_passed(1000, 2000, 2000));
	assert_false(pid_lists_passed(1000, 2000, 1000));
	assert_false(pid_lists_passed(1000, 2000, 2001));
	assert_false(pid_lists_passed(1000, 1000, 1000));
	assert_true(pid_lists_passed(30000, 500, 30001));
	assert_true(pid_lists_passed(30000, 500, 500));
	assert_false(pid_lists_passed(30000, 500, 30000));
	assert_false(pid_lists_passed(30000, 500, 501));
}

static void make_process(void)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Who has left had the number that comes next: its stranger may have been kept out, and that is told. */
static void test_a_number_that_comes_back_at_once(void **state)
{
	struct ground *ground = *state;
	const pid_t one = start(ground, be_kept_out, 0), two = start(ground, be_kept_out, 1);
	char last[32];
	uint64_t since;
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	assert_int_equal(kept_out_add(&ground->kept, 1, one), 0);
	assert_int_equal(kept_out_add(&ground->kept, 2, two), 0);
	kept_out_leave(&ground->kept, 2);
	kept_out_renew(&ground->kept);
	assert_int_equal(kept_out_doubt(&ground->kept), 0);
	end_children(ground);
	(void)snprintf(last, sizeof(last), "%d", (int)one - 1);
	assert_int_equal(write(fd, last, strlen(last)), strlen(last));
	close(fd);
	kept_out_leave(&ground->kept, 1);
	/* Others make processes, too. */
	if (pid_lists_last() == (uint32_t)one - 1)
		assert_true(ground->kept.due < ground->kept.since + pid_lists_until(1, 64));
	for (int i = 0; i < 1000 && !pid_lists_passed((uint32_t)one - 1, pid_lists_last(), one); i++)
		make_process();
	/* As if it had been so when it left, if another's was made between. */
	ground->kept.lasts[ground->kept.count - 1] = (uint32_t)one - 1;
	since = ground->kept.since;
	kept_out_renew(&ground->kept);
	assert_true(since > 0);
	assert_int_equal(kept_out_doubt(&ground->kept), since);
	assert_int_equal(kept_out_doubt(&ground->kept), 0);
}

/* In a namespace of processes this one is number 1. Returns what became of keeping it out. */
static int add_from_namespace(const struct pid_lists *lists)
{
	pid_t child;
	int status = 0;

	if (unshare(CLONE_NEWPID) < 0)
		return -errno;
	child = fork();
	if (!child) {
		const pid_t self = getpid();

		_exit(-pid_lists_add(lists, &self, 1));
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Its number there is somebody else's here. */
static void test_numbers_of_a_namespace_hide_nobody(void **state)
{
	struct ground *ground = *state;
	const struct pid_lists lists = instance_lists(&ground->instance);
	const pid_t self = getpid(), child = fork();
	int status;

	if (!child)
		_exit(-add_from_namespace(&lists));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ENOENT);
	assert_listed(ground, &self, 1);
}

/* Of a process that is in no namespace of ours, say. */
static void test_numbers_that_are_no_process(void **state)
{
	struct ground *ground = *state;
	const pid_t self = getpid();

	assert_int_equal(kept_out_add(&ground->kept, 1, 0), 0);
	assert_int_equal(kept_out_add(&ground->kept, 2, -1), 0);
	assert_listed(ground, &self, 1);
	assert_int_equal(ground->kept.due, LOOP_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_observers_are_kept_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_router_that_goes_at_once_is_let_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_missed, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_who_has_left_is_let_in, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_threads_that_end_are_let_in, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_a_full_list_is_renewed_at_once, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_the_next_reader_takes_it_back, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_what_failed_is_done_again, set_up_ground, tear_down_ground),
		cmocka_unit_test(test_the_turn_of_a_number),
		cmocka_unit_test_setup_teardown(test_a_number_that_comes_back_at_once, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_numbers_of_a_namespace_hide_nobody, set_up_ground, tear_down_ground),
		cmocka_unit_test_setup_teardown(test_numbers_that_are_no_process, set_up_ground, tear_down_ground),
	};

	struct stat st;

	if (!session_possible())
		return 77;
	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != 0xEFFFFFFCU) {
		printf("skipped: in a namespace of processes nobody can be kept out\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
