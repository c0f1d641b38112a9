/* Typed traces from end to end, against a router of this test's own. */
#include "consumers/client/tracefan.h"
#include "tests/consumers/fake_router.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* As the fake router's events are. */
struct seen {
	int n;
	struct tfan_string_address path;
	uint64_t address;
	int8_t small;
	unsigned int untouched;
};

static const struct tfan_member members[] = {
	{ TFAN_MEMBER(struct seen, n), .fetch = "$arg1", .condition = "n > 0" },
	{ TFAN_MEMBER(struct seen, address), .fetch = "$arg2" },
	{ TFAN_MEMBER(struct seen, small) },
};
static const struct tfan_shape shape = TFAN_SHAPE(struct seen, members);

struct fixture {
	struct fake_router router;
	struct tfan *tfan;
	struct tfan_trace *trace;
	char self[256];
	struct seen last;
	char path[64];
	unsigned int handled, noticed;
	bool close_in_handler;
};

static void handler(void *context, const struct tfan_event *event, const void *filled)
{
	struct fixture *f = context;
	const struct seen *seen = filled;

	f->last = *seen;
	(void)snprintf(f->path, sizeof(f->path), "%s", seen->path.string ? seen->path.string : "(none)");
	f->handled++;
	assert_int_equal(tfan_event_kind(event), TFAN_EVENT);
	if (f->close_in_handler)
		tfan_trace_close(tfan_event_trace(event));
}

static void notice(void *context, const struct tfan_event *event)
{
	struct fixture *f = context;

	(void)event;
	f->noticed++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tfan_options options = TFAN_OPTIONS;

	fake_router_start(&f->router);
	options.session = FAKE_SESSION;
	options.no_return = true;
	options.directory = f->router.directory;
	assert_true(readlink("/proc/self/exe", f->self, sizeof(f->self) - 1) > 0);
	assert_int_equal(tfan_open(&options, &f->tfan), 0);
	tfan_set_notice(f->tfan, notice, f);
	*state = f;
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

static void bind_kprobe(struct fixture *f)
{
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs_read", &shape, handler, f, &f->trace), 0);
}

static void a_probe_is_made_of_place_and_table(void **state)
{
	struct fixture *f = *state;
	struct tfan_shape returning = shape;
	struct tfan_member row = { TFAN_MEMBER(struct seen, n), .fetch = "$retval" };

	bind_kprobe(f);
	assert_int_equal(f->router.create.kind, PROBE_KPROBE);
	assert_string_equal(f->router.create.symbol, "vfs_read");
	assert_int_equal(f->router.create.fetch_count, 2);
	assert_string_equal(f->router.create.fetch, "n=$arg1:s32");
	assert_string_equal(f->router.create.fetch + strlen("n=$arg1:s32") + 1, "address=$arg2:u64");
	assert_string_equal(f->router.create.filter, "(n > 0)");
	/* It starts disabled. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 0);
	returning.at_return = true;
	returning.members = &row;
	returning.member_count = 1;
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs_read+maxactive=5", &returning, handler, f, &f->trace), 0);
	assert_int_equal(f->router.create.kind, PROBE_KRETPROBE);
	assert_int_equal(f->router.create.maxactive, 5);
	assert_int_equal(tfan_trace_uprobe(f->tfan, f->self, "main", &shape, handler, f, &f->trace), 0);
	assert_int_equal(f->router.create.kind, PROBE_UPROBE);
	assert_string_equal(f->router.target, f->self);
}

static void a_path_is_taken_as_it_is(void **state)
{
	struct fixture *f = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/a \"b:c\\d' \"", f->router.directory);
	assert_int_equal(symlink(f->self, path), 0);
	assert_int_equal(tfan_trace_uprobe(f->tfan, path, "main", &shape, handler, f, &f->trace), 0);
	assert_string_equal(f->router.target, f->self);
	assert_int_equal(unlink(path), 0);
}

static void handlers_get_filled_structures(void **state)
{
	static const struct tfan_member with_path[] = {
		{ TFAN_MEMBER(struct seen, n) },
		{ TFAN_MEMBER(struct seen, path) },
		{ TFAN_MEMBER(struct seen, address), .field = "address", .is_big_endian = true },
	};
	static const struct tfan_shape whole = TFAN_SHAPE(struct seen, with_path);
	struct fixture *f = *state;
	struct record_lost lost = { .source = LOST_KERNEL, .cpu = 0, .count = 3 };

	bind_kprobe(f);
	assert_int_equal(tfan_dispatch(f->tfan, 0), 0);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, -7);
	fake_router_record(&f->router, RECORD_LOST, 0, 2, &lost, sizeof(lost));
	fake_router_event(&f->router, tfan_trace_id(f->trace), 3, 8);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 1), 1);
	assert_int_equal(f->last.n, -7);
	assert_true(f->last.address == 0xffff888012345678U);
	assert_int_equal(f->last.small, -3);
	assert_int_equal(f->last.untouched, 0);
	assert_string_equal(f->path, "(none)");
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_int_equal(f->noticed, 1);
	assert_int_equal(f->last.n, 8);
	assert_int_equal(tfan_trace_done(f->trace), 2);
	assert_int_equal(tfan_trace_bind(f->tfan, "tracepoint:sched:sched_fake", &whole, handler, f, &f->trace), 0);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 4, 9);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_string_equal(f->path, "/etc/hosts");
	assert_int_equal(f->last.path.address, 0);
	assert_true(f->last.address == __builtin_bswap64(0xffff888012345678U));
}

static void strings_end_where_the_field_does(void **state)
{
	static const struct tfan_member row[] = { { TFAN_MEMBER(struct seen, path), .field = "path" } };
	static const struct tfan_shape one = TFAN_SHAPE(struct seen, row);
	struct fixture *f = *state;
	struct fake_payload payload = fake_payload(1, "");

	assert_int_equal(tfan_trace_bind(f->tfan, "tracepoint:sched:sched_fake", &one, handler, f, &f->trace), 0);
	/* No NUL in the whole field, which is the payload's end. */
	memset(payload.path, 'y', sizeof(payload.path));
	payload.path_word = (uint32_t)(offsetof(struct fake_payload, path) | sizeof(payload.path) << 16);
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 1, &payload, sizeof(payload));
	payload.path_word = 0;
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 2, &payload, sizeof(payload));
	/* A field that leads outside is an event that can't be read. */
	payload.path_word = 0x7fff0000U | 60000;
	fake_router_record(&f->router, RECORD_EVENT, tfan_trace_id(f->trace), 3, &payload, sizeof(payload));
	fake_router_publish(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 1), 1);
	assert_string_equal(f->path, "yyyyyyyyyyyyyyyy");
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_string_equal(f->path, "");
	f->router.stats.lost_ring = 5;
	assert_int_equal(tfan_trace_done(f->trace), 2);
	assert_int_equal(tfan_trace_lost(f->trace), 6);
	/* Without a router the last answer stands. */
	fake_router_hang_up(&f->router);
	assert_int_equal(tfan_trace_lost(f->trace), 6);
}

static void a_handler_may_close_its_trace(void **state)
{
	struct fixture *f = *state;

	bind_kprobe(f);
	f->close_in_handler = true;
	for (uint64_t i = 0; i < 3; i++)
		fake_router_event(&f->router, tfan_trace_id(f->trace), i, (int32_t)i);
	fake_router_publish(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_int_equal(f->handled, 1);
	assert_null(tfan_trace_at(f->tfan, 0));
}

static void conditions_are_set_beside_the_tables_own(void **state)
{
	struct fixture *f = *state;

	bind_kprobe(f);
	assert_int_equal(tfan_trace_set_condition(f->trace, "small == 3 || n == 4"), 0);
	assert_string_equal(f->router.set_filter.filter, "((n > 0)) && (small == 3 || n == 4)");
	f->router.refuse_type = CONTROL_SET_FILTER;
	f->router.refuse_status = TFAN_USAGE;
	f->router.refuse.position = (int32_t)strlen("((n > 0)) && (sm");
	assert_int_equal(tfan_trace_set_condition(f->trace, "smal == 3"), -EINVAL);
	assert_int_equal(tfan_failure(f->tfan)->position, 2);
	f->router.refuse_type = 0;
	assert_int_equal(tfan_trace_set_condition(f->trace, NULL), 0);
	assert_string_equal(f->router.set_filter.filter, "(n > 0)");
}

/* Handlers are given events; what else is of a typed trace is noticed. */
static void marks_are_no_events(void **state)
{
	const struct record_throttled throttled = { .rate = 1, .count = 2 };
	const struct record_filter filter = { .cookie = 4 };
	struct fixture *f = *state;
	uint64_t id;

	bind_kprobe(f);
	id = tfan_trace_id(f->trace);
	fake_router_event(&f->router, id, 1, 7);
	fake_router_record(&f->router, RECORD_FILTER, id, 2, &filter, sizeof(filter));
	fake_router_record(&f->router, RECORD_THROTTLED, id, 3, &throttled, sizeof(throttled));
	fake_router_publish(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_int_equal(f->handled, 1);
	assert_int_equal(f->last.n, 7);
	assert_int_equal(f->noticed, 2);
	assert_int_equal(tfan_trace_done(f->trace), 1);
	assert_int_equal(tfan_trace_lost(f->trace), 0);
}

static void assert_failure(struct fixture *f, enum tfan_class category, int position, const char *words)
{
	const struct tfan_failure *failure = tfan_failure(f->tfan);

	if (failure->category != category || failure->position != position || !strstr(failure->message, words))
		print_error("class %d at %d: %s\n", failure->category, failure->position, failure->message);
	assert_int_equal(failure->category, category);
	assert_int_equal(failure->position, position);
	assert_non_null(strstr(failure->message, words));
}

static void what_is_wrong_is_told_apart(void **state)
{
	static const struct tfan_member missing[] = { { TFAN_MEMBER(struct seen, untouched) } };
	static const struct tfan_member other_kind[] = { { TFAN_MEMBER(struct seen, n), .field = "path" } };
	static const struct tfan_member seventh[] = { { TFAN_MEMBER(struct seen, n), .fetch = "$arg7" } };
	struct tfan_shape bad = shape;
	struct fixture *f = *state;

	assert_int_equal(tfan_trace_uprobe(f->tfan, "/nowhere", "main", &shape, handler, f, &f->trace), -ENOENT);
	assert_failure(f, TFAN_LOCATION, -1, "/nowhere");
	assert_int_equal(tfan_trace_uprobe(f->tfan, f->self, "mian", &shape, handler, f, &f->trace), -ENOENT);
	assert_failure(f, TFAN_LOCATION, 0, "did you mean main?");
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs_read if n > 1", &shape, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_USAGE, -1, "no filter");
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs;read", &shape, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_USAGE, 3, "can't hold ';'");
	bad.member_count = 1;
	bad.members = missing;
	assert_int_equal(tfan_trace_bind(f->tfan, "tracepoint:a:b", &bad, handler, f, &f->trace), -ENOENT);
	assert_failure(f, TFAN_FETCH_ARG, -1, "no field \"untouched\"");
	bad.members = other_kind;
	assert_int_equal(tfan_trace_bind(f->tfan, "tracepoint:a:b", &bad, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_FETCH_ARG, -1, "\"path\" is char[]");
	/* Both were made, and given back. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CREATE), 2);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 2);
	bad.members = seventh;
	assert_int_equal(tfan_trace_uprobe(f->tfan, f->self, "main", &bad, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_FETCH_ARG, -1, "(argument \"n\")");
	assert_null(f->trace);
}

static void what_the_kernel_refuses_names_the_member(void **state)
{
	struct fixture *f = *state;

	f->router.refuse_type = CONTROL_CREATE;
	f->router.refuse_status = TFAN_FETCH_ARG;
	f->router.refuse.position = (int32_t)strlen("n=$arg1:s32") + 3;
	(void)control_text(f->router.refuse.message, sizeof(f->router.refuse.message), "Invalid fetch");
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs_read", &shape, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_FETCH_ARG, -1, "Invalid fetch (argument \"address=$arg2:u64\")");
	f->router.refuse_status = TFAN_USAGE;
	assert_int_equal(tfan_trace_kprobe(f->tfan, "vfs_read", &shape, handler, f, &f->trace), -EINVAL);
	assert_failure(f, TFAN_USAGE, -1, "(condition \"(n > 0)\")");
}

static void errors_come_after_what_was_given(void **state)
{
	struct fixture *f = *state;
	int n;

	bind_kprobe(f);
	fake_router_event(&f->router, tfan_trace_id(f->trace), 1, 1);
	fake_router_publish(&f->router);
	fake_router_hang_up(&f->router);
	assert_int_equal(tfan_dispatch(f->tfan, 0), 1);
	assert_int_equal(tfan_wait(f->tfan, -1), 1);
	n = tfan_dispatch(f->tfan, 0);
	assert_int_equal(n, -ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_probe_is_made_of_place_and_table), TEST(a_path_is_taken_as_it_is),
		TEST(handlers_get_filled_structures), TEST(strings_end_where_the_field_does),
		TEST(a_handler_may_close_its_trace), TEST(conditions_are_set_beside_the_tables_own),
		TEST(what_is_wrong_is_told_apart), TEST(what_the_kernel_refuses_names_the_member),
		TEST(errors_come_after_what_was_given), TEST(marks_are_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
