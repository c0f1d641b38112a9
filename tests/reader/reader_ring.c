/* From inside the reader's ring: what it must refuse. */
#include "base/confine/confine_landlock.h"
#include "reader/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE 4096

static char memory[SIZE] __attribute__((aligned(4096)));

static void read_done(void *context, uint64_t token, int result)
{
	(void)token;
	*(int *)context = result;
}

static int open_ring(struct loop *loop, int *ret_file, int *result)
{
	int r = loop_open(true, 4, loop);

	if (r < 0)
		return r;
	*ret_file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	assert_true(*ret_file >= 0);
	loop->read_done = read_done;
	loop->read_context = result;
	return loop_lock(loop, ret_file, 1, memory, sizeof(memory));
}

/* What comes of a request that was put into the ring by hand, as who has taken the reader over would. */
static int try(struct loop *loop, void (*prepare)(struct io_uring_sqe *sqe))
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);
	struct io_uring_cqe *cqe;
	int result;

	assert_non_null(sqe);
	prepare(sqe);
	assert_int_equal(io_uring_submit_and_wait(&loop->ring, 1), 1);
	assert_int_equal(io_uring_peek_cqe(&loop->ring, &cqe), 0);
	result = cqe->res;
	io_uring_cqe_seen(&loop->ring, cqe);
	return result;
}

static void make_socket(struct io_uring_sqe *sqe)
{
	io_uring_prep_socket(sqe, AF_UNIX, SOCK_STREAM, 0, 0);
}

static void accept_connection(struct io_uring_sqe *sqe)
{
	io_uring_prep_accept(sqe, 0, NULL, NULL, 0);
}

static void send_bytes(struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, STDERR_FILENO, "x", 1, 0);
}

static void write_vector(struct io_uring_sqe *sqe)
{
	static const struct iovec piece = { .iov_base = memory, .iov_len = 1 };

	io_uring_prep_writev(sqe, STDERR_FILENO, &piece, 1, 0);
}

static void write_fixed(struct io_uring_sqe *sqe)
{
	io_uring_prep_write_fixed(sqe, STDERR_FILENO, memory, 1, 0, 0);
}

static void read_pieces(struct io_uring_sqe *sqe)
{
	static const struct iovec piece = { .iov_base = memory, .iov_len = 1 };

	io_uring_prep_readv(sqe, 0, &piece, 1, 0);
}

static void unlink_file(struct io_uring_sqe *sqe)
{
	io_uring_prep_unlink(sqe, "/tmp/tracefan-must-not-be", 0);
}

static void nothing(struct io_uring_sqe *sqe)
{
	io_uring_prep_nop(sqe);
}

static void drain(struct io_uring_sqe *sqe)
{
	io_uring_prep_read_fixed(sqe, 0, memory, SIZE, 0, 0);
	sqe->flags |= IOSQE_FIXED_FILE | IOSQE_IO_DRAIN;
}

static const struct {
	const char *name;
	void (*prepare)(struct io_uring_sqe *sqe);
} attempts[] = {
	{ "make a socket", make_socket },
	{ "accept a connection", accept_connection },
	{ "send", send_bytes },
	{ "write several pieces", write_vector },
	{ "write from the slots", write_fixed },
	{ "read into pieces", read_pieces },
	{ "remove a file", unlink_file },
	{ "no operation", nothing },
	{ "a flag that it doesn't use", drain },
};

static void refused(void **state)
{
	int file = -1, result = 0;
	struct loop loop = { 0 };

	(void)state;
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		result = try(&loop, attempts[i].prepare);
		print_message("%-30s %s\n", attempts[i].name, strerror(-result));
		/* Or this kernel has no such operation at all. */
		assert_true(result == -EACCES || (result == -EINVAL && attempts[i].prepare == make_socket));
	}
	/* Nor can it be given other files, or other memory. */
	assert_true(io_uring_register((unsigned int)loop.ring.ring_fd, IORING_UNREGISTER_FILES, NULL, 0) < 0);
	assert_true(io_uring_register((unsigned int)loop.ring.ring_fd, IORING_UNREGISTER_BUFFERS, NULL, 0) < 0);
	loop_close(&loop);
	close(file);
}

static void its_work_is_not(void **state)
{
	const struct loop_read read = { .memory = memory, .length = 64, .token = 1 };
	int file = -1, result = 0;
	struct loop loop = { 0 };

	(void)state;
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	assert_int_equal(loop_read_queue(&loop, &read), 0);
	assert_true(loop_read_submit(&loop, 1, 10000000000) >= 0);
	assert_int_equal(result, 64);
	loop_close(&loop);
	close(file);
}

struct hanging {
	struct loop *loop;
	int full, call[2], other[2]; /* pipes' ends: of the full one to read from; of others */
	unsigned int steps, called, others;
};

static void flowing_ready(void *context, short revents)
{
	struct hanging *hanging = context;

	(void)revents;
	hanging->called++;
}

static void other_ready(void *context, short revents)
{
	struct hanging *hanging = context;

	(void)revents;
	hanging->others++;
}

/* First nothing but the write waits; then both watches have something; once the one that flows has been called, the pipe
 * is emptied. */
static uint64_t step(void *context)
{
	struct hanging *hanging = context;
	static char bytes[65536];

	if (hanging->steps++ == 0) {
		assert_int_equal(write(hanging->call[1], "x", 1), 1);
		assert_int_equal(write(hanging->other[1], "x", 1), 1);
	}
	if (hanging->called == 1)
		assert_true(read(hanging->full, bytes, sizeof(bytes)) > 0);
	return LOOP_NEVER;
}

static uint64_t no_step(void *context)
{
	(void)context;
	return LOOP_NEVER;
}

static void a_write_that_waits_holds_nothing_up(void **state)
{
	int file = -1, result = 0, full[2];
	struct loop loop = { 0 };
	struct hanging hanging = { .loop = &loop };
	struct loop_watch flowing, other;

	(void)state;
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	assert_int_equal(pipe2(full, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(hanging.call, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hanging.other, O_CLOEXEC), 0);
	while (write(full[1], memory, sizeof(memory)) > 0)
		continue;
	assert_int_equal(fcntl(full[1], F_SETFL, 0), 0);
	hanging.full = full[0];
	flowing = (struct loop_watch){
		.fd = hanging.call[0], .events = POLLIN, .ready = flowing_ready, .context = &hanging, .flows = true
	};
	other = (struct loop_watch){ .fd = hanging.other[0], .events = POLLIN, .ready = other_ready, .context = &hanging };
	assert_int_equal(loop_add(&loop, &flowing), 0);
	assert_int_equal(loop_add(&loop, &other), 0);
	loop_arm(&loop, &flowing);
	loop_arm(&loop, &other);
	assert_int_equal(loop_write(&loop, full[1], "done", 4, step, &hanging), 4);
	assert_true(hanging.called == 1 && hanging.others == 0 && hanging.steps >= 2);
	/* What fired meanwhile is not forgotten. */
	assert_int_equal(loop_wait(&loop, LOOP_NEVER), 0);
	assert_int_equal(hanging.others, 1);
	/* As write(2) says it. */
	assert_int_equal(loop_write(&loop, file, "x", 1, step, &hanging), -EBADF);
	assert_int_equal(loop_fetch(&loop, full[1], memory, 1, no_step, NULL), -EBADF);
	loop_close(&loop);
	for (int i = 0; i < 2; i++) {
		close(full[i]);
		close(hanging.call[i]);
		close(hanging.other[i]);
	}
	close(file);
}

static uint64_t go_on(void *context)
{
	(void)context;
	return LOOP_NEVER;
}

/* Takes all that is complete off the ring, as a source does that waits for reads of its own. */
static uint64_t reap_all(void *context)
{
	assert_int_equal(loop_read_submit(context, 1, 1000000000), 0);
	return LOOP_NEVER;
}

static void its_end_is_not_slept_over(void **state)
{
	int file = -1, result = 0;
	struct loop loop = { 0 };
	char text[16];

	(void)state;
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	(void)alarm(20);
	assert_int_equal(loop_fetch(&loop, file, text, sizeof(text), reap_all, &loop), sizeof(text));
	(void)alarm(0);
	loop_close(&loop);
	close(file);
}

static void count_call(void *context, short revents)
{
	(void)revents;
	++*(unsigned int *)context;
}

/* Each arming has a number of its own, and there have been as many as there are numbers. */
static void armings_go_round(void **state)
{
	int file = -1, result = 0, ends[2];
	struct loop loop = { 0 };
	struct loop_watch watch;
	unsigned int calls = 0;

	(void)state;
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	watch = (struct loop_watch){ .fd = ends[0], .events = POLLIN, .ready = count_call, .context = &calls };
	assert_int_equal(loop_add(&loop, &watch), 0);
	loop.serial = UINT32_MAX - 1;
	for (unsigned int i = 1; i <= 4; i++) {
		loop_arm(&loop, &watch);
		assert_int_equal(loop_wait(&loop, loop_now() + 1000000000), 0);
		assert_int_equal(calls, i);
	}
	loop_close(&loop);
	close(ends[0]);
	close(ends[1]);
	close(file);
}

/* The worker is there before landlock is. */
static int open_confined(const char *path)
{
	struct confine_landlock landlock;
	int file = -1, result = 0, fd, r;
	struct loop loop = { 0 };

	if (open_ring(&loop, &file, &result) < 0)
		return -EIO;
	fd = loop_file(&loop, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, go_on, NULL);
	if (fd < 0)
		return -EIO;
	close(fd);
	r = confine_landlock_open(&landlock);
	if (!r)
		r = confine_landlock_allow(&landlock, AT_FDCWD, "/proc", CONFINE_READ);
	if (!r)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!r)
		r = confine_landlock_enter(&landlock);
	if (!r)
		r = loop_file(&loop, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, go_on, NULL);
	loop_close(&loop);
	close(file);
	return r < 0 ? r : 0;
}

static int child_open_confined(const char *path)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(-open_confined(path));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void it_opens_no_more_than_the_process_may(void **state)
{
	int r = child_open_confined("/proc/self/status");

	(void)state;
	if (r == -ENOSYS || r == -EOPNOTSUPP) {
		print_message("this kernel has no landlock\n");
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(child_open_confined("/etc/passwd"), -EACCES);
}

static void a_file_is_opened_meanwhile(void **state)
{
	int file = -1, result = 0, fd;
	struct loop loop = { 0 };
	char path[] = "/tmp/tracefan-ring-XXXXXX";
	int made = mkstemp(path);
	struct stat st;

	(void)state;
	assert_true(made >= 0 && write(made, "text", 4) == 4);
	assert_int_equal(open_ring(&loop, &file, &result), 0);
	fd = loop_file(&loop, AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_TRUNC, go_on, NULL);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	/* As openat(2) says it. */
	assert_int_equal(loop_file(&loop, AT_FDCWD, "/tmp/tracefan-must-not-be", O_WRONLY | O_CLOEXEC, go_on, NULL), -ENOENT);
	loop_close(&loop);
	close(fd);
	close(made);
	unlink(path);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(its_work_is_not),
		cmocka_unit_test(a_write_that_waits_holds_nothing_up),
		cmocka_unit_test(its_end_is_not_slept_over),
		cmocka_unit_test(armings_go_round),
		cmocka_unit_test(a_file_is_opened_meanwhile),
		cmocka_unit_test(it_opens_no_more_than_the_process_may),
	};
	struct loop loop;
	int r = loop_open(true, 1, &loop);

	if (r < 0) {
		printf("skipped: no io_uring here: %s\n", strerror(-r));
		return 77;
	}
	loop_close(&loop);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
