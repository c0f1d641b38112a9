/* A router that was taken over asks in other people's names, for what isn't theirs and for what is
 * nobody's, in forms that would be other commands. The reader refuses each and says why, and what
 * in tracefs isn't its own is afterwards as it was. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/tracedir.h"
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TRACEFS "/sys/kernel/tracing/"
/* Users that nobody has: one who may probe a folder's programs, and one who may nearly everything.
 */
#define DEVELOPER 47131
#define TRUSTED   47132
/* What the impostor wants to see in tracefs. */
#define EVIL "evil_47131"

struct consumer {
	pid_t child; /* it holds the other end */
	int client;  /* the pipe whose end ends it */
	int server;  /* what the router accepted */
};

struct fixture {
	struct session session, other;
	char folder[64], program[96], policy[96];
	struct consumer developer, trusted;
	char *before;
};

/* ---- tracefs, without what belongs to tracefan's sessions ---- */

static void add_text(char **text, const char *more)
{
	char *longer = NULL;

	assert_true(asprintf(&longer, "%s%s\n", *text ? *text : "", more) >= 0);
	free(*text);
	*text = longer;
}

/* Lines of sessions come and go with other tests. */
static void add_file(char **text, const char *path)
{
	CLEANUP_FREE char *content = NULL;
	char *next = NULL;

	add_text(text, path);
	if (tracedir_read(AT_FDCWD, path, &content, NULL) < 0)
		return;
	for (char *line = strtok_r(content, "\n", &next); line;
		line = strtok_r(NULL, "\n", &next)) {
		if (!strstr(line, "tracefan"))
			add_text(text, line);
	}
}

/* The definitions of all, the list of instances, the top level, and a foreign instance with a
 * foreign probe. */
static char *foreign_state(void)
{
	static const char *const files[] = { "uprobe_events", "kprobe_events", "dynamic_events",
		"set_event", "tracing_on", "current_tracer", "trace_clock", "buffer_size_kb",
		"trace_options", "set_event_pid", "set_event_notrace_pid",
		"instances/foreign-" EVIL "/tracing_on", "instances/foreign-" EVIL "/set_event",
		"instances/foreign-" EVIL "/buffer_size_kb",
		"instances/foreign-" EVIL "/events/foreign_" EVIL "/theirs/enable",
		"instances/foreign-" EVIL "/events/foreign_" EVIL "/theirs/filter",
		"instances/foreign-" EVIL "/events/sched/sched_process_exec/filter" };
	char *text = NULL, path[256];
	FILE *list;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), TRACEFS "%s", files[i]);
		add_file(&text, path);
	}
	list = popen("ls " TRACEFS "instances; grep entries " TRACEFS "per_cpu/cpu*/stats", "re");
	assert_non_null(list);
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		if (!strstr(path, "tracefan"))
			add_text(&text, path);
	}
	pclose(list);
	return text;
}

static void write_top(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACEFS "%s", file);
	assert_int_equal(tracedir_write(AT_FDCWD, path, text), 0);
}

static void make_foreign(void)
{
	char line[160];

	if (mkdir(TRACEFS "instances/foreign-" EVIL, 0700) < 0)
		assert_int_equal(errno, EEXIST);
	snprintf(line, sizeof(line), "p:foreign_" EVIL "/theirs /bin/sh:0x%x n=%%di:u64", 0x4000);
	assert_int_equal(tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", line), 0);
	write_top("instances/foreign-" EVIL "/events/foreign_" EVIL "/theirs/filter", "n == 1");
	write_top("instances/foreign-" EVIL "/events/sched/sched_process_exec/filter", "pid == 1");
}

static void remove_foreign(void)
{
	for (int i = 0; i < 200 && rmdir(TRACEFS "instances/foreign-" EVIL) < 0 && errno == EBUSY;
		i++)
		usleep(20000);
	(void)tracedir_append(AT_FDCWD, TRACEFS "uprobe_events", "-:foreign_" EVIL "/theirs");
}

/* ---- the peers ---- */

/* A process of that user connects, and stays until it is told. */
static struct consumer connect_as(struct session *session, uid_t uid)
{
	struct pollfd listener = { .fd = session->consumers, .events = POLLIN };
	struct consumer consumer;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	consumer.client = ends[1];
	consumer.child = fork();
	if (!consumer.child) {
		char byte;

		/* The router's connections are to end with the router. */
		dup2(ends[0], 3);
		close_range(4, ~0U, 0);
		if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
			session_connect_socket(session, "consumers.sock") < 0)
			_exit(1);
		_exit(read(3, &byte, 1) != 0);
	}
	close(ends[0]);
	assert_true(poll(&listener, 1, SESSION_PATIENCE_MS) > 0);
	consumer.server = accept4(session->consumers, NULL, NULL, SOCK_CLOEXEC);
	assert_true(consumer.server >= 0);
	return consumer;
}

static void disconnect(struct consumer *consumer)
{
	int status;

	close(consumer->client);
	assert_int_equal(waitpid(consumer->child, &status, 0), consumer->child);
	assert_int_equal(status, 0);
}

static void write_policy(const struct fixture *fixture)
{
	FILE *file = fopen(fixture->policy, "we");

	assert_non_null(file);
	fprintf(file,
		"allow user=%d uprobe:%s/* fetch=registers\n"
		"allow user=%d tracepoint:sched:*\n"
		"allow user=%d uprobe:**\n"
		"allow user=%d usdt:**\n"
		"allow user=%d kprobe:** fetch=memory\n"
		"allow user=%d tracepoint:**:**\n",
		DEVELOPER, fixture->folder, DEVELOPER, TRUSTED, TRUSTED, TRUSTED, TRUSTED);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(fixture->policy, 0644), 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const char *args[] = { "--router-user", "0", "--buffer-size", "1M", "--pool", "64K",
		"--policy", fixture->policy, "--verbose", NULL };
	char command[256];

	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/tracefan-impostor-%d",
		(int)getpid());
	assert_int_equal(mkdir(fixture->folder, 0755), 0);
	snprintf(fixture->program, sizeof(fixture->program), "%s/program", fixture->folder);
	snprintf(fixture->policy, sizeof(fixture->policy), "%s.policy", fixture->folder);
	snprintf(command, sizeof(command), "cp /bin/sh %s", fixture->program);
	assert_int_equal(system(command), 0);
	write_policy(fixture);
	remove_foreign();
	make_foreign();
	assert_true(session_start(&fixture->session, args));
	session_connect(&fixture->session);
	fixture->developer = connect_as(&fixture->session, DEVELOPER);
	fixture->trusted = connect_as(&fixture->session, TRUSTED);
	fixture->before = foreign_state();
	*state = fixture;
	return 0;
}

/* The reader's own words are in `log`; it has ended in order. */
static void end_session(struct fixture *fixture, char *log, size_t size)
{
	struct session *session = &fixture->session;

	session_disconnect(session);
	kill(session->reader, SIGTERM);
	assert_int_equal(session_wait(session, log, size), 0);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	session_release(&fixture->session);
	disconnect(&fixture->developer);
	disconnect(&fixture->trusted);
	close(fixture->developer.server);
	close(fixture->trusted.server);
	remove_foreign();
	unlink(fixture->program);
	unlink(fixture->policy);
	rmdir(fixture->folder);
	free(fixture->before);
	free(fixture);
	return 0;
}

/* ---- asking ---- */

static struct control_create definition(uint32_t kind, const char *symbol, const char *fetch)
{
	struct control_create create = { .kind = kind,
		.offset = kind >= PROBE_UPROBE ? 0x4000 : 0 };

	snprintf(create.name, sizeof(create.name), "probe");
	snprintf(create.symbol, sizeof(create.symbol), "%s", symbol);
	snprintf(create.fetch, sizeof(create.fetch), "%s", fetch);
	create.fetch_count = *fetch != '\0';
	return create;
}

static struct control_create tracepoint(const char *system, const char *event)
{
	struct control_create create = { .kind = PROBE_TRACEPOINT };

	snprintf(create.name, sizeof(create.name), "probe");
	snprintf(create.system, sizeof(create.system), "%s", system);
	snprintf(create.event, sizeof(create.event), "%s", event);
	return create;
}

static struct control_probe_created ask(
	struct fixture *fixture, struct control_create create, int identity, int target)
{
	struct control_probe_created reply;
	struct control_message message;
	int fds[2] = { identity, target };

	session_call(&fixture->session, &create, CONTROL_PROBE_CREATE, sizeof(create), fds,
		identity < 0 ? 0
		: target < 0 ? 1
			     : 2,
		&message);
	memcpy(&reply, message.bytes, sizeof(reply));
	control_message_release(&message);
	return reply;
}

/* Refused with this status, for a reason that has these words. */
static void refused(struct fixture *fixture, struct control_create create, int identity, int target,
	uint32_t status, const char *words)
{
	struct control_probe_created reply = ask(fixture, create, identity, target);

	if (reply.status != status || !strstr(reply.failure.message, words))
		fail_msg("status %u instead of %u, \"%s\" without \"%s\"", reply.status, status,
			reply.failure.message, words);
}

static uint32_t close_probe(struct fixture *fixture, uint64_t id, uint32_t owner)
{
	struct control_probe_close request = { .id = id, .owner = owner };

	return session_status_call(
		&fixture->session, &request, CONTROL_PROBE_CLOSE, sizeof(request), NULL, 0, NULL);
}

static uint32_t set_enabled(struct fixture *fixture, uint64_t id, bool enabled)
{
	struct control_set_enabled request = { .id = id, .enabled = enabled };

	return session_status_call(
		&fixture->session, &request, CONTROL_PROBE_ENABLE, sizeof(request), NULL, 0, NULL);
}

static uint32_t set_filter(struct fixture *fixture, uint64_t id, const char *filter)
{
	struct control_set_filter request = { .id = id };

	snprintf(request.filter, sizeof(request.filter), "%s", filter);
	return session_status_call(
		&fixture->session, &request, CONTROL_PROBE_FILTER, sizeof(request), NULL, 0, NULL);
}

static uint32_t tell_consumer(
	struct fixture *fixture, uint32_t state, uint64_t number, int identity)
{
	struct control_consumer request = {
		.state = state, .consumer = number, .ring_capacity = 4096
	};

	return session_status_call(
		&fixture->session, &request, CONTROL_CONSUMER, sizeof(request), &identity, 1, NULL);
}

/* What others on this machine trace meanwhile goes again, and nothing tells when. */
static void untouched(const struct fixture *fixture)
{
	CLEANUP_FREE char *after = foreign_state();

	for (int i = 0; i < 400 && strcmp(after, fixture->before) != 0; i++) {
		usleep(50000);
		free(after);
		after = foreign_state();
	}
	assert_string_equal(after, fixture->before);
}

static void logged(const char *log, const char *words)
{
	if (!strstr(log, words))
		fail_msg("the log does not say \"%s\"", words);
}

/* ---- the tests ---- */

static void test_places_outside_the_policy(void **state)
{
	struct fixture *fixture = *state;
	const int developer = fixture->developer.server;
	CLEANUP_CLOSE int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int program = open(fixture->program, O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int path_only = open(fixture->program, O_PATH | O_CLOEXEC);
	CLEANUP_CLOSE int write_only = open(fixture->program, O_WRONLY | O_CLOEXEC);
	CLEANUP_CLOSE int folder = open(fixture->folder, O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int memory = memfd_create("program", MFD_CLOEXEC);
	struct control_create semaphore = definition(PROBE_UPROBE, EVIL, "");
	char log[16384], path[128];
	struct control_probe_created made;

	/* Its consumer may probe the folder's program; the impostor passes other files. */
	made = ask(fixture, definition(PROBE_UPROBE, "fine", "n=%di:u64"), developer, program);
	assert_int_equal(made.status, 0);
	assert_int_equal(made.owner, DEVELOPER);
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), developer, shell, EXIT_NOT_PERMITTED,
		"no line of");
	refused(fixture, definition(PROBE_USDT, EVIL, ""), developer, program, EXIT_NOT_PERMITTED,
		"no line of");
	refused(fixture, definition(PROBE_URETPROBE, EVIL, ""), developer, memory,
		EXIT_NOT_PERMITTED, "removed or replaced");
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), developer, -1, EXIT_NOT_PERMITTED,
		"none");
	refused(fixture, definition(PROBE_UPROBE, EVIL, "n=+0(%di):u64"), developer, program,
		EXIT_NOT_PERMITTED, "line 1");
	semaphore.ref_offset = 0x4000;
	refused(fixture, semaphore, developer, program, EXIT_NOT_PERMITTED, "semaphore");
	refused(fixture, definition(PROBE_KPROBE, "do_exit", ""), developer, -1, EXIT_NOT_PERMITTED,
		"no line of");
	refused(fixture, tracepoint("task", "task_newtask"), developer, -1, EXIT_NOT_PERMITTED,
		"no line of");
	refused(fixture, tracepoint(fixture->session.welcome.group, made.event), developer, -1,
		EXIT_NOT_PERMITTED, "session");
	/* Files that are none. */
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), fixture->trusted.server, path_only,
		EXIT_NOT_PERMITTED, "open for reading");
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), fixture->trusted.server, write_only,
		EXIT_NOT_PERMITTED, "open for reading");
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), fixture->trusted.server, folder,
		EXIT_LOCATION, "regular file");
	/* One that is swapped behind a name which is allowed. */
	snprintf(path, sizeof(path), "%s/new", fixture->folder);
	assert_int_equal(symlink("/bin/sh", path), 0);
	(void)close_fd(shell);
	shell = open(path, O_RDONLY | O_CLOEXEC);
	refused(fixture, definition(PROBE_UPROBE, EVIL, ""), developer, shell, EXIT_NOT_PERMITTED,
		"no line of");
	unlink(path);
	untouched(fixture);
	end_session(fixture, log, sizeof(log));
	logged(log, "refused: user 47131: no line of");
	logged(log, "line 1: \"allow user=47131 uprobe:");
	logged(log, "removed or replaced");
	logged(log, "is the probe of a session");
	untouched(fixture);
}

/* Bytes that would make the line another one, for a consumer whom the policy stops nowhere. */
static void test_definitions_that_would_be_other_commands(void **state)
{
	static const char *const fetches[] = { "a=%di\np:" EVIL "/" EVIL " /bin/sh:0x4000",
		"a=%di\n-:foreign_" EVIL "/theirs", "a=%di;p:" EVIL "/x /bin/sh:0x4000",
		"a=%di b=%si\t#", "a=%di\r", "a=%di\x80", "=%di", "a=", "a" };
	static const char *const symbols[] = { "do_exit\np:" EVIL "/" EVIL " do_exit", "do_exit ",
		"do_exit;x", "do_exit+0x10", "", "../x", "do_exit%return" };
	static const char *const names[][2] = { { "..", "sched" },
		{ "../../instances", "foreign-" EVIL }, { "sched/../foreign_" EVIL, "theirs" },
		{ "sched", "sched_switch/../.." }, { "", "" }, { "sched", "" },
		{ "sched", "sched_switch\n" }, { ".", "." }, { "sched", "no_such_event" },
		{ "no_such_system", "x" } };
	struct fixture *fixture = *state;
	const int trusted = fixture->trusted.server;
	CLEANUP_CLOSE int program = open(fixture->program, O_RDONLY | O_CLOEXEC);
	struct control_create far = definition(PROBE_UPROBE, EVIL, "");
	char log[32768];

	for (size_t i = 0; i < sizeof(fetches) / sizeof(fetches[0]); i++)
		refused(fixture, definition(PROBE_UPROBE, EVIL, fetches[i]), trusted, program,
			EXIT_FETCH_ARG, "fetch argument");
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		refused(fixture, definition(PROBE_KPROBE, symbols[i], ""), trusted, -1,
			EXIT_LOCATION, "kernel symbol");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		refused(fixture, tracepoint(names[i][0], names[i][1]), trusted, -1, EXIT_LOCATION,
			"");
	far.offset = UINT64_MAX;
	refused(fixture, far, trusted, program, EXIT_LOCATION, "end of the file");
	untouched(fixture);
	end_session(fixture, log, sizeof(log));
	logged(log, "a fetch argument can't hold this byte");
	logged(log, "not the name of a kernel symbol");
	untouched(fixture);
}

static void test_identities_of_others(void **state)
{
	struct fixture *fixture = *state;
	const char *args[] = { "--router-user", "0", "--policy", fixture->policy, NULL };
	CLEANUP_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int program = open(fixture->program, O_RDONLY | O_CLOEXEC);
	const struct control_create fine = definition(PROBE_UPROBE, EVIL, "");
	struct consumer gone = connect_as(&fixture->session, TRUSTED), foreign;
	int pair[2], operator= session_connect_socket(&fixture->session, "control.sock");
	char log[16384];

	/* It could speak for a user while that user was there, and can't any more. */
	assert_int_equal(tell_consumer(fixture, CONSUMER_ATTACHED, 7, gone.server), 0);
	disconnect(&gone);
	refused(fixture, fine, gone.server, program, EXIT_NOT_PERMITTED,
		"user 47132 is not connected any more");
	assert_int_equal(
		tell_consumer(fixture, CONSUMER_ATTACHED, 8, gone.server), EXIT_NOT_PERMITTED);
	/* Sockets that prove nothing: root's, its own, a pair, the listener, no socket, another
	 * session's. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(session_start(&fixture->other, args));
	session_connect(&fixture->other);
	foreign = connect_as(&fixture->other, TRUSTED);
	{
		const int nothing[] = { operator, fixture->session.router, pair[0],
			fixture->session.consumers, null, program, foreign.server };

		for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
			refused(fixture, fine, nothing[i], program, EXIT_NOT_PERMITTED,
				"not the socket of a consumer of this session");
	}
	close(foreign.server);
	disconnect(&foreign);
	assert_int_equal(session_stop(&fixture->other, NULL, NULL), 0);
	session_release(&fixture->other);
	/* Without an identity: the router's own short list, and nothing of its choosing. */
	refused(fixture, fine, -1, -1, EXIT_NOT_PERMITTED, "in a consumer's name only");
	refused(fixture, tracepoint("syscalls", "sys_enter_openat"), -1, -1, EXIT_NOT_PERMITTED,
		"in a consumer's name only");
	close(pair[0]);
	close(pair[1]);
	close(operator);
	close(gone.server);
	untouched(fixture);
	end_session(fixture, log, sizeof(log));
	logged(log, "the consumer of user 47132 is not connected any more");
	logged(log, "the descriptor is not the socket of a consumer of this session");
	logged(log, "in a consumer's name only");
	untouched(fixture);
}

static void test_requests_out_of_turn(void **state)
{
	struct fixture *fixture = *state;
	CLEANUP_CLOSE int program = open(fixture->program, O_RDONLY | O_CLOEXEC);
	struct control_probe_created made;
	const int developer = fixture->developer.server;
	char log[16384];

	assert_int_equal(tell_consumer(fixture, CONSUMER_ATTACHED, 1, developer), 0);
	assert_int_equal(tell_consumer(fixture, CONSUMER_ATTACHED, 1, developer), EXIT_FAILED);
	assert_int_equal(tell_consumer(fixture, CONSUMER_LEFT, 99, developer), 0);
	made = ask(fixture, definition(PROBE_UPROBE, "fine", ""), developer, program);
	assert_int_equal(made.status, 0);
	/* Off before it was on, on twice, and what isn't there. */
	assert_int_equal(set_enabled(fixture, made.probe_id, false), EXIT_FAILED);
	assert_int_equal(set_enabled(fixture, made.probe_id, true), 0);
	assert_int_equal(set_enabled(fixture, made.probe_id, true), EXIT_FAILED);
	assert_int_equal(set_enabled(fixture, made.probe_id + 1, true), EXIT_FAILED);
	assert_int_equal(set_filter(fixture, UINT64_MAX, "1"), EXIT_FAILED);
	/* Filters that would be other texts. */
	assert_int_equal(set_filter(fixture, made.probe_id, "common_pid == 1\n0"), EXIT_USAGE);
	assert_int_equal(
		set_filter(fixture, made.probe_id, "common_pid == 1 > /etc/passwd"), EXIT_USAGE);
	/* Probes of others, and the same twice. */
	assert_int_equal(close_probe(fixture, made.probe_id, TRUSTED), EXIT_FAILED);
	assert_int_equal(close_probe(fixture, made.probe_id, 0), EXIT_FAILED);
	assert_int_equal(close_probe(fixture, made.probe_id, CONTROL_OWNER_ROUTER), EXIT_FAILED);
	assert_int_equal(close_probe(fixture, made.probe_id, DEVELOPER), 0);
	assert_int_equal(close_probe(fixture, made.probe_id, DEVELOPER), EXIT_FAILED);
	assert_int_equal(set_enabled(fixture, made.probe_id, false), EXIT_FAILED);
	untouched(fixture);
	end_session(fixture, log, sizeof(log));
	logged(log, "consumer 1 is attached already");
	logged(log, "user 47132 has no probe");
	untouched(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_places_outside_the_policy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_definitions_that_would_be_other_commands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_identities_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_requests_out_of_turn, set_up, tear_down),
	};

	if (!session_possible())
		return 77;
	if (access(TRACEFS "uprobe_events", W_OK) < 0) {
		printf("skipped: this kernel has no uprobes\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
