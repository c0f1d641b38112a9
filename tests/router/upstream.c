/* Requests to a reader that takes its time: none is lost, however many, and they arrive in order.
 */
#include "router/upstream.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Some times more than a socket holds. */
#define MANY 5000

struct fixture {
	struct upstream upstream;
	int reader;
	uint64_t done, without_answer;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int pair[2];

	assert_non_null(f);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	upstream_init(&f->upstream, f);
	f->upstream.fd = pair[0];
	f->reader = pair[1];
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	upstream_release(&f->upstream);
	(void)close_fd(f->reader);
	free(f);
	return 0;
}

/* Each request remembers its number. */
static void done(
	void *context, const struct upstream_request *request, struct control_message *answer)
{
	struct fixture *f = context;

	assert_int_equal(request->trace, f->done);
	f->done++;
	if (!answer)
		f->without_answer++;
}

static int ask(struct fixture *f, uint64_t number, const int *fds, unsigned int fd_count)
{
	struct control_id message = { .id = number };
	struct upstream_request request = { .done = done, .trace = number };

	return upstream_send(&f->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), fds,
		fd_count, &request);
}

/* The reader takes one request and answers it. Returns false when there is none. */
static bool answer_one(struct fixture *f, uint64_t expected, unsigned int fd_count)
{
	struct control_status reply = { .status = 0 };
	struct control_message message;
	struct control_id id;
	int r = control_receive(f->reader, &message);

	if (r == -EAGAIN)
		return false;
	assert_int_equal(r, 1);
	memcpy(&id, message.bytes, sizeof(id));
	assert_int_equal(id.id, expected);
	assert_int_equal(message.fd_count, fd_count);
	control_header_init(&reply.header, CONTROL_PROBE_CLOSE + CONTROL_REPLY, sizeof(reply),
		message.header.cookie);
	control_message_release(&message);
	assert_int_equal(control_send(f->reader, &reply, NULL, 0), 0);
	return true;
}

static void none_is_lost(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(ask(f, i, NULL, 0), 0);
	assert_non_null(f->upstream.first_waiting);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_true(answer_one(f, i, 0));
		assert_int_equal(upstream_receive(&f->upstream), 1);
		assert_int_equal(f->done, i + 1);
	}
	assert_null(f->upstream.first_waiting);
	assert_false(answer_one(f, MANY, 0));
	assert_int_equal(upstream_receive(&f->upstream), -EAGAIN);
	assert_int_equal(f->without_answer, 0);
}

static void answer_with(struct fixture *f, uint16_t type, uint64_t cookie)
{
	struct control_status reply = { .status = 0 };

	control_header_init(&reply.header, type, sizeof(reply), cookie);
	assert_int_equal(control_send(f->reader, &reply, NULL, 0), 0);
}

/* The reader's answers are checked: one of another type would be read as what it is not. */
static void an_answer_of_another_type(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, 0, NULL, 0), 0);
	answer_with(f, CONTROL_PROBE_FILTER + CONTROL_REPLY, f->upstream.next_cookie);
	assert_int_equal(upstream_receive(&f->upstream), -EBADMSG);
	assert_int_equal(f->done, 0);
}

static void an_answer_to_no_question(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, 0, NULL, 0), 0);
	answer_with(f, CONTROL_PROBE_CLOSE + CONTROL_REPLY, f->upstream.next_cookie + 1);
	assert_int_equal(upstream_receive(&f->upstream), -EBADMSG);
	assert_int_equal(f->done, 0);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void connect_another(struct fixture *f)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	(void)close_fd(f->reader);
	f->upstream.fd = pair[0];
	f->reader = pair[1];
}

/* What a consumer waits for is the next reader's to answer, with its descriptors; what nobody waits for is not. */
static void the_next_reader_answers(void **state)
{
	struct fixture *f = *state;
	int before = count_descriptors(), fd = dup(f->reader);
	struct control_id message = { .id = 1 };
	struct upstream_request request = { .done = done, .trace = 1, .consumer = 7 };

	f->upstream.lasting = true;
	assert_int_equal(ask(f, 0, NULL, 0), 0);
	assert_int_equal(upstream_send(&f->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), &fd, 1, &request), 0);
	(void)close_fd(fd);
	for (uint64_t reader = 0; reader < 2; reader++) {
		upstream_cut(&f->upstream);
		assert_int_equal(f->done, 1);
		assert_int_equal(f->without_answer, 1);
		message.id = 9;
		assert_int_equal(upstream_send(&f->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), NULL, 0, &request), -ENOTCONN);
		connect_another(f);
		assert_int_equal(upstream_send_again(&f->upstream), 0);
	}
	assert_true(answer_one(f, 1, 1));
	assert_false(answer_one(f, 2, 0));
	assert_int_equal(upstream_receive(&f->upstream), 1);
	assert_int_equal(f->done, 2);
	assert_int_equal(f->without_answer, 1);
	assert_int_equal(f->upstream.pending_count, 0);
	assert_int_equal(count_descriptors(), before);
}

static int ask_for(struct fixture *f, uint64_t consumer, uint64_t trace)
{
	struct control_id message = { .id = trace };
	struct upstream_request request = { .done = done, .trace = trace, .consumer = consumer };

	return upstream_send(&f->upstream, &message, CONTROL_PROBE_CLOSE, sizeof(message), NULL, 0, &request);
}

/* What is forgone this reader still answers, but it is no other one's: it ends with this reader, or at once without one. */
static void the_next_reader_does_not_hear(void **state)
{
	struct fixture *f = *state;
	const struct upstream_request *found;

	f->upstream.lasting = true;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(ask_for(f, 7, i), 0);
	found = upstream_find(&f->upstream, CONTROL_PROBE_CLOSE, 7, 0);
	assert_non_null(found);
	assert_int_equal(found->cookie, 1);
	assert_null(upstream_find(&f->upstream, CONTROL_PROBE_CLOSE, 8, 0));
	assert_null(upstream_find(&f->upstream, CONTROL_PROBE_ENABLE, 7, 0));
	upstream_forgo(&f->upstream, CONTROL_PROBE_CLOSE, 7, 0);
	upstream_forgo(&f->upstream, CONTROL_PROBE_CLOSE, 7, 1);
	assert_int_equal(f->done, 0);
	assert_true(answer_one(f, 0, 0));
	assert_int_equal(upstream_receive(&f->upstream), 1);
	assert_int_equal(f->without_answer, 0);
	upstream_cut(&f->upstream);
	assert_int_equal(f->done, 2);
	assert_int_equal(f->without_answer, 1);
	upstream_forgo(&f->upstream, CONTROL_PROBE_CLOSE, 7, 2);
	assert_int_equal(f->done, 3);
	assert_int_equal(f->without_answer, 2);
	connect_another(f);
	assert_int_equal(upstream_send_again(&f->upstream), 0);
	assert_true(answer_one(f, 3, 0));
	assert_false(answer_one(f, 4, 0));
	assert_int_equal(upstream_receive(&f->upstream), 1);
	assert_int_equal(f->upstream.pending_count, 0);
}

/* Nor does it fail with a reader whose end has not been heard of yet. */
static void the_next_reader_hears_of_it(void **state)
{
	struct fixture *f = *state;

	f->upstream.lasting = true;
	f->reader = close_fd(f->reader);
	assert_int_equal(ask_for(f, 7, 0), 0);
	assert_int_equal(ask(f, 1, NULL, 0), -ENOTCONN);
	upstream_cut(&f->upstream);
	assert_int_equal(f->done, 0);
	connect_another(f);
	assert_int_equal(upstream_send_again(&f->upstream), 0);
	assert_true(answer_one(f, 0, 0));
	assert_int_equal(upstream_receive(&f->upstream), 1);
	assert_int_equal(f->done, 1);
}

/* Each answer finds the last question of its trace that is still open. */
static void the_last_that_waits(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask_for(f, 7, 0), 0);
	assert_int_equal(ask_for(f, 7, 1), 0);
	assert_int_equal(ask_for(f, 7, 0), 0);
	assert_int_equal(upstream_find(&f->upstream, CONTROL_PROBE_CLOSE, 7, 0)->cookie, 3);
	assert_int_equal(upstream_find(&f->upstream, CONTROL_PROBE_CLOSE, 7, 1)->cookie, 2);
	/* So that they end in the order of their numbers. */
	f->upstream.pending[2].trace = 2;
}

/* Descriptors wait as copies, not without bound, and none stays. */
static void descriptors_wait_too(void **state)
{
	struct fixture *f = *state;
	int before = count_descriptors(), r;
	uint64_t plain = 0, sent = 0;

	while (!f->upstream.first_waiting)
		assert_int_equal(ask(f, plain++, NULL, 0), 0);
	do {
		int fds[2] = { dup(f->reader), dup(f->reader) };

		assert_true(fds[0] >= 0 && fds[1] >= 0);
		r = ask(f, plain + sent, fds, 2);
		(void)close(fds[0]);
		(void)close(fds[1]);
		sent += r == 0;
	} while (r == 0);
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 10);
	/* What holds no descriptor goes on waiting. */
	assert_int_equal(ask(f, plain + sent, NULL, 0), 0);
	for (uint64_t i = 0; i <= plain + sent; i++) {
		assert_true(answer_one(f, i, i >= plain && i < plain + sent ? 2 : 0));
		assert_int_equal(upstream_receive(&f->upstream), 1);
	}
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(f->upstream.waiting_fds, 0);
}

static void a_reader_that_goes(void **state)
{
	struct fixture *f = *state;
	int fds[1] = { f->reader }, before = count_descriptors();
	uint64_t sent = 0;

	while (!f->upstream.first_waiting)
		assert_int_equal(ask(f, sent++, NULL, 0), 0);
	assert_int_equal(ask(f, sent++, fds, 1), 0);
	upstream_lost(&f->upstream);
	assert_int_equal(f->done, sent);
	assert_int_equal(f->without_answer, sent);
	assert_null(f->upstream.first_waiting);
	assert_int_equal(count_descriptors(), before - 1);
	assert_int_equal(ask(f, sent, NULL, 0), -ENOTCONN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(none_is_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_of_another_type, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_to_no_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_next_reader_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_next_reader_does_not_hear, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_next_reader_hears_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_that_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(descriptors_wait_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_reader_that_goes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
