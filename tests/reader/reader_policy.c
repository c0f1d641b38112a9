/* Who may do what, and whom the reader believes. */
#include "reader/policy.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define GROUP 4711

static void test_table(void **state)
{
	const struct policy with_group = { .has_group = true, .group = GROUP }, without = { 0 },
			    file = { .file = true };
	const struct policy_identity root = { .uid = 0 };
	const struct policy_identity member = {
		.uid = 1000, .groups = { 1000, GROUP }, .group_count = 2
	};
	const struct policy_identity by_primary = {
		.uid = 1000, .groups = { GROUP }, .group_count = 1
	};
	const struct policy_identity stranger = {
		.uid = 1000, .groups = { 1000, GROUP }, .group_count = 1
	};

	(void)state;
	assert_null(policy_refuses(&with_group, &root, POLICY_DEFINE));
	assert_null(policy_refuses(&without, &root, POLICY_DEFINE));
	assert_null(policy_refuses(&without, &root, POLICY_ATTACH));
	assert_null(policy_refuses(&with_group, &member, POLICY_ATTACH));
	assert_null(policy_refuses(&with_group, &by_primary, POLICY_ATTACH));
	assert_null(policy_refuses(&file, &stranger, POLICY_DEFINE));
	assert_non_null(
		strstr(policy_refuses(&with_group, &member, POLICY_DEFINE), "\"define: root\""));
	assert_non_null(
		strstr(policy_refuses(&with_group, &stranger, POLICY_ATTACH), "\"attach: group\""));
	assert_non_null(
		strstr(policy_refuses(&without, &member, POLICY_ATTACH), "\"attach: root\""));
	/* Group 0 is no other group than the session's by accident. */
	assert_non_null(policy_refuses(
		&without, &(struct policy_identity){ .uid = 1, .group_count = 1 }, POLICY_ATTACH));
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static int connect_to(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void test_only_the_sessions_socket_counts(void **state)
{
	char folder[] = "/tmp/tracefan-policy-XXXXXX", path[64], other[64];
	struct policy_identity identity;
	int listener, stranger, client, server, stray, stray_server, pair[2], file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/consumers.sock", folder);
	snprintf(other, sizeof(other), "%s/other.sock", folder);
	listener = listen_at(path, SOCK_SEQPACKET);
	stranger = listen_at(other, SOCK_SEQPACKET);
	client = connect_to(path, SOCK_SEQPACKET);
	server = accept(listener, NULL, NULL);
	stray = connect_to(other, SOCK_SEQPACKET);
	stray_server = accept(stranger, NULL, NULL);
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(policy_identify(server, path, &identity), 0);
	assert_int_equal(identity.uid, getuid());
	assert_int_equal(identity.pid, getpid());
	assert_int_equal(identity.groups[0], getgid());
	assert_true(identity.group_count >= 1);

	assert_int_equal(policy_identify(stray_server, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(client, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(listener, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(file, path, &identity), -EPROTO);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(policy_identify(pair[0], path, &identity), -EPROTO);
	close(pair[0]);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(policy_identify(pair[0], path, &identity), -EPROTO);
	for (size_t i = 0; i < 2; i++)
		close(pair[i]);
	close(listener);
	close(stranger);
	close(client);
	close(server);
	close(stray);
	close(stray_server);
	close(file);
	unlink(path);
	unlink(other);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_only_the_sessions_socket_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
