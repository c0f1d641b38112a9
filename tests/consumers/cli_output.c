/* Events as lines of text and of JSON, against a made-up libtracefan. */
#include "consumers/cli/output.h"

#include "tests/consumers/cli_fake.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* One field of each kind, behind two of the kernel's own that are not shown. */
static const struct tfan_field fields[] = {
	{ .name = "common_type", .type = "unsigned short", .kind = TFAN_INTEGER, .size = 2, .is_common = true },
	{ .name = "__probe_ip", .type = "unsigned long", .kind = TFAN_INTEGER, .size = 8 },
	{ .name = "s", .type = "char[]", .kind = TFAN_STRING, .size = 1 },
	{ .name = "i8", .type = "s8", .kind = TFAN_INTEGER, .size = 1, .is_signed = true },
	{ .name = "u64", .type = "u64", .kind = TFAN_INTEGER, .size = 8 },
	{ .name = "hex", .type = "x32", .kind = TFAN_INTEGER, .size = 4, .is_signed = true, .display = TFAN_HEX },
	{ .name = "mode", .type = "umode_t", .kind = TFAN_INTEGER, .size = 2, .display = TFAN_OCTAL },
	{ .name = "c", .type = "char", .kind = TFAN_INTEGER, .size = 1, .display = TFAN_CHAR },
	{ .name = "shorts", .type = "s16[3]", .kind = TFAN_BYTES, .size = 2, .is_signed = true },
	{ .name = "mask", .type = "cpumask_t", .kind = TFAN_BYTES, .size = 8, .display = TFAN_BITMASK },
	{ .name = "odd", .type = "struct x", .kind = TFAN_BYTES, .size = 12 },
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const int16_t shorts[] = { -1, 0, 32767 };
static const uint64_t mask[] = { 0x27, 1ULL << 63, 1 };
static const uint8_t odd[] = { 0, 128, 255 };

struct fixture {
	struct tfan_trace trace;
	struct tfan_event event;
	struct writer writer;
	struct output output;
};

static void fixture_event(struct fixture *f)
{
	f->trace = (struct tfan_trace){ .id = 7, .name = "sys:event", .fields = fields, .field_count = FIELDS };
	f->event = (struct tfan_event){
		.kind = TFAN_EVENT,
		.trace = &f->trace,
		.time = 1000000002ULL,
		.wall = 1714979289000000456ULL,
		.cpu = 3,
		.pid = 42,
		.comm = "cat",
		.values = {
			[2] = { .bytes = "/etc/hosts", .size = 10 },
			[3] = { .number = 0xfe },
			[4] = { .number = UINT64_MAX },
			[5] = { .number = 0xffffffffdeadbeefULL },
			[6] = { .number = 0644 },
			[7] = { .number = 'R' },
			[8] = { .bytes = shorts, .size = sizeof(shorts) },
			[9] = { .bytes = mask, .size = sizeof(mask) },
			[10] = { .bytes = odd, .size = sizeof(odd) },
		},
	};
}

static void fixture_open(struct fixture *f, const struct output_format *format, bool decorated)
{
	fixture_event(f);
	assert_int_equal(writer_open_memory(&f->writer), 0);
	output_open(&f->output, format, &f->writer, decorated);
}

static void fixture_close(struct fixture *f)
{
	output_close(&f->output);
	writer_close(&f->writer);
}

/* The record as the one line that it becomes. */
static void check_line(struct fixture *f, const char *expected)
{
	f->writer.used = f->writer.line = 0;
	assert_int_equal(output_record(&f->output, &f->event), 0);
	assert_int_equal(f->writer.line, f->writer.used);
	writer_char(&f->writer, '\0');
	assert_string_equal(f->writer.buffer, expected);
}

static void json_has_every_field_in_its_own_kind(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_json, false);
	check_line(&f, "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,\"pid\":42,"
		       "\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{\"s\":\"/etc/hosts\",\"i8\":-2,"
		       "\"u64\":18446744073709551615,\"hex\":-559038737,\"mode\":420,\"c\":82,\"shorts\":[-1,0,32767],"
		       "\"mask\":[0,1,2,5,127,128],\"odd\":[0,128,255]}}\n");
	fixture_close(&f);
}

static void text_shows_fields_as_the_kernel_does(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_text, false);
	check_line(&f, "07:08:09.000000456 3 42 cat sys:event s=/etc/hosts i8=-2 u64=18446744073709551615 hex=0xdeadbeef "
		       "mode=0644 c='R' shorts=[-1,0,32767] mask=0-2,5,127-128 odd=[0,128,255]\n");
	fixture_close(&f);
}

static void what_the_event_lacks_is_left_out(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_json, false);
	for (size_t i = 1; i < FIELDS; i++)
		f.event.values[i].error = -ENODATA;
	f.event.values[5].error = 0;
	check_line(&f, "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,\"pid\":42,"
		       "\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{\"hex\":-559038737}}\n");
	f.event.values[5].error = -ENODATA;
	check_line(&f, "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,\"pid\":42,"
		       "\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{}}\n");
	fixture_close(&f);
}

static void what_cannot_be_read_is_told(void **state)
{
	struct fixture f;

	(void)state;
	for (int text = 0; text < 2; text++) {
		fixture_open(&f, text ? &output_text : &output_json, false);
		for (size_t i = 1; i < FIELDS; i++)
			f.event.values[i].error = i == 2 || i == 3 || i == 8 ? -EBADMSG : -ENODATA;
		f.event.late = f.event.suspect = f.event.partial = true;
		check_line(&f, text ? "07:08:09.000000456 3 42 cat sys:event s=(unreadable) i8=(unreadable) "
				      "shorts=(unreadable) (late) (suspect) (cut)\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,"
				      "\"pid\":42,\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{\"s\":null,\"i8\":null,"
				      "\"shorts\":null},\"late\":true,\"suspect\":true,\"partial\":true}\n");
		fixture_close(&f);
	}
}

static void what_is_not_known_looks_like_it(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_json, false);
	f.event.comm = "";
	f.event.wall = 0;
	f.event.cpu = -1;
	f.event.pid = -1;
	f.trace.field_count = 1;
	check_line(&f, "{\"kind\":\"event\",\"time\":1000000002,\"wall\":null,\"cpu\":null,\"pid\":-1,\"comm\":\"\","
		       "\"probe\":\"sys:event\",\"id\":7,\"args\":{}}\n");
	fixture_close(&f);
	fixture_open(&f, &output_text, false);
	f.event.comm = "";
	f.event.wall = 0;
	f.trace.field_count = 1;
	check_line(&f, "1.000000002 3 42 <...> sys:event\n");
	fixture_close(&f);
}

static void empty_arrays_and_masks(void **state)
{
	struct fixture f;

	(void)state;
	for (int text = 0; text < 2; text++) {
		fixture_open(&f, text ? &output_text : &output_json, false);
		for (size_t i = 1; i < 8; i++)
			f.event.values[i].error = -ENODATA;
		for (size_t i = 8; i < FIELDS; i++)
			f.event.values[i].size = 0;
		check_line(&f, text ? "07:08:09.000000456 3 42 cat sys:event shorts=[] mask=- odd=[]\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,"
				      "\"pid\":42,\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{\"shorts\":[],"
				      "\"mask\":[],\"odd\":[]}}\n");
		fixture_close(&f);
	}
}

static const struct tfan_process process = {
	.pid = 40, .parent = 1, .start = 5, .is_proven = true, .has_ids = true, .uid = 1000, .euid = 0, .gid = 100, .egid = 100,
	.exe = { "/bin/\"x", 7 }, .cgroup = 9, .cgroup_path = { "/a b", 4 },
};

/* Whose an event is: what isn't proven is said to be so. */
static void events_tell_whose_they_are(void **state)
{
	struct fixture f;

	(void)state;
	for (int text = 0; text < 2; text++) {
		fixture_open(&f, text ? &output_text : &output_json, false);
		f.output.processes = true;
		for (size_t i = 1; i <= FIELDS; i++)
			f.event.values[i].error = -ENODATA;
		f.event.process = &process;
		check_line(&f, text ? "07:08:09.000000456 3 42 cat sys:event process=40 parent=1 uid=1000? euid=0 exe=\"/bin/\\\"x\" cgroup=\"/a b\"\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,"
				      "\"pid\":42,\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{},"
				      "\"process\":{\"pid\":40,\"proven\":true,\"parent\":1,\"start\":5,\"uid\":1000,\"gid\":100,"
				      "\"euid\":0,\"suid\":0,\"ids_proven\":false,\"exe\":\"/bin/\\\"x\",\"cgroup\":\"/a b\","
				      "\"cgroup_id\":9}}\n");
		f.event.process = NULL;
		check_line(&f, text ? "07:08:09.000000456 3 42 cat sys:event\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,"
				      "\"pid\":42,\"comm\":\"cat\",\"probe\":\"sys:event\",\"id\":7,\"args\":{},\"process\":null}\n");
		fixture_close(&f);
	}
}

static void state_is_told_line_by_line(void **state)
{
	static const struct {
		struct tfan_state state;
		const char *json, *text;
	} lines[] = {
		{ { .kind = TFAN_STATE_PROCESS, .pid = 40, .tid = 40, .command = { "a\0b c", 6 }, .folder = { "/", 1 } },
			"\"process\",\"pid\":42,\"comm\":\"cat\",\"parent\":1,\"start\":5,\"uid\":1000,\"gid\":100,\"euid\":0,"
			"\"suid\":0,\"ids_proven\":false,\"exe\":\"/bin/\\\"x\",\"cgroup\":\"/a b\",\"cgroup_id\":9,"
			"\"command\":[\"a\",\"b c\"],\"folder\":\"/\",\"proven\":true}",
			"PROCESS parent=1 uid=1000? euid=0 exe=\"/bin/\\\"x\" cgroup=\"/a b\" folder=/ command=[a \"b c\"]" },
		{ { .kind = TFAN_STATE_THREAD, .pid = 40, .tid = 42, .thread_start = 6 },
			"\"thread\",\"pid\":42,\"comm\":\"cat\",\"process\":40,\"start\":6,\"uid\":1000,\"gid\":100,\"euid\":0,"
			"\"suid\":0,\"ids_proven\":false,\"proven\":true}",
			"THREAD process=40" },
		{ { .kind = TFAN_STATE_MAPPING, .pid = 40, .from = 16, .to = 32, .offset = 4096, .inode = 3, .path = { "/x", 2 },
			.build_id = { "\x0a\xff", 2 } },
			"\"mapping\",\"pid\":40,\"from\":16,\"to\":32,\"offset\":4096,\"path\":\"/x\",\"inode\":3,\"build_id\":\"0aff\"}",
			"MAPPING process=40 from=0x10 to=0x20 offset=0x1000 path=/x build_id=0aff" },
		{ { .kind = TFAN_STATE_FILE, .pid = 40, .fd = 3, .path = { "/a\n", 3 } },
			"\"file\",\"pid\":40,\"fd\":3,\"path\":\"/a\\n\"}", "FILE process=40 fd=3 path=\"/a\\n\"" },
		{ { .kind = TFAN_STATE_SOCKET, .pid = 40, .fd = 4, .family = 2, .type = 1, .protocol = 6, .socket_state = 10, .inode = 8,
			.local = { 127, 0, 0, 1 }, .local_port = 80 },
			"\"socket\",\"pid\":40,\"fd\":4,\"family\":\"inet\",\"type\":1,\"protocol\":6,\"socket_state\":10,\"inode\":8,"
			"\"local\":{\"address\":\"127.0.0.1\",\"port\":80},\"remote\":{\"address\":\"0.0.0.0\",\"port\":0}}",
			"SOCKET process=40 fd=4 family=2 type=1 protocol=6 socket_state=10 local=127.0.0.1:80 remote=0.0.0.0:0" },
		{ { .kind = TFAN_STATE_END, .left_out = 2 }, "\"end\",\"left_out\":2}", "STATE left_out=2" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(lines) / sizeof(lines[0]); i++) {
		char expected[1024];

		fixture_open(&f, i % 2 ? &output_text : &output_json, false);
		f.event.kind = TFAN_STATE;
		f.event.cpu = -1;
		f.event.process = &process;
		f.event.state = &lines[i / 2].state;
		if (i % 2)
			(void)snprintf(expected, sizeof(expected), "07:08:09.000000456 - 42 cat %s\n", lines[i / 2].text);
		else
			(void)snprintf(expected, sizeof(expected),
				"{\"kind\":\"state\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":null,"
				"\"state\":%s\n", lines[i / 2].json);
		check_line(&f, expected);
		fixture_close(&f);
	}
}

/* From a text source the last field is all that the kernel printed. */
static void the_whole_text_is_shown_when_nothing_else_was_read(void **state)
{
	static const struct tfan_field two[] = {
		{ .name = "n", .type = "int", .kind = TFAN_INTEGER, .size = 4 },
		{ .name = "text", .type = "char[]", .kind = TFAN_STRING, .size = 1 },
	};
	struct fixture f;

	(void)state;
	for (int text = 0; text < 2; text++) {
		fixture_open(&f, text ? &output_text : &output_json, false);
		f.output.plans.from_text = true;
		f.trace = (struct tfan_trace){ .id = 7, .name = "a", .fields = two, .field_count = 2 };
		f.event.wall = 0;
		f.event.values[0] = (struct fake_value){ .number = 5 };
		f.event.values[1] = (struct fake_value){ .bytes = "n=5", .size = 3 };
		check_line(&f, text ? "1.000000002 3 42 cat a n=5\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":null,\"cpu\":3,\"pid\":42,\"comm\":\"cat\","
				      "\"probe\":\"a\",\"id\":7,\"args\":{\"n\":5}}\n");
		f.event.values[0].error = -ENODATA;
		check_line(&f, text ? "1.000000002 3 42 cat a text=\"n=5\"\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":null,\"cpu\":3,\"pid\":42,\"comm\":\"cat\","
				      "\"probe\":\"a\",\"id\":7,\"args\":{\"text\":\"n=5\"}}\n");
		fixture_close(&f);
	}
}

static void names_from_outside_are_escaped(void **state)
{
	static const struct tfan_field strange[] = { { .name = "a\"\n b", .kind = TFAN_INTEGER, .size = 4 } };
	struct fixture f;

	(void)state;
	for (int text = 0; text < 2; text++) {
		fixture_open(&f, text ? &output_text : &output_json, false);
		f.trace = (struct tfan_trace){ .id = 7, .name = "x \x1b\xff", .fields = strange, .field_count = 1 };
		f.event.comm = "\x01 \"";
		f.event.values[0].number = 5;
		check_line(&f, text ? "07:08:09.000000456 3 42 \"\\x01 \\\"\" \"x \\x1b\\xff\" \"a\\\"\\n b\"=5\n"
				    : "{\"kind\":\"event\",\"time\":1000000002,\"wall\":\"2024-05-06T07:08:09.000000456Z\",\"cpu\":3,"
				      "\"pid\":42,\"comm\":\"\\u0001 \\\"\",\"probe\":\"x \\u001b\\uefff\",\"id\":7,"
				      "\"args\":{\"a\\\"\\n b\":5}}\n");
		fixture_close(&f);
	}
}

static void losses_filters_and_ends(void **state)
{
	static const struct {
		enum tfan_kind kind;
		struct tfan_lost lost;
		const char *json, *text;
	} rows[] = {
		{ TFAN_LOST, { TFAN_LOST_KERNEL, 1, true, 120, 5, 6 },
			"{\"kind\":\"lost\",\"source\":\"kernel\",\"cpu\":1,\"count\":120,\"from\":5,\"to\":6}\n",
			"07:08:09.000000456 1 - - LOST source=kernel count=120 from=5 to=6\n" },
		{ TFAN_LOST, { TFAN_LOST_RING, -1, false, 3, 5, 6 },
			"{\"kind\":\"lost\",\"source\":\"ring\",\"cpu\":null,\"count\":null,\"at_least\":3,\"from\":5,\"to\":6}\n",
			"07:08:09.000000456 - - - LOST source=ring count=unknown at_least=3 from=5 to=6\n" },
		{ TFAN_GAP, { TFAN_LOST_UNDECODABLE, 0, true, 0, 5, 6 },
			"{\"kind\":\"gap\",\"source\":\"undecodable\",\"cpu\":0,\"count\":0,\"from\":5,\"to\":6}\n",
			"07:08:09.000000456 0 - - GAP source=undecodable count=0 from=5 to=6\n" },
		{ TFAN_END, { 0 },
			"{\"kind\":\"end\",\"reason\":\"error\",\"message\":\"no \\\"room\\\"\"}\n",
			"07:08:09.000000456 - - - END reason=error message=\"no \\\"room\\\"\"\n" },
		{ TFAN_FILTER, { 0 },
			"{\"kind\":\"filter\",\"probe\":\"sys:event\",\"id\":7,\"time\":1000000002,"
			"\"wall\":\"2024-05-06T07:08:09.000000456Z\"}\n",
			"07:08:09.000000456 - - - FILTER probe=sys:event id=7\n" },
		{ TFAN_THROTTLED, { 0 },
			"{\"kind\":\"throttled\",\"probe\":\"sys:event\",\"id\":7,\"time\":1000000002,\"of\":\"probe\",\"rate\":100,"
			"\"count\":123,\"since\":4000}\n",
			"07:08:09.000000456 - - - THROTTLED probe=sys:event id=7 of=probe rate=100 count=123 since=4000\n" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int text = 0; text < 2; text++) {
			fixture_open(&f, text ? &output_text : &output_json, false);
			f.event.kind = rows[i].kind;
			f.event.lost = rows[i].lost;
			f.event.reason = TFAN_END_ERROR;
			f.event.message = "no \"room\"";
			check_line(&f, text ? rows[i].text : rows[i].json);
			fixture_close(&f);
		}
	}
}

static void a_terminal_gets_columns_and_colours(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_text, true);
	f.trace.field_count = 4;
	check_line(&f, "\033[2m07:08:09.000000456\033[0m   3      42 cat             \033[1msys:event           \033[0m"
		       " \033[36ms\033[0m=/etc/hosts \033[36mi8\033[0m=-2\n");
	fixture_close(&f);
}

/* The second is kept between events: the next one must show. */
static void time_goes_on(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &output_text, false);
	f.trace.field_count = 1;
	check_line(&f, "07:08:09.000000456 3 42 cat sys:event\n");
	f.event.wall = 1714979289999999999ULL;
	check_line(&f, "07:08:09.999999999 3 42 cat sys:event\n");
	f.event.wall = 1714979290000000000ULL;
	check_line(&f, "07:08:10.000000000 3 42 cat sys:event\n");
	f.event.wall = 1714979289000000001ULL;
	check_line(&f, "07:08:09.000000001 3 42 cat sys:event\n");
	fixture_close(&f);
}

/* More traces than the first table has places for; what was shown is counted for each. */
static void many_traces_are_told_apart(void **state)
{
	enum { TRACES = 100 };
	struct tfan_trace *traces = calloc(TRACES, sizeof(*traces));
	struct fixture f;

	(void)state;
	assert_non_null(traces);
	fixture_open(&f, &output_text, false);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < TRACES; i++) {
			char expected[80];

			traces[i] = (struct tfan_trace){ .id = (uint64_t)i };
			(void)snprintf(traces[i].name, sizeof(traces[i].name), "t%d", i);
			(void)snprintf(expected, sizeof(expected), "07:08:09.000000456 3 42 cat t%d\n", i);
			f.event.trace = &traces[i];
			check_line(&f, expected);
		}
	}
	for (int i = 0; i < TRACES; i++) {
		const struct plan *plan = plan_find(&f.output.plans, &traces[i]);

		assert_non_null(plan);
		assert_int_equal(plan->shown, 2);
	}
	assert_null(plan_find(&f.output.plans, &f.trace));
	fixture_close(&f);
	free(traces);
}

static void check_summary(void (*write)(struct writer *, const struct summary *), const struct summary *summary, const char *expected)
{
	struct writer writer;

	assert_int_equal(writer_open_memory(&writer), 0);
	write(&writer, summary);
	writer_char(&writer, '\0');
	assert_string_equal(writer.buffer, expected);
	writer_close(&writer);
}

static void summaries(void **state)
{
	struct summary_probe probes[] = {
		{ "a:b", true, { 10, 7, 2, 1, 4, 2, 90, true }, 6 },
		{ "b", true, { 3, 3, 0, 0, 0, 0, 0, false }, 3 },
		{ "c", false, { 0 }, 5 },
	};
	struct summary summary = { true, { 30, 10, 1, 19, 2, 0, 0, 0 }, probes, 3 };

	(void)state;
	check_summary(output_json_summary, &summary,
		"{\"kind\":\"summary\",\"session\":{\"committed\":30,\"decoded\":10,\"undecodable\":1,\"lost_kernel\":19,\"dropped\":2},"
		"\"probes\":{\"a:b\":{\"decoded\":10,\"delivered\":7,\"filtered\":2,\"lost_ring\":1,\"missed\":4,\"gave_up\":2,\"kept_away\":90,\"shown\":6},"
		"\"b\":{\"decoded\":3,\"delivered\":3,\"filtered\":0,\"lost_ring\":0,\"missed\":0,\"gave_up\":0,\"kept_away\":null,\"shown\":3},"
		"\"c\":{\"decoded\":null,\"delivered\":null,\"filtered\":null,\"lost_ring\":null,\"missed\":null,\"gave_up\":null,\"kept_away\":null,\"shown\":5}}}\n");
	check_summary(output_text_summary, &summary,
		"PROBE     DECODED   DELIVERED    FILTERED   LOST RING       SHOWN\n"
		"a:b            10           7           2           1           6  missed by the kernel: 4  expressions that gave up: 2  kept away by the kernel: 90\n"
		"b               3           3           0           0           3\n"
		"c               ?           ?           ?           ?           5\n"
		"session: 30 committed = 10 decoded + 1 undecodable + 19 lost in the kernel; dropped before they were committed: 2\n");
	/* An observer's probes: its user asked for none of them by name. */
	probes[0].ledger = (struct tfan_ledger){ 0 };
	summary.only_busy = true;
	check_summary(output_text_summary, &summary,
		"PROBE     DECODED   DELIVERED    FILTERED   LOST RING       SHOWN\n"
		"b               3           3           0           0           3\n"
		"c               ?           ?           ?           ?           5\n"
		"and 1 probe without an event\n"
		"session: 30 committed = 10 decoded + 1 undecodable + 19 lost in the kernel; dropped before they were committed: 2\n");
	probes[0].ledger = (struct tfan_ledger){ .kept_away = 1, .kept_known = true };
	probes[1].ledger = (struct tfan_ledger){ .missed = 1 };
	summary.session_known = false;
	check_summary(output_text_summary, &summary,
		"PROBE     DECODED   DELIVERED    FILTERED   LOST RING       SHOWN\n"
		"a:b             0           0           0           0           6  kept away by the kernel: 1\n"
		"b               0           0           0           0           3  missed by the kernel: 1\n"
		"c               ?           ?           ?           ?           5\n");
	summary.count = 0;
	check_summary(output_json_summary, &summary, "{\"kind\":\"summary\",\"session\":{\"committed\":null,\"decoded\":null,\"undecodable\":null,"
		"\"lost_kernel\":null,\"dropped\":null},\"probes\":{}}\n");
	check_summary(output_text_summary, &summary, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_every_field_in_its_own_kind),
		cmocka_unit_test(text_shows_fields_as_the_kernel_does),
		cmocka_unit_test(what_the_event_lacks_is_left_out),
		cmocka_unit_test(what_cannot_be_read_is_told),
		cmocka_unit_test(what_is_not_known_looks_like_it),
		cmocka_unit_test(empty_arrays_and_masks),
		cmocka_unit_test(events_tell_whose_they_are),
		cmocka_unit_test(state_is_told_line_by_line),
		cmocka_unit_test(the_whole_text_is_shown_when_nothing_else_was_read),
		cmocka_unit_test(names_from_outside_are_escaped),
		cmocka_unit_test(losses_filters_and_ends),
		cmocka_unit_test(a_terminal_gets_columns_and_colours),
		cmocka_unit_test(time_goes_on),
		cmocka_unit_test(many_traces_are_told_apart),
		cmocka_unit_test(summaries),
	};

	(void)setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
