/* The operator's calls, against a control socket of this test's own. */
#include "consumers/client/tracefan.h"

#include "base/exit_status.h"
#include "shm/control.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct server {
	char directory[64], folder[96], path[112];
	int listener;
	pid_t child;
};

static int set_up(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_non_null(server);
	(void)strcpy(server->directory, "/tmp/test-client-operator-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	(void)snprintf(server->folder, sizeof(server->folder), "%s/live", server->directory);
	(void)snprintf(server->path, sizeof(server->path), "%s/control.sock", server->folder);
	assert_int_equal(mkdir(server->folder, 0700), 0);
	server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(server->listener >= 0);
	memcpy(address.sun_path, server->path, strlen(server->path) + 1);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	*state = server;
	return 0;
}

static int tear_down(void **state)
{
	struct server *server = *state;

	if (server->child > 0)
		(void)waitpid(server->child, NULL, 0);
	(void)close(server->listener);
	(void)unlink(server->path);
	(void)rmdir(server->folder);
	(void)rmdir(server->directory);
	free(server);
	return 0;
}

/* Answers one request: a status with its numbers, a flush with no, a stop with yes; anything else by closing. */
static void answer(int socket, const struct control_message *request)
{
	struct control_session_status status = {
		.source = SOURCE_TEXT, .flags = SESSION_FALLBACK, .reader_pid = 11, .router_pid = 12, .started = 13,
		.buffer_size = 14, .subbuf_size = 15, .cpu_count = 16, .probes = 17, .session = "live", .instance = "tracefan-live",
	};
	struct control_status plain = { 0 };

	if (request->header.type == CONTROL_SESSION_STATUS) {
		control_header_init(&status.header, CONTROL_SESSION_STATUS | CONTROL_REPLY, sizeof(status), request->header.cookie);
		(void)control_send(socket, &status, NULL, 0);
		return;
	}
	control_header_init(&plain.header, request->header.type | CONTROL_REPLY, sizeof(plain), request->header.cookie);
	if (request->header.type == CONTROL_SESSION_FLUSH) {
		plain.status = EXIT_BUSY;
		control_failure_set(&plain.failure, EAGAIN, -1, "too many flushes are waiting");
	}
	(void)control_send(socket, &plain, NULL, 0);
}

/* A child serves one connection, `requests` answers long. */
static void serve(struct server *server, int requests)
{
	server->child = fork();
	assert_true(server->child >= 0);
	if (server->child == 0) {
		int socket = accept(server->listener, NULL, NULL);

		for (int i = 0; i < requests; i++) {
			struct control_message request;

			if (control_receive(socket, &request) != 1 || control_check(&request) < 0)
				_exit(1);
			answer(socket, &request);
			control_message_release(&request);
		}
		_exit(0);
	}
}

static void a_session_tells_its_status(void **state)
{
	struct server *server = *state;
	struct tfan_operator_status status;
	struct tfan_operator *control;

	serve(server, 1);
	assert_int_equal(tfan_operator_open(server->directory, "live", &control), 0);
	assert_int_equal(tfan_operator_status(control, &status), 0);
	assert_string_equal(status.session, "live");
	assert_string_equal(status.instance, "tracefan-live");
	assert_true(status.is_text);
	assert_true(status.is_fallback);
	assert_false(status.is_recorded);
	assert_int_equal(status.reader_pid, 11);
	assert_int_equal(status.router_pid, 12);
	assert_int_equal(status.started, 13);
	assert_int_equal(status.buffer_size, 14);
	assert_int_equal(status.subbuf_size, 15);
	assert_int_equal(status.cpus, 16);
	assert_int_equal(status.probes, 17);
	tfan_operator_close(control);
}

static void a_refusal_is_in_the_sessions_own_words(void **state)
{
	struct server *server = *state;
	struct tfan_operator *control;

	serve(server, 2);
	assert_int_equal(tfan_operator_open(server->directory, "live", &control), 0);
	assert_int_equal(tfan_operator_flush(control), -EAGAIN);
	assert_int_equal(tfan_operator_failure(control)->category, TFAN_BUSY);
	assert_string_equal(tfan_operator_failure(control)->message, "too many flushes are waiting");
	assert_int_equal(tfan_operator_stop(control), 0);
	tfan_operator_close(control);
}

static void a_session_that_goes_is_told(void **state)
{
	struct server *server = *state;
	struct tfan_operator_status status;
	struct tfan_operator *control;

	serve(server, 0);
	assert_int_equal(tfan_operator_open(server->directory, "live", &control), 0);
	assert_int_equal(waitpid(server->child, NULL, 0), server->child);
	server->child = 0;
	assert_int_equal(tfan_operator_status(control, &status), -ECONNRESET);
	assert_int_equal(tfan_operator_failure(control)->category, TFAN_FAILED);
	tfan_operator_close(control);
}

static void check_unreachable(const char *directory, const char *name, int error, enum tfan_class category)
{
	struct tfan_operator *control = NULL;

	assert_int_equal(tfan_operator_open(directory, name, &control), -error);
	assert_non_null(control);
	assert_int_equal(tfan_operator_failure(control)->category, category);
	assert_non_null(strstr(tfan_operator_failure(control)->message, name));
	assert_int_equal(tfan_operator_stop(control), -ENOTCONN);
	tfan_operator_close(control);
}

static void what_is_not_there_is_told(void **state)
{
	struct server *server = *state;

	check_unreachable(server->directory, "none", ENOENT, TFAN_MISSING);
	check_unreachable("/nonexistent", "none", ENOENT, TFAN_MISSING);
	check_unreachable(server->directory, "../live", EINVAL, TFAN_USAGE);
	check_unreachable(server->directory, "", EINVAL, TFAN_USAGE);
	(void)close(server->listener);
	server->listener = -1;
	check_unreachable(server->directory, "live", ECONNREFUSED, TFAN_MISSING);
	tfan_operator_close(NULL);
}

static void running_or_not(void **state)
{
	const struct server *server = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/consumers.sock", server->folder);
	/* No folder, no socket, nobody behind it, somebody, and more than the queue holds. */
	assert_int_equal(tfan_is_running(server->directory, "other"), 0);
	assert_int_equal(tfan_is_running("/nowhere", "live"), 0);
	assert_int_equal(tfan_is_running(server->directory, "live"), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(tfan_is_running(server->directory, "live"), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(tfan_is_running(server->directory, "live"), 1);
	assert_int_equal(tfan_is_running(server->directory, "../live"), -EINVAL);
	assert_int_equal(tfan_is_running(server->directory, ""), -EINVAL);
	(void)close(listener);
	assert_int_equal(tfan_is_running(server->directory, "live"), 0);
	assert_int_equal(unlink(address.sun_path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(running_or_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_session_tells_its_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refusal_is_in_the_sessions_own_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_session_that_goes_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
