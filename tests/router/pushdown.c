/* What of the consumers' filters goes into the kernel, and when: against a reader that is this test. */
#include "router/pushdown.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "router/filter.h"
#include "router/router.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PROBE 5

static const char format[] = "name: number\nID: 11\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"n=%d\", REC->n\n";

struct fixture {
	struct router router;
	struct consumer newcomer, returner;
	struct route *route;
	int reader;
};

/* How often what had to wait for the kernel was done. */
static unsigned int gone_on;

static void go_on(struct router *router, const struct pushdown_next *next)
{
	(void)router;
	(void)next;
	gone_on++;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct catalog_event *event;
	const char *reason;
	int pair[2];

	assert_non_null(f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	upstream_init(&f->router.upstream, &f->router);
	f->router.upstream.fd = pair[0];
	f->reader = pair[1];
	assert_int_equal(catalog_create(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 8, &f->router.catalog), 0);
	assert_int_equal(fanout_init(&f->router.fanout, f->router.catalog, false, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), 0);
	assert_int_equal(catalog_add(f->router.catalog, "test", format, strlen(format), &event, &reason), 0);
	assert_int_equal(fanout_route(&f->router.fanout, event, &f->route), 0);
	f->newcomer = (struct consumer){ .number = 1, .next = &f->returner };
	f->returner = (struct consumer){ .number = 2, .flags = ATTACH_RESUME };
	f->router.consumers = &f->newcomer;
	gone_on = 0;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	upstream_release(&f->router.upstream);
	fanout_release(&f->router.fanout);
	catalog_release(f->router.catalog);
	(void)close_fd(f->reader);
	free(f);
	return 0;
}

static struct filter_program *compile(const struct fixture *f, const char *text)
{
	const struct filter_environment nothing = { 0 };
	struct filter_program *program = NULL;
	struct filter_failure failure = { 0 };
	struct filter_ast *ast = NULL;

	assert_int_equal(filter_parse(text, strlen(text), &ast, &failure), 0);
	assert_int_equal(filter_compile(ast, &f->route->schema, &nothing, &program, &failure), 0);
	filter_ast_release(ast);
	return program;
}

/* A trace that wants its events; NULL: all of them. */
static struct trace *claim(struct fixture *f, uint64_t id, const char *filter)
{
	const struct trace model = { .id = id, .probe_id = PROBE, .claiming = true, .outlet = &f->newcomer.outlet,
		.kernel_filter = filter ? compile(f, filter) : NULL };
	struct trace *trace = NULL;

	assert_int_equal(fanout_trace_add(f->route, &model, &trace), 0);
	return trace;
}

static void update(struct fixture *f, uint64_t consumer)
{
	const struct pushdown_next next = { .then = go_on, .consumer = consumer };

	pushdown_update(&f->router, f->route, &next);
}

/* The reader is asked for this filter, and answers. Until then nothing goes on. */
static void expect(struct fixture *f, const char *filter, uint32_t status)
{
	struct control_status reply = { .status = status };
	struct control_message message;
	struct control_set_filter request;
	const unsigned int before = gone_on;

	assert_int_equal(control_receive(f->reader, &message), 1);
	assert_int_equal(message.header.type, CONTROL_PROBE_FILTER);
	memcpy(&request, message.bytes, sizeof(request));
	assert_int_equal(request.id, PROBE);
	assert_string_equal(request.filter, filter);
	control_header_init(&reply.header, CONTROL_PROBE_FILTER + CONTROL_REPLY, sizeof(reply), message.header.cookie);
	control_message_release(&message);
	assert_int_equal(gone_on, before);
	assert_int_equal(control_send(f->reader, &reply, NULL, 0), 0);
	assert_int_equal(upstream_receive(&f->router.upstream), 1);
}

/* What had to wait was done, and the reader is asked for nothing more. */
static void expect_done(struct fixture *f, unsigned int times)
{
	struct control_message message;

	assert_int_equal(gone_on, times);
	assert_int_equal(control_receive(f->reader, &message), -EAGAIN);
}

static void the_union_of_all(void **state)
{
	struct fixture *f = *state;
	struct trace *two, *quiet;

	(void)claim(f, 1, "n == 1");
	two = claim(f, 2, "n == 7");
	quiet = claim(f, 3, NULL);
	quiet->claiming = false;
	update(f, 1);
	expect(f, "(n == 1 || n == 7)", 0);
	expect_done(f, 1);
	/* The same again is not written again. */
	update(f, 1);
	expect_done(f, 2);
	quiet->claiming = true;
	update(f, 1);
	expect(f, "0", 0);
	expect_done(f, 3);
	/* Narrower once somebody has left. */
	quiet->claiming = false;
	fanout_trace_remove(two);
	update(f, 0);
	expect(f, "n == 1", 0);
	expect_done(f, 4);
}

/* Until a new filter takes over, the old one's events are wanted, too. */
static void a_filter_that_is_to_come(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = claim(f, 1, "n == 1");

	trace->next_pending = true;
	trace->next_kernel_filter = compile(f, "n == 9");
	update(f, 1);
	expect(f, "(n == 1 || n == 9)", 0);
	filter_program_release(trace->next_kernel_filter);
	trace->next_kernel_filter = NULL;
	update(f, 1);
	expect(f, "0", 0);
	expect_done(f, 2);
}

static void look(void *context, const struct own_event *event)
{
	(void)context;
	(void)event;
}

/* What the session itself looks at is needed whole. */
static void the_sessions_own(void **state)
{
	struct fixture *f = *state;

	(void)claim(f, 1, "n == 1");
	f->route->own_probe = PROBE;
	fanout_route_use(f->route, false, look, NULL);
	update(f, 1);
	expect_done(f, 1);
	fanout_route_use(f->route, false, NULL, NULL);
}

static void a_filter_that_the_kernel_refuses(void **state)
{
	struct fixture *f = *state;

	(void)claim(f, 1, "n == 1");
	update(f, 1);
	expect(f, "n == 1", EXIT_USAGE);
	assert_int_equal(gone_on, 0);
	expect(f, "0", 0);
	expect_done(f, 1);
	/* It is known to be without one now. */
	(void)claim(f, 2, NULL);
	update(f, 1);
	expect_done(f, 2);
}

/* While consumers of the last router are awaited their claims aren't known: the filter in the kernel covers them, and may
 * be taken away for a newcomer, but nobody narrows it. */
static void not_narrowed_while_consumers_are_awaited(void **state)
{
	struct fixture *f = *state;

	f->router.welcome.consumers = f->router.awaited = 2;
	(void)claim(f, 1, "n == 1");
	update(f, f->returner.number);
	expect_done(f, 1);
	/* Somebody left. */
	update(f, 0);
	expect_done(f, 2);
	update(f, f->newcomer.number);
	expect(f, "0", 0);
	expect_done(f, 3);
	/* Now all are back. */
	f->router.awaited = 0;
	pushdown_all(&f->router);
	expect(f, "n == 1", 0);
	expect_done(f, 3);
}

/* A router that takes over does not know what its predecessor wrote. */
static void what_was_found_is_not_known(void **state)
{
	struct fixture *f = *state;

	f->router.welcome.consumers = 1;
	(void)claim(f, 1, NULL);
	update(f, f->returner.number);
	expect(f, "0", 0);
	expect_done(f, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_union_of_all),
		TEST(a_filter_that_is_to_come),
		TEST(the_sessions_own),
		TEST(a_filter_that_the_kernel_refuses),
		TEST(not_narrowed_while_consumers_are_awaited),
		TEST(what_was_found_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
