/* Text as the running kernel prints it, in an instance of the test's own: each event once read as text and
 * once as bytes, field by field; names, strings and markers that try to be something else; losses. */
#include "router/text_join.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "router/catalog.h"
#include "router/page.h"
#include "router/text_fields.h"
#include "tests/support/trace_instance.h"

#include <dirent.h>
#include <link.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "tests/support/text_show.h"

#define TAG "k3yf0rth1srun"

#if defined(__x86_64__)
#define ARGUMENT(n) ((const char *const[]){ "%di", "%si", "%dx", "%cx" }[n])
#elif defined(__aarch64__)
#define ARGUMENT(n) ((const char *const[]){ "%x0", "%x1", "%x2", "%x3" }[n])
#endif

static struct trace_instance instance;

/* What is probed. Its arguments are the ones that are traced; called by a pointer that the compiler can't see
 * through, so that no copy of it is called instead. */
static int probed(const char *s, uint64_t u, int32_t n, const char *const *list)
{
	__asm__ volatile("" : : "r"(s), "r"(u), "r"(n), "r"(list) : "memory");
	return n - 1;
}

/* ---- events in both forms ---- */

struct event {
	const struct catalog_event *kind;
	uint32_t cpu;
	int32_t pid;
	uint64_t time;
	char comm[32];
	bool suspect, partial, swallowed;
	void *payload;
	size_t size;
};

struct events {
	struct event *at;
	size_t count, room;
	uint64_t lost[1024];
};

static struct event *add_event(struct events *events)
{
	if (events->count == events->room) {
		events->room = events->room ? events->room * 2 : 1024;
		events->at = realloc(events->at, events->room * sizeof(events->at[0]));
		assert_non_null(events->at);
	}
	events->at[events->count] = (struct event){ 0 };
	return &events->at[events->count++];
}

static void forget(struct events *events)
{
	for (size_t i = 0; i < events->count; i++)
		free(events->at[i].payload);
	free(events->at);
	*events = (struct events){ 0 };
}

/* A kind of event that the instance traces, with both its schemas. */
struct kind {
	const struct catalog_event *event;
	void *text_bytes;
	struct schema text;
	unsigned int compared, absent; /* fields */
};

static struct catalog *catalog;
static struct kind kinds[8192];
static size_t kind_count;
static uint32_t word_size = sizeof(long);

static bool host_is_big(void)
{
	const uint16_t probe = 1;

	return *(const uint8_t *)&probe == 0;
}

static struct kind *add_kind(const char *system, const char *name)
{
	char path[256];
	const char *reason = "";
	struct catalog_event *event;
	struct kind *kind = &kinds[kind_count];
	size_t size;
	char *text;

	(void)snprintf(path, sizeof(path), "/events/%s/%s/format", system, name);
	text = trace_instance_read(&instance, path, &size);
	if (!text)
		return NULL;
	assert_true(kind_count < ARRAY_SIZE(kinds));
	assert_int_equal(catalog_add(catalog, system, text, size, &event, &reason), 0);
	free(text);
	assert_int_equal(text_schema_make(&event->schema, system, name, &kind->text_bytes, &size), 0);
	assert_int_equal(schema_view(kind->text_bytes, size, &kind->text), 0);
	kind->event = event;
	event->user = kind;
	kind_count++;
	return kind;
}

static bool enable(const char *system, const char *name)
{
	char path[256];

	if (!add_kind(system, name))
		return false;
	(void)snprintf(path, sizeof(path), "events/%s/%s/enable", system, name);
	assert_int_equal(trace_instance_write(&instance, path, "1"), 0);
	return true;
}

static struct kind *kind_of_line(const struct text_line *line)
{
	char name[256];

	if (text_event_name(line, name, sizeof(name)))
		return NULL;
	if (strcmp(name, "tracing_mark_write") == 0)
		(void)strcpy(name, "print");
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i].event->name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* What a router does with a line. */
static int take_text(void *context, const struct text_joined *joined)
{
	const struct text_line *line = &joined->line;
	struct events *events = context;
	struct event *event;
	struct kind *kind;
	uint64_t payload[65536 / 8];
	size_t size = 0;
	bool suspect = false, guarded;
	int r;

	if (line->kind == TEXT_LOST) {
		assert_true(line->cpu < ARRAY_SIZE(events->lost) && line->lost != TEXT_COUNT_UNKNOWN);
		events->lost[line->cpu] += line->lost;
	}
	if (line->kind != TEXT_EVENT)
		return TEXT_JOIN_DONE;
	kind = kind_of_line(line);
	if (!kind) {
		fail_msg("an event that isn't traced: %.*s", (int)line->whole.size, line->whole.at);
		return -EINVAL;
	}
	r = text_fields_encode(&kind->text, &line->body, payload, sizeof(payload), &size, &suspect);
	if (r == -EAGAIN && !joined->last)
		return TEXT_JOIN_OPEN;
	guarded = text_schema_is_guarded(&kind->text);
	event = add_event(events);
	event->kind = kind->event;
	event->cpu = line->cpu;
	event->pid = line->pid;
	event->time = line->time;
	(void)snprintf(event->comm, sizeof(event->comm), "%.*s", (int)line->comm.size, line->comm.at);
	event->suspect = suspect || joined->doubtful || (joined->swallowed && !guarded);
	event->partial = joined->partial;
	event->swallowed = joined->swallowed;
	event->payload = malloc(size);
	assert_non_null(event->payload);
	memcpy(event->payload, payload, size);
	event->size = size;
	return guarded ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}

static void read_text(const char *file, struct events *ret)
{
	struct text_join join;
	size_t size;
	char *text = trace_instance_read(&instance, file, &size);

	assert_non_null(text);
	text_join_init(&join);
	assert_int_equal(text_join_feed(&join, text, size, take_text, ret), 0);
	assert_int_equal(text_join_end(&join, take_text, ret), 0);
	text_join_release(&join);
	free(text);
}

static void read_page(const struct page_layout *layout, const void *page, size_t size, uint32_t cpu, struct events *ret)
{
	struct page_cursor cursor;
	struct page_event raw;

	assert_int_equal(page_open(&cursor, layout, page, size), 0);
	while (page_next(&cursor, &raw) == 1) {
		struct event *event = add_event(ret);
		uint16_t type;

		memcpy(&type, raw.data, sizeof(type));
		event->kind = catalog_by_type(catalog, type);
		event->cpu = cpu;
		event->time = raw.time;
		event->size = raw.size;
		event->payload = malloc(raw.size);
		assert_non_null(event->payload);
		memcpy(event->payload, raw.data, raw.size);
	}
	assert_int_equal(cursor.error, PAGE_OK);
}

static void read_raw(uint32_t cpu, struct events *ret)
{
	struct page_layout layout;
	char path[64], page[4096];
	size_t size;
	char *header = trace_instance_read(&instance, "/events/header_page", &size);
	ssize_t n;
	int fd;

	assert_non_null(header);
	assert_int_equal(page_layout_parse(header, size, host_is_big(), &layout), 0);
	free(header);
	(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = trace_instance_open(&instance, path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	while ((n = read(fd, page, sizeof(page))) > 0)
		read_page(&layout, page, (size_t)n, cpu, ret);
	(void)close(fd);
}

/* ---- the comparison ---- */

static bool same_bytes(const struct schema *text, const struct schema_field *f, const struct event *a,
	const struct schema *raw, const struct schema_field *g, const struct event *b)
{
	const uint8_t *x, *y;
	size_t x_size, y_size;

	assert_int_equal(schema_read_bytes(text, f, a->payload, a->size, &x, &x_size), 0);
	assert_int_equal(schema_read_bytes(raw, g, b->payload, b->size, &y, &y_size), 0);
	if (f->kind == SCHEMA_STRING) {
		/* The kernel prints a marker's last newline as the line's end. */
		if (g->place == SCHEMA_TAIL && y_size && y[y_size - 1] == '\n')
			y_size--;
		return x_size == y_size && memcmp(x, y, x_size) == 0;
	}
	for (size_t i = 0; i < f->count; i++) {
		uint64_t v, w;

		if (schema_read_element(text, f, a->payload, a->size, i, &v) ||
			schema_read_element(raw, g, b->payload, b->size, i, &w) || v != w)
			return false;
	}
	return true;
}

static void compare_field(struct kind *kind, const struct schema_field *f, const struct event *text, const struct event *raw)
{
	const struct schema *binary = &kind->event->schema;
	const char *name = schema_string(&kind->text, f->name);
	int at = schema_find(binary, name);
	const struct schema_field *g;
	uint64_t v, w;
	bool same;
	int r;

	assert_true(at >= 0);
	g = &binary->fields[at];
	if (f->kind == SCHEMA_INTEGER) {
		r = schema_read_integer(&kind->text, f, text->payload, text->size, &v);
	} else {
		const uint8_t *bytes;
		size_t size;

		r = schema_read_bytes(&kind->text, f, text->payload, text->size, &bytes, &size);
	}
	if (r == -ENODATA) {
		kind->absent++;
		return;
	}
	assert_int_equal(r, 0);
	if (f->kind == SCHEMA_INTEGER) {
		assert_int_equal(schema_read_integer(binary, g, raw->payload, raw->size, &w), 0);
		same = v == w;
	} else {
		same = same_bytes(&kind->text, f, text, binary, g, raw);
	}
	if (!same) {
		static struct text_show a, b;

		fail_msg("%s, field %s\n  text: %s\n  raw:  %s", kind->event->name, name,
			text_show(&a, &kind->text, text->payload, text->size),
			text_show(&b, binary, raw->payload, raw->size));
	}
	kind->compared++;
}

static void compare_event(const struct event *text, const struct event *raw)
{
	struct kind *kind;

	if (!raw || !raw->kind) {
		fail_msg("in raw there is no event like this %s", text->kind->name);
		return;
	}
	assert_string_equal(text->kind->name, raw->kind->name);
	/* Printed microseconds are rounded. */
	assert_int_equal(text->time / 1000, (raw->time + 500) / 1000);
	kind = raw->kind->user;
	for (uint32_t i = 0; i + 1 < kind->text.header->field_count; i++)
		compare_field(kind, &kind->text.fields[i], text, raw);
}

/* Every event of every CPU, in both forms: the same number, in the same order. */
static size_t compare_all(void)
{
	struct events text = { 0 };
	size_t compared = 0;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	read_text("trace", &text);
	for (long cpu = 0; cpu < cpus; cpu++) {
		struct events raw = { 0 };
		size_t at = 0;

		read_raw((uint32_t)cpu, &raw);
		for (size_t i = 0; i < text.count; i++) {
			if (text.at[i].cpu != (uint32_t)cpu)
				continue;
			compare_event(&text.at[i], at < raw.count ? &raw.at[at] : NULL);
			at++;
		}
		assert_int_equal(at, raw.count);
		compared += at;
		forget(&raw);
	}
	forget(&text);
	return compared;
}

/* ---- set-up ---- */

static int make_instance(void **state)
{
	(void)state;
	trace_instance_create(&instance, "text");
	assert_int_equal(catalog_create(host_is_big(), word_size, &catalog), 0);
	assert_int_equal(trace_instance_write(&instance, "buffer_size_kb", "4096"), 0);
	assert_int_equal(trace_instance_write(&instance, "options/event-fork", "1"), 0);
	assert_int_equal(trace_instance_write(&instance, "options/markers", "1"), 0);
	assert_non_null(add_kind("ftrace", "print"));
	return 0;
}

static void remove_probe(const char *name)
{
	(void)trace_instance_write(&instance, "/uprobe_events", "-:%s/%s", instance.group, name);
}

static int remove_instance(void **state)
{
	(void)state;
	trace_instance_remove(&instance);
	remove_probe("all");
	remove_probe("returned");
	remove_probe("own_" TAG);
	for (size_t i = 0; i < kind_count; i++)
		free(kinds[i].text_bytes);
	kind_count = 0;
	catalog_release(catalog);
	return 0;
}

/* Runs `work` in a child, and traces it and its children. */
static void trace_child(void (*work)(void))
{
	int start[2], status;
	pid_t child;
	char byte = 0;

	assert_int_equal(pipe2(start, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (read(start[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	assert_int_equal(trace_instance_write(&instance, "set_event_pid", "%d", (int)child), 0);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "1"), 0);
	assert_int_equal(write(start[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "0"), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)close(start[0]);
	(void)close(start[1]);
}

struct place {
	uintptr_t address;
	uint64_t offset;
};

/* The file offset of an address, by the program headers of the object that holds it. */
static int find_place(struct dl_phdr_info *info, size_t size, void *context)
{
	struct place *place = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || place->address < start || place->address >= start + segment->p_filesz)
			continue;
		place->offset = segment->p_offset + (place->address - start);
		return 1;
	}
	return 0;
}

/* Registers a probe on probed by a descriptor, so that the program's path is no matter. */
static void define_probe(char kind, const char *name, const char *arguments)
{
	struct place place = { .address = (uintptr_t)probed };
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(self >= 0);
	assert_int_equal(dl_iterate_phdr(find_place, &place), 1);
	assert_int_equal(trace_instance_write(&instance, "/uprobe_events", "%c:%s/%s /proc/self/fd/%d:0x%" PRIx64 " %s", kind,
		instance.group, name, self, place.offset, arguments), 0);
	(void)close(self);
	assert_true(enable(instance.group, name));
}

/* ---- the tests ---- */

static const char *const strings[] = {
	"plain",
	"",
	"c:/Program Files/x",
	"a \"quoted\" word",
	"\"",
	"\"\"",
	"a=b c=\"d\" n=5",
	"back\\slash \\\" \\n",
	"two\nlines",
	"\n",
	"trailing newline\n",
	"x\" u=1 n=2 s=\"y",
	"\x01\x7f\xff\x80 not UTF-8",
	"(fault)",
	"tab\there",
	"x\"\n            evil-1       [000] .....     1.000000: own_guess: (0x1234) s=\"forged\" tfc_0_guess=0",
	"\n            evil-1       [000] .....     1.000000: sched_process_exit: comm=evil pid=1 prio=1 group_dead=true",
	"\nCPU:0 [LOST 12345 EVENTS]\n",
	"\n => symbol\n# comment\n",
	"x\" tfc_0_guess=0\n            evil-1       [000] .....     1.000000: own_guess: (0x1) s=\"\" tfc_0_guess=0",
};

static void call_with_strings(void)
{
	int (*volatile call)(const char *, uint64_t, int32_t, const char *const *) = probed;
	static const char *const list[] = { "one", "t\"wo", "th\nree" };

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		(void)call(strings[i], UINT64_MAX - i, -5 + (int32_t)i, list);
	(void)call((const char *)1, 0, 0, list);
}

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
	call_with_strings();
}

static void print_kinds(void)
{
	for (size_t i = 0; i < kind_count; i++)
		if (kinds[i].compared || kinds[i].absent)
			print_message("  %-28s %6u fields the same, %6u not in the text\n", kinds[i].event->name, kinds[i].compared,
				kinds[i].absent);
}

static struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i].event->name, name) == 0)
			return &kinds[i];
	fail_msg("no event %s", name);
	return NULL;
}

static void fields_as_in_raw(void **state)
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
	char arguments[512];
	size_t events;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!enable(wanted[i][0], wanted[i][1]))
			print_message("  this kernel has no %s:%s\n", wanted[i][0], wanted[i][1]);
#ifdef ARGUMENT
	(void)snprintf(arguments, sizeof(arguments),
		"s=+0(%s):string u=%s:u64 x=%s:x64 n=%s:s32 m=%s:x32 n8=%s:s8 b=%s:b4@1/32 ua=+0(%s):x64[2] "
		"sa=+0(%s):string[3] first=+0(+0(%s)):string", ARGUMENT(0), ARGUMENT(1), ARGUMENT(1), ARGUMENT(2), ARGUMENT(2),
		ARGUMENT(2), ARGUMENT(2), ARGUMENT(3), ARGUMENT(3), ARGUMENT(3));
	define_probe('p', "all", arguments);
	define_probe('r', "returned", "r=$retval:s32 rx=$retval:x64");
#endif
	trace_child(work_of_all_kinds);
	events = compare_all();
	print_kinds();
	assert_true(events > 100);
	assert_true(kind_named("sched_process_exec")->compared >= 6);
	assert_true(kind_named("sched_process_fork")->compared >= 8);
	assert_true(kind_named("sched_process_exit")->compared >= 9);
	assert_int_equal(kind_named("sched_process_exec")->absent, 0);
	assert_int_equal(kind_named("sched_process_fork")->absent, 0);
	assert_true(kind_named("sched_switch")->compared > 0);
	assert_true(kind_named("sys_enter_openat")->compared >= 3 * 9);
	assert_true(kind_named("sys_exit_openat")->compared >= 9);
#ifdef ARGUMENT
	assert_true(kind_named("all")->compared >= 11 * ARRAY_SIZE(strings));
	assert_int_equal(kind_named("returned")->compared, 4 * (ARRAY_SIZE(strings) + 1));
	assert_int_equal(kind_named("returned")->absent, 0);
#endif
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
static bool has_name(const struct events *events, pid_t pid, const char *name)
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
	struct events events = { 0 };
	int ready[2], end[2];
	char byte = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	assert_int_equal(trace_instance_write(&instance, "set_event_pid", "%d", (int)getpid()), 0);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "1"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		children[i] = start_named(names[i], ready[1], end[0]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
	}
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "0"), 0);
	read_text("trace_pipe", &events);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(write(end[1], &byte, 1), 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		known[i] |= has_name(&events, children[i], names[i]);
	forget(&events);
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
	assert_true(enable("syscalls", "sys_enter_openat"));
	assert_true(enable("sched", "sched_switch"));
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
	struct events events = { 0 };
	char arguments[128];
	struct kind *kind;

	(void)state;
	(void)snprintf(arguments, sizeof(arguments), "s=+0(%s):string " TEXT_CANARY "0_" TAG "=\\0:u8 n=%s:s32", ARGUMENT(0),
		ARGUMENT(2));
	define_probe('p', "own_" TAG, arguments);
	assert_true(enable("sched", "sched_process_exit"));
	kind = kind_named("own_" TAG);
	assert_true(text_schema_is_guarded(&kind->text));
	trace_child(call_with_strings);
	read_text("trace_pipe", &events);
	/* The calls, one with a string that can't be read, and the child's end. No loss, nothing forged. */
	assert_int_equal(events.count, ARRAY_SIZE(strings) + 2);
	assert_int_equal(events.lost[0], 0);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		const struct event *event = &events.at[i];
		const uint8_t *bytes;
		size_t size;
		uint64_t n;

		assert_ptr_equal(event->kind, kind->event);
		assert_false(event->suspect);
		assert_int_equal(schema_read_bytes(&kind->text, &kind->text.fields[schema_find(&kind->text, "s")], event->payload,
			event->size, &bytes, &size), 0);
		assert_int_equal(size, strlen(strings[i]));
		assert_memory_equal(bytes, strings[i], size);
		assert_int_equal(schema_read_integer(&kind->text, &kind->text.fields[schema_find(&kind->text, "n")],
			event->payload, event->size, &n), 0);
		assert_int_equal((int64_t)n, -5 + (int64_t)i);
	}
	forget(&events);
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
	struct events events = { 0 };
	struct kind *kind = kind_named("print");
	size_t written = 0, at = 0, pieces = 0;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(marker); i++)
		marker[i] = (char)('a' + i / 100 % 26);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "1"), 0);
	fd = trace_instance_open(&instance, "trace_marker", O_WRONLY);
	assert_true(fd >= 0);
	while (written < sizeof(marker)) {
		ssize_t n = write(fd, marker + written, sizeof(marker) - written);

		assert_true(n > 0);
		written += (size_t)n;
		pieces++;
	}
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "0"), 0);
	(void)close(fd);
	read_text("trace_pipe", &events);
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
	forget(&events);
}

/* ---- losses ---- */

static uint64_t overrun_of(uint32_t cpu)
{
	char path[64];
	char *stats, *at;
	uint64_t overrun;

	(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	stats = trace_instance_read(&instance, path, NULL);
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
	struct events events = { 0 };
	uint32_t cpu = (uint32_t)sched_getcpu();
	cpu_set_t only, before;
	int fd;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(0, sizeof(only), &only), 0);
	assert_int_equal(trace_instance_write(&instance, "buffer_size_kb", "16"), 0);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "1"), 0);
	fd = trace_instance_open(&instance, "trace_marker", O_WRONLY);
	assert_true(fd >= 0);
	for (int i = 0; i < MARKERS; i++)
		assert_int_equal(write(fd, "marker", 6), 6);
	(void)close(fd);
	assert_int_equal(trace_instance_write(&instance, "tracing_on", "0"), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	read_text("trace_pipe", &events);
	assert_true(events.lost[cpu] > 0);
	assert_int_equal(events.lost[cpu], overrun_of(cpu));
	assert_int_equal(events.count + events.lost[cpu], MARKERS);
	for (size_t i = 0; i < ARRAY_SIZE(events.lost); i++)
		assert_true(i == cpu || !events.lost[i]);
	forget(&events);
}

/* ---- every kind of event that this kernel has ---- */

static bool every_event_of(const char *system, unsigned int *count, unsigned int *understood)
{
	char path[512], folder[300];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "/events/%s", system);
	dir = opendir(trace_instance_path(&instance, folder, path, sizeof(path)));
	if (!dir)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		struct kind *kind;
		const char *print;

		if (entry->d_name[0] == '.' || !(kind = add_kind(system, entry->d_name)))
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
	DIR *dir = opendir(trace_instance_path(&instance, "/events", path, sizeof(path)));

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
		cmocka_unit_test_setup_teardown(fields_as_in_raw, make_instance, remove_instance),
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
