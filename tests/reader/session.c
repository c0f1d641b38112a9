#include "session.h"

#include "base/cleanup.h"
#include "reader/tracedir.h"
#include "shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#define TRACEFS "/sys/kernel/tracing"

bool session_possible(void)
{
	if (geteuid() != 0) {
		printf("skipped: needs root\n");
		return false;
	}
	if (access(TRACEFS "/instances", W_OK) < 0) {
		printf("skipped: needs tracefs at " TRACEFS "\n");
		return false;
	}
	return true;
}

const char *session_program(void)
{
	return TESTS_BUILD_DIR "/tracefan-reader";
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool wait_readable(int fd, uint64_t deadline)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ms();

	return now < deadline && poll(&poll_fd, 1, (int)(deadline - now)) > 0;
}

static int make_notify(struct session *session, char *name, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(name, size, "%s.notify", session->directory);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	unlink(name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	/* The reader may run as another user. */
	assert_int_equal(chmod(name, 0666), 0);
	return fd;
}

/* The only state that outlives a session: what the next reader will find. */
static bool uring_forbidden;
static uid_t run_as;

void session_run_as(uid_t uid)
{
	run_as = uid;
}

int session_without_uring(void **state)
{
	static const bool without = true;

	*state = (void *)&without;
	uring_forbidden = true;
	return 0;
}

int session_with_uring(void **state)
{
	(void)state;
	uring_forbidden = false;
	return 0;
}

static void forbid_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(126);
}

static void run_reader(const struct session *session, const char *const *args, const char *notify,
	int log, int owner)
{
	char number[16];
	/* A test that fails leaves no reader behind: it ends with this process. A test may name
	 * another owner. */
	const char *argv[SESSION_ARGS_MAX + 8] = { session_program(), "--session", session->name,
		"--directory", session->directory, "--owner-fd", number };
	/* Another user may have no way to the tree; the opened program needs none. */
	int n = 7, program = open(argv[0], O_RDONLY | O_CLOEXEC);

	snprintf(number, sizeof(number), "%d", owner);
	fcntl(owner, F_SETFD, 0);
	while (args && *args && n < SESSION_ARGS_MAX)
		argv[n++] = *args++;
	setenv("NOTIFY_SOCKET", notify, 1);
	dup2(log, STDERR_FILENO);
	if (uring_forbidden)
		forbid_uring();
	if (run_as && (setgroups(0, NULL) < 0 || setresgid(run_as, run_as, run_as) < 0 ||
			      setresuid(run_as, run_as, run_as) < 0))
		_exit(125);
	fexecve(program, (char *const *)argv, environ);
	_exit(127);
}

bool session_start_at(
	struct session *session, const char *directory, const char *name, const char *const *args)
{
	char notify[96], word[64] = "";
	int pipe_fds[2], owner_fds[2];
	bool ready;

	*session = (struct session){ .router = -1, .consumers = -1, .facts = -1, .names = -1 };
	assert_int_equal(pipe2(owner_fds, O_CLOEXEC), 0);
	session->owner = owner_fds[1];
	snprintf(session->directory, sizeof(session->directory), "%s", directory);
	snprintf(session->name, sizeof(session->name), "%s", name);
	session->notify = make_notify(session, notify, sizeof(notify));
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	session->log = pipe_fds[0];
	session->reader = fork();
	assert_true(session->reader >= 0);
	if (!session->reader)
		run_reader(session, args, notify, pipe_fds[1], owner_fds[0]);
	close(pipe_fds[1]);
	close(owner_fds[0]);
	/* Ready, or the end of its log: whichever comes first. */
	for (;;) {
		struct pollfd fds[2] = { { .fd = session->notify, .events = POLLIN },
			{ .fd = session->log, .events = 0 } };

		assert_true(poll(fds, 2, SESSION_PATIENCE_MS) > 0);
		if (fds[0].revents & POLLIN) {
			assert_true(recv(session->notify, word, sizeof(word) - 1, 0) > 0);
			break;
		}
		if (fds[1].revents & POLLHUP)
			break;
	}
	ready = !strcmp(word, "READY=1");
	unlink(notify);
	return ready;
}

bool session_start(struct session *session, const char *const *args)
{
	static unsigned int number;
	char directory[64], name[32];

	snprintf(directory, sizeof(directory), "/tmp/tracefan-reader-test-%d", (int)getpid());
	snprintf(name, sizeof(name), "reader-test-%d-%u", (int)getpid(), ++number);
	return session_start_at(session, directory, name, args);
}

int session_connect_socket(const struct session *session, const char *socket_name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/%.30s/%.15s",
		session->directory, session->name, socket_name);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

void session_connect(struct session *session)
{
	struct control_router_hello hello;
	struct control_message message;
	int fds[4];

	session->router = session_connect_socket(session, "router.sock");
	assert_true(session->router >= 0);
	session_call(session, &hello, CONTROL_ROUTER, sizeof(hello), NULL, 0, &message);
	memcpy(&session->welcome, message.bytes, sizeof(session->welcome));
	assert_int_equal(session->welcome.status, 0);
	for (int i = 0; i < 4; i++)
		fds[i] = TAKE_FD(message.fds[i]);
	assert_int_equal(pool_reader_attach(fds, &session->pool), 0);
	session->has_pool = true;
	session->consumers = TAKE_FD(message.fds[4]);
	session->facts = TAKE_FD(message.fds[5]);
	session->names = TAKE_FD(message.fds[6]);
	control_message_release(&message);
}

void session_disconnect(struct session *session)
{
	if (session->has_pool)
		pool_reader_release(&session->pool);
	session->has_pool = false;
	session->router = close_fd(session->router);
	session->consumers = close_fd(session->consumers);
	session->facts = close_fd(session->facts);
	session->names = close_fd(session->names);
}

void session_await_no_router(const struct session *session)
{
	int fd = session_connect_socket(session, "control.sock");
	uint64_t deadline = now_ms() + SESSION_PATIENCE_MS;
	int32_t pid;

	assert_true(fd >= 0);
	do {
		struct control_id request = { .id = 0 };
		struct control_message reply;

		control_header_init(&request.header, CONTROL_SESSION_STATUS, sizeof(request), 1);
		assert_int_equal(control_call(fd, &request, NULL, 0, &reply), 0);
		pid = ((const struct control_session_status *)reply.bytes)->router_pid;
		control_message_release(&reply);
	} while (pid && now_ms() < deadline);
	assert_int_equal(pid, 0);
	close(fd);
}

void session_call(struct session *session, void *request, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, struct control_message *ret)
{
	control_header_init(request, type, size, ++session->cookie);
	assert_int_equal(control_call(session->router, request, fds, fd_count, ret), 0);
}

uint32_t session_status_call(struct session *session, void *request, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, struct control_failure *ret)
{
	struct control_message message;
	struct control_status status;

	session_call(session, request, type, size, fds, fd_count, &message);
	memcpy(&status, message.bytes, sizeof(status));
	if (ret)
		*ret = status.failure;
	control_message_release(&message);
	return status.status;
}

struct control_create session_tracepoint(const char *system, const char *event)
{
	struct control_create create = { .kind = PROBE_TRACEPOINT };

	snprintf(create.name, sizeof(create.name), "%s:%s", system, event);
	snprintf(create.system, sizeof(create.system), "%s", system);
	snprintf(create.event, sizeof(create.event), "%s", event);
	return create;
}

void session_consumer(struct session *session, int *ret_client, int *ret_server)
{
	*ret_client = session_connect_socket(session, "consumers.sock");
	assert_true(*ret_client >= 0);
	assert_true(wait_readable(session->consumers, now_ms() + SESSION_PATIENCE_MS));
	*ret_server = accept4(session->consumers, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_server >= 0);
}

static void note(struct session *session, const struct pool_entry *entry, session_data_fn *data,
	void *context)
{
	switch (entry->kind) {
	case POOL_DATA:
		session->data++;
		if (data)
			data(context, entry, pool_reader_slot(&session->pool, entry->slot));
		pool_reader_return(&session->pool, entry->slot);
		break;
	case POOL_BUSY:
		session->busy++;
		break;
	case POOL_SWEEP:
		session->sweeps++;
		session->sweep = *entry;
		break;
	case POOL_FLUSH:
		session->flushed = entry->value;
		break;
	case POOL_ACCOUNT:
		session->accounted = entry->value;
		break;
	case POOL_CLOCK:
		session->clocks++;
		break;
	case POOL_END:
		session->ends++;
		session->last_end = entry->value;
		break;
	default:
		fail_msg("entry of unknown kind %d", entry->kind);
	}
}

bool session_read_until(struct session *session,
	bool (*done)(const struct session *session, void *context), session_data_fn *data,
	void *context)
{
	uint64_t deadline = now_ms() + SESSION_PATIENCE_MS;
	struct pool_entry entry;
	int r;

	while (!done(session, context)) {
		r = pool_reader_next(&session->pool, &entry);
		assert_true(r >= 0);
		if (r) {
			note(session, &entry, data, context);
			continue;
		}
		assert_int_equal(pool_reader_wake(&session->pool), 0);
		if (!pool_reader_prepare_sleep(&session->pool))
			continue;
		if (!wait_readable(session->pool.filled_fd, deadline))
			return false;
		(void)wake_clear(session->pool.filled_fd);
	}
	(void)pool_reader_wake(&session->pool);
	return true;
}

void session_drain(struct session *session)
{
	struct pool_entry entry;
	int r;

	while ((r = pool_reader_next(&session->pool, &entry)) > 0)
		note(session, &entry, NULL, NULL);
	assert_int_equal(r, 0);
	(void)pool_reader_wake(&session->pool);
}

int session_wait(struct session *session, char *ret_log, size_t size)
{
	size_t length = 0;
	char piece[512];
	ssize_t n;
	int status;

	while ((n = read(session->log, piece, sizeof(piece))) > 0) {
		(void)!write(STDERR_FILENO, piece, (size_t)n);
		if (ret_log && length + (size_t)n < size) {
			memcpy(ret_log + length, piece, (size_t)n);
			length += (size_t)n;
		}
	}
	if (ret_log)
		ret_log[length] = '\0';
	assert_int_equal(waitpid(session->reader, &status, 0), session->reader);
	session->reader = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool ended(const struct session *session, void *context)
{
	(void)context;
	return session->ends > 0;
}

int session_stop(struct session *session, session_data_fn *data, void *context)
{
	kill(session->reader, SIGTERM);
	if (session->has_pool)
		assert_true(session_read_until(session, ended, data, context));
	session_disconnect(session);
	return session_wait(session, NULL, 0);
}

void session_release(struct session *session)
{
	const char *args[] = { session_program(), "--session", session->name, "--directory",
		session->directory, "--remove", NULL };
	pid_t child;
	int status;

	session_disconnect(session);
	if (session->reader > 0) {
		kill(session->reader, SIGKILL);
		waitpid(session->reader, &status, 0);
	}
	session->log = close_fd(session->log);
	session->notify = close_fd(session->notify);
	session->owner = close_fd(session->owner);
	child = fork();
	if (!child) {
		execv(args[0], (char *const *)args);
		_exit(127);
	}
	waitpid(child, &status, 0);
	rmdir(session->directory);
}

int session_write(const struct session *session, const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACEFS "/instances/tracefan-%s/%s", session->name, file);
	return tracedir_write(AT_FDCWD, path, text);
}

char *session_read(const struct session *session, const char *file)
{
	char path[256], *text = NULL;

	snprintf(path, sizeof(path), TRACEFS "/instances/tracefan-%s/%s", session->name, file);
	return tracedir_read(AT_FDCWD, path, &text, NULL) < 0 ? NULL : text;
}

unsigned int session_count(const void *bytes, size_t size, const char *text)
{
	const char *at = bytes, *end = at + size;
	unsigned int count = 0;

	while ((at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
		count++;
		at += strlen(text);
	}
	return count;
}
