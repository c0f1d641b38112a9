/* Probes through the control protocol, on this kernel: made, shared, refused with the kernel's
 * words, and gone at the end. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/probe_name.h"
#include "shm/segment.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const plain_args[] = { "--router-user", "0", "--buffer-size", "256K", NULL };

#define CONDITION "n == 7"

/* What is probed. */
uint64_t probed_function(uint64_t n, const char *text);

__attribute__((noinline)) uint64_t probed_function(uint64_t n, const char *text)
{
	__asm__ volatile("" : "+r"(n) : "r"(text) : "memory");
	return n;
}

/* Where the function lies in this program's file. */
static uint64_t function_offset(void)
{
	uintptr_t address = (uintptr_t)probed_function;
	unsigned long from, to, offset;
	uint64_t found = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) == 3 && address >= from &&
			address < to)
			found = address - from + offset;
	}
	fclose(maps);
	assert_true(found);
	return found;
}

static struct control_create uprobe(const char *fetch)
{
	struct control_create create = { .kind = PROBE_UPROBE, .offset = function_offset() };

	snprintf(create.name, sizeof(create.name), "calls");
	snprintf(create.symbol, sizeof(create.symbol), "probed_function");
	if (*fetch) {
		size_t length = strlen(fetch);

		/* Blanks part the arguments here. */
		memcpy(create.fetch, fetch, length);
		create.fetch_count = 1;
		for (size_t i = 0; i < length; i++) {
			if (create.fetch[i] != ' ')
				continue;
			create.fetch[i] = '\0';
			create.fetch_count++;
		}
	}
	return create;
}

/* Asks for a probe; returns the reply. The format's bytes go to *ret_format, if given. */
static struct control_probe_created ask(struct session *session, struct control_create create,
	int consumer, int target, char **ret_format)
{
	struct control_probe_created reply;
	struct control_message message;
	int fds[2] = { consumer, target };
	unsigned int count = consumer < 0 ? 0 : target < 0 ? 1 : 2;
	void *format = NULL;
	size_t size;

	session_call(session, &create, CONTROL_PROBE_CREATE, sizeof(create), fds, count, &message);
	memcpy(&reply, message.bytes, sizeof(reply));
	if (!reply.status) {
		assert_int_equal(segment_blob_read(message.fds[0], 1 << 20, &format, &size), 0);
		assert_non_null(strstr(format, "print fmt:"));
	}
	if (ret_format)
		*ret_format = format;
	else
		free(format);
	control_message_release(&message);
	return reply;
}

static uint32_t set_enabled(struct session *session, uint64_t id, bool enabled)
{
	struct control_set_enabled request = { .id = id, .enabled = enabled };

	return session_status_call(
		session, &request, CONTROL_PROBE_ENABLE, sizeof(request), NULL, 0, NULL);
}

static uint32_t close_probe(struct session *session, uint64_t id)
{
	struct control_probe_close request = { .id = id, .owner = geteuid() };

	return session_status_call(
		session, &request, CONTROL_PROBE_CLOSE, sizeof(request), NULL, 0, NULL);
}

static uint32_t set_filter(
	struct session *session, uint64_t id, const char *filter, struct control_failure *failure)
{
	struct control_set_filter request = { .id = id };

	snprintf(request.filter, sizeof(request.filter), "%s", filter);
	return session_status_call(
		session, &request, CONTROL_PROBE_FILTER, sizeof(request), NULL, 0, failure);
}

static char event_state(const struct session *session, const char *system, const char *event)
{
	CLEANUP_FREE char *text = NULL;
	char path[256];

	snprintf(path, sizeof(path), "events/%s/%s/enable", system, event);
	text = session_read(session, path);
	return text ? text[0] : '-';
}

/* Nobody tells when an event's file changes, so this looks again. */
static void await_state(
	struct session *session, const struct control_probe_created *probe, char state)
{
	for (int i = 0; i < 400 && event_state(session, probe->system, probe->event) != state; i++) {
		/* With no slot left the reader could not read all that others' events have filled. */
		session_drain(session);
		usleep(50000);
	}
	assert_int_equal(event_state(session, probe->system, probe->event), state);
}

struct fixture {
	struct session session;
	int client, consumer; /* a consumer's connection: its own end, and the router's */
	int target;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_true(session_start(&fixture->session, plain_args));
	session_connect(&fixture->session);
	session_consumer(&fixture->session, &fixture->client, &fixture->consumer);
	fixture->target = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fixture->target >= 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	close(fixture->client);
	close(fixture->consumer);
	close(fixture->target);
	session_release(&fixture->session);
	free(fixture);
	return 0;
}

static void test_tracepoint(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_probe_created first, second, missing;
	CLEANUP_FREE char *format = NULL;

	first = ask(
		session, session_tracepoint("sched", "sched_process_exec"), fixture->consumer, -1, &format);
	assert_int_equal(first.status, 0);
	assert_string_equal(first.system, "sched");
	assert_string_equal(first.event, "sched_process_exec");
	assert_non_null(strstr(format, "name: sched_process_exec"));
	assert_int_equal(first.shared, 0);
	second = ask(
		session, session_tracepoint("sched", "sched_process_exec"), fixture->consumer, -1, NULL);
	assert_int_equal(second.shared, 1);
	assert_true(second.probe_id == first.probe_id);

	missing = ask(
		session, session_tracepoint("sched", "sched_process_exex"), fixture->consumer, -1, NULL);
	assert_int_equal(missing.status, EXIT_LOCATION);
	assert_non_null(strstr(
		missing.failure.message, "no event \"sched_process_exex\" in system \"sched\""));
	missing =
		ask(session, session_tracepoint("shed", "sched_process_exec"), fixture->consumer, -1, NULL);
	assert_int_equal(missing.status, EXIT_LOCATION);
	assert_non_null(strstr(missing.failure.message, "no system \"shed\""));
	missing = ask(session, session_tracepoint("..", "enable"), fixture->consumer, -1, NULL);
	assert_int_equal(missing.status, EXIT_LOCATION);
	missing = ask(session, session_tracepoint("sched/../sched", "sched_process_exec"),
		fixture->consumer, -1, NULL);
	assert_int_equal(missing.status, EXIT_LOCATION);
}

static void test_enabled_by_the_first_disabled_by_the_last(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	uint64_t id =
		ask(session, session_tracepoint("sched", "sched_process_exec"), fixture->consumer, -1, NULL)
			.probe_id;

	assert_int_equal(event_state(session, "sched", "sched_process_exec"), '0');
	assert_true(
		ask(session, session_tracepoint("sched", "sched_process_exec"), fixture->consumer, -1, NULL)
			.probe_id == id);
	assert_int_equal(set_enabled(session, id, true), 0);
	assert_int_equal(set_enabled(session, id, true), 0);
	/* A third owner there is not. */
	assert_int_equal(set_enabled(session, id, true), EXIT_FAILED);
	assert_int_equal(event_state(session, "sched", "sched_process_exec"), '1');
	assert_int_equal(set_enabled(session, id, false), 0);
	assert_int_equal(close_probe(session, id), 0);
	assert_int_equal(event_state(session, "sched", "sched_process_exec"), '1');
	assert_int_equal(set_enabled(session, id, false), 0);
	assert_int_equal(event_state(session, "sched", "sched_process_exec"), '0');
	assert_int_equal(set_enabled(session, id, false), EXIT_FAILED);
	assert_int_equal(close_probe(session, id), 0);
	assert_int_equal(close_probe(session, id), EXIT_FAILED);
	assert_int_equal(set_enabled(session, id, true), EXIT_FAILED);
}

static void count_text(void *context, const struct pool_entry *entry, const void *bytes)
{
	*(unsigned int *)context += session_count(bytes, entry->length, "probed text");
}

static bool seen_three(const struct session *session, void *context)
{
	(void)session;
	return *(unsigned int *)context >= 3;
}

static void test_uprobe_fires(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_consumer attach = {
		.state = CONSUMER_ATTACHED, .flags = ATTACH_INCLUDE_SELF, .consumer = 1
	};
	struct control_probe_created made;
	CLEANUP_FREE char *format = NULL;
	unsigned int seen = 0;

	assert_int_equal(session_status_call(session, &attach, CONTROL_CONSUMER, sizeof(attach),
				 &fixture->consumer, 1, NULL),
		0);
	made = ask(session, uprobe("n=%di:u64 text=+0(%si):string"), fixture->consumer,
		fixture->target, &format);
	assert_int_equal(made.status, 0);
	assert_string_equal(made.system, session->welcome.group);
	assert_true(probe_name_is_ours(made.event));
	assert_non_null(strstr(made.event, "probed_function_"));
	assert_non_null(strstr(made.event, session->welcome.tag));
	assert_non_null(strstr(format, "field:u64 n"));
	assert_int_equal(set_filter(session, made.probe_id, "n > 1", NULL), 0);
	assert_int_equal(set_enabled(session, made.probe_id, true), 0);
	/* The child is another process than the excluded router. */
	if (!fork()) {
		for (uint64_t i = 0; i < 5; i++)
			(void)probed_function(i, "probed text");
		_exit(0);
	}
	assert_true(session_read_until(session, seen_three, count_text, &seen));
	assert_int_equal(session_stop(session, count_text, &seen), 0);
	assert_int_equal(seen, 3);
}

static void test_equal_definitions_share(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_create other = uprobe("n=%di:u64");
	struct control_probe_created first, second, third;

	first = ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	/* The name is each consumer's own matter. */
	snprintf(other.name, sizeof(other.name), "another name");
	second = ask(session, other, fixture->consumer, fixture->target, NULL);
	third = ask(session, uprobe("n=%di:u32"), fixture->consumer, fixture->target, NULL);
	assert_int_equal(first.status | second.status | third.status, 0);
	assert_true(first.probe_id == second.probe_id && !first.shared && second.shared);
	assert_string_equal(first.event, second.event);
	assert_true(third.probe_id > first.probe_id && !third.shared);
	assert_string_not_equal(first.event, third.event);
	assert_int_equal(close_probe(session, first.probe_id), 0);
	assert_int_equal(event_state(session, first.system, first.event), '0');
	assert_int_equal(close_probe(session, first.probe_id), 0);
	assert_int_equal(event_state(session, first.system, first.event), '-');
	assert_int_equal(event_state(session, third.system, third.event), '0');
}

static void test_wrong_places(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_create create = uprobe("n=%di:u64");
	struct control_probe_created made;
	int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    path = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	made = ask(session, create, fixture->consumer, -1, NULL);
	assert_int_equal(made.status, EXIT_LOCATION);
	made = ask(session, create, fixture->consumer, folder, NULL);
	assert_int_equal(made.status, EXIT_LOCATION);
	/* A file that its owner could name, but not read. */
	made = ask(session, create, fixture->consumer, path, NULL);
	assert_int_equal(made.status, EXIT_NOT_PERMITTED);
	create.offset = UINT64_C(1) << 40;
	made = ask(session, create, fixture->consumer, fixture->target, NULL);
	assert_int_equal(made.status, EXIT_LOCATION);
	assert_non_null(strstr(made.failure.message, "behind the end"));
	close(folder);
	close(path);
}

static void test_wrong_arguments(void **state)
{
	static const struct {
		const char *fetch;
		int position;
		const char *words;
	} cases[] = {
		{ "n=%nonsense", 2, "Invalid register name" },
		{ "n=%di:u64 m=%si:u65", 16, "Unknown type" },
		{ "n=%di:u64 n=%si:u64", 10, "already used" },
		{ "n=%di:u64 m=%si;x", 15, "can't hold this byte" },
		{ "n=%di#", 5, "can't hold this byte" },
		{ "n=%di\nm=%si", 5, "can't hold this byte" },
		{ "=%di", 0, "NAME=FETCH" },
		{ "n=%di:u64 n=", 10, "NAME=FETCH" },
	};
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct control_probe_created made;

		made = ask(
			session, uprobe(cases[i].fetch), fixture->consumer, fixture->target, NULL);
		assert_int_equal(made.status, EXIT_FETCH_ARG);
		if (!strstr(made.failure.message, cases[i].words))
			fail_msg("\"%s\": \"%s\"", cases[i].fetch, made.failure.message);
		assert_int_equal(made.failure.position, cases[i].position);
	}
	/* Nothing half made is left: the group has no folder. */
	assert_int_equal(event_state(session, session->welcome.group, "."), '-');
}

static void test_wrong_filter_is_rolled_back(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_probe_created made =
		ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	struct control_failure failure;
	CLEANUP_FREE char *text = NULL;
	char path[256];

	assert_int_equal(set_filter(session, made.probe_id, CONDITION, NULL), 0);
	assert_int_equal(
		set_filter(session, made.probe_id, "n == 7 && m > 2", &failure), EXIT_USAGE);
	assert_non_null(strstr(failure.message, "Field not found"));
	/* The kernel points at the name, or behind it. */
	assert_in_range(failure.position, 10, 12);
	assert_int_equal(set_filter(session, made.probe_id, "n == 7\n", &failure), EXIT_USAGE);
	assert_int_equal(failure.position, 6);
	snprintf(path, sizeof(path), "events/%s/%s/filter", made.system, made.event);
	text = session_read(session, path);
	assert_string_equal(text, CONDITION "\n");
	assert_int_equal(set_filter(session, made.probe_id, "", NULL), 0);
	free(text);
	text = session_read(session, path);
	assert_string_equal(text, "none\n");
}

static void test_routers_own_list_is_short(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;

	assert_int_equal(ask(session, session_tracepoint("task", "task_rename"), -1, -1, NULL).status, 0);
	assert_int_equal(ask(session, session_tracepoint("task", "task_newtask"), -1, -1, NULL).status, 0);
	assert_int_equal(ask(session, session_tracepoint("sched", "sched_switch"), -1, -1, NULL).status,
		EXIT_NOT_PERMITTED);
	assert_int_equal(ask(session, uprobe("n=%di"), -1, -1, NULL).status, EXIT_NOT_PERMITTED);
}

static void test_identity_is_the_sockets(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	int pair[2];

	/* Its other end is root, too, but no consumer of this session. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(ask(session, session_tracepoint("task", "task_rename"), pair[0], -1, NULL).status,
		EXIT_NOT_PERMITTED);
	assert_int_equal(
		ask(session, session_tracepoint("task", "task_rename"), session->router, -1, NULL).status,
		EXIT_NOT_PERMITTED);
	assert_int_equal(
		ask(session, session_tracepoint("task", "task_rename"), session->consumers, -1, NULL)
			.status,
		EXIT_NOT_PERMITTED);
	assert_int_equal(
		ask(session, session_tracepoint("task", "task_rename"), fixture->client, -1, NULL).status,
		EXIT_NOT_PERMITTED);
	assert_int_equal(
		ask(session, session_tracepoint("task", "task_rename"), fixture->target, -1, NULL).status,
		EXIT_NOT_PERMITTED);
	close(pair[0]);
	close(pair[1]);
}

static void test_nothing_is_left(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	char path[] = "/sys/kernel/tracing/uprobe_events", text[65536];
	struct control_probe_created made =
		ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	ssize_t n;
	int fd;

	assert_int_equal(made.status, 0);
	assert_int_equal(set_enabled(session, made.probe_id, true), 0);
	assert_int_equal(session_stop(session, NULL, NULL), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	assert_null(strstr(text, made.event));
	assert_null(session_read(session, "trace_clock"));
}

/* The router is gone for good: after a while nothing of its probes is left, and the session lives
 * on. */
static void test_probes_outlive_the_router_for_a_while(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_probe_created made =
		ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	struct control_probe_created kept =
		ask(session, uprobe("n=%di:u32"), fixture->consumer, fixture->target, NULL);
	struct control_probe_created again;

	assert_int_equal(set_enabled(session, made.probe_id, true), 0);
	assert_int_equal(set_enabled(session, kept.probe_id, true), 0);
	session_disconnect(session);
	session_connect(session);
	assert_int_equal(event_state(session, made.system, made.event), '1');
	/* Not this router's before it has asked. */
	assert_int_equal(set_enabled(session, kept.probe_id, true), EXIT_FAILED);
	close(fixture->client);
	close(fixture->consumer);
	session_consumer(session, &fixture->client, &fixture->consumer);
	again = ask(session, uprobe("n=%di:u32"), fixture->consumer, fixture->target, NULL);
	assert_true(again.probe_id == kept.probe_id && again.shared);
	assert_int_equal(set_enabled(session, kept.probe_id, true), 0);
	await_state(session, &made, '0');
	assert_int_equal(event_state(session, kept.system, kept.event), '1');
	/* Nobody traces any more, so it can go. */
	assert_int_equal(set_enabled(session, kept.probe_id, false), 0);
	await_state(session, &made, '-');
	assert_int_equal(event_state(session, kept.system, kept.event), '0');
}

/* To remove a probe clears the buffers, so it waits until nobody traces. */
static void test_removal_costs_nobody_an_event(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	uint64_t traced =
		ask(session, session_tracepoint("sched", "sched_process_exec"), fixture->consumer, -1, NULL)
			.probe_id;
	struct control_probe_created probe =
		ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	struct control_probe_created never =
		ask(session, uprobe("n=%di:u16"), fixture->consumer, fixture->target, NULL);
	struct control_probe_created again;

	assert_int_equal(set_enabled(session, traced, true), 0);
	assert_int_equal(set_enabled(session, probe.probe_id, true), 0);
	assert_int_equal(close_probe(session, probe.probe_id), 0);
	assert_int_equal(event_state(session, probe.system, probe.event), '0');
	assert_int_equal(set_enabled(session, probe.probe_id, true), EXIT_FAILED);
	/* Of one that was never enabled there is nothing in the buffers. */
	assert_int_equal(close_probe(session, never.probe_id), 0);
	assert_int_equal(event_state(session, never.system, never.event), '-');
	again = ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	assert_true(again.probe_id == probe.probe_id && again.status == 0);
	assert_int_equal(set_enabled(session, probe.probe_id, true), 0);
	assert_int_equal(event_state(session, probe.system, probe.event), '1');
	assert_int_equal(close_probe(session, probe.probe_id), 0);
	assert_int_equal(event_state(session, probe.system, probe.event), '0');
	assert_int_equal(close_probe(session, traced), 0);
	await_state(session, &probe, '-');
}

/* Adds a line to the kernel's list, as somebody else would. */
static void write_uprobe(const char *line)
{
	CLEANUP_CLOSE int fd = open("/sys/kernel/tracing/uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
}

/* All go at once where all of the group are the session's. */
static void test_removal_spares_what_somebody_put_beside(void **state)
{
	struct fixture *fixture = *state;
	struct session *session = &fixture->session;
	struct control_probe_created one =
		ask(session, uprobe("n=%di:u64"), fixture->consumer, fixture->target, NULL);
	struct control_probe_created two =
		ask(session, uprobe("n=%di:u32"), fixture->consumer, fixture->target, NULL);
	char line[256];

	snprintf(line, sizeof(line), "p:%s/neighbour /proc/self/fd/%d:0x%llx\n", one.system, fixture->target,
		(unsigned long long)function_offset());
	write_uprobe(line);
	assert_int_equal(set_enabled(session, one.probe_id, true), 0);
	assert_int_equal(set_enabled(session, two.probe_id, true), 0);
	assert_int_equal(close_probe(session, two.probe_id), 0);
	assert_int_equal(close_probe(session, one.probe_id), 0);
	await_state(session, &one, '-');
	await_state(session, &two, '-');
	assert_int_equal(event_state(session, one.system, "neighbour"), '0');
	snprintf(line, sizeof(line), "-:%s/neighbour\n", one.system);
	write_uprobe(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tracepoint, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_enabled_by_the_first_disabled_by_the_last, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_uprobe_fires, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_equal_definitions_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_arguments, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_wrong_filter_is_rolled_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_routers_own_list_is_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_identity_is_the_sockets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_probes_outlive_the_router_for_a_while, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_removal_costs_nobody_an_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_removal_spares_what_somebody_put_beside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_left, set_up, tear_down),
	};

	if (!session_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
