/* The text source on this kernel, with io_uring and without. */
#include "session.h"

#include "base/cleanup.h"
#include "shm/segment.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MARK "text test mark"

static const char *const text_args[] = { "--router-user", "0", "--buffer-size", "2M", "--source",
	"text", NULL };

struct marks {
	unsigned int seen, wanted;
	unsigned int flushes;
	uint64_t lines; /* events, by their newlines */
	char flush[128];
	bool flushed_last; /* the flush came behind all marks */
};

static void count_marks(void *context, const struct pool_entry *entry, const void *bytes)
{
	struct marks *marks = context;

	assert_true(entry->cpu == POOL_CPU_ALL);
	/* Whole lines. */
	assert_int_equal(((const char *)bytes)[entry->length - 1], '\n');
	marks->seen += session_count(bytes, entry->length, MARK);
	marks->lines += session_count(bytes, entry->length, "\n");
	if (*marks->flush && session_count(bytes, entry->length, marks->flush)) {
		marks->flushes++;
		marks->flushed_last = marks->seen == marks->wanted;
	}
}

static bool marks_done(const struct session *session, void *context)
{
	const struct marks *marks = context;

	(void)session;
	return marks->seen >= marks->wanted;
}

static bool flush_done(const struct session *session, void *context)
{
	(void)session;
	return ((const struct marks *)context)->flushes > 0;
}

static void write_marks(const struct session *session, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(session_write(session, "trace_marker", MARK), 0);
}

static void test_markers_arrive(void **state)
{
	struct marks marks = { .wanted = 3 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, text_args));
	session_connect(&session);
	assert_int_equal(session.welcome.source, SOURCE_TEXT);
	assert_int_equal(session.welcome.flags, *state ? SESSION_FALLBACK : 0);
	write_marks(&session, 3);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	/* Once more, now that the reader waits. */
	marks.wanted = 6;
	write_marks(&session, 3);
	assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 6);
	assert_true(session.clocks >= 1);
	session_release(&session);
}

/* A burst is read in another way than what comes one by one. */
static void test_waits_again_after_a_burst(void **state)
{
	struct marks marks = { .wanted = 0 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, text_args));
	session_connect(&session);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kill(session.reader, SIGSTOP), 0);
		write_marks(&session, 5000);
		marks.wanted += 5000;
		assert_int_equal(kill(session.reader, SIGCONT), 0);
		assert_true(session_read_until(&session, marks_done, count_marks, &marks));
		marks.wanted++;
		write_marks(&session, 1);
		assert_true(session_read_until(&session, marks_done, count_marks, &marks));
	}
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 10002);
	session_release(&session);
}

static void test_stop_delivers_the_tail(void **state)
{
	struct marks marks = { .wanted = 0 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, text_args));
	/* More than the pool holds. */
	write_marks(&session, 20000);
	session_connect(&session);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 20000);
	assert_int_equal(session.last_end, END_STOPPED);
	session_release(&session);
}

static void test_flush_stands_in_the_text(void **state)
{
	struct control_id request = { .id = 0 };
	struct marks marks = { .wanted = 50 };
	struct session session;

	(void)state;
	assert_true(session_start(&session, text_args));
	session_connect(&session);
	write_marks(&session, 50);
	snprintf(marks.flush, sizeof(marks.flush), "tracefan %s flush %llu\n", session.welcome.tag,
		(unsigned long long)session.cookie + 1);
	assert_int_equal(session_status_call(&session, &request, CONTROL_READER_FLUSH,
				 sizeof(request), NULL, 0, NULL),
		0);
	assert_true(session_read_until(&session, flush_done, count_marks, &marks));
	assert_true(marks.flushed_last);
	assert_int_equal(session_stop(&session, NULL, NULL), 0);
	session_release(&session);
}

static bool account_done(const struct session *session, void *context)
{
	(void)context;
	return session->accounted > 0;
}

/* The sum of one line of all CPUs' stats in an account blob. */
static uint64_t stats_sum(const char *blob, size_t size, const char *head)
{
	const char *at = blob, *end = blob + size;
	uint64_t sum = 0;

	while ((at = memmem(at, (size_t)(end - at), head, strlen(head)))) {
		at += strlen(head);
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

/* What was published before the mark is exactly what the kernel says that it has handed out. */
static void test_account_fits_its_place(void **state)
{
	struct control_id request = { .id = 0 };
	struct control_message reply;
	struct marks marks = { .wanted = 0 };
	struct session session;
	CLEANUP_FREE void *blob = NULL;
	size_t size;

	(void)state;
	assert_true(session_start(&session, text_args));
	session_connect(&session);
	write_marks(&session, 500);
	session_call(&session, &request, CONTROL_ACCOUNT, sizeof(request), NULL, 0, &reply);
	assert_int_equal(((const struct control_status *)reply.bytes)->status, 0);
	assert_int_equal(segment_blob_read(reply.fds[0], 1 << 20, &blob, &size), 0);
	control_message_release(&reply);
	assert_true(session_read_until(&session, account_done, count_marks, &marks));
	assert_int_equal(session.accounted, session.cookie);
	assert_int_equal(marks.lines, stats_sum(blob, size, "read events: "));
	assert_int_equal(stats_sum(blob, size, "overrun: "), 0);
	assert_int_equal(session_stop(&session, count_marks, &marks), 0);
	assert_int_equal(marks.seen, 500);
	session_release(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markers_arrive),
		cmocka_unit_test(test_waits_again_after_a_burst),
		cmocka_unit_test(test_stop_delivers_the_tail),
		cmocka_unit_test(test_flush_stands_in_the_text),
		cmocka_unit_test(test_account_fits_its_place),
		cmocka_unit_test_setup_teardown(test_markers_arrive, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_waits_again_after_a_burst, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_stop_delivers_the_tail, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_flush_stands_in_the_text, session_without_uring, session_with_uring),
		cmocka_unit_test_setup_teardown(test_account_fits_its_place, session_without_uring, session_with_uring),
	};

	if (!session_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
