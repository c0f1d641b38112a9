/* A connection to a router of the test's own, with a trace or without. */
#ifndef TRACEFAN_TESTS_CONSUMERS_CLIENT_FIXTURE_H
#define TRACEFAN_TESTS_CONSUMERS_CLIENT_FIXTURE_H

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

static inline void open_with(struct fixture *f, struct tfan_options *options)
{
	options->session = FAKE_SESSION;
	options->directory = f->router.directory;
	assert_int_equal(tfan_open(options, &f->tfan), 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_router_start(&f->router);
	*state = f;
	return 0;
}

static inline int setup_trace(void **state)
{
	struct tfan_options options = TFAN_OPTIONS;
	struct fixture *f;

	(void)setup(state);
	f = *state;
	options.no_return = true;
	open_with(f, &options);
	assert_int_equal(tfan_trace_create(f->tfan, "tracepoint:sched:sched_fake", &f->trace), 0);
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	tfan_close(f->tfan);
	fake_router_stop(&f->router);
	free(f);
	return 0;
}

static inline const struct tfan_event *next(struct fixture *f, enum tfan_kind kind)
{
	const struct tfan_event *event = NULL;

	assert_int_equal(tfan_next(f->tfan, &event), 1);
	assert_int_equal(tfan_event_kind(event), kind);
	return event;
}

static inline void assert_none(struct fixture *f)
{
	const struct tfan_event *event;

	assert_int_equal(tfan_next(f->tfan, &event), 0);
}

static inline bool readable(struct fixture *f)
{
	struct pollfd fd = { .fd = tfan_fd(f->tfan), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

#define TEST(name, before) cmocka_unit_test_setup_teardown(name, before, teardown)

#endif
