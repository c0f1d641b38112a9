/* What the tests of who gets which event share: a real catalog, real filters and real rings, each read as its consumer
 * would. */
#ifndef TRACEFAN_TESTS_ROUTER_FANOUT_FIXTURE_H
#define TRACEFAN_TESTS_ROUTER_FANOUT_FIXTURE_H

#include "router/fanout.h"

#include "base/checked.h"
#include "router/filter.h"
#include "router/kept.h"
#include "shm/wake.h"
#include "tests/shm/ring_pair.h"
#include "tests/support/common_fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HOST_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define NUMBER 11
#define OTHER  12

static const char number_format[] = "name: number\nID: 11\nformat:\n" COMMON
	"\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"n=%d\", REC->n\n";
static const char other_format[] = "name: other\nID: 12\nformat:\n" COMMON
	"\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"n=%d\", REC->n\n";

struct payload {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t n;
};

#define CONSUMERS 2

struct fixture {
	struct catalog *catalog;
	struct fanout fanout;
	struct route *number; /* NULL: nobody has asked for it yet */
	struct outlet outlets[CONSUMERS];
	struct ring_reader readers[CONSUMERS];
	unsigned int seen; /* kinds that the consumers of all events were told of */
	struct trace *all;
};

static inline void add_format(struct fixture *f, const char *text, struct catalog_event **ret)
{
	const char *reason = "";

	assert_int_equal(catalog_add(f->catalog, "test", text, strlen(text), ret, &reason), 0);
}

static inline void begin(struct fixture *f, bool text, bool big_endian)
{
	struct catalog_event *number, *other;
	int fds[3];

	assert_int_equal(catalog_create(big_endian, 8, &f->catalog), 0);
	assert_int_equal(fanout_init(&f->fanout, f->catalog, text, big_endian), 0);
	add_format(f, number_format, &number);
	add_format(f, other_format, &other);
	assert_int_equal(fanout_route(&f->fanout, number, &f->number), 0);
	for (int i = 0; i < CONSUMERS; i++) {
		assert_int_equal(outlet_init(&f->outlets[i], RING_CAPACITY_MIN, RING_DROP), 0);
		assert_int_equal(ring_writer_share(&f->outlets[i].ring, fds), 0);
		assert_int_equal(ring_reader_attach(fds, &f->readers[i]), 0);
	}
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	begin(f, false, HOST_IS_BIG);
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	fanout_release(&f->fanout);
	catalog_release(f->catalog);
	for (int i = 0; i < CONSUMERS; i++) {
		ring_reader_release(&f->readers[i]);
		outlet_release(&f->outlets[i]);
	}
	free(f);
	return 0;
}

/* ---- traces ---- */

static inline struct filter_program *compile(const struct route *route, const char *text)
{
	const struct filter_environment nothing = { 0 };
	struct filter_program *program = NULL;
	struct filter_failure failure = { 0 };
	struct filter_ast *ast = NULL;
	int r = filter_parse(text, strlen(text), &ast, &failure);

	if (r == 0)
		r = filter_compile(ast, &route->schema, &nothing, &program, &failure);
	if (r < 0)
		fail_msg("%s: %s", text, failure.message);
	filter_ast_release(ast);
	return program;
}

/* A trace that takes nothing yet. */
static inline struct trace *add_trace(struct fixture *f, uint64_t id, int consumer, const char *filter)
{
	const struct trace model = {
		.id = id,
		.outlet = &f->outlets[consumer],
		.until = UINT64_MAX,
		.filter = filter ? compile(f->number, filter) : NULL,
	};
	struct trace *trace = NULL;

	assert_int_equal(fanout_trace_add(f->number, &model, &trace), 0);
	return trace;
}

static inline struct trace *live_trace(struct fixture *f, uint64_t id, int consumer, const char *filter)
{
	struct trace *trace = add_trace(f, id, consumer, filter);

	assert_int_equal(fanout_trace_start(trace, 0, 0), 0);
	return trace;
}

static inline void assert_ledger(const struct trace *trace, uint64_t delivered, uint64_t filtered, uint64_t lost_ring)
{
	const struct ledger_trace ledger = fanout_trace_ledger(trace);

	assert_int_equal(ledger.delivered, delivered);
	assert_int_equal(ledger.filtered, filtered);
	assert_int_equal(ledger.lost_ring, lost_ring);
	assert_int_equal(ledger.decoded, delivered + filtered + lost_ring);
}

/* ---- events ---- */

static inline void emit_payload(struct fixture *f, uint64_t time, uint32_t cpu, const void *payload, uint32_t size)
{
	const struct merge_event event = { .data = payload, .size = size, .cpu = cpu, .time = time };

	fanout_event(&f->fanout, &event);
}

static inline void emit_kind(struct fixture *f, uint16_t type, uint64_t time, uint32_t cpu, int32_t n)
{
	const struct payload payload = { .type = type, .pid = 1000 + n, .n = n };

	emit_payload(f, time, cpu, &payload, sizeof(payload));
}

/* An event of thread 1000 + n. */
static inline void emit(struct fixture *f, uint64_t time, uint32_t cpu, int32_t n)
{
	emit_kind(f, NUMBER, time, cpu, n);
}

/* ---- what consumers see ---- */

static inline const struct record_header *take(struct fixture *f, int consumer)
{
	const struct record_header *record = NULL;

	fanout_publish(&f->fanout);
	return ring_reader_next(&f->readers[consumer], &record) == 1 ? record : NULL;
}

static inline int32_t number_of(const struct record_header *record)
{
	struct payload payload;

	assert_int_equal(record->payload_size, sizeof(payload));
	memcpy(&payload, record + 1, sizeof(payload));
	assert_int_equal(payload.type, NUMBER);
	assert_int_equal(record->pid, payload.pid);
	return payload.n;
}

/* The next record of the consumer is the event with this number, of this trace. */
static inline const struct record_header *expect(struct fixture *f, int consumer, uint64_t trace_id, int32_t n)
{
	const struct record_header *record = take(f, consumer);

	assert_non_null(record);
	assert_int_equal(record->kind, RECORD_EVENT);
	assert_int_equal(record->trace_id, trace_id);
	assert_int_equal(number_of(record), n);
	return record;
}

static inline void expect_nothing(struct fixture *f)
{
	for (int i = 0; i < CONSUMERS; i++)
		assert_null(take(f, i));
}

static inline void assert_comm(const struct record_header *record, const char *name)
{
	char comm[RECORD_COMM_SIZE] = { 0 };

	if (name)
		(void)strncpy(comm, name, sizeof(comm) - 1);
	assert_int_equal(record->flags & RECORD_COMM, name ? RECORD_COMM : 0);
	assert_memory_equal(record->comm, comm, sizeof(comm));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
