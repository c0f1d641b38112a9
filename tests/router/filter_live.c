/* Filters and the running kernel: the same text in an event's `filter` file and in the router must
 * let the same events of the same workload pass, and so must the text that the router writes for
 * the kernel. */
#include "router/catalog.h"
#include "router/filter.h"
#include "router/page.h"
#include "tests/router/filter_texts.h"
#include "tests/support/program_place.h"
#include "tests/support/trace_instance.h"

#include "base/checked.h"

#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <cmocka.h>

#if defined(__x86_64__)
#define ARGUMENT "%%di"
#elif defined(__aarch64__)
#define ARGUMENT "%%x0"
#endif

#define WORKLOAD 64 /* most events of one run */
#define CPUS_MAX 64

/* ---- what is traced ---- */

/* What the probe reads; the offsets stand in the probe's definition. */
struct values {
	uint32_t seq;     /* 0 */
	uint8_t u8;       /* 4 */
	int8_t s8;        /* 5 */
	uint16_t u16;     /* 6 */
	int16_t s16;      /* 8 */
	uint32_t u32;     /* 12 */
	int32_t s32;      /* 16 */
	uint64_t u64;     /* 24 */
	int64_t s64;      /* 32 */
	char path[48];    /* 40 */
	const char *link; /* 88: a second string, behind a pointer that may lead nowhere */
};

#define PROBE_ARGUMENTS                                                                                    \
	"seq=+0(" ARGUMENT "):u32 u8=+4(" ARGUMENT "):u8 s8=+5(" ARGUMENT "):s8 u16=+6(" ARGUMENT "):u16 "     \
	"s16=+8(" ARGUMENT "):s16 u32=+12(" ARGUMENT "):u32 s32=+16(" ARGUMENT "):s32 u64=+24(" ARGUMENT       \
	"):u64 s64=+32(" ARGUMENT "):s64 x32=+12(" ARGUMENT "):x32 link=+0(+88(" ARGUMENT ")):string "         \
	"path=+40(" ARGUMENT "):string"

static const struct values workload[] = {
	{ .u8 = 0, .path = "/etc/passwd", .link = "/a" },
	{ .u8 = 1, .s8 = -1, .u16 = 1, .s16 = -1, .u32 = 1, .s32 = -1, .u64 = 1, .s64 = -1, .path = "/etc/shadow",
		.link = "/bin/sh" },
	{ .u8 = 255, .s8 = -128, .u16 = 65535, .s16 = -32768, .u32 = UINT32_MAX, .s32 = INT32_MIN, .u64 = UINT64_MAX,
		.s64 = INT64_MIN, .path = "", .link = "" },
	{ .u8 = 128, .s8 = 127, .u16 = 32768, .s16 = 32767, .u32 = 0x80000000, .s32 = INT32_MAX, .u64 = 1ULL << 63,
		.s64 = INT64_MAX, .path = "/tmp/x.so", .link = NULL },
	{ .u8 = 127, .s8 = 1, .u16 = 32767, .s16 = 1, .u32 = 0x7fffffff, .s32 = 1, .u64 = (1ULL << 63) - 1, .s64 = 1,
		.path = "/usr/lib/libc.so.6", .link = "x" },
	{ .u8 = 2, .s8 = -2, .u16 = 2, .s16 = -2, .u32 = 2, .s32 = -2, .u64 = (1ULL << 63) + 1, .s64 = -2,
		.path = "name with blanks", .link = "1st" },
	{ .u8 = 64, .s8 = 64, .u16 = 256, .s16 = 256, .u32 = 65536, .s32 = 65536, .u64 = 1ULL << 32, .s64 = 1LL << 32,
		.path = "a*b?c[d]", .link = "!x" },
	{ .u8 = 3, .s8 = 3, .u16 = 1000, .s16 = 1000, .u32 = 1000000, .s32 = -1000000, .u64 = 0x100000001, .s64 = -100,
		.path = "\"quoted\"", .link = "'" },
	{ .u8 = 10, .s8 = 10, .u16 = 10, .s16 = 10, .u32 = 10, .s32 = 10, .u64 = 10, .s64 = 10, .path = "1abc",
		.link = "/etc/passwd" },
	{ .u8 = 11, .s8 = -11, .u16 = 11, .s16 = -11, .u32 = 11, .s32 = -11, .u64 = 11, .s64 = -11, .path = "back\\slash",
		.link = NULL },
	{ .u8 = 170, .s8 = 85, .u16 = 0xaaaa, .s16 = 0x5555, .u32 = 0xaaaaaaaa, .s32 = 0x55555555,
		.u64 = 0xaaaaaaaaaaaaaaaa, .s64 = 0x5555555555555555, .path = "x", .link = "/etc/shadow" },
	{ .u8 = 85, .s8 = -86, .u16 = 0x5555, .s16 = -21846, .u32 = 0x55555555, .s32 = -1431655766,
		.u64 = 0x5555555555555555, .s64 = -6148914691236517206, .path = "/etc/", .link = NULL },
};

/* Names that a thread takes in turn: the last event of each tells of the next one. */
static const char *const names[] = { "bash", "sh", "aaaaaaaaaaaaash", "1abc", "x.sh", "foo bar", "x\"y", "it's", "[z]",
	"back\\slash", "BASH", "kworker/0:1", "a", "" };

__attribute__((noinline)) void filter_live_probed(const struct values *values);
void filter_live_probed(const struct values *values)
{
	__asm__ volatile("" : : "r"(values) : "memory");
}

/* ---- one kind of event and what became of a workload ---- */

struct seen {
	bool there;
	uint8_t payload[256];
	size_t size;
	uint32_t cpu;
};

struct target {
	const char *system, *name;
	size_t count; /* events of a run */
	void (*run)(void);
	size_t (*number)(const struct target *target, const uint8_t *payload,
		size_t size); /* which one it is */
	const char *(*comm)(size_t number);
	const struct catalog_event *event;
	struct seen all[WORKLOAD]; /* without a filter */
};

static struct trace_instance instance;
static struct catalog *catalog;
static struct page_layout layout;
static unsigned int cpu_count;

static void take_name(const char *name)
{
	assert_int_equal(prctl(PR_SET_NAME, name, 0, 0, 0), 0);
}

static void move_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % cpu_count, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void run_probe(void)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(workload); i++) {
		struct values values = workload[i];

		values.seq = i;
		move_to(i);
		take_name(names[i]);
		filter_live_probed(&values);
	}
	take_name("filter_live");
}

static uint64_t read_field(
	const struct target *target, const char *name, const uint8_t *payload, size_t size)
{
	int i = schema_find(&target->event->schema, name);
	uint64_t value = 0;

	assert_true(i >= 0);
	assert_int_equal(schema_read_integer(&target->event->schema,
				 &target->event->schema.fields[i], payload, size, &value),
		0);
	return value;
}

static size_t number_of_probe(const struct target *target, const uint8_t *payload, size_t size)
{
	return (size_t)read_field(target, "seq", payload, size);
}

static const char *comm_of_probe(size_t number)
{
	return names[number];
}

static void run_rename(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		move_to(i);
		take_name(names[i]);
	}
	take_name("filter_live");
}

/* By its new name; SIZE_MAX: not ours. */
static size_t number_of_rename(const struct target *target, const uint8_t *payload, size_t size)
{
	int i = schema_find(&target->event->schema, "newcomm");
	const uint8_t *bytes;
	size_t length;

	if (read_field(target, "common_pid", payload, size) != (uint64_t)getpid())
		return SIZE_MAX;
	assert_int_equal(schema_read_bytes(&target->event->schema, &target->event->schema.fields[i],
				 payload, size, &bytes, &length),
		0);
	for (size_t j = 0; j < ARRAY_SIZE(names); j++)
		if (strlen(names[j]) == length && !memcmp(names[j], bytes, length))
			return j;
	return SIZE_MAX;
}

static const char *comm_of_rename(size_t number)
{
	return number ? names[number - 1] : "filter_live";
}

static struct target probe = {
	.count = ARRAY_SIZE(workload),
	.run = run_probe,
	.number = number_of_probe,
	.comm = comm_of_probe,
};
static struct target rename_target = {
	.system = "task",
	.name = "task_rename",
	.count = ARRAY_SIZE(names),
	.run = run_rename,
	.number = number_of_rename,
	.comm = comm_of_rename,
};

/* ---- running it ---- */

/* Writes the event's filter. Returns 0 or -errno. */
static int set_filter(const struct target *target, const char *text)
{
	char file[256];
	ssize_t size = (ssize_t)strlen(text);
	int fd, r = 0;

	(void)snprintf(file, sizeof(file), "events/%s/%s/filter", target->system, target->name);
	fd = trace_instance_open(&instance, file, O_WRONLY);
	assert_true(fd >= 0);
	if (write(fd, text, (size_t)size) != size)
		r = -errno;
	(void)close(fd);
	return r;
}

static void sort_page(
	const struct target *target, uint32_t cpu, const char *page, size_t size, struct seen *seen)
{
	struct page_cursor cursor;
	struct page_event event;
	uint16_t type;
	int more;

	assert_int_equal(page_open(&cursor, &layout, page, size), 0);
	while ((more = page_next(&cursor, &event)) > 0) {
		size_t number;

		memcpy(&type, event.data, sizeof(type));
		if (type != target->event->type)
			continue;
		number = target->number(target, event.data, event.size);
		if (number == SIZE_MAX)
			continue;
		assert_true(number < target->count && event.size <= sizeof(seen->payload));
		assert_false(seen[number].there);
		seen[number] = (struct seen){ .there = true, .size = event.size, .cpu = cpu };
		memcpy(seen[number].payload, event.data, event.size);
	}
	assert_int_equal(more, 0);
}

/* Runs the workload and sorts what came of it into `seen`. */
static void run(const struct target *target, struct seen *seen)
{
	memset(seen, 0, target->count * sizeof(*seen));
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "1"), 0);
	target->run();
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "0"), 0);
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		size_t subbuf = (size_t)sysconf(_SC_PAGESIZE);
		char file[64], *page = malloc(subbuf);
		ssize_t size;
		int fd;

		assert_non_null(page);
		(void)snprintf(file, sizeof(file), "per_cpu/cpu%u/trace_pipe_raw", cpu);
		fd = trace_instance_open(&instance, file, O_RDONLY | O_NONBLOCK);
		assert_true(fd >= 0);
		while ((size = read(fd, page, subbuf)) > 0)
			sort_page(target, cpu, page, (size_t)size, seen);
		(void)close(fd);
		free(page);
	}
}

static struct filter_program *compile(const struct target *target, const char *text)
{
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;
	const struct filter_environment environment = { .lacks = FILTER_TGID };

	if (filter_parse(text, strlen(text), &ast, &failure) ||
		filter_compile(ast, &target->event->schema, &environment, &program, &failure))
		fail_msg("'%s': %s at %d", text, failure.message, failure.position);
	filter_ast_release(ast);
	return program;
}

static bool router_accepts(
	const struct target *target, struct filter_program *program, size_t number)
{
	const struct seen *seen = &target->all[number];
	const struct filter_event event = {
		.payload = seen->payload,
		.size = seen->size,
		.facts = FILTER_TID | FILTER_CPU | FILTER_COMM,
		.tid = (int32_t)read_field(target, "common_pid", seen->payload, seen->size),
		.cpu = seen->cpu,
		.comm = target->comm(number),
	};

	return filter_match(program, &event);
}

/* What the text that the router writes for the kernel lets pass: all that the filter accepts, and
 * where it is said to be exact, nothing else. */
static void check_kernel_text(
	const struct target *target, struct filter_program *program, const char *text)
{
	struct seen seen[WORKLOAD];
	char *kernel;
	bool exact;
	int r;

	assert_int_equal(filter_kernel_text(program, FILTER_KERNEL_TEXT_MAX, &kernel, &exact), 0);
	r = set_filter(target, kernel);
	if (r)
		fail_msg("'%s' for '%s' is refused: %s", kernel, text, strerror(-r));
	run(target, seen);
	for (size_t i = 0; i < target->count; i++) {
		bool wanted = router_accepts(target, program, i);

		if (wanted && !seen[i].there)
			fail_msg("'%s' for '%s' loses event %zu", kernel, text, i);
		if (exact && !wanted && seen[i].there)
			fail_msg("'%s' for '%s' is not exact: event %zu", kernel, text, i);
	}
	free(kernel);
}

/* `same`: the text itself, as it stands, is a filter of the kernel's and lets the same events pass. */
static void check_filter(const struct target *target, const char *text, bool same)
{
	struct filter_program *program = compile(target, text);
	struct seen seen[WORKLOAD];

	if (same) {
		int r = set_filter(target, text);

		if (r && (strstr(text, "CPUS{") || strstr(text, ".ustring"))) {
			print_message("this kernel has no '%s'\n", text);
			check_kernel_text(target, program, text);
			filter_program_release(program);
			return;
		}
		if (r)
			fail_msg("'%s' is refused by the kernel: %s", text, strerror(-r));
		run(target, seen);
		for (size_t i = 0; i < target->count; i++)
			if (seen[i].there != router_accepts(target, program, i))
				fail_msg("'%s': the kernel %s event %zu", text,
					seen[i].there ? "accepts" : "doesn't accept", i);
	}
	check_kernel_text(target, program, text);
	filter_program_release(program);
}

/* ---- filters ---- */

static void check_filters(
	const struct target *target, const char *const *filters, size_t count, bool same)
{
	for (size_t i = 0; i < count; i++)
		check_filter(target, filters[i], same);
}

static void test_numbers(void **state)
{
	(void)state;
	check_filters(&probe, number_filters, ARRAY_SIZE(number_filters), true);
}

static void test_strings(void **state)
{
	(void)state;
	check_filters(&probe, string_filters, ARRAY_SIZE(string_filters), true);
}

static void test_logic(void **state)
{
	(void)state;
	check_filters(&probe, logic_filters, ARRAY_SIZE(logic_filters), true);
}

static void test_own(void **state)
{
	(void)state;
	check_filters(&probe, own_filters, ARRAY_SIZE(own_filters), false);
}

static void test_arrays(void **state)
{
	(void)state;
	check_filters(&rename_target, rename_filters, ARRAY_SIZE(rename_filters), true);
	check_filters(&rename_target, array_filters, ARRAY_SIZE(array_filters), false);
}

/* Neither takes it. The kernel is left without a filter then, so that nothing is lost by a refusal. */
static void test_refused(void **state)
{
	struct seen seen[WORKLOAD];
	unsigned int bad = 0;

	(void)state;
	assert_int_equal(set_filter(&probe, "u8 == 1"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused_filters); i++) {
		const char *text = refused_filters[i].text;
		struct filter_program *program = NULL;
		struct filter_failure failure = { .position = -1 };
		struct filter_ast *ast = NULL;
		int r = set_filter(&probe, text);

		if (!r)
			print_error("'%s' is accepted by the kernel\n", text);
		if (filter_parse(text, strlen(text), &ast, &failure) == 0 &&
			filter_compile(ast, &probe.event->schema, NULL, &program, &failure) == 0)
			print_error("'%s' is accepted by the router\n", text);
		else if (failure.position != refused_filters[i].position)
			print_error("'%s' fails at %d: %s\n", text, failure.position,
				failure.message);
		bad += !r || program || failure.position != refused_filters[i].position;
		filter_program_release(program);
		filter_ast_release(ast);
	}
	assert_int_equal(bad, 0);
	run(&probe, seen);
	for (size_t i = 0; i < probe.count; i++)
		assert_true(seen[i].there);
}

/* Any of the filters together. */
static void test_combinations(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (unsigned int i = 0; i < 60; i++) {
		const char *parts[3];
		char text[512];

		for (unsigned int j = 0; j < 3; j++) {
			random = random * 1664525 + 1013904223;
			parts[j] = random & 0x100 ? number_filters[(random >> 10) %
								   ARRAY_SIZE(number_filters)]
						  : string_filters[(random >> 10) %
								   ARRAY_SIZE(string_filters)];
		}
		(void)snprintf(text, sizeof(text), "(%s %s %s%s%s) %s %s", parts[0],
			i & 1 ? "&&" : "||", i & 2 ? "!(" : "", parts[1], i & 2 ? ")" : "",
			i & 4 ? "&&" : "||", parts[2]);
		check_filter(&probe, text, true);
	}
}

/* The kernel's limits: the greatest text that it takes, the longest string, and what is over
 * either. */
static void test_limits(void **state)
{
	struct filter_program *programs[1000], *all;
	char text[512];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(programs); i++) {
		(void)snprintf(text, sizeof(text),
			"seq == %u && path == \"/some/where/%u\" || u8 == 1", 2 * i, i);
		programs[i] = compile(&probe, text);
	}
	assert_int_equal(filter_union((const struct filter_program *const *)programs,
				 ARRAY_SIZE(programs), &all),
		0);
	check_kernel_text(&probe, all, "a thousand filters");
	filter_program_release(all);
	for (unsigned int i = 0; i < ARRAY_SIZE(programs); i++)
		filter_program_release(programs[i]);
	for (unsigned int size = 250; size < 260; size++) {
		(void)snprintf(text, sizeof(text), "path != \"%0*d\"", (int)size, 0);
		check_filter(&probe, text, false);
		(void)snprintf(text, sizeof(text), "path == \"%0*d\" || u8 == 1", (int)size, 0);
		check_filter(&probe, text, false);
	}
}

/* ---- setting up ---- */

static void begin_target(struct target *target)
{
	char file[256];
	const char *reason = "";
	struct catalog_event *event = NULL;
	size_t size = 0;
	char *text;

	(void)snprintf(file, sizeof(file), "/events/%s/%s/format", target->system, target->name);
	text = trace_instance_read(&instance, file, &size);
	assert_non_null(text);
	assert_int_equal(catalog_add(catalog, target->system, text, size, &event, &reason), 0);
	free(text);
	target->event = event;
	(void)snprintf(file, sizeof(file), "events/%s/%s/enable", target->system, target->name);
	assert_int_equal(trace_instance_write(&instance, file, "1"), 0);
	run(target, target->all);
	for (size_t i = 0; i < target->count; i++)
		assert_true(target->all[i].there);
}

static int setup(void **state)
{
	char place[64], *text;
	int self = program_place((uintptr_t)filter_live_probed, place, sizeof(place));
	size_t size = 0;

	(void)state;
	cpu_count = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_count = cpu_count < CPUS_MAX ? cpu_count : CPUS_MAX;
	trace_instance_create(&instance, "filter");
	assert_int_equal(catalog_create(false, sizeof(long), &catalog), 0);
	text = trace_instance_read(&instance, "/events/header_page", &size);
	assert_non_null(text);
	assert_int_equal(page_layout_parse(text, size, false, &layout), 0);
	free(text);
	assert_true(self >= 0);
	assert_int_equal(trace_instance_write(&instance, "/uprobe_events", "p:%s/values %s " PROBE_ARGUMENTS, instance.group, place),
		0);
	(void)close(self);
	probe.system = instance.group;
	probe.name = "values";
	begin_target(&probe);
	begin_target(&rename_target);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trace_instance_remove(&instance);
	(void)trace_instance_write(&instance, "/uprobe_events", "-:%s/values", instance.group);
	catalog_release(catalog);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_logic),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_limits),
	};
	const char *missing = trace_instance_missing();

#ifndef ARGUMENT
	missing = "no uprobe arguments are known for this machine";
#endif
	if (missing) {
		print_message("skipped: %s\n", missing);
		return 77;
	}
	return cmocka_run_group_tests_name("filter_live", tests, setup, teardown);
}
