/* Sessions that can't be attached to, and how those end that were. */
#include "tests/consumers/client_fixture.h"

/* ---- what can't be attached to ---- */

static void assert_open_fails(struct fixture *f, struct tfan_options *options, int error, enum tfan_class category,
	const char *words)
{
	const struct tfan_failure *failure;
	const struct tfan_event *event;

	options->directory = f->router.directory;
	assert_int_equal(tfan_open(options, &f->tfan), -error);
	assert_non_null(f->tfan);
	failure = tfan_failure(f->tfan);
	assert_int_equal(failure->category, category);
	assert_non_null(strstr(failure->message, words));
	/* What is not open can still be asked, and says no. */
	assert_int_equal(tfan_next(f->tfan, &event), -error);
	assert_true(tfan_flush(f->tfan) < 0);
}

static void a_session_that_is_not_there(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;

	options.session = "other";
	assert_open_fails(*state, &options, ENOENT, TFAN_MISSING, "tracefan session start other");
}

static void a_name_that_is_none(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;

	options.session = "../etc";
	assert_open_fails(*state, &options, EINVAL, TFAN_USAGE, "no name of a session");
}

static void a_ring_that_is_too_large(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;

	options.session = FAKE_SESSION;
	options.ring_size = (size_t)RING_CAPACITY_MAX + 1;
	assert_open_fails(*state, &options, EINVAL, TFAN_USAGE, "too large");
}

static void options_of_a_newer_library(void **state)
{
	struct {
		struct tfan_options options;
		uint64_t newer;
	} options = { .options = TFAN_OPTIONS, .newer = 0 };
	struct fixture *f = *state;

	options.options.size = sizeof(options);
	options.newer = 1;
	options.options.session = FAKE_SESSION;
	assert_open_fails(f, &options.options, E2BIG, TFAN_USAGE, "does not know");
	tfan_close(f->tfan);
	options.newer = 0;
	open_with(f, &options.options);
}

static void a_router_that_refuses(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	options.session = FAKE_SESSION;
	f->router.refuse_type = CONTROL_ATTACH;
	f->router.refuse_status = TFAN_NOT_PERMITTED;
	f->router.refuse.error = EPERM;
	(void)control_text(f->router.refuse.message, sizeof(f->router.refuse.message), "rule 3 says no");
	assert_open_fails(f, &options, EPERM, TFAN_NOT_PERMITTED, "rule 3 says no");
}

static void a_status_that_is_none(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	options.session = FAKE_SESSION;
	f->router.refuse_type = CONTROL_ATTACH;
	f->router.refuse_status = 4000000000U;
	assert_open_fails(f, &options, EBADMSG, TFAN_FAILED, "makes no sense");
}

static void numbers_that_are_none(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	options.session = FAKE_SESSION;
	f->router.refuse_type = CONTROL_ATTACH;
	f->router.refuse_status = TFAN_BUSY;
	f->router.refuse.error = -2000000000;
	f->router.refuse.position = 2000000000;
	options.directory = f->router.directory;
	assert_int_equal(tfan_open(&options, &f->tfan), -EBUSY);
	assert_int_equal(tfan_failure(f->tfan)->category, TFAN_BUSY);
	assert_int_equal(tfan_failure(f->tfan)->error, 0);
	assert_int_equal(tfan_failure(f->tfan)->position, -1);
}

/* ---- ends ---- */

static void what_was_published_comes_before_the_end(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;

	assert_none(f);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	fake_router_publish(&f->router);
	fake_router_hang_up(&f->router);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
	(void)next(f, TFAN_EVENT);
	for (int i = 0; i < 3; i++) {
		int n = tfan_next(f->tfan, &event);

		/* The first look may only announce sleep; what wakes it then is the router's end. */
		if (n == 0) {
			assert_int_equal(i, 0);
			assert_int_equal(tfan_wait(f->tfan, -1), 1);
			continue;
		}
		assert_int_equal(n, -ECONNRESET);
		assert_int_equal(tfan_failure(f->tfan)->error, ECONNRESET);
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
	}
	assert_int_equal(tfan_trace_set_enabled(f->trace, true), -ECONNRESET);
}

static void the_session_ends(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	struct tfan_session_ledger ledger;
	struct record_end end = { .reason = END_ERROR, .accounted = 1, .session = { .committed = 9, .decoded = 8, .lost_kernel = 1 },
		.message = "the instance was removed" };
	enum tfan_end_reason reason;
	const char *message;

	fake_router_record(&f->router, RECORD_END, 0, 77, &end, sizeof(end));
	fake_router_publish(&f->router);
	event = next(f, TFAN_END);
	assert_int_equal(tfan_event_end(event, &reason, &message), 0);
	assert_int_equal(reason, TFAN_END_ERROR);
	assert_string_equal(message, "the instance was removed");
	fake_router_hang_up(&f->router);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
	assert_int_equal(tfan_next(f->tfan, &event), -ESHUTDOWN);
	assert_int_equal(tfan_session_ledger(f->tfan, &ledger), 0);
	assert_int_equal(ledger.committed, 9);
	assert_int_equal(ledger.lost_kernel, 1);
}

static void an_end_without_its_nul(void **state)
{
	struct fixture *f = *state;
	struct record_end end = { .reason = 99 };
	enum tfan_end_reason reason;
	const char *message;

	memset(end.message, 'x', sizeof(end.message));
	fake_router_record(&f->router, RECORD_END, 0, 77, &end, sizeof(end));
	fake_router_publish(&f->router);
	assert_int_equal(tfan_event_end(next(f, TFAN_END), &reason, &message), 0);
	assert_int_equal(reason, TFAN_END_ERROR);
	assert_int_equal(strlen(message), sizeof(end.message) - 1);
}

static void a_message_that_nobody_asked_for(void **state)
{
	struct fixture *f = *state;
	struct control_status stray = { 0 };
	const struct tfan_event *event;
	int n;

	assert_none(f);
	control_header_init(&stray.header, CONTROL_FLUSH | CONTROL_REPLY, sizeof(stray), 12345);
	assert_int_equal(control_send(f->router.socket, &stray, NULL, 0), 0);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
	n = tfan_next(f->tfan, &event);
	assert_int_equal(n, -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_that_is_not_there, setup),
		TEST(a_name_that_is_none, setup),
		TEST(a_ring_that_is_too_large, setup),
		TEST(options_of_a_newer_library, setup),
		TEST(a_router_that_refuses, setup),
		TEST(a_status_that_is_none, setup),
		TEST(numbers_that_are_none, setup),
		TEST(what_was_published_comes_before_the_end, setup_trace),
		TEST(the_session_ends, setup_trace),
		TEST(an_end_without_its_nul, setup_trace),
		TEST(a_message_that_nobody_asked_for, setup_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
