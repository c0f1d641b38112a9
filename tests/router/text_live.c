/* Text as the running kernel prints it, in an instance of the test's own: names, strings and markers that try to be
 * something else; losses. What its fields are against the bytes of the same events: tests/differential. */
#include "tests/differential/both_forms.h"
#include "tests/differential/hostile_strings.h"

#include "base/checked.h"
#include "router/text_fields.h"
#include "tests/support/program_place.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <cmocka.h>

#define TAG "k3yf0rth1srun"

#if defined(__x86_64__)
#define ARGUMENT(n) ((const char *const[]){ "%di", "%si", "%dx", "%cx" }[n])
#elif defined(__aarch64__)
#define ARGUMENT(n) ((const char *const[]){ "%x0", "%x1", "%x2", "%x3" }[n])
#endif

static struct both_forms both;

/* What is probed. Its arguments are the ones that are traced; called by a pointer that the compiler can't see
 * through, so that no copy of it is called instead. */
static int probed(const char *s, uint64_t u, int32_t n, const char *const *list)
{
	__asm__ volatile("" : : "r"(s), "r"(u), "r"(n), "r"(list) : "memory");
	return n - 1;
}

/* ---- set-up ---- */

static int make_instance(void **state)
{
	(void)state;
	both_forms_begin(&both, "text");
	return 0;
}

static int remove_instance(void **state)
{
	(void)state;
	both_forms_end(&both);
	return 0;
}

/* Registers a probe on probed by a descriptor, so that the program's path is no matter. */
static void define_probe(const char *name, const char *arguments)
{
	char place[64];
	int fd = program_place((uintptr_t)probed, place, sizeof(place));

	assert_true(fd >= 0);
	both_forms_probe(&both, "/uprobe_events", 'p', name, place, arguments);
	(void)close(fd);
}

/* ---- the tests ---- */

static void call_with_strings(void)
{
	hostile_strings_call(probed);
}

/* ---- names ---- */

static const char *const names[] = { "a b-1 [0]", "x-123", "a:b", "(x)", "\xc3\xbc", "\n", "fifteen bytes!!", "q\"x",
	"a-1 [000] ....", "trail ", "a\nb", "\n\n", "x-9     [000] .", "y\n-5 [000]", "#1", "=>\nx", "-1 1.... 5us :", "\x01\xff\"",
	"" };

/* Each name's process lives until all have been read: the kernel looks names up when it prints. */
static pid_t start_named(const char *name, int ready, int end)
{
	pid_t child = fork();
	char byte = 0;

	if (child)
		return child;
	(void)prctl(PR_SET_NAME, name);
	(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (write(ready, &byte, 1) == 1)
		(void)read(end, &byte, 1);
	_exit(0);
}

/* Whether the process's events have this name. No other one is right, but the kernel remembers few names, for
 * all who trace at the time, and may have forgotten it. */
static bool has_name(const struct both_events *events, pid_t pid, const char *name)
{
	unsigned int seen = 0, known = 0;

	for (size_t i = 0; i < events->count; i++) {
		if (events->at[i].pid != pid)
			continue;
		seen++;
		if (strcmp(events->at[i].comm, "<...>") == 0)
			continue;
		assert_string_equal(events->at[i].comm, name);
		assert_false(events->at[i].suspect);
		known++;
	}
	assert_true(seen > 0);
	return known > 0;
}

static void try_names(bool *known)
{
	pid_t children[ARRAY_SIZE(names)];
	struct both_events events = { 0 };
	int ready[2], end[2];
	char byte = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	assert_int_equal(trace_instance_write(&both.instance, "set_event_pid", "%d", (int)getpid()), 0);
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "1"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		children[i] = start_named(names[i], ready[1], end[0]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
	}
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "0"), 0);
	both_forms_read_text(&both, "trace_pipe", &events);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(write(end[1], &byte, 1), 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		known[i] |= has_name(&events, children[i], names[i]);
	both_events_release(&events);
	for (int i = 0; i < 2; i++) {
		(void)close(ready[i]);
		(void)close(end[i]);
	}
}

static void names_exact(void **state)
{
	bool known[ARRAY_SIZE(names)] = { false };
	size_t missing = ARRAY_SIZE(names);

	(void)state;
	assert_true(both_forms_enable(&both, "syscalls", "sys_enter_openat"));
	assert_true(both_forms_enable(&both, "sched", "sched_switch"));
	for (int round = 0; round < 10 && missing; round++) {
		try_names(known);
		missing = 0;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			missing += !known[i];
	}
	assert_int_equal(missing, 0);
}

/* ---- strings ---- */

/* The probe of a text session: a random tag in its name, a canary behind its string. */
static void strings_exact(void **state)
{
#ifdef ARGUMENT
	struct both_events events = { 0 };
	char arguments[128];
	struct both_kind *kind;

	(void)state;
	(void)snprintf(arguments, sizeof(arguments), "s=+0(%s):string " TEXT_CANARY "0_" TAG "=\\0:u8 n=%s:s32", ARGUMENT(0),
		ARGUMENT(2));
	define_probe("own_" TAG, arguments);
	assert_true(both_forms_enable(&both, "sched", "sched_process_exit"));
	kind = both_forms_kind(&both, "own_" TAG);
	assert_true(text_schema_is_guarded(&kind->text));
	both_forms_trace_child(&both, call_with_strings);
	both_forms_read_text(&both, "trace_pipe", &events);
	/* The calls, one with a string that can't be read, and the child's end. No loss, nothing forged. */
	assert_int_equal(events.count, ARRAY_SIZE(hostile_strings) + 2);
	assert_int_equal(events.lost[0], 0);
	for (size_t i = 0; i < ARRAY_SIZE(hostile_strings); i++) {
		const struct both_event *event = &events.at[i];
		const uint8_t *bytes;
		size_t size;
		uint64_t n;

		assert_ptr_equal(event->kind, kind->event);
		assert_false(event->suspect);
		assert_int_equal(schema_read_bytes(&kind->text, &kind->text.fields[schema_find(&kind->text, "s")], event->payload,
			event->size, &bytes, &size), 0);
		assert_int_equal(size, strlen(hostile_strings[i]));
		assert_memory_equal(bytes, hostile_strings[i], size);
		assert_int_equal(schema_read_integer(&kind->text, &kind->text.fields[schema_find(&kind->text, "n")],
			event->payload, event->size, &n), 0);
		assert_int_equal((int64_t)n, -5 + (int64_t)i);
	}
	both_events_release(&events);
#else
	(void)state;
	print_message("  this machine's registers aren't known here\n");
	skip();
#endif
}

/* ---- markers ---- */

static void long_marker(void **state)
{
	static char marker[5000], joined[6000];
	struct both_events events = { 0 };
	struct both_kind *kind = both_forms_kind(&both, "print");
	size_t written = 0, at = 0, pieces = 0;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(marker); i++)
		marker[i] = (char)('a' + i / 100 % 26);
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "1"), 0);
	fd = trace_instance_open(&both.instance, "trace_marker", O_WRONLY);
	assert_true(fd >= 0);
	while (written < sizeof(marker)) {
		ssize_t n = write(fd, marker + written, sizeof(marker) - written);

		assert_true(n > 0);
		written += (size_t)n;
		pieces++;
	}
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "0"), 0);
	(void)close(fd);
	both_forms_read_text(&both, "trace_pipe", &events);
	assert_int_equal(events.count, pieces);
	for (size_t i = 0; i < events.count; i++) {
		const uint8_t *bytes;
		size_t size;

		assert_int_equal(schema_read_bytes(&kind->text, &kind->text.fields[schema_find(&kind->text, "buf")],
			events.at[i].payload, events.at[i].size, &bytes, &size), 0);
		assert_true(at + size <= sizeof(joined));
		memcpy(joined + at, bytes, size);
		at += size;
		assert_int_equal(events.at[i].partial, i + 1 < events.count);
	}
	assert_int_equal(at, sizeof(marker));
	assert_memory_equal(joined, marker, sizeof(marker));
	both_events_release(&events);
}

/* ---- losses ---- */

static uint64_t overrun_of(uint32_t cpu)
{
	char path[64];
	char *stats, *at;
	uint64_t overrun;

	(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	stats = trace_instance_read(&both.instance, path, NULL);
	assert_non_null(stats);
	at = strstr(stats, "overrun: ");
	assert_non_null(at);
	overrun = strtoull(at + strlen("overrun: "), NULL, 10);
	free(stats);
	return overrun;
}

/* More markers than the ring of one CPU holds: what is told as lost on that CPU is what the kernel counts,
 * and with what is left it adds up to what was written. */
static void losses_add_up(void **state)
{
	enum { MARKERS = 20000 };
	struct both_events events = { 0 };
	uint32_t cpu = (uint32_t)sched_getcpu();
	cpu_set_t only, before;
	int fd;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(0, sizeof(only), &only), 0);
	assert_int_equal(trace_instance_write(&both.instance, "buffer_size_kb", "16"), 0);
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "1"), 0);
	fd = trace_instance_open(&both.instance, "trace_marker", O_WRONLY);
	assert_true(fd >= 0);
	for (int i = 0; i < MARKERS; i++)
		assert_int_equal(write(fd, "marker", 6), 6);
	(void)close(fd);
	assert_int_equal(trace_instance_write(&both.instance, "tracing_on", "0"), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	both_forms_read_text(&both, "trace_pipe", &events);
	assert_true(events.lost[cpu] > 0);
	assert_int_equal(events.lost[cpu], overrun_of(cpu));
	assert_int_equal(events.count + events.lost[cpu], MARKERS);
	for (size_t i = 0; i < ARRAY_SIZE(events.lost); i++)
		assert_true(i == cpu || !events.lost[i]);
	both_events_release(&events);
}

/* ---- every kind of event that this kernel has ---- */

static bool every_event_of(const char *system, unsigned int *count, unsigned int *understood)
{
	char path[512], folder[300];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "/events/%s", system);
	dir = opendir(trace_instance_path(&both.instance, folder, path, sizeof(path)));
	if (!dir)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		struct both_kind *kind;
		const char *print;

		if (entry->d_name[0] == '.' || !(kind = both_forms_add(&both, system, entry->d_name)))
			continue;
		print = schema_string(&kind->text, kind->text.header->print_format);
		*understood += strchr(print, ' ') != NULL;
		(*count)++;
	}
	(void)closedir(dir);
	return true;
}

static void every_format_file(void **state)
{
	unsigned int count = 0, understood = 0;
	struct dirent *entry;
	char path[512];
	DIR *dir = opendir(trace_instance_path(&both.instance, "/events", path, sizeof(path)));

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		/* Probes come and go with other sessions. */
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "tracefan", 8) != 0)
			(void)every_event_of(entry->d_name, &count, &understood);
	(void)closedir(dir);
	print_message("  %u of %u print formats understood\n", understood, count);
	assert_true(count > 20);
	assert_true(understood * 100 >= count * 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_exact, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(strings_exact, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(long_marker, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(losses_add_up, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(every_format_file, make_instance, remove_instance),
	};
	const char *missing = trace_instance_missing();

	if (missing) {
		printf("skipped: %s\n", missing);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
