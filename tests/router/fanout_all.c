/* Events that nobody has asked for by name, and those of text sessions. */
#include "tests/router/fanout_fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_events),
		cmocka_unit_test(lines_of_text),
		cmocka_unit_test(described_by_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
