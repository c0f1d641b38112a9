/* The same events of the running kernel once read as text and once as bytes, field by field: integers of each width and
 * sign, strings of each kind, arrays, dynamic ones, masks, and what text has only as words; of tracepoints, system calls,
 * probes in programs and, where the kernel has them, in itself. Where this program made the values, both are compared
 * with those, too. */
#include "tests/differential/both_forms.h"
#include "tests/differential/hostile_strings.h"

#include "base/checked.h"
#include "tests/support/program_place.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/membarrier.h>
#include <cmocka.h>

/* Registers of the first four arguments of a function. */
#if defined(__x86_64__)
#define A0 "%di"
#define A1 "%si"
#define A2 "%dx"
#define A3 "%cx"
#elif defined(__aarch64__)
#define A0 "%x0"
#define A1 "%x1"
#define A2 "%x2"
#define A3 "%x3"
#endif

static struct both_forms both;

/* ---- what is probed ---- */

/* Called by pointers that the compiler can't see through, so that no copy of it is called instead. */
static int probed_strings(const char *s, uint64_t u, int32_t n, const char *const *list)
{
	__asm__ volatile("" : : "r"(s), "r"(u), "r"(n), "r"(list) : "memory");
	return n - 1;
}

static uint64_t probed_numbers(uint64_t value, const uint8_t *bytes)
{
	__asm__ volatile("" : : "r"(value), "r"(bytes) : "memory");
	return ~value;
}

static int set_up(void **state)
{
	(void)state;
	both_forms_begin(&both, "differential");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	both_forms_end(&both);
	return 0;
}

/* The order of events is that of one CPU. */
static void stay_here(void)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET((unsigned long)sched_getcpu(), &only);
	(void)sched_setaffinity(0, sizeof(only), &only);
}

/* ---- strings ---- */

static void call_with_strings(void)
{
	stay_here();
	hostile_strings_call(probed_strings);
}

static const char long_string_bytes[] = "long ";
#define LONG_STRINGS 7 /* of 1 to 1093 bytes */

static void call_with_long_strings(void)
{
	int (*volatile call)(const char *, uint64_t, int32_t, const char *const *) = probed_strings;
	static char text[2000];

	stay_here();
	for (size_t n = 0, length = 1; n < LONG_STRINGS; n++, length = length * 3 + 1) {
		for (size_t i = 0; i < length; i++)
			text[i] = long_string_bytes[i % strlen(long_string_bytes)];
		text[length] = '\0';
		(void)call(text, length, 0, NULL);
	}
}

/* ---- tracepoints and system calls ---- */

static void run_a_program(const char *path)
{
	pid_t child = fork();

	if (child == 0) {
		execl(path, path, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(child, NULL, 0);
}

/* A program whose path has everything in it, and whose text ends with what the kernel prints next. */
static void work_of_all_kinds(void)
{
	static const char folder[] = "/tmp/tracefan text c:\\Program \"Files\" = x\n";
	char path[128];

	(void)prctl(PR_SET_NAME, "a\nb c-1 [000]");
	for (int i = 0; i < 3; i++) {
		int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);

		(void)close(fd);
		(void)openat(fd, "relative", O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		(void)open("/no/such \"file\"", O_RDONLY | O_CLOEXEC);
	}
	(void)mkdir(folder, 0700);
	(void)snprintf(path, sizeof(path), "%s/true pid=1 old_pid=1", folder);
	if (symlink("/bin/true", path) == 0)
		run_a_program(path);
	(void)unlink(path);
	(void)rmdir(folder);
	run_a_program("/bin/true");
	(void)kill(getpid(), 0);
	(void)usleep(1000);
}

static void tracepoints_and_system_calls(void **state)
{
	static const char *const wanted[][2] = {
		{ "sched", "sched_process_exec" }, { "sched", "sched_process_fork" }, { "sched", "sched_process_exit" },
		{ "sched", "sched_switch" },       { "sched", "sched_wakeup" },       { "sched", "sched_waking" },
		{ "sched", "sched_wakeup_new" },   { "task", "task_newtask" },        { "task", "task_rename" },
		{ "syscalls", "sys_enter_openat" }, { "syscalls", "sys_exit_openat" }, { "syscalls", "sys_exit_execve" },
		{ "syscalls", "sys_enter_close" }, { "syscalls", "sys_exit_close" },  { "syscalls", "sys_enter_wait4" },
		{ "signal", "signal_generate" },   { "signal", "signal_deliver" },    { "timer", "hrtimer_start" },
		{ "timer", "timer_start" },        { "kmem", "kmem_cache_alloc" },    { "kmem", "mm_page_alloc" },
		{ "filemap", "mm_filemap_add_to_page_cache" }, { "irq", "softirq_raise" }, { "workqueue", "workqueue_queue_work" },
		{ "rcu", "rcu_utilization" },      { "exceptions", "page_fault_user" }, { "irq_vectors", "local_timer_entry" },
		{ "raw_syscalls", "sys_enter" },   { "raw_syscalls", "sys_exit" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!both_forms_enable(&both, wanted[i][0], wanted[i][1]))
			print_message("  this kernel has no %s:%s\n", wanted[i][0], wanted[i][1]);
	both_forms_trace_child(&both, work_of_all_kinds);
	assert_true(both_forms_compare(&both, NULL, NULL) > 100);
	/* An array of the kernel's, a __data_loc string, plain numbers. */
	assert_true(both_forms_kind(&both, "sys_enter")->compared > 50);
	assert_true(both_forms_kind(&both, "sched_process_exec")->compared >= 6);
	assert_true(both_forms_kind(&both, "sched_process_fork")->compared >= 8);
	assert_true(both_forms_kind(&both, "sched_process_exit")->compared >= 9);
	assert_int_equal(both_forms_kind(&both, "sched_process_exec")->absent, 0);
	assert_int_equal(both_forms_kind(&both, "sched_process_fork")->absent, 0);
	assert_true(both_forms_kind(&both, "sys_enter_openat")->compared >= 3 * 9);
	assert_true(both_forms_kind(&both, "sys_exit_openat")->compared >= 9);
	/* Words by flags, by a table, and by an expression. */
	assert_true(both_forms_kind(&both, "sched_switch")->printed > 0);
	assert_true(both_forms_kind(&both, "mm_page_alloc")->printed > 0);
}

/* ---- probes in programs ---- */

static void assert_string(const struct schema *schema, const struct both_event *event, const char *field,
	const char *expected, size_t expected_size)
{
	const uint8_t *bytes;
	size_t size;
	int at = schema_find(schema, field);

	assert_true(at >= 0);
	assert_int_equal(schema_read_bytes(schema, &schema->fields[at], event->payload, event->size, &bytes, &size), 0);
	assert_int_equal(size, expected_size);
	assert_memory_equal(bytes, expected, size);
}

static void assert_absent(const struct schema *schema, const struct both_event *event, const char *field)
{
	const uint8_t *bytes;
	size_t size;
	int at = schema_find(schema, field);

	assert_true(at >= 0);
	assert_int_equal(schema_read_bytes(schema, &schema->fields[at], event->payload, event->size, &bytes, &size), -ENODATA);
}

/* The last call's string can't be read. */
static void true_strings(const struct schema *schema, const struct both_event *event, size_t n)
{
	if (n == ARRAY_SIZE(hostile_strings)) {
		assert_absent(schema, event, "s");
		return;
	}
	assert_string(schema, event, "s", hostile_strings[n], strlen(hostile_strings[n]));
	assert_string(schema, event, "first", "one", 3);
}

static void true_long_strings(const struct schema *schema, const struct both_event *event, size_t n)
{
	char text[2000];
	size_t length = 1;

	while (n--)
		length = length * 3 + 1;
	for (size_t i = 0; i < length; i++)
		text[i] = long_string_bytes[i % strlen(long_string_bytes)];
	assert_string(schema, event, "s", text, length);
}

/* Patterns at the limits of each width. */
static const uint64_t patterns[] = { 0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
	0xffffffff, 0x100000000, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, 0x0123456789abcdef, 0xfedcba9876543210,
	0x8080808080808080, 0x61, 0xffffffffffffff9c };
static const uint8_t pattern_bytes[16] = { 0, 0x80, 0xff, 0x7f, 1, 0xfe, 0x55, 0xaa, 9, 8, 7, 6, 5, 4, 3, 0x82 };

static void call_with_numbers(void)
{
	uint64_t (*volatile call)(uint64_t, const uint8_t *) = probed_numbers;

	stay_here();
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		(void)call(patterns[i], pattern_bytes);
}

/* A field's name says what it holds of the pattern: its letter the sign, its number the bits. */
static void true_numbers(const struct schema *schema, const struct both_event *event, size_t n)
{
	unsigned int seen = 0;

	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];
		const char *name = schema_string(schema, field->name);
		unsigned int bits = (unsigned int)strtoul(name + 1, NULL, 10);
		uint64_t value, expected = patterns[n];

		if (field->kind != SCHEMA_INTEGER || !strchr("usxc", name[0]) || bits < 8 || bits > 64)
			continue;
		if (bits < 64)
			expected &= (UINT64_C(1) << bits) - 1;
		if (name[0] == 's' && bits < 64 && expected >> (bits - 1))
			expected |= UINT64_MAX << bits;
		assert_int_equal(schema_read_integer(schema, field, event->payload, event->size, &value), 0);
		if (value != expected)
			fail_msg("%s of 0x%" PRIx64 " is 0x%" PRIx64, name, patterns[n], value);
		seen++;
	}
	assert_true(seen >= 12);
}

static void true_returns(const struct schema *schema, const struct both_event *event, size_t n)
{
	const struct schema_field *field = &schema->fields[schema_find(schema, "r64")];
	uint64_t value;

	assert_int_equal(schema_read_integer(schema, field, event->payload, event->size, &value), 0);
	assert_true(value == ~patterns[n]);
}

#ifdef A0
static void probe_in_program(uintptr_t function, char kind, const char *name, const char *arguments)
{
	char place[64], known[1024];
	int fd = program_place(function, place, sizeof(place));

	assert_true(fd >= 0);
	if (kind == 'p')
		both_forms_known_arguments(&both, "/uprobe_events", place, arguments, known, sizeof(known));
	both_forms_probe(&both, "/uprobe_events", kind, name, place, kind == 'p' ? known : arguments);
	(void)close(fd);
}
#endif

static void strings_of_programs(void **state)
{
	(void)state;
#ifdef A0
	probe_in_program((uintptr_t)probed_strings, 'p', "strings", "s=+0(" A0 "):string u=" A1 ":u64 x=" A1 ":x64 n=" A2 ":s32 m="
		A2 ":x32 n8=" A2 ":s8 b=" A2 ":b4@1/32 ua=+0(" A3 "):x64[2] sa=+0(" A3 "):string[3] first=+0(+0(" A3 ")):string");
	probe_in_program((uintptr_t)probed_strings, 'r', "returned", "r=$retval:s32 rx=$retval:x64");
	both_forms_trace_child(&both, call_with_strings);
	assert_int_equal(both_forms_compare(&both, "strings", true_strings), 2 * (ARRAY_SIZE(hostile_strings) + 1));
	assert_true(both_forms_kind(&both, "strings")->compared >= 11 * ARRAY_SIZE(hostile_strings));
	assert_int_equal(both_forms_kind(&both, "strings")->absent, 0);
	assert_int_equal(both_forms_kind(&both, "returned")->compared, 4 * (ARRAY_SIZE(hostile_strings) + 1));
	assert_int_equal(both_forms_kind(&both, "returned")->absent, 0);
#else
	skip();
#endif
}

/* One of them at a time: see docs/reports.md on 5.10. */
static void long_strings_of_programs(void **state)
{
	(void)state;
#ifdef A0
	probe_in_program((uintptr_t)probed_strings, 'p', "long", "s=+0(" A0 "):string n=" A1 ":u64");
	both_forms_trace_child(&both, call_with_long_strings);
	assert_int_equal(both_forms_compare(&both, "long", true_long_strings), LONG_STRINGS);
	assert_int_equal(both_forms_kind(&both, "long")->absent, 0);
#else
	skip();
#endif
}

static void numbers_of_programs(void **state)
{
	(void)state;
#ifdef A0
	probe_in_program((uintptr_t)probed_numbers, 'p', "numbers",
		"u8=" A0 ":u8 u16=" A0 ":u16 u32=" A0 ":u32 u64=" A0 ":u64 s8=" A0 ":s8 s16=" A0 ":s16 s32=" A0 ":s32 s64=" A0
		":s64 x8=" A0 ":x8 x16=" A0 ":x16 x32=" A0 ":x32 x64=" A0 ":x64 c8=" A0 ":char plain=" A0 " bits=" A0
		":b4@1/32 top=" A0 ":b16@48/64 a8=+0(" A1 "):u8[5] a16=+0(" A1 "):s16[3] a32=+4(" A1 "):s32[2] a64=+0(" A1
		"):x64[2] chars=+4(" A1 "):char[3] name=$comm constant=\\7:s16");
	probe_in_program((uintptr_t)probed_numbers, 'r', "inverted", "r64=$retval:u64 rs=$retval:s16");
	both_forms_trace_child(&both, call_with_numbers);
	assert_int_equal(both_forms_compare(&both, "numbers", true_numbers), 2 * ARRAY_SIZE(patterns));
	assert_true(both_forms_kind(&both, "numbers")->compared >= 19 * ARRAY_SIZE(patterns));
	assert_int_equal(both_forms_kind(&both, "numbers")->absent, 0);
#else
	skip();
#endif
}

static void returns_of_programs(void **state)
{
	(void)state;
#ifdef A0
	probe_in_program((uintptr_t)probed_numbers, 'r', "inverted", "r64=$retval:u64 rs=$retval:s16 rx=$retval:x8");
	both_forms_trace_child(&both, call_with_numbers);
	assert_int_equal(both_forms_compare(&both, "inverted", true_returns), ARRAY_SIZE(patterns));
	assert_int_equal(both_forms_kind(&both, "inverted")->absent, 0);
#else
	skip();
#endif
}

/* ---- probes in the kernel ---- */

static const char *const opened[] = { "/no/such/file", "/no/such \"file\"", "/no/such\nline", "" };

/* A probe in the kernel can't read what is not in memory yet. */
static void touch(const char *text)
{
	(void)*(volatile const char *)text;
}

static void open_files(void)
{
	stay_here();
	for (size_t i = 0; i < ARRAY_SIZE(opened); i++)
		touch(opened[i]);
	for (size_t i = 0; i < ARRAY_SIZE(opened); i++)
		(void)syscall(SYS_openat, -100 - (int)i, opened[i], O_RDONLY | O_CLOEXEC, 0);
}

static void true_opens(const struct schema *schema, const struct both_event *event, size_t n)
{
	const struct schema_field *dfd = &schema->fields[schema_find(schema, "dfd")];
	uint64_t value;

	assert_int_equal(schema_read_integer(schema, dfd, event->payload, event->size, &value), 0);
	assert_int_equal((int64_t)value, -100 - (int64_t)n);
	/* Older kernels take an empty one for one that they could not read, and say so in their text, too. */
	if (*opened[n])
		assert_string(schema, event, "name", opened[n], strlen(opened[n]));
}

static void probes_in_the_kernel(void **state)
{
#ifdef A0
	static const char place[] = "do_sys_openat2";
	char path[300], known[1024];

	(void)state;
	if (access(trace_instance_path(&both.instance, "/kprobe_events", path, sizeof(path)), F_OK) < 0) {
		print_message("  this kernel has no kprobes\n");
		skip();
	}
	both_forms_known_arguments(&both, "/kprobe_events", place, "dfd=" A0 ":s32 name=+0(" A1 "):ustring flags=+0(" A2
		"):x64 how=+0(" A2 "):x64[3] u=" A0 ":u32 x8=" A0 ":x8 s8=" A0 ":s8 s16=" A0 ":s16 b=" A0 ":b3@2/32 "
		"who=$comm where=" A2 ":symbol words=+0(" A2 "):symstr again=+0(" A1 "):string user=+u0(" A1 "):u16 text=\\\"x\"",
		known, sizeof(known));
	both_forms_probe(&both, "/kprobe_events", 'p', "opens", place, known);
	both_forms_probe(&both, "/kprobe_events", 'r', "opened", place, "r=$retval:s32 rx=$retval:x64 r16=$retval:s16");
	both_forms_trace_child(&both, open_files);
	assert_int_equal(both_forms_compare(&both, "opens", true_opens), 2 * ARRAY_SIZE(opened));
	assert_true(both_forms_kind(&both, "opens")->compared >= 10 * ARRAY_SIZE(opened));
	assert_int_equal(both_forms_kind(&both, "opened")->compared, 3 * ARRAY_SIZE(opened));
#else
	(void)state;
	skip();
#endif
}

/* ---- masks of CPUs ---- */

static volatile int stop_turning;

static void *turn(void *cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(*(const unsigned int *)cpu, &only);
	(void)sched_setaffinity(0, sizeof(only), &only);
	while (!stop_turning)
		(void)sched_yield();
	return NULL;
}

/* A barrier in all threads of this process: the kernel asks the CPUs on which they run, by one call with their mask. */
static void interrupt_others(void)
{
	static unsigned int cpus[3] = { 0, 1, 2 };
	pthread_t threads[ARRAY_SIZE(cpus)];
	unsigned int count = 0;

	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	for (; count < ARRAY_SIZE(threads); count++)
		if (pthread_create(&threads[count], NULL, turn, &cpus[count]) != 0)
			break;
	for (int i = 0; i < 2000; i++) {
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		(void)sched_yield();
	}
	stop_turning = 1;
	while (count)
		(void)pthread_join(threads[--count], NULL);
}

/* "00000000,00000006" */
static uint64_t printed_mask(const char *at)
{
	uint64_t mask = 0;

	for (; isxdigit((unsigned char)*at) || *at == ','; at++)
		if (*at != ',')
			mask = mask << 4 | (uint64_t)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	return mask;
}

/* Text has a mask in hexadecimal words, which give no value; the bytes have it as longs, the first of which holds all CPUs
 * here. The text of each event is looked at before its bytes. */
static uint64_t mask_in_text;
static size_t masks;

static void true_masks(const struct schema *schema, const struct both_event *event, size_t n)
{
	const bool text = schema->header->flags & SCHEMA_TEXT;
	const int at = text ? (int)schema->header->field_count - 1 : schema_find(schema, "cpumask");
	const uint8_t *bytes;
	char line[256];
	uint64_t mask;
	size_t size;

	(void)n;
	if (!text) {
		assert_int_equal(schema_read_element(schema, &schema->fields[at], event->payload, event->size, 0, &mask), 0);
		assert_int_equal(mask, mask_in_text);
		masks++;
		return;
	}
	assert_int_equal(schema_read_bytes(schema, &schema->fields[at], event->payload, event->size, &bytes, &size), 0);
	(void)snprintf(line, sizeof(line), "%.*s", (int)size, (const char *)bytes);
	assert_int_equal(strncmp(line, "cpumask=", 8), 0);
	mask_in_text = printed_mask(line + 8);
	assert_true(mask_in_text != 0);
}

static void masks_of_cpus(void **state)
{
	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 3 || sysconf(_SC_NPROCESSORS_CONF) > 64) {
		print_message("  with two CPUs no call is made to several at a time, and of more than 64 the mask is not compared here\n");
		skip();
	}
	if (!both_forms_enable(&both, "ipi", "ipi_send_cpumask")) {
		print_message("  this kernel has no ipi:ipi_send_cpumask\n");
		skip();
	}
	both_forms_trace_child(&both, interrupt_others);
	assert_true(both_forms_compare(&both, "ipi_send_cpumask", true_masks) > 0);
	assert_true(masks > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tracepoints_and_system_calls),
		TEST(strings_of_programs),
		TEST(long_strings_of_programs),
		TEST(numbers_of_programs),
		TEST(returns_of_programs),
		TEST(probes_in_the_kernel),
		TEST(masks_of_cpus),
	};
	const char *missing = trace_instance_missing();

	if (missing) {
		printf("skipped: %s\n", missing);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
