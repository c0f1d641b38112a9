/* Attaching to a session and reading records, against a router of this test's own. */
#include "consumers/client/tracefan.h"
#include "tests/consumers/fake_router.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct fake_router router;
	struct tfan *tfan;
	struct tfan_trace *trace;
};

static void open_with(struct fixture *f, struct tfan_options *options)
{
	options->session = FAKE_SESSION;
	options->directory = f->router.directory;
	assert_int_equal(tfan_open(options, &f->tfan), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_router_start(&f->router);
	*state = f;
	return 0;
}

static int setup_trace(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;
	struct fixture *f;

	(void)setup(state);
	f = *state;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:sched:sched_fake", &f->trace), 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tfan_close(f->tfan);
	fake_router_stop(&f->router);
	free(f);
	return 0;
}

static const struct tfan_event *next(struct fixture *f, enum tfan_kind kind)
{
	const struct tfan_event *event = NULL;

	assert_int_equal(tfan_next(f->tfan, &event), 1);
	assert_int_equal(tfan_event_kind(event), kind);
	return event;
}

static void assert_none(struct fixture *f)
{
	const struct tfan_event *event;

	assert_int_equal(tfan_next(f->tfan, &event), 0);
}

static bool readable(struct fixture *f)
{
	struct pollfd fd = { .fd = tfan_fd(f->tfan), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void attach_says_what_was_asked(void **state)
{
	struct fixture *f = *state;
	struct tfan_options options = TFAN_OPTIONS;

	f->router.welcome_flags = SESSION_RECORDED;
	f->router.source = SOURCE_TEXT;
	options.ring_size = 100000;
	options.overflow = TFAN_OVERWRITE;
	options.all_events = true;
	options.include_self = true;
	open_with(f, &options);
	assert_int_equal(f->router.attach.ring_capacity, 100000);
	assert_int_equal(f->router.attach.overflow, RING_OVERWRITE);
	assert_int_equal(f->router.attach.flags, ATTACH_ALL_EVENTS | ATTACH_INCLUDE_SELF);
	assert_string_equal(tfan_session(f->tfan)->name, FAKE_SESSION);
	assert_int_equal(tfan_session(f->tfan)->ring_size, 131072);
	assert_true(tfan_session(f->tfan)->is_recorded);
	assert_true(tfan_session(f->tfan)->is_text);
	assert_false(tfan_session(f->tfan)->is_fallback);
}

static void events_come_with_their_fields(void **state)
{
	struct fixture *f = *state;
	const struct tfan_event *event;
	const void *bytes;
	uint64_t u;
	int64_t i;
	size_t size;

	assert_none(f);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 12345, -7);
	fake_router_publish(&f->router);
	event = next(f, TFAN_EVENT);
	assert_ptr_equal(tfan_event_trace(event), f->trace);
	assert_int_equal(tfan_event_time(event), 12345);
	assert_int_equal(tfan_event_cpu(event), 1);
	assert_int_equal(tfan_event_pid(event), 42);
	assert_string_equal(tfan_event_comm(event), "fake");
	assert_int_equal(tfan_event_i64(event, (size_t)tfan_field_find(f->trace, "n"), &i), 0);
	assert_int_equal(i, -7);
	assert_int_equal(tfan_event_i64(event, (size_t)tfan_field_find(f->trace, "small"), &i), 0);
	assert_int_equal(i, -3);
	assert_int_equal(tfan_event_u64(event, (size_t)tfan_field_find(f->trace, "address"), &u), 0);
	assert_true(u == 0xffff888012345678U);
	assert_int_equal(tfan_event_bytes(event, (size_t)tfan_field_find(f->trace, "path"), &bytes, &size), 0);
	assert_int_equal(size, strlen("/etc/hosts"));
	assert_memory_equal(bytes, "/etc/hosts", size);
	assert_int_equal(tfan_event_element(event, (size_t)tfan_field_find(f->trace, "bytes"), 6, &u), 0);
	assert_int_equal(u, 250);
	assert_int_equal(tfan_event_element(event, (size_t)tfan_field_find(f->trace, "bytes"), 7, &u), -ERANGE);
	assert_int_equal(tfan_event_u64(event, 6, &u), -EINVAL);
	assert_none(f);
}

static void the_descriptor_tells_when_there_is_more(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 3; round++) {
		assert_none(f);
		assert_false(readable(f));
		assert_int_equal(tfan_wait(f->tfan, 0), 0);
		fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
		fake_router_publish(&f->router);
		assert_true(readable(f));
		assert_int_equal(tfan_wait(f->tfan, -1), 1);
		(void)next(f, TFAN_EVENT);
	}
	assert_none(f);
	assert_false(readable(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(attach_says_what_was_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(events_come_with_their_fields, setup_trace, teardown),
		cmocka_unit_test_setup_teardown(the_descriptor_tells_when_there_is_more, setup_trace, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
