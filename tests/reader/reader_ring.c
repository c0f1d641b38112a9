/* From inside the reader's ring: what it must refuse. */
#include "reader/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

static void open_file(struct io_uring_sqe *sqe)
{
	io_uring_prep_openat(sqe, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
}

static void make_socket(struct io_uring_sqe *sqe)
{
	io_uring_prep_socket(sqe, AF_UNIX, SOCK_STREAM, 0, 0);
}

static void accept_connection(struct io_uring_sqe *sqe)
{
	io_uring_prep_accept(sqe, 0, NULL, NULL, 0);
}

static void write_bytes(struct io_uring_sqe *sqe)
{
	io_uring_prep_write(sqe, STDERR_FILENO, "x", 1, 0);
}

static void write_fixed(struct io_uring_sqe *sqe)
{
	io_uring_prep_write_fixed(sqe, STDERR_FILENO, memory, 1, 0, 0);
}

static void read_elsewhere(struct io_uring_sqe *sqe)
{
	io_uring_prep_read(sqe, 0, memory, 1, 0);
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
	{ "open a file", open_file },
	{ "make a socket", make_socket },
	{ "accept a connection", accept_connection },
	{ "write", write_bytes },
	{ "write from the slots", write_fixed },
	{ "read into other memory", read_elsewhere },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(its_work_is_not),
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
