/* Who gets which event: from when to when, through which filter, with what in its record, and what the ledger
 * says of it. With a real catalog, real filters and real rings, each read as its consumer would. */
#include "router/fanout.h"

#include "base/checked.h"
#include "router/filter.h"
#include "router/kept.h"
#include "shm/wake.h"
#include "tests/shm/ring_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

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

static void add_format(struct fixture *f, const char *text, struct catalog_event **ret)
{
	const char *reason = "";

	assert_int_equal(catalog_add(f->catalog, "test", text, strlen(text), ret, &reason), 0);
}

static void begin(struct fixture *f, bool text, bool big_endian)
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

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	begin(f, false, HOST_IS_BIG);
	*state = f;
	return 0;
}

static int tear_down(void **state)
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

static struct filter_program *compile(const struct route *route, const char *text)
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
static struct trace *add_trace(struct fixture *f, uint64_t id, int consumer, const char *filter)
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

static struct trace *live_trace(struct fixture *f, uint64_t id, int consumer, const char *filter)
{
	struct trace *trace = add_trace(f, id, consumer, filter);

	assert_int_equal(fanout_trace_start(trace, 0, 0), 0);
	return trace;
}

static void assert_ledger(const struct trace *trace, uint64_t delivered, uint64_t filtered, uint64_t lost_ring)
{
	const struct ledger_trace ledger = fanout_trace_ledger(trace);

	assert_int_equal(ledger.delivered, delivered);
	assert_int_equal(ledger.filtered, filtered);
	assert_int_equal(ledger.lost_ring, lost_ring);
	assert_int_equal(ledger.decoded, delivered + filtered + lost_ring);
}

/* ---- events ---- */

static void emit_payload(struct fixture *f, uint64_t time, uint32_t cpu, const void *payload, uint32_t size)
{
	const struct merge_event event = { .data = payload, .size = size, .cpu = cpu, .time = time };

	fanout_event(&f->fanout, &event);
}

static void emit_kind(struct fixture *f, uint16_t type, uint64_t time, uint32_t cpu, int32_t n)
{
	const struct payload payload = { .type = type, .pid = 1000 + n, .n = n };

	emit_payload(f, time, cpu, &payload, sizeof(payload));
}

/* An event of thread 1000 + n. */
static void emit(struct fixture *f, uint64_t time, uint32_t cpu, int32_t n)
{
	emit_kind(f, NUMBER, time, cpu, n);
}

/* ---- what consumers see ---- */

static const struct record_header *take(struct fixture *f, int consumer)
{
	const struct record_header *record = NULL;

	fanout_publish(&f->fanout);
	return ring_reader_next(&f->readers[consumer], &record) == 1 ? record : NULL;
}

static int32_t number_of(const struct record_header *record)
{
	struct payload payload;

	assert_int_equal(record->payload_size, sizeof(payload));
	memcpy(&payload, record + 1, sizeof(payload));
	assert_int_equal(payload.type, NUMBER);
	assert_int_equal(record->pid, payload.pid);
	return payload.n;
}

/* The next record of the consumer is the event with this number, of this trace. */
static const struct record_header *expect(struct fixture *f, int consumer, uint64_t trace_id, int32_t n)
{
	const struct record_header *record = take(f, consumer);

	assert_non_null(record);
	assert_int_equal(record->kind, RECORD_EVENT);
	assert_int_equal(record->trace_id, trace_id);
	assert_int_equal(number_of(record), n);
	return record;
}

static void expect_nothing(struct fixture *f)
{
	for (int i = 0; i < CONSUMERS; i++)
		assert_null(take(f, i));
}

/* ---- from when to when ---- */

static void a_trace_that_was_not_started_takes_nothing(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	expect_nothing(f);
	assert_ledger(trace, 0, 0, 0);
	assert_int_equal(f->fanout.decoded, 1);
	assert_int_equal(f->fanout.unrouted, 0);
}

/* Places are ordered by time, then by CPU. */
static void a_trace_begins_at_its_place(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 2), 0);
	assert_int_equal(trace->stage, TRACE_WAITING);
	emit(f, 99, 3, 1);
	emit(f, 100, 0, 2);
	emit(f, 100, 1, 3);
	expect_nothing(f);
	emit(f, 100, 2, 4);
	assert_int_equal(trace->stage, TRACE_LIVE);
	emit(f, 100, 3, 5);
	emit(f, 101, 0, 6);
	for (int32_t n = 4; n <= 6; n++)
		(void)expect(f, 0, 1, n);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
}

static void a_later_time_on_a_lower_cpu_begins_it_too(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 2), 0);
	emit(f, 101, 0, 1);
	(void)expect(f, 0, 1, 1);
	assert_ledger(trace, 1, 0, 0);
}

static void a_trace_without_a_place_begins_at_once(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 5, 0, 1);
	(void)expect(f, 0, 1, 1);
}

/* What was committed before the disabling is the trace's, and nothing after it. */
static void the_tail_of_a_stopped_trace(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	fanout_trace_stop(trace, 200);
	assert_int_equal(trace->stage, TRACE_CLOSING);
	emit(f, 150, 1, 2);
	emit(f, 200, 0, 3);
	assert_int_equal(trace->stage, TRACE_CLOSING);
	emit(f, 201, 0, 4);
	assert_int_equal(trace->stage, TRACE_OFF);
	/* Late, and after the end. */
	emit(f, 199, 1, 5);
	for (int32_t n = 1; n <= 3; n++)
		(void)expect(f, 0, 1, n);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
	assert_int_equal(f->number->changing, 0);
}

static void a_stop_before_the_beginning(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, NULL);

	assert_int_equal(fanout_trace_start(trace, 100, 0), 0);
	fanout_trace_stop(trace, 150);
	emit(f, 99, 0, 1);
	emit(f, 120, 0, 2);
	emit(f, 151, 0, 3);
	(void)expect(f, 0, 1, 2);
	expect_nothing(f);
	assert_ledger(trace, 1, 0, 0);
	assert_int_equal(trace->stage, TRACE_OFF);
}

/* Its counts go on where they were, without what came in between. */
static void a_trace_that_is_started_again(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, NULL);

	emit(f, 10, 0, 1);
	fanout_trace_stop(trace, 20);
	emit(f, 30, 0, 2);
	emit(f, 40, 0, 3);
	trace->until = UINT64_MAX;
	assert_int_equal(fanout_trace_start(trace, 50, 0), 0);
	emit(f, 45, 0, 4);
	emit(f, 50, 0, 5);
	emit(f, 60, 0, 6);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 5);
	(void)expect(f, 0, 1, 6);
	expect_nothing(f);
	assert_ledger(trace, 3, 0, 0);
}

static void a_removed_trace_is_gone(void **state)
{
	struct fixture *f = *state;
	struct trace *gone = live_trace(f, 1, 0, NULL), *filtered = live_trace(f, 2, 0, "n > 0");
	struct trace *stays = live_trace(f, 3, 1, NULL);

	assert_ptr_equal(fanout_trace_find(&f->fanout, 2), filtered);
	fanout_trace_remove(gone);
	fanout_trace_remove(filtered);
	assert_null(fanout_trace_find(&f->fanout, 1));
	assert_null(fanout_trace_find(&f->fanout, 2));
	assert_ptr_equal(fanout_trace_find(&f->fanout, 3), stays);
	emit(f, 10, 0, 1);
	(void)expect(f, 1, 3, 1);
	expect_nothing(f);
}

/* ---- what stands in the record ---- */

static void a_late_event_is_flagged(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 100, 0, 1);
	emit(f, 100, 1, 2);
	emit(f, 90, 1, 3);
	/* Late is what is older than the youngest, not than the last. */
	emit(f, 95, 0, 4);
	emit(f, 100, 0, 5);
	assert_int_equal(expect(f, 0, 1, 1)->flags & RECORD_LATE, 0);
	assert_int_equal(expect(f, 0, 1, 2)->flags & RECORD_LATE, 0);
	assert_int_equal(expect(f, 0, 1, 3)->flags & RECORD_LATE, RECORD_LATE);
	assert_int_equal(expect(f, 0, 1, 4)->flags & RECORD_LATE, RECORD_LATE);
	assert_int_equal(expect(f, 0, 1, 5)->flags & RECORD_LATE, 0);
}

static void assert_comm(const struct record_header *record, const char *name)
{
	char comm[RECORD_COMM_SIZE] = { 0 };

	if (name)
		(void)strncpy(comm, name, sizeof(comm) - 1);
	assert_int_equal(record->flags & RECORD_COMM, name ? RECORD_COMM : 0);
	assert_memory_equal(record->comm, comm, sizeof(comm));
}

/* The session's own use of an event: this one renames its thread. */
static void rename_thread(void *context, const struct own_event *own)
{
	struct fixture *f = context;
	struct payload event;

	assert_int_equal(own->size, sizeof(event));
	memcpy(&event, own->payload, sizeof(event));
	assert_int_equal(own->tid, event.pid);
	assert_int_equal(tasks_set(&f->fanout.tasks, event.pid, "after", sizeof("after"), false), 0);
}

/* Two copies of the tasks, of the times 15 and 16, are due before the same event. */
static void take_snapshot(void *context)
{
	struct fixture *f = context;

	assert_string_equal(tasks_find(&f->fanout.tasks, 1001, 15)->comm, "before");
	f->fanout.snapshot_due = f->fanout.snapshot_due == 15 ? 16 : UINT64_MAX;
}

static void snapshots_come_before_the_event_that_changes_the_tasks(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "before", sizeof("before"), false), 0);
	fanout_route_use(f->number, rename_thread, f);
	f->fanout.snapshot = take_snapshot;
	f->fanout.snapshot_due = 15;
	emit(f, 20, 3, 1);
	assert_int_equal(f->fanout.snapshot_due, UINT64_MAX);
	assert_string_equal(tasks_find(&f->fanout.tasks, 1001, 20)->comm, "after");
}

static void the_name_is_the_one_of_the_moment(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "before", sizeof("before"), false), 0);
	emit(f, 5, 3, 4);
	fanout_route_use(f->number, rename_thread, f);
	emit(f, 10, 3, 1);
	emit(f, 20, 3, 2);
	fanout_route_use(f->number, NULL, NULL);
	emit(f, 30, 3, 1);
	emit(f, 40, 3, 3);
	(void)expect(f, 0, 1, 4);
	/* The event that renames its thread still has the old name. */
	assert_comm(expect(f, 0, 1, 1), "before");
	assert_comm(expect(f, 0, 1, 2), NULL);
	assert_comm(expect(f, 0, 1, 1), "after");
	assert_comm(expect(f, 0, 1, 3), NULL);
}

static void time_cpu_and_thread(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, UINT64_C(1) << 60, 300, 7);
	record = expect(f, 0, 1, 7);
	assert_true(record->time == UINT64_C(1) << 60);
	assert_int_equal(record->cpu, 300);
	assert_int_equal(record->pid, 1007);
	assert_int_equal(record->size, align_up(sizeof(*record) + sizeof(struct payload), RECORD_ALIGN));
}

/* Every size of payload is copied whole: there are two ways to copy. */
static void every_size(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[160] = { NUMBER };

	(void)live_trace(f, 1, 0, NULL);
	for (uint32_t i = 8; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	for (uint32_t size = 8; size <= sizeof(payload); size++) {
		const struct record_header *record;

		emit_payload(f, size, 0, payload, size);
		record = take(f, 0);
		assert_non_null(record);
		assert_int_equal(record->payload_size, size);
		assert_memory_equal(record + 1, payload, size);
	}
}

/* An event too short for its thread's id has none, and nothing behind it is read. */
static void short_events(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;
	const struct payload payload = { .type = NUMBER, .pid = 77 };

	(void)live_trace(f, 1, 0, NULL);
	emit_payload(f, 10, 0, &payload, 7);
	record = take(f, 0);
	assert_non_null(record);
	assert_int_equal(record->pid, -1);
	assert_int_equal(record->payload_size, 7);
	/* Without its kind it is nobody's. */
	emit_payload(f, 11, 0, &payload, 1);
	assert_int_equal(f->fanout.unrouted, 1);
	assert_int_equal(f->fanout.decoded, 2);
	expect_nothing(f);
}

static void a_kernel_of_the_other_byte_order(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct payload payload = { .type = __builtin_bswap16(NUMBER), .pid = (int32_t)__builtin_bswap32(42), .n = 1 };
	const struct record_header *record;

	(void)state;
	assert_non_null(f);
	begin(f, false, !HOST_IS_BIG);
	(void)live_trace(f, 1, 0, "n == 0x01000000");
	emit_payload(f, 10, 0, &payload, sizeof(payload));
	record = take(f, 0);
	assert_non_null(record);
	assert_int_equal(record->pid, 42);
	/* The event itself stays as the kernel laid it out. */
	assert_memory_equal(record + 1, &payload, sizeof(payload));
	assert_int_equal(tear_down((void **)&f), 0);
}

/* ---- filters ---- */

static void a_lone_filter(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n == 2");

	assert_ptr_equal(f->number->lone, trace);
	for (int32_t n = 1; n <= 4; n++)
		emit(f, 10, 0, n);
	(void)expect(f, 0, 1, 2);
	expect_nothing(f);
	assert_ledger(trace, 1, 3, 0);
}

/* Several of them are asked by the index: each gets its own, those without a filter get all. */
static void filters_through_the_index(void **state)
{
	struct fixture *f = *state;
	struct trace *one = live_trace(f, 1, 0, "n == 1"), *two = live_trace(f, 2, 0, "n == 2");
	struct trace *more = live_trace(f, 3, 1, "n > 1"), *all = live_trace(f, 4, 1, NULL);

	assert_null(f->number->lone);
	for (int32_t n = 0; n < 4; n++)
		emit(f, 10, 0, n);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 2, 2);
	assert_null(take(f, 0));
	(void)expect(f, 1, 4, 0);
	(void)expect(f, 1, 4, 1);
	(void)expect(f, 1, 4, 2);
	(void)expect(f, 1, 3, 2);
	(void)expect(f, 1, 4, 3);
	(void)expect(f, 1, 3, 3);
	expect_nothing(f);
	assert_ledger(one, 1, 3, 0);
	assert_ledger(two, 1, 3, 0);
	assert_ledger(more, 2, 2, 0);
	assert_ledger(all, 4, 0, 0);
	/* When the others are gone, the last one is asked directly. */
	fanout_trace_remove(one);
	fanout_trace_remove(more);
	assert_ptr_equal(f->number->lone, two);
	emit(f, 20, 0, 1);
	emit(f, 20, 0, 2);
	(void)expect(f, 0, 2, 2);
	fanout_trace_remove(two);
	assert_null(f->number->lone);
	assert_null(f->number->index);
	emit(f, 30, 0, 2);
	for (int i = 0; i < 3; i++)
		(void)expect(f, 1, 4, (int[]){ 1, 2, 2 }[i]);
	expect_nothing(f);
}

/* A filtered trace waits and ends as the others do, and what came before and after it is not "filtered". */
static void a_filtered_trace_begins_and_ends(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = add_trace(f, 1, 0, "n >= 2"), *other = live_trace(f, 2, 1, "n == 9");

	assert_int_equal(fanout_trace_start(trace, 20, 0), 0);
	emit(f, 10, 0, 5);
	emit(f, 20, 0, 1);
	emit(f, 30, 0, 2);
	fanout_trace_stop(trace, 40);
	emit(f, 40, 0, 3);
	emit(f, 41, 0, 4);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 0, 1, 3);
	expect_nothing(f);
	assert_ledger(trace, 2, 1, 0);
	assert_ledger(other, 0, 5, 0);
}

static void filters_see_thread_name_and_cpu(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, "wanted", sizeof("wanted"), false), 0);
	(void)live_trace(f, 1, 0, "comm == wanted");
	(void)live_trace(f, 2, 0, "tid == 1002");
	(void)live_trace(f, 3, 0, "cpu == 5");
	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	emit(f, 10, 5, 3);
	emit(f, 10, 0, 4);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 2, 2);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
}

/* An expression that gives up is counted by each trace that asked it, alone or with others, and neither another filter nor a
 * trace's end takes the count away. */
static void expressions_that_give_up_are_counted(void **state)
{
	static const char slow[] = "comm =~ \"^(x|x|x)+[yz]\"", name[] = "xxxxxxxxxxxxxxx";
	struct fixture *f = *state;
	struct trace *first, *second;

	assert_int_equal(tasks_set(&f->fanout.tasks, 1001, name, sizeof(name), false), 0);
	first = live_trace(f, 1, 0, slow);
	emit(f, 10, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 1);
	second = live_trace(f, 2, 1, slow);
	emit(f, 20, 0, 1);
	emit(f, 21, 0, 2);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 2);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 1);
	assert_int_equal(fanout_trace_filter(first, compile(f->number, "n == 7"), NULL), 0);
	emit(f, 30, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 2);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 2);
	fanout_trace_stop(second, 40);
	emit(f, 50, 0, 1);
	assert_int_equal(fanout_trace_ledger(second).gave_up, 2);
	assert_int_equal(fanout_trace_filter(first, compile(f->number, slow), NULL), 0);
	emit(f, 60, 0, 1);
	assert_int_equal(fanout_trace_ledger(first).gave_up, 3);
	expect_nothing(f);
}

static void another_filter_from_here_on(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n == 1"), *quiet = add_trace(f, 2, 1, NULL);

	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	assert_int_equal(fanout_trace_filter(trace, compile(f->number, "n == 2"), NULL), 0);
	emit(f, 20, 0, 1);
	emit(f, 20, 0, 2);
	assert_int_equal(fanout_trace_filter(trace, NULL, NULL), 0);
	emit(f, 30, 0, 3);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 0, 1, 3);
	assert_ledger(trace, 3, 2, 0);
	/* A trace that takes nothing takes nothing with another filter either. */
	assert_int_equal(fanout_trace_filter(quiet, compile(f->number, "n == 3"), NULL), 0);
	emit(f, 40, 0, 3);
	(void)expect(f, 0, 1, 3);
	expect_nothing(f);
}

/* ---- whose an event is ---- */

/* A thread of process 7. */
static void learn_process(struct fixture *f, int32_t tid, uint32_t uid)
{
	const struct task_read read = { .time = 5, .tid = tid, .pid = 7, .parent = 1, .has_ids = true,
		.ids = { uid, uid, uid, 100, 100 }, .exe = "/bin/x", .exe_size = 6, .cgroup_path = "/a/b", .cgroup_size = 4,
		.cgroup = 9 };

	assert_int_equal(tasks_learn(&f->fanout.tasks, &read), 0);
}

static void a_filter_knows_the_process_of_a_thread(void **state)
{
	static const char *const filters[] = { "pid == 7", "uid == 1000", "gid == 100 && pid != 8", "exe $= /x",
		"cgroup == /a/b && uid != 0", "!(pid == 8)" };
	struct fixture *f = *state;

	learn_process(f, 7, 1000);
	learn_process(f, 1001, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct trace *trace = live_trace(f, 10 + i, 0, filters[i]);

		emit(f, 10 + i, 0, 1);
		emit(f, 10 + i, 0, 3);
		(void)expect(f, 0, 10 + i, 1);
		expect_nothing(f);
		fanout_trace_remove(trace);
	}
	/* By itself, in the index. */
	(void)live_trace(f, 1, 0, "uid == 0");
	(void)live_trace(f, 2, 0, "uid == 1000");
	emit(f, 20, 0, 1);
	(void)expect(f, 0, 2, 1);
	expect_nothing(f);
}

/* While somebody asks for users, those in doubt are read again; the first one has all read that are. */
static void ids_in_doubt_are_read_again_for_filters(void **state)
{
	struct fixture *f = *state;
	struct tasks *tasks = &f->fanout.tasks;
	struct trace *first, *second;

	learn_process(f, 7, 1000);
	tasks_ids_changed(tasks, 6, 7);
	assert_int_equal(tasks->query_count, 0);
	first = live_trace(f, 1, 0, "uid == 0 || n == 3");
	assert_true(tasks->query_all);
	tasks->query_all = false;
	second = live_trace(f, 2, 0, "gid == 0");
	assert_false(tasks->query_all);
	tasks_ids_changed(tasks, 7, 7);
	assert_int_equal(tasks->query_count, 1);
	fanout_trace_remove(first);
	tasks_ids_changed(tasks, 8, 7);
	assert_int_equal(tasks->query_count, 2);
	fanout_trace_remove(second);
	tasks_ids_changed(tasks, 9, 7);
	assert_int_equal(tasks->query_count, 2);
	(void)live_trace(f, 3, 0, "n == 3 && pid == 7");
	assert_int_equal(tasks->asks, 0);
}

/* ---- the ledger ---- */

/* Reads the ids of a thread at that time; euid may differ. */
static void learn(struct fixture *f, int32_t tid, uint32_t uid, uint32_t euid, uint64_t time)
{
	const struct task_read read = {
		.time = time,
		.tid = tid,
		.pid = tid,
		.parent = 1,
		.comm = "task",
		.has_ids = true,
		.ids = { .uid = uid, .euid = euid, .suid = uid, .gid = uid, .egid = uid },
	};

	assert_int_equal(tasks_learn(&f->fanout.tasks, &read), 0);
}

static struct trace *own_trace(struct fixture *f, uint64_t id, int consumer, uint32_t owner, const char *filter)
{
	struct trace *trace = add_trace(f, id, consumer, filter);

	trace->own = true;
	trace->owner = owner;
	assert_int_equal(fanout_trace_start(trace, 0, 0), 0);
	return trace;
}

static void emit_flags(struct fixture *f, uint64_t time, int32_t n, uint8_t flags)
{
	const struct payload payload = { .type = NUMBER, .pid = 1000 + n, .n = n, .flags = flags };

	emit_payload(f, time, 0, &payload, sizeof(payload));
}

/* Threads 1001 and 1002 are user 7's, 1003 is user 8's, 1004 runs a program of another user's for 7, and of 1005
 * nothing is known. */
static void only_events_of_the_owners_processes(void **state)
{
	struct fixture *f = *state;
	struct trace *own = own_trace(f, 1, 0, 7, NULL), *filtered = own_trace(f, 2, 1, 7, "n != 1"), *all;

	learn(f, 1001, 7, 7, 5);
	learn(f, 1002, 7, 7, 5);
	learn(f, 1003, 8, 8, 5);
	learn(f, 1004, 7, 0, 5);
	for (int32_t n = 1; n <= 5; n++)
		emit(f, 10 + (uint64_t)n, 0, n);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 1, 2, 2);
	expect_nothing(f);
	assert_ledger(own, 2, 3, 0);
	assert_ledger(filtered, 1, 4, 0);

	/* A filter that asks for the others gets none of them. */
	filtered->next_filter = NULL;
	assert_int_equal(fanout_trace_filter(filtered, compile(f->number, "uid == 8 || gid == 7"), NULL), 0);
	for (int32_t n = 2; n <= 5; n++)
		emit(f, 20 + (uint64_t)n, 0, n);
	(void)expect(f, 0, 1, 2);
	(void)expect(f, 1, 2, 2);
	expect_nothing(f);

	/* What interrupts its thread isn't its own. */
	emit_flags(f, 31, 1, 0x08);
	emit_flags(f, 32, 1, 0x10);
	emit_flags(f, 33, 1, 0x40);
	expect_nothing(f);
	emit_flags(f, 34, 1, 0x01 | 0x04 | 0x20 | 0x80);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 1, 2, 1);

	/* Its ids were changed, and then read; another that isn't the owner's. */
	tasks_ids_changed(&f->fanout.tasks, 40, 1001);
	emit(f, 41, 0, 1);
	expect_nothing(f);
	learn(f, 1001, 7, 7, 42);
	emit(f, 43, 0, 1);
	(void)expect(f, 0, 1, 1);
	(void)expect(f, 1, 2, 1);
	/* After a loss nothing is proven. */
	tasks_doubt(&f->fanout.tasks, 50);
	emit(f, 51, 0, 2);
	expect_nothing(f);

	/* Beside it one that sees all; and gone again. */
	all = live_trace(f, 3, 0, NULL);
	emit(f, 60, 0, 3);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
	fanout_trace_remove(own);
	fanout_trace_stop(filtered, 70);
	emit(f, 71, 0, 3);
	(void)expect(f, 0, 3, 3);
	expect_nothing(f);
	assert_ledger(all, 2, 0, 0);
	assert_int_equal(f->number->owned_count, 0);
}

/* A consumer that does not read loses its own events, told and counted; the other one loses nothing. */
static void a_full_ring_is_its_own_loss(void **state)
{
	struct fixture *f = *state;
	struct trace *slow = live_trace(f, 1, 0, "n != 3"), *quick = live_trace(f, 2, 1, NULL);
	const struct record_header *record;
	uint64_t made = 0, delivered = 0, lost = 0;
	struct ledger_trace ledger;

	while (fanout_trace_ledger(slow).lost_ring < 10) {
		emit(f, 10 + made, 0, (int32_t)(made % 5));
		(void)expect(f, 1, 2, (int32_t)(made % 5));
		made++;
	}
	ledger = fanout_trace_ledger(slow);
	assert_int_equal(ledger.decoded, made);
	/* Every fifth, beginning with the fourth. */
	assert_int_equal(ledger.filtered, (made + 1) / 5);
	assert_int_equal(ledger.decoded, ledger.delivered + ledger.filtered + ledger.lost_ring);
	assert_ledger(quick, made, 0, 0);
	while ((record = take(f, 0)) != NULL) {
		struct record_lost told;

		if (record->kind == RECORD_EVENT) {
			delivered++;
			continue;
		}
		assert_int_equal(record->kind, RECORD_LOST);
		memcpy(&told, record + 1, sizeof(told));
		assert_int_equal(told.source, LOST_RING);
		lost += told.count;
	}
	assert_int_equal(delivered, ledger.delivered);
	assert_int_equal(lost, ledger.lost_ring);
}

static void misses_of_a_probe_count_from_the_trace_on(void **state)
{
	struct fixture *f = *state;
	struct trace *trace;

	f->number->missed = 5;
	trace = live_trace(f, 1, 0, NULL);
	assert_int_equal(fanout_trace_ledger(trace).missed, 0);
	f->number->missed = 12;
	assert_int_equal(fanout_trace_ledger(trace).missed, 7);
	/* Names that begin alike are others'. */
	assert_ptr_equal(fanout_route_named(&f->fanout, "number", 6), f->number);
	assert_null(fanout_route_named(&f->fanout, "numbers", 7));
	assert_null(fanout_route_named(&f->fanout, "numb", 4));
}

static void settle(struct route *route, uint64_t hits, uint64_t lost)
{
	struct kept kept = { .lost = lost };

	/* More than there is room for at first; the last of them counts. */
	for (uint64_t more = 20; more--;)
		assert_int_equal(kept_add(&kept, route, hits + more), 0);
	kept_settle(&kept);
	kept_release(&kept);
}

/* What the kernel counted and did not record. */
static void hits_are_recorded_or_kept_away(void **state)
{
	struct fixture *f = *state;
	struct trace *trace = live_trace(f, 1, 0, "n != 3");
	struct ledger_kept all;

	/* Nothing has been counted yet. */
	assert_int_equal(fanout_trace_ledger(trace).kept_away, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_UPROBE, 2);
	emit(f, 10, 0, 3);
	emit(f, 11, 0, 4);
	settle(f->number, 12, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 10);
	kept_sum(&f->fanout, &all);
	assert_int_equal(all.hits, 10);
	assert_int_equal(all.probes, 1);
	assert_int_equal(all.others, 0);
	/* The counts are older than the events. */
	settle(f->number, 1, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 0);
	/* What came while nobody had a trace was recorded, too. */
	fanout_trace_remove(trace);
	emit(f, 12, 0, 5);
	trace = live_trace(f, 2, 0, NULL);
	settle(f->number, 12, 2);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, 9);
	/* An event that was lost may have been one of these. */
	settle(f->number, 12, 3);
	assert_int_equal(fanout_trace_ledger(trace).kept_away, LEDGER_UNKNOWN);
	kept_sum(&f->fanout, &all);
	assert_int_equal(all.hits + all.probes, 0);
	assert_int_equal(all.others, 1);
	/* Counted at the entry, recorded at the return; not counted at all. */
	kept_begin(f->number, PROBE_URETPROBE, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_TRACEPOINT, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, LEDGER_UNKNOWN);
	kept_begin(f->number, PROBE_KRETPROBE, 3);
	settle(f->number, 12, 3);
	assert_int_equal(f->number->kept, 9);
}

/* ---- events that nobody asked for by name ---- */

static void see_kind(void *context, struct route *route)
{
	struct fixture *f = context;
	const struct trace model = { .id = 50 + f->seen, .outlet = &f->outlets[1], .until = UINT64_MAX };

	f->seen++;
	assert_int_equal(fanout_trace_add(route, &model, &f->all), 0);
	assert_int_equal(fanout_trace_start(f->all, 0, 0), 0);
}

static void all_events(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;

	f->fanout.unseen = see_kind;
	f->fanout.unseen_context = f;
	emit_kind(f, OTHER, 5, 0, 1);
	assert_int_equal(f->fanout.unrouted, 1);
	/* Somebody comes who wants all: at the first event of each kind he is told of it, and gets that event. */
	f->fanout.all_generation++;
	emit_kind(f, OTHER, 10, 0, 2);
	emit_kind(f, OTHER, 20, 0, 3);
	assert_int_equal(f->seen, 1);
	assert_string_equal(f->all->route->name, "other");
	for (int i = 2; i <= 3; i++) {
		struct payload payload;

		record = take(f, 1);
		assert_non_null(record);
		assert_int_equal(record->trace_id, 50);
		memcpy(&payload, record + 1, sizeof(payload));
		assert_int_equal(payload.type, OTHER);
		assert_int_equal(payload.n, i);
	}
	/* Of a kind that has its route already, too. */
	emit(f, 30, 0, 4);
	assert_int_equal(f->seen, 2);
	(void)expect(f, 1, 51, 4);
	/* And another one who wants all. */
	f->fanout.all_generation++;
	emit(f, 40, 0, 5);
	assert_int_equal(f->seen, 3);
	(void)expect(f, 1, 51, 5);
	(void)expect(f, 1, 52, 5);
	/* What no format file describes stays nobody's. */
	emit_kind(f, 999, 50, 0, 1);
	assert_int_equal(f->seen, 3);
	assert_int_equal(f->fanout.unrouted, 2);
	expect_nothing(f);
}

/* ---- text ---- */

static int tell_line(void *context, const struct text_joined *joined)
{
	struct fixture *f = context;

	assert_int_equal(joined->line.kind, TEXT_EVENT);
	return fanout_text(&f->fanout, joined);
}

static void emit_text(struct fixture *f, const char *line)
{
	struct text_join join;

	text_join_init(&join);
	assert_int_equal(text_join_feed(&join, line, strlen(line), tell_line, f), 0);
	assert_int_equal(text_join_end(&join, tell_line, f), 0);
	text_join_release(&join);
}

static const struct record_header *expect_text(struct fixture *f, int consumer, uint64_t trace_id, int32_t n)
{
	const struct schema *schema = &f->number->schema;
	const struct record_header *record = take(f, consumer);
	uint64_t value = 0;

	assert_non_null(record);
	assert_int_equal(record->trace_id, trace_id);
	assert_int_equal(schema_read_integer(schema, &schema->fields[schema_find(schema, "n")], record + 1,
		record->payload_size, &value), 0);
	assert_int_equal((int32_t)value, n);
	return record;
}

static void lines_of_text(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct record_header *record;
	struct trace *all, *two;

	(void)state;
	assert_non_null(f);
	begin(f, true, HOST_IS_BIG);
	all = live_trace(f, 1, 0, NULL);
	two = live_trace(f, 2, 1, "n == -2");
	assert_int_equal(tasks_set(&f->fanout.tasks, 8, "known", sizeof("known"), false), 0);
	emit_text(f, "            prog-7       [003] .....     2.000001: number: n=1\n");
	emit_text(f, "           <...>-8       [001] .....     2.000002: number: n=-2\n");
	emit_text(f, "           <...>-9       [001] .....     1.999999: number: n=3\n");
	emit_text(f, "            prog-7       [003] .....     2.000003: unknown: n=4\n");
	emit_text(f, "           <..>x-8       [001] .....     2.000004: number: n=5\n");
	emit_text(f, " fifteen_letters-8       [001] .....     2.000005: number: n=6\n");
	record = expect_text(f, 0, 1, 1);
	assert_int_equal(record->cpu, 3);
	assert_int_equal(record->pid, 7);
	assert_int_equal(record->time, 2000001000);
	assert_int_equal(record->flags, RECORD_COMM);
	assert_comm(record, "prog");
	/* A name that the kernel does not know the session may. */
	record = expect_text(f, 0, 1, -2);
	assert_comm(record, "known");
	record = expect_text(f, 0, 1, 3);
	assert_int_equal(record->flags, RECORD_LATE);
	assert_comm(record, NULL);
	assert_comm(expect_text(f, 0, 1, 5), "<..>x");
	assert_comm(expect_text(f, 0, 1, 6), "fifteen_letters");
	(void)expect_text(f, 1, 2, -2);
	expect_nothing(f);
	assert_ledger(all, 5, 0, 0);
	assert_ledger(two, 1, 4, 0);
	assert_int_equal(f->fanout.decoded, 6);
	assert_int_equal(f->fanout.unrouted, 1);
	assert_int_equal(tear_down((void **)&f), 0);
}

/* A format file describes an event, or, of a log, one of its lines. */
static void described_by_a_line(void **state)
{
	static const char call[] = "            prog-7       [003] .....     2.000001: sys_openat(dfd: ffffff9c, mode: 10)";
	struct fixture *f = calloc(1, sizeof(*f));
	struct route *route = NULL, *again = NULL;
	const char *reason = NULL;

	(void)state;
	assert_non_null(f);
	begin(f, true, HOST_IS_BIG);
	assert_int_equal(fanout_describe(&f->fanout, "test", number_format, strlen(number_format), &route, &reason), 0);
	assert_ptr_equal(route, f->number);
	assert_int_equal(fanout_describe(&f->fanout, "", call, strlen(call), &route, &reason), 0);
	assert_string_equal(route->name, "sys_enter_openat");
	/* Without 0x it has two readings, so it stays text. */
	assert_int_equal(route->schema.fields[schema_find(&route->schema, "mode")].kind, SCHEMA_STRING);
	assert_int_equal(fanout_describe(&f->fanout, "", call, strlen(call), &again, &reason), 0);
	assert_ptr_equal(again, route);
	assert_int_equal(fanout_describe(&f->fanout, "", "nothing", 7, &route, &reason), -EBADMSG);
	assert_non_null(reason);
	assert_int_equal(fanout_describe(&f->fanout, "", "", 0, &route, &reason), -EBADMSG);
	assert_int_equal(tear_down((void **)&f), 0);
}

/* ---- rings that are written to ---- */

/* Each is published once, and one that goes away is forgotten. */
static void dirty_rings(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, NULL);
	(void)live_trace(f, 2, 1, NULL);
	emit(f, 10, 0, 1);
	emit(f, 10, 0, 2);
	assert_ptr_equal(f->fanout.dirty, &f->outlets[0]);
	assert_ptr_equal(f->outlets[0].next_dirty, &f->outlets[1]);
	assert_null(f->outlets[1].next_dirty);
	fanout_forget(&f->fanout, &f->outlets[1]);
	assert_ptr_equal(f->fanout.dirty, &f->outlets[0]);
	assert_null(f->outlets[0].next_dirty);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
	assert_null(f->fanout.dirty);
	emit(f, 20, 0, 3);
	assert_true(f->outlets[0].dirty);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
}

/* The last before the process sleeps, behind which nothing may come for long: that a trace is disabled, as here. */
static void due_before_sleep(void **state)
{
	struct fixture *f = *state;
	const struct record_throttled why = { .rate = 1000, .count = 1001 };
	const struct record_header *record = NULL;
	struct record_throttled told;

	(void)live_trace(f, 1, 0, NULL);
	emit(f, 10, 0, 1);
	fanout_publish(&f->fanout);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(record->kind, RECORD_EVENT);
	assert_true(ring_reader_prepare_sleep(&f->readers[0]));
	outlet_throttled(&f->outlets[0], 1, 10, &why);
	fanout_touch(&f->fanout, &f->outlets[0]);
	assert_true(fanout_wake(&f->fanout, 0) == UINT64_MAX);
	assert_int_equal(wake_clear(f->readers[0].wake_fd), 0);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(record->kind, RECORD_THROTTLED);
	memcpy(&told, record + 1, sizeof(told));
	assert_int_equal(told.count, 1001);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 0);
}

/* Consumers that sleep again and again are woken in turn, and no more often than is good for all. */
static void woken_in_turn(void **state)
{
	struct fixture *f = *state;
	const struct record_header *record;
	const uint64_t now = 1000000000;
	uint64_t due = UINT64_MAX;
	unsigned int woken = 0;

	(void)live_trace(f, 1, 0, NULL);
	(void)live_trace(f, 2, 1, NULL);
	while (due == UINT64_MAX) {
		for (int i = 0; i < CONSUMERS; i++) {
			while (ring_reader_next(&f->readers[i], &record) == 1)
				;
			assert_true(ring_reader_prepare_sleep(&f->readers[i]));
		}
		emit(f, 10 + woken, 0, 1);
		fanout_publish(&f->fanout);
		due = fanout_wake(&f->fanout, now);
		for (int i = 0; i < CONSUMERS; i++)
			woken += wake_clear(f->readers[i].wake_fd) == 0;
		assert_in_range(woken, 1, 1000);
	}
	/* Who is left has its turn before who comes now. */
	assert_in_range(due, now + 1, now + 1000000);
	assert_true(fanout_wake(&f->fanout, due - 1) == due);
	assert_non_null(f->fanout.dirty);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 1);
	assert_int_equal(ring_reader_next(&f->readers[0], &record), 0);
	assert_true(ring_reader_prepare_sleep(&f->readers[0]));
	emit(f, 1000, 0, 1);
	fanout_publish(&f->fanout);
	assert_true(fanout_wake(&f->fanout, due) > due);
	assert_int_equal(wake_clear(f->readers[1].wake_fd), woken % 2 ? 0 : -EAGAIN);
	assert_int_equal(wake_clear(f->readers[0].wake_fd), woken % 2 ? -EAGAIN : 0);
	/* Nobody waits for long, whatever went before. */
	f->fanout.woken_until += 1000000000;
	due = fanout_wake(&f->fanout, due);
	assert_in_range(due, now + 1, now + 17000000);
	assert_true(fanout_wake(&f->fanout, due) == UINT64_MAX);
	assert_null(f->fanout.dirty);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_trace_that_was_not_started_takes_nothing),
		TEST(a_trace_begins_at_its_place),
		TEST(a_later_time_on_a_lower_cpu_begins_it_too),
		TEST(a_trace_without_a_place_begins_at_once),
		TEST(the_tail_of_a_stopped_trace),
		TEST(a_stop_before_the_beginning),
		TEST(a_trace_that_is_started_again),
		TEST(a_removed_trace_is_gone),
		TEST(a_late_event_is_flagged),
		TEST(the_name_is_the_one_of_the_moment),
		TEST(snapshots_come_before_the_event_that_changes_the_tasks),
		TEST(time_cpu_and_thread),
		TEST(every_size),
		TEST(short_events),
		cmocka_unit_test(a_kernel_of_the_other_byte_order),
		TEST(a_lone_filter),
		TEST(filters_through_the_index),
		TEST(a_filtered_trace_begins_and_ends),
		TEST(filters_see_thread_name_and_cpu),
		TEST(expressions_that_give_up_are_counted),
		TEST(another_filter_from_here_on),
		TEST(only_events_of_the_owners_processes),
		TEST(a_full_ring_is_its_own_loss),
		TEST(a_filter_knows_the_process_of_a_thread),
		TEST(ids_in_doubt_are_read_again_for_filters),
		TEST(misses_of_a_probe_count_from_the_trace_on),
		TEST(hits_are_recorded_or_kept_away),
		TEST(all_events),
		cmocka_unit_test(lines_of_text),
		cmocka_unit_test(described_by_a_line),
		TEST(dirty_rings),
		TEST(due_before_sleep),
		TEST(woken_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
