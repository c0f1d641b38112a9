/* Replays, as an ordinary user: recordings, whole and cut, text logs and page dumps. */
#include "session.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/replay.h"
#include "shm/recording_abi.h"
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534
#define FORMAT                                                                                     \
	"name: %s\nID: %u\nformat:\n\tfield:unsigned short "                                       \
	"common_type;\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: \"\"\n"

static char folder[] = "/tmp/tracefan-replay-XXXXXX";

static void path_to(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", folder, name);
}

static void make_folder(const char *name)
{
	char path[256];

	path_to(path, sizeof(path), name);
	assert_true(!mkdir(path, 0755) || errno == EEXIST);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	char path[256];
	FILE *file;

	path_to(path, sizeof(path), name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	assert_int_equal(chmod(path, 0644), 0);
}

/* ---- a recording in memory ---- */

struct image {
	uint8_t bytes[1 << 20];
	size_t size;
};

static void put(struct image *image, const void *bytes, size_t size)
{
	assert_true(image->size + size <= sizeof(image->bytes));
	if (size)
		memcpy(image->bytes + image->size, bytes, size);
	image->size += size;
}

static void put_frame(struct image *image, uint32_t kind, const void *head, size_t head_size,
	const void *body, size_t body_size)
{
	static const uint8_t zeroes[RECORDING_ALIGN];
	struct recording_frame frame = { .kind = kind, .size = head_size + body_size };

	put(image, &frame, sizeof(frame));
	put(image, head, head_size);
	put(image, body, body_size);
	put(image, zeroes, (RECORDING_ALIGN - frame.size % RECORDING_ALIGN) % RECORDING_ALIGN);
}

static void put_entry(
	struct image *image, uint8_t kind, uint32_t cpu, uint64_t time, const char *text)
{
	struct pool_entry entry = {
		.kind = kind, .cpu = cpu, .time = time, .length = (uint32_t)strlen(text)
	};

	put_frame(image, FRAME_ENTRY, &entry, sizeof(entry), text, strlen(text));
}

static void put_format(
	struct image *image, uint32_t kind, const char *system, const char *event, const char *name)
{
	struct recording_format head = { .probe_id = 99, .kind = kind };
	char text[512];

	snprintf(text, sizeof(text), FORMAT, event, 7);
	head.format_size = (uint32_t)strlen(text);
	snprintf(head.system, sizeof(head.system), "%s", system);
	snprintf(head.event, sizeof(head.event), "%s", event);
	snprintf(head.name, sizeof(head.name), "%s", name);
	put_frame(image, FRAME_FORMAT, &head, sizeof(head), text, strlen(text));
}

static struct image *make_recording(void)
{
	struct image *image = calloc(1, sizeof(*image));
	struct recording_header header = { .magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.source = SOURCE_RAW,
		.subbuf_size = 4096,
		.cpu_count = 3,
		.group = "tracefan_old_1234",
		.tag = "0badcafe" };
	struct control_task_name names[2] = { { 7, "seven" }, { 8, "eight" } };

	put(image, &header, sizeof(header));
	put_frame(image, FRAME_FACTS, NULL, 0, "facts as they were......", 24);
	put_frame(image, FRAME_NAMES, names, sizeof(names), NULL, 0);
	put_format(image, PROBE_TRACEPOINT, "sched", "sched_switch", "");
	put_format(image, PROBE_UPROBE, "tracefan_old_1234", "f_0000000000000001_0badcafe",
		"my calls");
	put_entry(image, POOL_CLOCK, 0, 1, "");
	put_entry(image, POOL_DATA, 0, 0, "first");
	put_entry(image, POOL_BUSY, 2, 10, "");
	put_entry(image, POOL_SWEEP, 0, 10, "");
	put_entry(image, POOL_FLUSH, 0, 10, "");
	put_frame(image, 4711, NULL, 0, "of a later version", 18);
	put_entry(image, POOL_ACCOUNT, 0, 10, "");
	put_entry(image, POOL_DATA, 2, 0, "second");
	put_entry(image, POOL_END, 0, 0, "");
	put_frame(image, FRAME_END, NULL, 0, NULL, 0);
	return image;
}

/* ---- what comes ---- */

struct story {
	char text[1 << 16]; /* an entry per word */
	size_t length;
};

static void add(struct story *story, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct story *story, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	story->length += (size_t)vsnprintf(
		story->text + story->length, sizeof(story->text) - story->length, format, ap);
	va_end(ap);
	assert_true(story->length < sizeof(story->text));
}

static void tell(void *context, const struct pool_entry *entry, const void *bytes)
{
	add(context, "%d:%.*s ", (int)entry->cpu, (int)(entry->length < 32 ? entry->length : 32),
		(const char *)bytes);
}

static bool ended(const struct session *session, void *context)
{
	(void)context;
	return session->ends > 0;
}

static struct control_probe_created ask(
	struct session *session, struct control_create create, char **ret_format)
{
	struct control_probe_created reply;
	struct control_message message;
	void *format = NULL;
	int client, server;
	size_t size;

	session_consumer(session, &client, &server);
	session_call(session, &create, CONTROL_PROBE_CREATE, sizeof(create), &server, 1, &message);
	memcpy(&reply, message.bytes, sizeof(reply));
	if (!reply.status)
		assert_int_equal(segment_blob_read(message.fds[0], 1 << 20, &format, &size), 0);
	if (ret_format)
		*ret_format = format;
	else
		free(format);
	control_message_release(&message);
	close(client);
	close(server);
	return reply;
}

static uint32_t set_enabled(struct session *session, uint64_t id)
{
	struct control_set_enabled request = { .id = id, .enabled = 1 };

	return session_status_call(
		session, &request, CONTROL_PROBE_ENABLE, sizeof(request), NULL, 0, NULL);
}

/* A session that replays, run by nobody in a folder of their own. */
static void start(struct session *session, const char *option, const char *name)
{
	char path[256], directory[64], unique[32];
	const char *args[] = { option, path, NULL };
	static unsigned int number;

	path_to(path, sizeof(path), name);
	snprintf(directory, sizeof(directory), "%s/run", folder);
	snprintf(unique, sizeof(unique), "replay-%u", ++number);
	if (geteuid() == 0) {
		make_folder("run");
		assert_int_equal(chown(directory, NOBODY, NOBODY), 0);
		session_run_as(NOBODY);
	}
	if (!session_start_at(session, directory, unique, args))
		fail_msg("exit status %d", session_wait(session, NULL, 0));
	session_connect(session);
	assert_true(session->welcome.flags & SESSION_RECORDED);
}

static void finish_as(struct session *session, struct story *story, uint64_t reason, int status)
{
	assert_true(session_read_until(session, ended, tell, story));
	assert_int_equal(session->last_end, reason);
	assert_true(session->sweep.time == UINT64_MAX);
	session_disconnect(session);
	assert_int_equal(session_wait(session, NULL, 0), status);
	session->log = close_fd(session->log);
	session->notify = close_fd(session->notify);
	session->owner = close_fd(session->owner);
}

static void finish(struct session *session, struct story *story)
{
	finish_as(session, story, END_FINISHED, EXIT_DONE);
}

static bool contains(int blob, const char *text)
{
	CLEANUP_FREE void *bytes = NULL;
	size_t size;

	assert_int_equal(segment_blob_read(blob, 1 << 20, &bytes, &size), 0);
	return memmem(bytes, size, text, strlen(text)) != NULL;
}

static void test_recording(void **state)
{
	CLEANUP_FREE struct image *image = make_recording();
	struct control_create by_name = { .kind = PROBE_KPROBE, .name = "my calls" },
			      unknown = { .kind = PROBE_UPROBE, .name = "his" };
	struct control_probe_created created;
	struct story story = { "" };
	struct session session;
	CLEANUP_FREE char *format = NULL;

	(void)state;
	write_file("whole", image->bytes, image->size);
	start(&session, "--replay", "whole");
	assert_int_equal(session.welcome.source, SOURCE_RAW);
	assert_int_equal(session.welcome.cpu_count, 3);
	assert_string_equal(session.welcome.group, "tracefan_old_1234");
	assert_string_equal(session.welcome.tag, "0badcafe");
	assert_true(contains(session.facts, "facts as they were"));
	assert_true(contains(session.facts, "name: sched_switch"));
	assert_true(contains(session.names, "eight"));

	created = ask(&session, session_tracepoint("sched", "sched_switch"), &format);
	assert_int_equal(created.status, 0);
	assert_true(format && strstr(format, "name: sched_switch"));
	created = ask(&session, by_name, NULL);
	assert_int_equal(created.status, 0);
	assert_string_equal(created.event, "f_0000000000000001_0badcafe");
	assert_int_equal(ask(&session, unknown, NULL).status, EXIT_LOCATION);
	assert_int_equal(
		ask(&session, session_tracepoint("sched", "sched_wakeup"), NULL).status, EXIT_LOCATION);
	assert_int_equal(set_enabled(&session, 4711), EXIT_FAILED);
	/* Nothing comes before it is wanted: the first entry is there only then. */
	{
		struct pool_entry entry;

		usleep(50000);
		assert_int_equal(pool_reader_next(&session.pool, &entry), 0);
	}
	assert_int_equal(set_enabled(&session, created.probe_id), 0);
	finish(&session, &story);
	assert_string_equal(story.text, "0:first 2:second ");
	assert_int_equal(session.clocks, 1);
	assert_int_equal(session.busy, 1);
	assert_int_equal(session.sweeps, 2);
	assert_int_equal(session.flushed, 0);
	assert_int_equal(session.accounted, 0);
}

/* Cut anywhere: what is whole is replayed, and nothing else; then it is an error. */
static void test_cut_recording(void **state)
{
	CLEANUP_FREE struct image *image = make_recording();
	size_t second =
		(size_t)((uint8_t *)memmem(image->bytes, image->size, "second", 6) - image->bytes);
	const struct {
		size_t size;
		const char *text;
	} cuts[] = {
		{ second + 6, "0:first 2:second " },
		{ second + 5, "0:first " },
		{ second - 40, "0:first " },
		{ sizeof(struct recording_header) + 3, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct story story = { "" };
		struct session session;

		write_file("cut", image->bytes, cuts[i].size);
		start(&session, "--replay", "cut");
		assert_int_equal(set_enabled(&session, 0), 0);
		finish_as(&session, &story, END_ERROR, EXIT_FAILED);
		assert_string_equal(story.text, cuts[i].text);
	}
}

/* The same with a head of a frame or an entry that can't be: from there on. */
static void test_damaged_recording(void **state)
{
	CLEANUP_FREE struct image *image = make_recording();
	uint8_t *second = memmem(image->bytes, image->size, "second", 6);
	uint8_t *entry = second - sizeof(struct pool_entry), *frame = entry - sizeof(struct recording_frame);
	struct {
		uint8_t *at;
		uint8_t bits;
	} flips[] = {
		{ frame + offsetof(struct recording_frame, kind), 1 }, /* END, which isn't the last */
		{ frame + offsetof(struct recording_frame, kind), 4 },
		{ frame + offsetof(struct recording_frame, kind) + 3, 0x40 },
		{ frame + offsetof(struct recording_frame, flags), 0x40 },
		{ frame + offsetof(struct recording_frame, size) + 5, 1 },
		{ entry + offsetof(struct pool_entry, kind), 0x80 },
		{ entry + offsetof(struct pool_entry, length) + 2, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
		struct story story = { "" };
		struct session session;

		*flips[i].at ^= flips[i].bits;
		write_file("damaged", image->bytes, image->size);
		*flips[i].at ^= flips[i].bits;
		start(&session, "--replay", "damaged");
		assert_int_equal(set_enabled(&session, 0), 0);
		finish_as(&session, &story, END_ERROR, EXIT_FAILED);
		assert_string_equal(story.text, "0:first ");
	}
}

static void test_text_log(void **state)
{
	static char log[300000];
	struct story story = { "" };
	struct session session;
	size_t size = 0;
	unsigned int pieces = 0;

	(void)state;
	for (int i = 0; size < sizeof(log) - 100; i++)
		size += (size_t)snprintf(log + size, sizeof(log) - size,
			"  cat-%d [000] ..... %d.000001: ev: n=%d\n", i, i, i);
	write_file("log", log, size - 1); /* without the last newline */
	start(&session, "--text", "log");
	assert_int_equal(session.welcome.source, SOURCE_TEXT);
	assert_int_equal(ask(&session, session_tracepoint("any", "ev"), NULL).status, 0);
	assert_int_equal(set_enabled(&session, 0), 0);
	finish(&session, &story);
	/* Every piece begins with a line. */
	for (const char *at = story.text; (at = strstr(at, "-1:  cat-")); at++)
		pieces++;
	assert_int_equal(pieces, session.data);
	assert_true(pieces >= 4);
}

/* A page with a time and nothing else in it. */
static void put_page(uint8_t *page, uint64_t time, const char *text, bool big_endian)
{
	uint64_t commit = 32;

	memset(page, 0, 4096);
	if (big_endian) {
		time = __builtin_bswap64(time);
		commit = __builtin_bswap64(commit);
	}
	memcpy(page, &time, 8);
	memcpy(page + 8, &commit, 8);
	snprintf((char *)page + 16, 32, "%s", text);
}

static void tell_page(void *context, const struct pool_entry *entry, const void *bytes)
{
	struct story *story = context;

	assert_int_equal(entry->length, 4096);
	add(story, "%u:%s ", entry->cpu, (const char *)bytes + 16);
}

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static void make_pages(bool big_endian)
{
	static uint8_t pages[4096 * 4];
	static const char *const folders[] = { "dump", "dump/per_cpu", "dump/per_cpu/cpu0",
		"dump/per_cpu/cpu2", "dump/events", "dump/events/sched",
		"dump/events/sched/sched_switch" };
	char format[512];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_folder(folders[i]);
	put_page(pages, 1000, "a", big_endian);
	put_page(pages + 4096, 5000, "d", big_endian);
	put_page(pages + 8192, 6000, "e", big_endian);
	write_file("dump/per_cpu/cpu0/trace_pipe_raw", pages, (size_t)3 * 4096);
	put_page(pages, 2000, "b", big_endian);
	put_page(pages + 4096, 3000, "c", big_endian);
	put_page(pages + 8192, 7000, "f", big_endian);
	write_file("dump/per_cpu/cpu2/trace_pipe_raw", pages, (size_t)3 * 4096);
	write_file("dump/events/header_page", header_page, strlen(header_page));
	snprintf(format, sizeof(format), FORMAT, "sched_switch", 7);
	write_file("dump/events/sched/sched_switch/format", format, strlen(format));
	write_file("dump/saved_cmdlines", "12 a b\n13 c\n", 12);
}

static void test_pages(void **state)
{
	(void)state;
	for (int big_endian = 0; big_endian < 2; big_endian++) {
		struct story story = { "" };
		struct session session;
		const char machine[] = { FACT_MACHINE, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
			(char)big_endian };
		CLEANUP_FREE void *facts = NULL;
		size_t size;

		make_pages(big_endian);
		start(&session, "--pages", "dump");
		assert_int_equal(session.welcome.cpu_count, 3);
		assert_int_equal(session.pool.slot_size, 4096);
		assert_true(contains(session.facts, "sched_switch"));
		assert_true(contains(session.names, "a b"));
		assert_int_equal(segment_blob_read(session.facts, 1 << 20, &facts, &size), 0);
		assert_non_null(memmem(facts, size, machine, sizeof(machine)));
		assert_int_equal(
			ask(&session, session_tracepoint("sched", "sched_switch"), NULL).status, 0);
		assert_int_equal(set_enabled(&session, 0), 0);
		assert_true(session_read_until(&session, ended, tell_page, &story));
		/* In the order of time, each behind a word that nothing older is left. */
		assert_string_equal(story.text, "0:a 2:b 2:c 0:d 0:e 2:f ");
		assert_int_equal(session.sweeps, 7);
		finish(&session, &story);
	}
}

/* More pages than the pool has slots, all but one on one CPU: the router is never without a slot
 * that it needs. */
static void test_lopsided_pages(void **state)
{
	enum { PAGES = 20000 };
	uint8_t page[4096];
	struct story story = { "" };
	struct session session;
	char path[256];
	FILE *file;

	(void)state;
	make_pages(false);
	path_to(path, sizeof(path), "dump/per_cpu/cpu0/trace_pipe_raw");
	file = fopen(path, "we");
	for (int i = 0; i < PAGES; i++) {
		put_page(page, 10000 + (uint64_t)i, "x", false);
		assert_int_equal(fwrite(page, 1, sizeof(page), file), sizeof(page));
	}
	fclose(file);
	start(&session, "--pages", "dump");
	assert_true(PAGES > session.pool.slot_count);
	assert_int_equal(set_enabled(&session, 0), 0);
	assert_true(session_read_until(&session, ended, NULL, NULL));
	assert_int_equal(session.data, PAGES + 3);
	finish(&session, &story);
}

/* One of the files can't be opened, and those behind it are not open yet. */
static void test_pages_that_cannot_be_opened(void **state)
{
	struct tracedir_problem problem;
	struct replay *replay = NULL;
	char path[256];

	(void)state;
	make_folder("loop");
	make_folder("loop/events");
	write_file("loop/events/header_page", header_page, strlen(header_page));
	make_folder("loop/per_cpu");
	make_folder("loop/per_cpu/cpu0");
	make_folder("loop/per_cpu/cpu1");
	path_to(path, sizeof(path), "loop/per_cpu/cpu0/trace_pipe_raw");
	assert_int_equal(symlink("trace_pipe_raw", path), 0);
	path_to(path, sizeof(path), "loop");
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_int_equal(replay_pages_open(path, &replay, &problem), -ELOOP);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

static int make_place(void **state)
{
	(void)state;
	return mkdtemp(folder) && !chmod(folder, 0755) ? 0 : -1;
}

static int remove_place(void **state)
{
	char command[128];

	(void)state;
	session_run_as(0);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recording),
		cmocka_unit_test(test_cut_recording),
		cmocka_unit_test(test_damaged_recording),
		cmocka_unit_test(test_text_log),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_lopsided_pages),
		cmocka_unit_test(test_pages_that_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
