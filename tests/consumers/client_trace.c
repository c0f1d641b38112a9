/* Creating and changing traces, against a router of this test's own. The program that is probed is this one. */
#include "consumers/client/elf.h"
#include "consumers/client/tracefan.h"
#include "tests/consumers/fake_router.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#else
#define DTRACE_PROBE1(provider, name, a) ((void)(a))
#define NO_STATIC_PROBES
#endif

struct fixture {
	struct fake_router router;
	struct tfan *tfan;
	char self[256]; /* this program's real path */
	char noted[512];
};

/* What is probed. Two places of one static probe. */
__attribute__((noinline, used)) static int client_trace_probed(int a)
{
	DTRACE_PROBE1(client_trace, twice, a);
	DTRACE_PROBE1(client_trace, twice, a);
	return a + 1;
}

static void logger(void *context, int level, const char *text)
{
	struct fixture *f = context;

	(void)level;
	(void)snprintf(f->noted, sizeof(f->noted), "%s", text);
}

static int open_with(void **state, bool force)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tfan_options options = TFAN_OPTIONS;

	fake_router_start(&f->router);
	options.session = FAKE_SESSION;
	options.directory = f->router.directory;
	options.force = force;
	options.logger = logger;
	options.logger_context = f;
	assert_true(readlink("/proc/self/exe", f->self, sizeof(f->self) - 1) > 0);
	assert_int_equal(tfan_open(&options, &f->tfan), 0);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return open_with(state, false);
}

static int setup_forced(void **state)
{
	return open_with(state, true);
}

/* How many descriptors are open in this process, while the router has none under way. */
static size_t descriptors(struct fixture *f)
{
	size_t count = 0;
	DIR *folder;

	pthread_mutex_lock(&f->router.lock);
	folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	(void)closedir(folder);
	pthread_mutex_unlock(&f->router.lock);
	return count;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tfan_close(f->tfan);
	fake_router_stop(&f->router);
	free(f);
	return 0;
}

static struct tfan_trace *create(struct fixture *f, const char *probe)
{
	struct tfan_trace *trace = NULL;
	int rc = tfan_trace_create(f->tfan, probe, &trace);

	if (rc)
		print_error("%s: %s\n", probe, tfan_failure(f->tfan)->message);
	assert_int_equal(rc, 0);
	return trace;
}

static void assert_refused(struct fixture *f, const char *probe, enum tfan_class category, int position,
	const char *words)
{
	const struct tfan_failure *failure = tfan_failure(f->tfan);
	struct tfan_trace *trace = NULL;

	assert_true(tfan_trace_create(f->tfan, probe, &trace) < 0);
	if (failure->category != category || failure->position != position || !strstr(failure->message, words))
		print_error("%s: class %d at %d: %s\n", probe, failure->category, failure->position, failure->message);
	assert_null(trace);
	assert_int_equal(failure->category, category);
	assert_int_equal(failure->position, position);
	assert_non_null(strstr(failure->message, words));
	assert_null(tfan_trace_at(f->tfan, 0));
}

static void a_tracepoint(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create(f, "s=tracepoint:sched:sched_switch if prev_pid == 0");

	assert_int_equal(f->router.create.kind, PROBE_TRACEPOINT);
	assert_string_equal(f->router.create.name, "s");
	assert_string_equal(f->router.create.system, "sched");
	assert_string_equal(f->router.create.event, "sched_switch");
	assert_string_equal(f->router.create.filter, "prev_pid == 0");
	assert_int_equal(f->router.create.fetch_count, 0);
	assert_string_equal(f->router.target, "");
	assert_string_equal(tfan_trace_name(trace), "s");
	assert_string_equal(tfan_trace_system(trace), "sched");
	assert_string_equal(tfan_trace_event(trace), "sched_fake");
	assert_int_equal(tfan_trace_id(trace), 1000);
}

static void kernel_functions(void **state)
{
	struct fixture *f = *state;

	(void)create(f, "kprobe:vfs_read+4");
	assert_int_equal(f->router.create.kind, PROBE_KPROBE);
	assert_string_equal(f->router.create.symbol, "vfs_read");
	assert_int_equal(f->router.create.offset, 4);
	(void)create(f, "kretprobe:vfs_read+maxactive=64");
	assert_int_equal(f->router.create.kind, PROBE_KRETPROBE);
	assert_int_equal(f->router.create.offset, 0);
	assert_int_equal(f->router.create.maxactive, 64);
	(void)create(f, "other=kretprobe:vfs_read");
	assert_int_equal(f->router.create.maxactive, 512);
	(void)create(f, "entry=kprobe:vfs_read");
	assert_int_equal(f->router.create.maxactive, 0);
}

static void a_function_of_a_program(void **state)
{
	struct fixture *f = *state;
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	uint64_t offset = 0;
	char probe[512];

	failure_init(&failure);
	assert_int_equal(elf_file_open("/proc/self/exe", &file, &failure), 0);
	assert_int_equal(elf_file_symbol(&file, "client_trace_probed", 0, &offset, &failure), 0);
	elf_file_release(&file);
	(void)snprintf(probe, sizeof(probe), "uprobe:%s:client_trace_probed n=%%di:s32", f->self);
	(void)create(f, probe);
	assert_int_equal(f->router.create.kind, PROBE_UPROBE);
	assert_int_equal(f->router.create.offset, offset);
	assert_string_equal(f->router.create.symbol, "client_trace_probed");
	/* The descriptor is what counts; the names are for people. */
	assert_string_equal(f->router.target, f->self);
	assert_string_equal(f->router.create.path, f->self);
	(void)snprintf(probe, sizeof(probe), "uretprobe:/proc/self/exe:0x%llx r=$retval", (unsigned long long)offset);
	(void)create(f, probe);
	assert_int_equal(f->router.create.kind, PROBE_URETPROBE);
	assert_int_equal(f->router.create.offset, offset);
	assert_string_equal(f->router.target, f->self);
}

static void a_name_that_is_longer_than_its_message(void **state)
{
	static const char name[] = "_a_very_long_name_a_very_long_name_a_very_long_name_a_very_long_name";
	struct fixture *f = *state;
	char probe[256];
	struct tfan_trace *trace;

	(void)snprintf(probe, sizeof(probe), "kprobe:%s", name);
	trace = create(f, probe);
	assert_string_equal(tfan_trace_name(trace), name);
	assert_int_equal(strlen(f->router.create.name), CONTROL_NAME_MAX - 1);
	assert_string_equal(f->router.create.name + CONTROL_NAME_MAX - 4, "...");
}

/* ---- what is refused ---- */

static void wrong_notation(void **state)
{
	assert_refused(*state, "kprob:x", TFAN_USAGE, 0, "did you mean kprobe");
	assert_refused(*state, "kprobe:x y", TFAN_USAGE, 10, "NAME=FETCH");
}

static void wrong_places(void **state)
{
	struct fixture *f = *state;
	char probe[512];

	assert_refused(f, "uprobe:/nowhere/x:main", TFAN_LOCATION, 7, "there is no file /nowhere/x");
	(void)snprintf(probe, sizeof(probe), "uprobe:%s:client_trace_prodeb", f->self);
	assert_refused(f, probe, TFAN_LOCATION, (int)strlen(f->self) + 8, "did you mean client_trace_probed?");
	(void)snprintf(probe, sizeof(probe), "uretprobe:%s:0x0", f->self);
	assert_refused(f, probe, TFAN_LOCATION, (int)strlen(f->self) + 11, "not in a part that is executed");
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CREATE), 0);
}

static void wrong_arguments(void **state)
{
	struct fixture *f = *state;
	char probe[512];
	int at = snprintf(probe, sizeof(probe), "uretprobe:%s:client_trace_probed x=", f->self);

	(void)snprintf(probe + at, sizeof(probe) - (size_t)at, "$arg1");
	assert_refused(f, probe, TFAN_FETCH_ARG, at, "$retval");
}

static void refuse(struct fixture *f, uint16_t type, enum tfan_class category, int position, const char *words)
{
	f->router.refuse_type = type;
	f->router.refuse_status = category;
	f->router.refuse.position = position;
	assert_int_equal(control_text(f->router.refuse.message, sizeof(f->router.refuse.message), words), 0);
}

static void an_unknown_tracepoint_gets_near_names(void **state)
{
	struct fixture *f = *state;

	refuse(f, CONTROL_CREATE, TFAN_LOCATION, -1, "there is no event sched:sched_swich");
	f->router.list = "sched:sched_wakeup\nsched:sched_switch\nirq:softirq_entry";
	assert_refused(f, "tracepoint:sched:sched_swich", TFAN_LOCATION, 17,
		"there is no event sched:sched_swich; did you mean sched:sched_switch?");
	/* The mark stands under what is wrong. */
	assert_refused(f, "tracepoint:sced:sched_switch", TFAN_LOCATION, 11, "did you mean sched:sched_switch");
	assert_refused(f, "x=tracepoint:shced:tick", TFAN_LOCATION, 13, "did you mean sched?");
	f->router.list = "";
	assert_refused(f, "tracepoint:sched:sched_swich", TFAN_LOCATION, 17, "there is no event sched:sched_swich");
	/* Nothing was made, so nothing is given back. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 0);
}

static void positions_are_told_in_the_users_text(void **state)
{
	struct fixture *f = *state;

	refuse(f, CONTROL_CREATE, TFAN_USAGE, 4, "no such field");
	assert_refused(f, "kprobe:f n=%di if pid = 3", TFAN_USAGE, 22, "no such field");
	refuse(f, CONTROL_CREATE, TFAN_FETCH_ARG, 6, "Unknown type");
	assert_refused(f, "kprobe:f   n=%di:u65", TFAN_FETCH_ARG, 17,
		"Unknown type; types: u8 to u64, s8 to s64, x8 to x64, string, ustring; a string needs a place in memory, as in +0($arg1):string");
	refuse(f, CONTROL_CREATE, TFAN_NOT_PERMITTED, -1, "rule 7");
	assert_refused(f, "kprobe:f", TFAN_NOT_PERMITTED, -1, "rule 7");
}

static void a_schema_that_does_not_come_gives_the_trace_back(void **state)
{
	struct fixture *f = *state;

	refuse(f, CONTROL_SCHEMA, TFAN_FAILED, -1, "out of memory");
	assert_refused(f, "kprobe:f", TFAN_FAILED, -1, "out of memory");
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 1);
}

/* ---- what would endanger the program ---- */

static void like_go(struct fixture *f, char *probe, size_t size)
{
	char command[1024];

	(void)snprintf(probe, size, "uretprobe:%s/like-go:client_trace_probed", f->router.directory);
	(void)snprintf(command, sizeof(command), "objcopy --add-section .go.buildinfo=/etc/passwd %s %s/like-go", f->self,
		f->router.directory);
	if (system(command) != 0) /* NOLINT(cert-env33-c): both paths are the test's own */
		skip();
}

/* A return probe one byte into a function. */
static void beside_the_entry(struct fixture *f, char *probe, size_t size)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	uint64_t offset = 0;

	failure_init(&failure);
	assert_int_equal(elf_file_open(f->self, &file, &failure), 0);
	assert_int_equal(elf_file_symbol(&file, "client_trace_probed", 0, &offset, &failure), 0);
	elf_file_release(&file);
	(void)snprintf(probe, size, "uretprobe:%s:0x%llx", f->self, (unsigned long long)offset + 1);
}

static void a_return_probe_beside_the_entry_is_refused(void **state)
{
	struct fixture *f = *state;
	char probe[512];

	beside_the_entry(f, probe, sizeof(probe));
	assert_refused(f, probe, TFAN_LOCATION, (int)strlen(f->self) + 11, "client_trace_probed+1");
}

static void a_return_probe_beside_the_entry_can_be_forced(void **state)
{
	struct fixture *f = *state;
	char probe[512];

	beside_the_entry(f, probe, sizeof(probe));
	(void)create(f, probe);
	assert_non_null(strstr(f->noted, "client_trace_probed+1"));
}

static void remove_like_go(struct fixture *f)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/like-go", f->router.directory);
	assert_int_equal(unlink(path), 0);
}

static void a_return_probe_in_go_is_refused(void **state)
{
	struct fixture *f = *state;
	char probe[256];

	like_go(f, probe, sizeof(probe));
	assert_refused(f, probe, TFAN_LOCATION, 10, "is a Go program");
	/* Only return probes are dangerous. */
	memcpy(probe + 2, "uprobe:", 7);
	memmove(probe + 9, probe + 10, strlen(probe + 10) + 1);
	(void)create(f, probe + 2);
	remove_like_go(f);
}

static void a_return_probe_in_go_can_be_forced(void **state)
{
	struct fixture *f = *state;
	char probe[256];

	like_go(f, probe, sizeof(probe));
	(void)create(f, probe);
	assert_non_null(strstr(f->noted, "is a Go program"));
	remove_like_go(f);
}

/* ---- changing ---- */

static void filters_and_switches(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create(f, "kprobe:f if n == 1");
	char long_filter[CONTROL_FILTER_MAX + 1];

	assert_int_equal(tfan_trace_set_filter(trace, "n == 2"), 0);
	assert_string_equal(f->router.set_filter.filter, "n == 2");
	assert_int_equal(f->router.set_filter.id, tfan_trace_id(trace));
	assert_int_equal(tfan_trace_set_filter(trace, NULL), 0);
	assert_string_equal(f->router.set_filter.filter, "");
	refuse(f, CONTROL_SET_FILTER, TFAN_USAGE, 2, "no such field: m");
	assert_int_equal(tfan_trace_set_filter(trace, "m == 2"), -EINVAL);
	assert_int_equal(tfan_failure(f->tfan)->position, 2);
	assert_string_equal(tfan_failure(f->tfan)->message, "no such field: m");
	memset(long_filter, '1', sizeof(long_filter));
	long_filter[CONTROL_FILTER_MAX] = '\0';
	assert_int_equal(tfan_trace_set_filter(trace, long_filter), -ENAMETOOLONG);
	assert_int_equal(tfan_failure(f->tfan)->category, TFAN_USAGE);
	assert_int_equal(tfan_trace_set_enabled(trace, true), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 1);
	refuse(f, CONTROL_SET_ENABLED, TFAN_BUSY, -1, "held by another");
	assert_int_equal(tfan_trace_set_enabled(trace, false), -EBUSY);
	tfan_trace_close(trace);
	tfan_trace_close(NULL);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 1);
}

static void ledgers_and_lists(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create(f, "kprobe:f");
	struct tfan_session_ledger session;
	struct tfan_ledger ledger;
	const char *list;

	f->router.stats = (struct ledger_trace){ .decoded = 10, .delivered = 7, .filtered = 2, .lost_ring = 1, .missed = 5, .kept_away = 90, .gave_up = 3 };
	assert_int_equal(tfan_trace_ledger(trace, &ledger), 0);
	assert_int_equal(ledger.decoded, ledger.delivered + ledger.filtered + ledger.lost_ring);
	assert_int_equal(ledger.missed, 5);
	assert_int_equal(ledger.gave_up, 3);
	assert_true(ledger.kept_known);
	assert_int_equal(ledger.kept_away, 90);
	f->router.stats.kept_away = LEDGER_UNKNOWN;
	assert_int_equal(tfan_trace_ledger(trace, &ledger), 0);
	assert_false(ledger.kept_known);
	assert_int_equal(ledger.kept_away, 0);
	assert_int_equal(tfan_session_ledger(f->tfan, &session), 0);
	assert_int_equal(session.committed, 10);
	assert_int_equal(session.dropped, 5);
	assert_int_equal(session.kept_away, 90);
	assert_int_equal(session.kept_probes, 2);
	assert_int_equal(session.unkept_probes, 1);
	f->router.list = "a:b\nc:d\n";
	assert_int_equal(tfan_list(f->tfan, &list), 0);
	assert_string_equal(list, "a:b\nc:d\n");
	refuse(f, CONTROL_STATS, TFAN_FAILED, -1, "no such trace");
	assert_true(tfan_trace_ledger(trace, &ledger) < 0);
}

/* Neither leaks one nor closes one of somebody else's. */
static void descriptors_are_given_back(void **state)
{
	struct fixture *f = *state;
	size_t before = descriptors(f);
	struct tfan_trace *traces[3], *none;
	char probe[512];

	(void)snprintf(probe, sizeof(probe), "uprobe:%s:client_trace_probed", f->self);
	traces[0] = create(f, "kprobe:f");
	traces[1] = create(f, probe);
	traces[2] = create(f, probe);
	assert_true(tfan_trace_create(f->tfan, "kprobe", &none) < 0);
	assert_true(tfan_trace_create(f->tfan, "uprobe:/etc/passwd:x", &none) < 0);
	/* One for the file, which both share. */
	assert_int_equal(descriptors(f), before + 1);
	for (size_t i = 0; i < 3; i++)
		tfan_trace_close(traces[i]);
	/* Freed when no event can refer to them. */
	(void)tfan_next(f->tfan, &(const struct tfan_event *){ NULL });
	assert_int_equal(descriptors(f), before);
}

static void the_fields_of_a_trace(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create(f, "kprobe:f");
	struct tfan_field field;

	/* The hidden one is not counted. */
	assert_int_equal(tfan_field_count(trace), 6);
	assert_int_equal(tfan_field_at(trace, 0, &field), 0);
	assert_string_equal(field.name, "common_pid");
	assert_true(field.is_common && field.is_signed);
	assert_int_equal(field.kind, TFAN_INTEGER);
	assert_int_equal(field.size, 4);
	assert_int_equal(tfan_field_at(trace, 3, &field), 0);
	assert_string_equal(field.name, "address");
	assert_string_equal(field.type, "unsigned long");
	assert_int_equal(field.display, TFAN_HEX);
	assert_true(field.is_pointer && !field.is_signed);
	assert_int_equal(tfan_field_at(trace, 5, &field), 0);
	assert_int_equal(field.kind, TFAN_BYTES);
	assert_int_equal(field.size, 1);
	assert_int_equal(tfan_field_at(trace, 6, &field), -EINVAL);
	assert_int_equal(tfan_field_find(trace, "path"), 2);
	assert_int_equal(tfan_field_find(trace, "canary"), -ENOENT);
}

/* ---- a trace of two places ---- */

static struct tfan_trace *create_twice(struct fixture *f)
{
	char probe[512];

#ifdef NO_STATIC_PROBES
	skip();
#endif
	(void)snprintf(probe, sizeof(probe), "usdt:%s:client_trace:twice n=$arg1 if n > 3", f->self);
	return create(f, probe);
}

static void two_places_are_one_trace(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create_twice(f);
	const struct tfan_event *event;
	struct tfan_ledger ledger;
	volatile int one = 1;

	/* Volatile, so that no compiler makes a copy of the function for this one number. */
	assert_int_equal(client_trace_probed(one), 2);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CREATE), 2);
	assert_int_equal(f->router.create.kind, PROBE_USDT);
	assert_string_equal(f->router.create.symbol, "client_trace:twice");
	assert_ptr_equal(tfan_trace_at(f->tfan, 0), trace);
	assert_null(tfan_trace_at(f->tfan, 1));
	for (uint64_t i = 0; i < 4; i++)
		fake_router_event(&f->router, 1000 + i % 2, i, 1);
	fake_router_publish(&f->router);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(tfan_next(f->tfan, &event), 1);
		assert_int_equal(tfan_event_time(event), i);
		assert_ptr_equal(tfan_event_trace(event), trace);
	}
	f->router.stats = (struct ledger_trace){ .decoded = 3, .delivered = 1, .filtered = 2 };
	assert_int_equal(tfan_trace_ledger(trace, &ledger), 0);
	assert_int_equal(ledger.decoded, 6);
	assert_int_equal(tfan_trace_set_enabled(trace, true), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 2);
	tfan_trace_close(trace);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 2);
}

static void one_filter_for_all_beside_their_own(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *first = create(f, "kprobe:f if n == 1");
	struct tfan_trace *second = create(f, "kprobe:g");

	assert_int_equal(tfan_set_filter(f->tfan, "n < 9"), 0);
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_SHARED), 2);
	assert_string_equal(f->router.set_filter.filter, "n < 9");
	assert_int_equal(tfan_trace_set_filter(first, "n == 2"), 0);
	assert_string_equal(f->router.set_filter.filter, "(n == 2) && (n < 9)");
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_SHARED), 3);
	/* A position is told in the text that was given. */
	refuse(f, CONTROL_SET_SHARED, TFAN_USAGE, strlen("(") + 2, "no such field");
	assert_int_equal(tfan_trace_set_filter(first, "m == 2"), -EINVAL);
	assert_int_equal(tfan_failure(f->tfan)->position, 2);
	refuse(f, CONTROL_SET_SHARED, TFAN_USAGE, strlen("(m == 2) && (") + 2, "no such field");
	assert_int_equal(tfan_trace_set_filter(first, "m == 2"), -EINVAL);
	assert_int_equal(tfan_failure(f->tfan)->position, -1);
	/* The first takes the new one, the second refuses: the first gets its old one again. */
	refuse(f, CONTROL_SET_SHARED, TFAN_USAGE, 2, "no such field");
	f->router.refuse_after = 1;
	assert_int_equal(tfan_set_filter(f->tfan, "m < 8"), -EINVAL);
	assert_string_equal(tfan_failure(f->tfan)->message, "no such field");
	assert_int_equal(tfan_failure(f->tfan)->position, 2);
	assert_int_equal(f->router.log_ids[f->router.log_count - 1], tfan_trace_id(first));
	/* Behind a filter of its own the position is still told in the shared text. */
	refuse(f, CONTROL_SET_SHARED, TFAN_USAGE, strlen("(n == 2) && (") + 1, "no");
	assert_int_equal(tfan_set_filter(f->tfan, "m < 8"), -EINVAL);
	assert_int_equal(tfan_failure(f->tfan)->position, 1);
	f->router.refuse_type = 0;
	assert_int_equal(tfan_set_filter(f->tfan, NULL), 0);
	assert_string_equal(f->router.set_filter.filter, "");
	assert_int_equal(f->router.set_filter.id, tfan_trace_id(second));
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_FILTER), 2);
}

static void a_filter_holds_at_both_places_or_at_none(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create_twice(f);

	refuse(f, CONTROL_SET_FILTER, TFAN_USAGE, 0, "no");
	f->router.refuse_after = 1;
	assert_int_equal(tfan_trace_set_filter(trace, "x"), -EINVAL);
	assert_string_equal(tfan_failure(f->tfan)->message, "no");
	/* The first place took the new one, so the old one was sent after it; that one was refused, too, by this
	 * router, which says no to all that follow. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_FILTER), 3);
	assert_int_equal(f->router.log_ids[f->router.log_count - 1], 1000);
}

static void a_trace_is_enabled_at_both_places_or_at_none(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = create_twice(f);

	refuse(f, CONTROL_SET_ENABLED, TFAN_BUSY, -1, "no");
	f->router.refuse_after = 1;
	assert_int_equal(tfan_trace_set_enabled(trace, true), -EBUSY);
	assert_string_equal(tfan_failure(f->tfan)->message, "no");
	/* The first place was enabled, and then disabled again. */
	assert_int_equal(fake_router_requests(&f->router, CONTROL_SET_ENABLED), 3);
	assert_int_equal(f->router.log_ids[f->router.log_count - 1], 1000);
}

static void the_second_place_is_refused(void **state)
{
	struct fixture *f = *state;
	struct tfan_trace *trace = NULL;
	char probe[512];

#ifdef NO_STATIC_PROBES
	skip();
#endif
	refuse(f, CONTROL_CREATE, TFAN_BUSY, -1, "no room");
	f->router.refuse_after = 1;
	(void)snprintf(probe, sizeof(probe), "usdt:%s:client_trace:twice", f->self);
	assert_int_equal(tfan_trace_create(f->tfan, probe, &trace), -EBUSY);
	assert_string_equal(tfan_failure(f->tfan)->message, "no room");
	assert_int_equal(fake_router_requests(&f->router, CONTROL_CLOSE), 1);
	assert_null(tfan_trace_at(f->tfan, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tracepoint),
		TEST(kernel_functions),
		TEST(a_function_of_a_program),
		TEST(a_name_that_is_longer_than_its_message),
		TEST(wrong_notation),
		TEST(wrong_places),
		TEST(wrong_arguments),
		TEST(an_unknown_tracepoint_gets_near_names),
		TEST(positions_are_told_in_the_users_text),
		TEST(a_schema_that_does_not_come_gives_the_trace_back),
		TEST(a_return_probe_in_go_is_refused),
		cmocka_unit_test_setup_teardown(a_return_probe_in_go_can_be_forced, setup_forced, teardown),
		TEST(a_return_probe_beside_the_entry_is_refused),
		cmocka_unit_test_setup_teardown(a_return_probe_beside_the_entry_can_be_forced, setup_forced, teardown),
		TEST(filters_and_switches),
		TEST(ledgers_and_lists),
		TEST(descriptors_are_given_back),
		TEST(the_fields_of_a_trace),
		TEST(two_places_are_one_trace),
		TEST(a_filter_holds_at_both_places_or_at_none),
		TEST(a_trace_is_enabled_at_both_places_or_at_none),
		TEST(one_filter_for_all_beside_their_own),
		TEST(the_second_place_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
