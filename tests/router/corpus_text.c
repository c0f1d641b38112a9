/* Real captures (TRACEFAN_CORPUS, by default a folder beside the source tree): each file is read, what its
 * manifest states is compared, and a table says what agreed. A file of which nothing is stated is compared
 * with a regular expression that knows nothing of the parser. */
#include "router/text_join.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "router/catalog.h"
#include "router/text_fields.h"

#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/text_show.h"

#define US UINT64_C(1000)
#define NS UINT64_C(1000000000)
#define FILES_MAX 200
#define KINDS     (TEXT_TOO_BIG + 1)

/* A file as it was read: its first events, and how much there was of each kind. */
struct reading {
	struct text_line events[128]; /* pieces point into `texts` */
	char *texts[128];
	unsigned int count, of_kind[KINDS], doubtful;
	uint64_t lost;
	uint32_t lost_cpu;
};

static bool is(const struct text_piece *piece, const char *text)
{
	return piece->size == strlen(text) && memcmp(piece->at, text, piece->size) == 0;
}

static bool begins(const struct text_piece *piece, const char *text)
{
	return piece->size >= strlen(text) && memcmp(piece->at, text, strlen(text)) == 0;
}

/* ---- what the manifest states, file by file ---- */

static bool function_header(const struct reading *r)
{
	const struct text_line *e = &r->events[0];

	return r->count == 10 && is(&e->comm, "bash") && e->pid == 1977 && e->cpu == 0 &&
		e->time == 17284 * NS + 993652 * US && is(&e->body, "sys_close <-system_call_fastpath") && is(&e->flags, "....");
}

static bool latency_comm(const struct reading *r)
{
	return r->count == 14 && is(&r->events[0].comm, "kworker/") && r->events[0].pid == 59 && r->events[0].cpu == 3 &&
		is(&r->events[9].flags, "d.H5") && r->of_kind[TEXT_STACK] == 8;
}

static bool lock_depth(const struct reading *r)
{
	return r->count == 4 && is(&r->events[0].flags, "dN...") && r->events[0].cpu == 1 && r->events[0].time == 4285 * US &&
		r->of_kind[TEXT_STACK] == 1 && is(&r->events[0].comm, "<idle>");
}

static bool lisa(const struct reading *r)
{
	return r->count == 3 && is(&r->events[0].comm, "rt-app") && is(&r->events[1].comm, "big_0-0") &&
		r->events[1].pid == 5733 && is(&r->events[2].comm, "rt-app") && r->events[0].time == 471 * NS + 410977940;
}

static bool lost_events(const struct reading *r)
{
	return r->count == 2 && r->lost == 1885 && r->lost_cpu == 3 && r->events[1].cpu == 3;
}

static bool rt_flags(const struct reading *r)
{
	return r->count == 10 && is(&r->events[1].flags, "dNLh1..") && is(&r->events[9].body, "<stack trace>") &&
		r->of_kind[TEXT_STACK] == 6;
}

static bool multiline(const struct reading *r)
{
	return r->count == 3 && is(&r->events[1].body, "B|598|some event") && r->events[1].pid == 598 &&
		is(&r->events[0].body, "event: abc xyz =0x34 clk id = 019\nsome = 000, other = 0x4\nxyz = 0x0 abc = 0x0");
}

static bool dash_comm(const struct reading *r)
{
	return r->count == 5 && is(&r->events[0].comm, "irq/65-e") && r->events[0].pid == 1287 && r->events[0].cpu == 0;
}

static bool empty_name(const struct reading *r)
{
	return r->count == 2 && r->events[0].name.size == 0 && is(&r->events[0].body, "Hello, World!") &&
		r->events[0].time == 24573433 * NS + 52937 * US;
}

static bool buffer_started(const struct reading *r)
{
	return r->count == 6 && r->of_kind[TEXT_COMMENT] == 1 && is(&r->events[3].flags, ".N.1");
}

static bool negative_blank(const struct reading *r)
{
	const struct text_piece *body = &r->events[4].body;

	return r->count == 7 && body->size > 3 && memcmp(body->at + body->size - 3, "-1 ", 3) == 0;
}

static bool space_comm(const struct reading *r)
{
	return is(&r->events[1].comm, "Web Content") && r->events[1].pid == 2711;
}

static bool llvm_suffix(const struct reading *r)
{
	return r->count == 6 && is(&r->events[3].name, "tracing_mark_write.llvm.8232844412049014381") &&
		is(&r->events[3].comm, "HwBinder:992_1") && is(&r->events[3].body, "E|992|");
}

static bool duplicate_name(const struct reading *r)
{
	unsigned int switches = 0;

	for (unsigned int i = 0; i < r->count; i++)
		switches += is(&r->events[i].name, "sched_switch");
	return r->count == 8 && switches == 6 && is(&r->events[0].flags, "...1.");
}

static bool hwlat(const struct reading *r)
{
	return r->count == 5 && r->events[0].name.size == 0 && begins(&r->events[0].body, "#1     inner/outer(us):");
}

static bool osnoise(const struct reading *r)
{
	return r->count == 3 && r->events[0].name.size == 0 && begins(&r->events[0].body, "1000000        190");
}

static bool graphs(const struct reading *r)
{
	return r->count == 0 && r->of_kind[TEXT_GRAPH] >= 12 && r->of_kind[TEXT_CONTINUATION] == 0;
}

static bool kprobe_stacks(const struct reading *r)
{
	return r->count == 6 && r->of_kind[TEXT_STACK] == 30 && is(&r->events[0].name, "mytcp");
}

static bool wakeup_rt(const struct reading *r)
{
	return r->count == 12 && is(&r->events[2].name, "sched_wakeup") && r->events[0].name.size == 0;
}

static bool marker_brackets(const struct reading *r)
{
	return r->count == 6 && is(&r->events[0].body, "[0] starts") && r->events[0].flags.size == 0 && r->events[0].cpu == 3;
}

static bool seven_digits(const struct reading *r)
{
	return r->count == 7 && r->events[2].pid == 2904431 && is(&r->events[2].comm, "<...>");
}

static bool unaligned(const struct reading *r)
{
	return r->count == 3 && is(&r->events[0].comm, "<idle>") && is(&r->events[0].flags, "..s1");
}

static bool syscalls_and_stacks(const struct reading *r)
{
	return r->count == 11 && is(&r->events[0].name, "sys_clone") && r->events[0].pid == 84700 && r->of_kind[TEXT_STACK] == 8 &&
		is(&r->events[7].comm, "pool-/usr/libex");
}

static bool systrace(const struct reading *r)
{
	return r->count == 10 && is(&r->events[1].comm, "com.android.systemui") && r->events[1].tgid == 611 &&
		is(&r->events[0].body, "E") && r->events[6].tgid == -1;
}

static bool groups_unknown(const struct reading *r)
{
	return r->count == 6 && r->events[0].pid == 0 && r->events[0].tgid == -1 && r->events[1].pid == 269 &&
		r->events[1].tgid == -1 && r->events[0].cpu == 6;
}

static bool groups_known(const struct reading *r)
{
	return r->count == 5 && is(&r->events[0].comm, "rcuop/6") && r->events[0].pid == 60 && r->events[0].tgid == 60 &&
		r->events[3].pid == 0 && r->events[3].tgid == -1;
}

static bool unread_string(const struct reading *r)
{
	return r->count == 4 && is(&r->events[1].body, "(0x42176e <- 0x49a520) arg1=(fault)");
}

static bool usdt(const struct reading *r)
{
	return r->count == 3 && is(&r->events[0].comm, "usdt_sample_app") && r->events[0].pid == 2439214 &&
		is(&r->events[0].name, "bpf_trace_printk") && is(&r->events[0].body, "inputString: 'usdt_8'");
}

static bool kprobe_doc(const struct reading *r)
{
	return r->count == 4 && r->events[1].flags.size == 0 && r->events[1].time == 1038282 * NS + 286878 * US &&
		is(&r->events[1].body, "(sys_openat+0xc/0xe <- do_sys_open) $retval=fffffffffffffffe");
}

static bool five_flags(const struct reading *r)
{
	return r->count == 3 && is(&r->events[0].flags, ".....") && is(&r->events[0].name, "io_uring_create");
}

static bool rt_ipi(const struct reading *r)
{
	return r->count == 4 && is(&r->events[0].flags, "dn.h2..") && r->of_kind[TEXT_EMPTY] == 1 &&
		is(&r->events[0].body, "target_mask=00000000,00000002 (Function call interrupts)");
}

static bool unknown_comms(const struct reading *r)
{
	return r->count == 60 && is(&r->events[0].comm, "<...>") && r->events[0].flags.size == 0 && r->events[0].pid == 1297;
}

static bool two_files(const struct reading *r)
{
	return r->count == 8 && is(&r->events[0].comm, "ping") && is(&r->events[1].comm, "<idle>") && r->of_kind[TEXT_COMMENT] == 2;
}

static bool thermal(const struct reading *r)
{
	return r->count == 53 && r->of_kind[TEXT_COMMENT] == 7;
}

static bool user_stacks(const struct reading *r)
{
	return r->of_kind[TEXT_STACK] >= 5 && r->of_kind[TEXT_CONTINUATION] == 0;
}

static bool uprobe_doc(const struct reading *r)
{
	return r->count == 4 && r->events[0].pid == 24842 && is(&r->events[1].name, "zfree_exit") &&
		is(&r->events[0].body, "(0x446420) arg1=446420 arg2=79");
}

static bool libc_strings(const struct reading *r)
{
	return r->count == 7 && is(&r->events[1].body, "(0x41e876 <- 0x48db60) arg1=\"echo \"hello world\"\"");
}

static const struct statement {
	const char *file;
	bool (*holds)(const struct reading *reading);
} statements[] = {
	{ "bcc-empty-symbol.txt", empty_name },
	{ "bcc-usdt-printk.txt", usdt },
	{ "buffer-started-annotation.txt", buffer_started },
	{ "cfg80211-negative-trailing-space.txt", negative_blank },
	{ "desktop-space-comm.txt", space_comm },
	{ "event-name-with-llvm-suffix.txt", llvm_suffix },
	{ "fault-string.txt", unread_string },
	{ "fprobe-duplicate-event-name.txt", duplicate_name },
	{ "function-header-ftrace-doc.txt", function_header },
	{ "graph-args-retval-6.x.txt", graphs },
	{ "graph-interrupt-retval-6.x.txt", graphs },
	{ "graph-overhead-marks.txt", graphs },
	{ "hwlat.txt", hwlat },
	{ "io-uring-6.x-header.txt", five_flags },
	{ "kprobe-noflags-doc.txt", kprobe_doc },
	{ "kprobe-stack.txt", kprobe_stacks },
	{ "latency-comm-8-truncated.txt", latency_comm },
	{ "latency-lock-depth-2.6.33.txt", lock_depth },
	{ "latency-wakeup-rt-events.txt", wakeup_rt },
	{ "lisa-ns-timestamps.txt", lisa },
	{ "lost-events-trace-pipe.txt", lost_events },
	{ "marker-brackets-noflags.txt", marker_brackets },
	{ "osnoise.txt", osnoise },
	{ "pid-7-digits.txt", seven_digits },
	{ "rt-7-flags-ipi.txt", rt_ipi },
	{ "rt-7-flags-timerlat-stack.txt", rt_flags },
	{ "softirq-unaligned.txt", unaligned },
	{ "syscall-stack-buffer-started.txt", syscalls_and_stacks },
	{ "systrace-android.txt", systrace },
	{ "systrace-multiline-print.txt", multiline },
	{ "tgid-old-width.txt", groups_unknown },
	{ "tgid-rcuop.txt", groups_known },
	{ "tracecmd-report-l-dash-comm.txt", dash_comm },
	{ "tracecmd-two-files.txt", two_files },
	{ "trappy-thermal-braces.txt", thermal },
	{ "trappy-trace-filesystem.txt", unknown_comms },
	{ "uprobe-noflags-doc.txt", uprobe_doc },
	{ "uprobe-string-libc.txt", libc_strings },
	{ "user-stack-arm64.txt", user_stacks },
	{ "userstack-garbage.txt", user_stacks },
};

/* ---- reading ---- */

static int take(void *context, const struct text_joined *joined)
{
	struct reading *reading = context;
	const struct text_line *line = &joined->line;

	reading->of_kind[line->kind]++;
	reading->doubtful += joined->doubtful;
	if (line->kind == TEXT_LOST) {
		reading->lost += line->lost;
		reading->lost_cpu = line->cpu;
	}
	if (line->kind != TEXT_EVENT)
		return TEXT_JOIN_DONE;
	if (reading->count < ARRAY_SIZE(reading->events)) {
		char *text = malloc(line->whole.size + 1);
		struct text_line *event = &reading->events[reading->count];

		assert_non_null(text);
		memcpy(text, line->whole.at, line->whole.size);
		*event = *line;
		event->whole.at = text;
		event->comm.at = text + (line->comm.at - line->whole.at);
		event->flags.at = text + (line->flags.at - line->whole.at);
		event->name.at = text + (line->name.at - line->whole.at);
		event->body.at = text + (line->body.at - line->whole.at);
		reading->texts[reading->count] = text;
	}
	reading->count++;
	return TEXT_JOIN_DONE;
}

static char *load(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	char *text = malloc(1 << 20);

	assert_non_null(text);
	if (!file) {
		free(text);
		return NULL;
	}
	*ret_size = fread(text, 1, 1 << 20, file);
	(void)fclose(file);
	return text;
}

static struct reading *read_text(const char *text, size_t size)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct text_join join;

	assert_non_null(reading);
	text_join_init(&join);
	assert_int_equal(text_join_feed(&join, text, size, take, reading), 0);
	assert_int_equal(text_join_end(&join, take, reading), 0);
	text_join_release(&join);
	return reading;
}

static void release(struct reading *reading)
{
	for (size_t i = 0; i < ARRAY_SIZE(reading->texts); i++)
		free(reading->texts[i]);
	free(reading);
}

/* Lines that look like events to someone who only knows how a prefix looks. */
static unsigned int count_by_pattern(const char *text, size_t size)
{
	static const char pattern[] =
		"-[0-9]+ +(\\([ 0-9-]+\\) )?(\\[[0-9]+\\]|[0-9]+[a-zA-Z0-9.]{4,8})( +[a-zA-Z0-9.]{4,8})? +[0-9.]+(us.)?:";
	unsigned int count = 0;
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	for (const char *at = text; at < text + size;) {
		const char *newline = memchr(at, '\n', (size_t)(text + size - at));
		size_t length = (size_t)((newline ? newline : text + size) - at);
		char line[4096];

		(void)snprintf(line, sizeof(line), "%.*s", (int)length, at);
		count += line[0] != '#' && regexec(&regex, line, 0, NULL, 0) == 0;
		at += length + 1;
	}
	regfree(&regex);
	return count;
}

static const struct statement *statement_of(const char *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(statements); i++)
		if (strcmp(statements[i].file, file) == 0)
			return &statements[i];
	return NULL;
}

static const char *folder(void)
{
	static const char *const beside = TESTS_SOURCE_DIR "/../../shared/corpus";
	const char *given = getenv("TRACEFAN_CORPUS");

	return given ? given : beside;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the captures, sorted; the caller frees each. */
static size_t list_files(char **names)
{
	char path[4096];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/text", folder());
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) != NULL && count < FILES_MAX) {
		if (entry->d_name[0] == '.')
			continue;
		names[count] = strdup(entry->d_name);
		assert_non_null(names[count]);
		count++;
	}
	(void)closedir(dir);
	qsort(names, count, sizeof(names[0]), compare_names);
	return count;
}

/* Reads one file, prints its row, and returns whether all that is known of it agrees. */
static bool file_agrees(const char *name)
{
	const struct statement *statement = statement_of(name);
	struct reading *reading;
	char *text CLEANUP_FREE = NULL;
	char path[4096];
	size_t size = 0;
	unsigned int expected;
	bool agrees, counted;

	(void)snprintf(path, sizeof(path), "%s/text/%s", folder(), name);
	text = load(path, &size);
	assert_non_null(text);
	reading = read_text(text, size);
	expected = count_by_pattern(text, size);
	counted = expected == reading->count && reading->count == reading->of_kind[TEXT_EVENT];
	agrees = !statement || statement->holds(reading);
	print_message("%-40s %4u events %4u by pattern  %-6s %s\n", name, reading->count, expected,
		counted ? "agree" : "DIFFER", statement ? (agrees ? "agree" : "DIFFER") : "not stated");
	release(reading);
	return agrees && counted;
}

static void captures(void **state)
{
	char *names[FILES_MAX];
	size_t count = list_files(names);
	unsigned int differ = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		differ += !file_agrees(names[i]);
		free(names[i]);
	}
	assert_int_equal(differ, 0);
}

/* Each capture cut at many places, and read in small pieces: the same events but for the one that is cut. */
static void captures_cut(void **state)
{
	char *names[FILES_MAX];
	size_t count = list_files(names);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		char *text CLEANUP_FREE = NULL;
		char path[4096];
		size_t size = 0;
		unsigned int before = 0;

		(void)snprintf(path, sizeof(path), "%s/text/%s", folder(), names[i]);
		text = load(path, &size);
		assert_non_null(text);
		for (size_t cut = 0; cut <= size; cut += size / 50 + 1) {
			struct reading *reading = read_text(text, cut);

			assert_true(reading->count >= before);
			before = reading->count;
			release(reading);
		}
		free(names[i]);
	}
}

/* "uprobe at 0x446420, arg2 = 79", by the documentation's own format file of a 32-bit kernel. */
static void documented_fields(void **state)
{
	static const struct text_piece body = { "(0x446420) arg1=446420 arg2=79", 30 };
	char *text CLEANUP_FREE = NULL;
	void *bytes CLEANUP_FREE = NULL;
	struct catalog *catalog;
	struct catalog_event *event;
	struct text_show show;
	struct schema schema;
	const char *reason;
	uint8_t payload[512];
	char path[4096];
	size_t size;
	bool suspect;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/formats/kdoc-32bit/uprobes/zfree_entry/format", folder());
	text = load(path, &size);
	if (!text) {
		skip();
		return;
	}
	assert_int_equal(catalog_create(false, 4, &catalog), 0);
	assert_int_equal(catalog_add(catalog, "uprobes", text, size, &event, &reason), 0);
	assert_int_equal(text_schema_make(&event->schema, "uprobes", event->name, &bytes, &size), 0);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(text_fields_encode(&schema, &body, payload, sizeof(payload), &size, &suspect), 0);
	assert_string_equal(text_show(&show, &schema, payload, size), "__probe_ip=4482080 arg1=4482080 arg2=121");
	catalog_release(catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures),
		cmocka_unit_test(captures_cut),
		cmocka_unit_test(documented_fields),
	};
	char *names[FILES_MAX];
	size_t count = list_files(names);

	for (size_t i = 0; i < count; i++)
		free(names[i]);
	if (!count) {
		printf("skipped: no captures in %s/text (see TRACEFAN_CORPUS)\n", folder());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
