/* Asking a router for its session when it does not even take connections. */
#include "reader/successor.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define CONNECTIONS 8

/* Nobody here has the patience of a reader. */
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	static const struct timeval brief = { .tv_usec = 50000 };

	(void)value;
	assert_int_equal(size, sizeof(brief));
	return __real_setsockopt(fd, level, name, &brief, sizeof(brief));
}

/* It was stopped, and others wait for it already, as many as can. */
static void test_a_router_that_takes_no_connection(void **state)
{
	struct session_dir dir = SESSION_DIR_NONE;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/tracefan-succ-XXXXXX";
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), others[CONNECTIONS], count = 0, r = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(dir.path, sizeof(dir.path), "%s", folder);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/consumers.sock", folder);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	while (!r && count < CONNECTIONS) {
		others[count] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = connect(others[count++], (struct sockaddr *)&address, sizeof(address));
	}
	assert_true(r < 0 && errno == EAGAIN);
	(void)alarm(20);
	assert_int_equal(successor_end_router(&dir), -EAGAIN);
	(void)alarm(0);
	while (count)
		(void)close(others[--count]);
	(void)close(listener);
	(void)unlink(address.sun_path);
	(void)rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_router_that_takes_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
