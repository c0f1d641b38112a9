/* A router that was taken over: whatever it says, the reader says no or hangs up, goes on draining,
 * and ends when told. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "tests/support/packet.h"

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
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MARK "hostile test mark"

static const char *const plain_args[] = { "--router-user", "0", "--buffer-size", "1M", "--pool",
	"64K", NULL };

struct marks {
	unsigned int seen, wanted;
};

static void count_marks(void *context, const struct pool_entry *entry, const void *bytes)
{
	((struct marks *)context)->seen += session_count(bytes, entry->length, MARK);
}

static bool marks_done(const struct session *session, void *context)
{
	(void)session;
	return ((struct marks *)context)->seen >= ((struct marks *)context)->wanted;
}

/* The session still works for the next router, from its first event to its end. */
static void still_works(struct session *session)
{
	struct marks marks = { .wanted = 5 };

	session_connect(session);
	for (int i = 0; i < 5; i++)
		assert_int_equal(session_write(session, "trace_marker", MARK), 0);
	assert_true(session_read_until(session, marks_done, count_marks, &marks));
	assert_int_equal(marks.seen, 5);
}

/* Sends bytes as they are, and tells whether the reader hung up (true) or answered. */
static bool hangs_up(const struct session *session, bool after_hello, const void *bytes,
	size_t size, const int *fds, unsigned int fd_count)
{
	struct control_router_hello hello;
	struct control_message reply;
	int fd = session_connect_socket(session, "router.sock"), r;

	assert_true(fd >= 0);
	if (after_hello) {
		control_header_init(&hello.header, CONTROL_ROUTER, sizeof(hello), 1);
		assert_int_equal(control_call(fd, &hello, NULL, 0, &reply), 0);
		control_message_release(&reply);
	}
	assert_true(packet_send(fd, bytes, size, fds, fd_count) == (ssize_t)size);
	r = control_receive(fd, &reply);
	if (r == 1)
		control_message_release(&reply);
	close(fd);
	return r != 1;
}

/* Every type there is, and some that aren't, in every state: only the rows of the reader's tables
 * get an answer. */
static void test_every_type_in_every_state(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t size;
	} allowed[] = {
		{ CONTROL_PROBE_CREATE, sizeof(struct control_create) },
		{ CONTROL_PROBE_ENABLE, sizeof(struct control_set_enabled) },
		{ CONTROL_PROBE_FILTER, sizeof(struct control_set_filter) },
		{ CONTROL_PROBE_CLOSE, sizeof(struct control_probe_close) },
		{ CONTROL_ACCOUNT, sizeof(struct control_id) },
		{ CONTROL_READER_FLUSH, sizeof(struct control_id) },
		{ CONTROL_RUNDOWN, sizeof(struct control_rundown) },
		{ CONTROL_PROBE_KEEP, sizeof(struct control_probe_keep) },
	};
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	for (unsigned int type = 0; type < 110; type++) {
		uint8_t bytes[sizeof(struct control_create)] = { 0 };
		uint32_t size = sizeof(struct control_id);
		bool row = false;

		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
			if (allowed[i].type != type)
				continue;
			size = allowed[i].size;
			row = true;
		}
		control_header_init((void *)bytes, (uint16_t)type, size, 1);
		if (type == CONTROL_PROBE_CREATE)
			((struct control_create *)bytes)->kind = PROBE_TRACEPOINT;
		if (type == CONTROL_RUNDOWN)
			((struct control_rundown *)bytes)->what = 1;
		/* Before the hello nothing but the hello. */
		assert_true(hangs_up(&session, false, bytes, size, NULL, 0));
		if (hangs_up(&session, true, bytes, size, NULL, 0) == row)
			fail_msg("type %u", type);
		control_header_init((void *)bytes, (uint16_t)(type | CONTROL_REPLY), size, 1);
		if (row)
			assert_true(hangs_up(&session, true, bytes, size, NULL, 0));
	}
	still_works(&session);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

static void test_every_wrong_size(void **state)
{
	struct session session;
	uint8_t bytes[CONTROL_SIZE_MAX + 64] = { 0 };
	int many[12];

	(void)state;
	assert_true(session_start(&session, plain_args));
	for (uint32_t size = 1; size < 40; size += 3) {
		control_header_init((void *)bytes, CONTROL_READER_FLUSH, size, 1);
		if (size != sizeof(struct control_id))
			assert_true(hangs_up(&session, true, bytes, size, NULL, 0));
	}
	/* A header that lies about its size, and one of another version. */
	control_header_init((void *)bytes, CONTROL_READER_FLUSH, sizeof(struct control_id), 1);
	assert_true(hangs_up(&session, true, bytes, sizeof(struct control_id) + 8, NULL, 0));
	((struct control_header *)bytes)->version = 2;
	assert_true(hangs_up(&session, true, bytes, sizeof(struct control_id), NULL, 0));
	control_header_init((void *)bytes, CONTROL_READER_FLUSH, sizeof(bytes), 1);
	assert_true(hangs_up(&session, true, bytes, sizeof(bytes), NULL, 0));
	/* Descriptors where none belong, and too many. */
	for (size_t i = 0; i < 12; i++)
		many[i] = STDERR_FILENO;
	control_header_init((void *)bytes, CONTROL_READER_FLUSH, sizeof(struct control_id), 1);
	assert_true(hangs_up(&session, true, bytes, sizeof(struct control_id), many, 1));
	assert_true(hangs_up(&session, true, bytes, sizeof(struct control_id), many, 12));
	/* A second hello. */
	control_header_init((void *)bytes, CONTROL_ROUTER, sizeof(struct control_router_hello), 1);
	assert_true(hangs_up(&session, true, bytes, sizeof(struct control_router_hello), NULL, 0));
	still_works(&session);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* How many there are, and what they are. */
static unsigned int count_descriptors(pid_t pid, char *list, size_t size)
{
	char path[64], target[128];
	const struct dirent *entry;
	unsigned int count = 0;
	size_t length = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	assert_non_null(folder);
	list[0] = '\0';
	while ((entry = readdir(folder))) {
		ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));

		if (n < 0)
			continue;
		count++;
		if (length + (size_t)n + 2 < size)
			length += (size_t)snprintf(
				list + length, size - length, " %.*s", (int)n, target);
	}
	closedir(folder);
	return count;
}

/* A connection that has ended, an operator's for instance, is held until the reader's loop comes to
 * it, which on a busy machine it may not have done for several; nothing tells when. */
static void await_descriptors(pid_t pid, unsigned int most)
{
	char list[4096];

	for (int i = 0; count_descriptors(pid, list, sizeof(list)) > most; i++) {
		if (i == SESSION_PATIENCE_MS / 20)
			fail_msg("more than %u descriptors:%s", most, list);
		usleep(20000);
	}
}

/* Descriptors that come with refused messages are closed. */
static void test_no_descriptor_stays(void **state)
{
	struct control_create create = { .kind = PROBE_UPROBE };
	struct session session;
	unsigned int before;
	char list[4096];
	int fds[2] = { STDERR_FILENO, STDERR_FILENO };

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	session_disconnect(&session);
	session_await_no_router(&session);
	before = count_descriptors(session.reader, list, sizeof(list));
	for (int i = 0; i < 20; i++) {
		control_header_init(&create.header, CONTROL_PROBE_CREATE, sizeof(create), 1);
		assert_false(hangs_up(&session, true, &create, sizeof(create), fds, 2));
		create.header.size = 12;
		assert_true(hangs_up(&session, true, &create, sizeof(create), fds, 2));
	}
	session_await_no_router(&session);
	/* One operator's connection more than there may have been before. */
	await_descriptors(session.reader, before + 1);
	session_connect(&session);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* Slots that it doesn't own, twice, out of range; positions from nowhere. */
static void test_nonsense_in_the_free_ring(void **state)
{
	struct session session;
	struct free_head *head;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	for (uint32_t i = 0; i < session.pool.slot_count; i++)
		pool_reader_return(&session.pool, i);
	pool_reader_return(&session.pool, UINT32_MAX);
	for (int i = 0; i < 20; i++)
		assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
	head = session.pool.free.base;
	__atomic_store_n(&head->freed, UINT64_MAX - 3, __ATOMIC_RELEASE);
	__atomic_store_n(&head->taken, UINT64_MAX - 3, __ATOMIC_RELEASE);
	__atomic_store_n(&head->router_sleeps, 99, __ATOMIC_RELEASE);
	for (int i = 0; i < 20; i++)
		assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
	usleep(20000);
	session_disconnect(&session);
	/* Nothing that it broke outlives it. Its 40 marks come again, and five more. */
	{
		struct marks marks = { .wanted = 45 };

		session_connect(&session);
		for (int i = 0; i < 5; i++)
			assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
		assert_true(session_read_until(&session, marks_done, count_marks, &marks));
		assert_int_equal(marks.seen, 45);
	}
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* The reader's pages are the reader's. */
static void test_pool_is_read_only(void **state)
{
	struct session session;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	assert_ptr_equal(
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, session.pool.pool.fd, 0),
		MAP_FAILED);
	assert_int_equal(mprotect(session.pool.pool.base, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(pwrite(session.pool.pool.fd, "x", 1, 0), -1);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

/* It takes nothing, returns nothing and never closes: the session ends all the same, and removes
 * everything. */
static void test_a_router_that_hangs_does_not_hold_the_end(void **state)
{
	struct session session;
	CLEANUP_FREE char *text = NULL;

	(void)state;
	assert_true(session_start(&session, plain_args));
	session_connect(&session);
	/* More than the pool holds. */
	for (int i = 0; i < 20000; i++)
		assert_int_equal(session_write(&session, "trace_marker", MARK), 0);
	kill(session.reader, SIGTERM);
	assert_int_equal(session_wait(&session, NULL, 0), 0);
	text = session_read(&session, "trace_clock");
	assert_null(text);
	session_release(&session);
}

/* Somebody who got at the socket without being the router. */
static void test_other_users_are_sent_away(void **state)
{
	struct session session;
	char path[160];
	pid_t child;
	int status;

	(void)state;
	assert_true(session_start(&session, plain_args));
	snprintf(path, sizeof(path), "%s/%s/router.sock", session.directory, session.name);
	assert_int_equal(chmod(path, 0666), 0);
	child = fork();
	if (!child) {
		char byte;
		int fd;

		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		fd = session_connect_socket(&session, "router.sock");
		_exit(fd < 0 || recv(fd, &byte, 1, 0) != 0 ? 2 : 0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	still_works(&session);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_in_every_state),
		cmocka_unit_test(test_every_wrong_size),
		cmocka_unit_test(test_no_descriptor_stays),
		cmocka_unit_test(test_nonsense_in_the_free_ring),
		cmocka_unit_test(test_pool_is_read_only),
		cmocka_unit_test(test_a_router_that_hangs_does_not_hold_the_end),
		cmocka_unit_test(test_other_users_are_sent_away),
	};

	if (!session_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
