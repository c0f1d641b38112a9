/* A million records of all sizes through a ring, between two threads that share one mapping (so
 * that ThreadSanitizer sees both sides) and between two processes (as deployed). The consumer
 * sleeps without a limit of its own whenever it has read all, so a lost wake-up would leave it
 * asleep: that is told apart from a slow machine by nothing having happened for a minute. */
#include "shm/ring.h"

#include "shm/wake.h"
#include "tests/shm/ring_pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define RECORDS  1000000
#define CAPACITY ((size_t)RING_CAPACITY_MIN)
#define NEAR_TOP (UINT64_MAX - 100 * CAPACITY + 1)
#define PATIENCE 60000 /* ms without any record */
/* How often the writer waits until the consumer has gone to sleep, so that it does on every
 * machine. */
#define MEETINGS 200
#define ROUNDS   UINT64_C(50000)

/* In memory that both processes share. */
struct traffic {
	bool linger; /* set before the start: the consumer takes its time, another one with each
			record */
	uint64_t dropped;
	uint64_t received; /* atomic */
	uint64_t slept;    /* atomic: how often the consumer found nothing and went to sleep */
	uint64_t lost_events;
	uint64_t gone; /* what the writer was told that it overwrote unread */
	bool gave_up;   /* atomic: the consumer found something wrong */
	char wrong[64]; /* what the consumer found, empty: nothing */
};

static void found(struct traffic *traffic, const char *what)
{
	(void)snprintf(traffic->wrong, sizeof(traffic->wrong), "%s", what);
	__atomic_store_n(&traffic->gave_up, true, __ATOMIC_RELAXED);
}

/* A record that must arrive: waits until the consumer has made room. False when the consumer gave
 * up. */
static bool write_surely(struct ring_writer *writer, struct traffic *traffic, uint64_t n,
	uint32_t size, uint8_t kind)
{
	struct record_header *record;

	while (!(record = ring_writer_reserve(writer, size))) {
		if (__atomic_load_n(&traffic->gave_up, __ATOMIC_RELAXED))
			return false;
		(void)sched_yield();
	}
	ring_pair_fill(record, n, size, kind);
	return true;
}

/* Publishes, and waits until the consumer has gone to sleep since. False when it gave up. */
static bool meet(struct ring_writer *writer, struct traffic *traffic)
{
	const uint64_t before = __atomic_load_n(&traffic->slept, __ATOMIC_RELAXED);

	(void)ring_writer_publish(writer);
	while (__atomic_load_n(&traffic->slept, __ATOMIC_RELAXED) == before) {
		if (__atomic_load_n(&traffic->gave_up, __ATOMIC_RELAXED))
			return false;
		(void)sched_yield();
	}
	return true;
}

static void count_gone(void *context, const struct record_header *record)
{
	struct traffic *traffic = context;

	if (!ring_pair_whole(record))
		found(traffic, "the writer was told of a record that is gone already");
	traffic->gone++;
}

/* Batches of 1 to 16 records, each published whole. What finds no room is lost, and counted. */
static void write_all(struct ring_writer *writer, struct traffic *traffic)
{
	uint64_t batch_end = 0;

	writer->gone = count_gone;
	writer->gone_context = traffic;
	for (uint64_t n = 0; n < RECORDS; n++) {
		const uint32_t size = ring_pair_size(n, 256);
		struct record_header *record;

		if (n % (RECORDS / MEETINGS) == 0) {
			if (!write_surely(writer, traffic, n, size, RECORD_EVENT) ||
				!meet(writer, traffic))
				return;
			continue;
		}
		record = ring_writer_reserve(writer, size);
		if (record)
			ring_pair_fill(record, n, size, RECORD_EVENT);
		else
			traffic->dropped++;
		if (n >= batch_end) {
			(void)ring_writer_publish(writer);
			batch_end = n + 1 + (n * UINT64_C(0x9e3779b97f4a7c15) >> 60);
		}
	}
	(void)ring_writer_publish(writer);
	if (write_surely(writer, traffic, RECORDS, sizeof(struct record_header), RECORD_END))
		(void)ring_writer_publish(writer);
}

static void fall_asleep(struct ring_reader *reader, struct traffic *traffic)
{
	struct pollfd p = { .fd = reader->wake_fd, .events = POLLIN };

	if (!ring_reader_prepare_sleep(reader))
		return;
	(void)__atomic_fetch_add(&traffic->slept, 1, __ATOMIC_RELAXED);
	if (poll(&p, 1, PATIENCE) != 1)
		found(traffic, "a wake-up was lost");
	else if (wake_clear(p.fd) < 0)
		found(traffic, "woken without a signal");
}

/* Reads up to the end; every record must be whole and come after the one before. */
static void read_all(struct ring_reader *reader, struct traffic *traffic)
{
	const struct record_header *record;
	uint64_t next = 0;

	while (!traffic->gave_up) {
		int r = ring_reader_next(reader, &record);

		if (r == 0) {
			fall_asleep(reader, traffic);
			continue;
		}
		if (r == -EOVERFLOW && reader->overflow == RING_OVERWRITE)
			continue;
		if (r != 1) {
			found(traffic, "the ring is damaged");
			break;
		}
		if (!ring_pair_whole(record))
			found(traffic, "a record is torn");
		if (record->time < next)
			found(traffic, "a record came twice");
		if (record->kind == RECORD_END)
			break;
		next = record->time + 1;
		(void)__atomic_fetch_add(&traffic->received, 1, __ATOMIC_RELAXED);
		for (volatile uint64_t k = 0; traffic->linger && k < record->time * 7 % 300; k++)
			continue;
	}
	traffic->lost_events = reader->lost_events;
}

static struct traffic *traffic_new(void)
{
	void *memory = mmap(NULL, sizeof(struct traffic), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void check(struct traffic *traffic)
{
	print_message("%llu received, %llu dropped, %llu overwritten, %llu sleeps\n",
		(unsigned long long)traffic->received, (unsigned long long)traffic->dropped,
		(unsigned long long)traffic->lost_events, (unsigned long long)traffic->slept);
	assert_string_equal(traffic->wrong, "");
	assert_int_equal(traffic->received + traffic->dropped + traffic->lost_events, RECORDS);
	/* Both sides agree, also on the record that was being copied as it was overwritten. */
	assert_int_equal(traffic->gone, traffic->lost_events);
	assert_true(traffic->slept >= MEETINGS);
	assert_int_equal(munmap(traffic, sizeof(*traffic)), 0);
}

struct reading {
	struct ring_reader *reader;
	struct traffic *traffic;
};

static void *read_thread(void *argument)
{
	struct reading *reading = argument;

	read_all(reading->reader, reading->traffic);
	return NULL;
}

static void between_threads(enum ring_overflow overflow)
{
	struct traffic *traffic = traffic_new();
	struct ring_pair pair;
	struct reading reading = { &pair.reader, traffic };
	const uint8_t *reader_data;
	void *reader_head, *writer_cursor;
	pthread_t thread;

	ring_pair_open(&pair, CAPACITY, overflow, NEAR_TOP);
	/* One mapping of each for both, so that the sanitizer knows them for the same memory. */
	reader_head = pair.reader.head.base;
	reader_data = pair.reader.data;
	writer_cursor = pair.writer.cursor.base;
	pair.reader.head.base = pair.writer.head.base;
	pair.reader.data = pair.writer.data;
	pair.writer.cursor.base = pair.reader.cursor.base;
	assert_int_equal(pthread_create(&thread, NULL, read_thread, &reading), 0);
	write_all(&pair.writer, traffic);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair.reader.head.base = reader_head;
	pair.reader.data = reader_data;
	pair.writer.cursor.base = writer_cursor;
	check(traffic);
	ring_pair_close(&pair);
}

static void consumer_process(const int fds[3], struct traffic *traffic)
{
	struct ring_reader reader;

	if (ring_reader_attach(fds, &reader) < 0)
		_exit(1);
	read_all(&reader, traffic);
	_exit(0);
}

static void between_processes(enum ring_overflow overflow)
{
	struct traffic *traffic = traffic_new();
	struct ring_writer writer;
	int fds[3], status;
	pid_t child;

	ring_pair_begin_writer(&writer, CAPACITY, overflow, NEAR_TOP);
	assert_int_equal(ring_writer_share(&writer, fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		consumer_process(fds, traffic);
	for (int i = 0; i < 3; i++)
		assert_int_equal(close(fds[i]), 0);
	write_all(&writer, traffic);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	check(traffic);
	ring_writer_release(&writer);
}

/* Records that come just while the consumer is about to fall asleep, with nothing after them that
 * would wake it instead: this is where a missing barrier or last look shows. */
static void write_at_the_last_moment(struct ring_writer *writer, struct traffic *traffic)
{
	uint64_t n = 0;

	while (n < 2 * ROUNDS) {
		if (!write_surely(writer, traffic, n++, 64, RECORD_EVENT))
			return;
		(void)ring_writer_publish(writer);
		/* At first without a system call, so as to be here at the moment when it has been
		 * read. */
		for (unsigned int tries = 0;
			__atomic_load_n(&traffic->received, __ATOMIC_RELAXED) != n; tries++) {
			if (__atomic_load_n(&traffic->gave_up, __ATOMIC_RELAXED))
				return;
			if (tries > 100000)
				(void)sched_yield();
		}
	}
	if (write_surely(writer, traffic, n, sizeof(struct record_header), RECORD_END))
		(void)ring_writer_publish(writer);
}

static void the_last_record_wakes(void **state)
{
	struct traffic *traffic = traffic_new();
	struct ring_writer writer;
	int fds[3], status;
	pid_t child;

	(void)state;
	traffic->linger = true;
	ring_pair_begin_writer(&writer, CAPACITY, RING_DROP, NEAR_TOP);
	assert_int_equal(ring_writer_share(&writer, fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		consumer_process(fds, traffic);
	write_at_the_last_moment(&writer, traffic);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(close(fds[i]), 0);
	assert_string_equal(traffic->wrong, "");
	assert_int_equal(traffic->received, 2 * ROUNDS);
	assert_int_equal(munmap(traffic, sizeof(*traffic)), 0);
	ring_writer_release(&writer);
}

static void threads_drop(void **state)
{
	(void)state;
	between_threads(RING_DROP);
}

static void threads_overwrite(void **state)
{
	(void)state;
	between_threads(RING_OVERWRITE);
}

static void processes_drop(void **state)
{
	(void)state;
	between_processes(RING_DROP);
}

static void processes_overwrite(void **state)
{
	(void)state;
	between_processes(RING_OVERWRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_record_wakes),
		cmocka_unit_test(threads_drop),
		cmocka_unit_test(threads_overwrite),
		cmocka_unit_test(processes_drop),
		cmocka_unit_test(processes_overwrite),
	};

	return cmocka_run_group_tests_name("ring_traffic", tests, NULL, NULL);
}
