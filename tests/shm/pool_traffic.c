/* Slots going round between reader and router, both of which sleep when they have nothing to do:
 * between two threads that share one mapping (for ThreadSanitizer) and between two processes. */
#include "shm/pool.h"

#include "shm/wake.h"
#include "tests/shm/pool_pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SLOTS    8
#define ENTRIES  200000
#define NEAR_TOP (UINT64_MAX - 1000)
#define PATIENCE 60000 /* ms without anything to do */
#define WORDS    16    /* of each slot are written and read */

/* In memory that both processes share. */
struct traffic {
	uint64_t received, notes, router_slept, reader_slept;
	bool gave_up; /* atomic */
	char wrong[64];
};

static void found(struct traffic *traffic, const char *what)
{
	(void)snprintf(traffic->wrong, sizeof(traffic->wrong), "%s", what);
	__atomic_store_n(&traffic->gave_up, true, __ATOMIC_RELAXED);
}

static bool gave_up(const struct traffic *traffic)
{
	return __atomic_load_n(&traffic->gave_up, __ATOMIC_RELAXED);
}

static void wait_for(int fd, struct traffic *traffic, uint64_t *slept)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(*slept)++;
	/* The other side may have given up. */
	if (poll(&p, 1, PATIENCE) != 1 && !gave_up(traffic))
		found(traffic, "a wake-up was lost");
	else
		(void)wake_clear(fd);
}

/* ---- the router ---- */

static bool slot_matches(const struct pool_reader *reader, const struct pool_entry *entry)
{
	const uint64_t *words = pool_reader_slot(reader, entry->slot);

	for (uint64_t i = 0; i < WORDS; i++)
		if (words[i] != entry->sequence * 31 + i)
			return false;
	return entry->length == entry->sequence % POOL_SLOT_SIZE_MIN;
}

/* Holds some slots and gives them back late and in another order, as a merge does. */
static void give_back(struct pool_reader *reader, bool held[SLOTS], uint64_t sequence, bool all)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (!held[slot] || (!all && (sequence + slot) % 3 == 0))
			continue;
		held[slot] = false;
		pool_reader_return(reader, slot);
	}
	(void)pool_reader_wake(reader);
}

static void route(struct pool_reader *reader, struct traffic *traffic)
{
	bool held[SLOTS] = { false };
	struct pool_entry entry = { 0 };

	while (!gave_up(traffic)) {
		int r = pool_reader_next(reader, &entry);

		if (r == 0) {
			give_back(reader, held, 0, true);
			if (pool_reader_prepare_sleep(reader))
				wait_for(reader->filled_fd, traffic, &traffic->router_slept);
			continue;
		}
		if (r < 0) {
			found(traffic, "an entry is damaged");
		} else if (entry.kind == POOL_END) {
			return;
		} else if (entry.kind != POOL_DATA) {
			traffic->notes++;
		} else if (entry.sequence != ++traffic->received) {
			found(traffic, "an entry was lost or came twice");
		} else if (held[entry.slot]) {
			found(traffic, "a slot has two owners");
		} else if (!slot_matches(reader, &entry)) {
			found(traffic, "a slot was overwritten while it was read");
		} else {
			held[entry.slot] = true;
			if (entry.sequence % 5 == 0)
				give_back(reader, held, entry.sequence, false);
		}
	}
}

/* ---- the reader ---- */

static void fill(struct pool_writer *writer, uint32_t slot)
{
	const uint64_t sequence = writer->sequence + 1;
	uint64_t *words = pool_writer_slot(writer, slot);

	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = sequence * 31 + i;
	pool_writer_publish(writer, slot, 0, (uint32_t)(sequence % POOL_SLOT_SIZE_MIN));
}

static uint64_t drain(struct pool_writer *writer, struct traffic *traffic)
{
	const struct pool_entry sweep = { .kind = POOL_SWEEP };
	const struct pool_entry end = { .kind = POOL_END };
	uint64_t notes = 0;

	while (writer->sequence < ENTRIES && !gave_up(traffic)) {
		uint32_t slot = pool_writer_take(writer);

		if (slot == UINT32_MAX) {
			(void)pool_writer_wake(writer);
			if (pool_writer_prepare_sleep(writer))
				wait_for(writer->free_fd, traffic, &traffic->reader_slept);
			continue;
		}
		fill(writer, slot);
		if (writer->sequence % 7 == 0)
			notes += pool_writer_note(writer, &sweep) == 0;
		if (writer->sequence % 3 == 0)
			(void)pool_writer_wake(writer);
	}
	while (pool_writer_note(writer, &end) == -EAGAIN && !gave_up(traffic)) {
		(void)pool_writer_wake(writer);
		(void)sched_yield();
	}
	(void)pool_writer_wake(writer);
	return notes;
}

static struct traffic *traffic_new(void)
{
	void *memory = mmap(NULL, sizeof(struct traffic), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void check(struct traffic *traffic, const struct pool_writer *writer, uint64_t notes)
{
	print_message("%llu slots and %llu notes received; sleeps: router %llu, reader %llu\n",
		(unsigned long long)traffic->received, (unsigned long long)traffic->notes,
		(unsigned long long)traffic->router_slept,
		(unsigned long long)traffic->reader_slept);
	assert_string_equal(traffic->wrong, "");
	assert_int_equal(traffic->received, ENTRIES);
	assert_int_equal(traffic->notes, notes);
	assert_int_equal(writer->refused, 0);
	/* So few slots that the reader, and so many that the router, has to wait. */
	assert_true(traffic->router_slept > 0);
	assert_true(traffic->reader_slept > 0);
	assert_int_equal(munmap(traffic, sizeof(*traffic)), 0);
}

struct routing {
	struct pool_reader *reader;
	struct traffic *traffic;
};

static void *route_thread(void *argument)
{
	struct routing *routing = argument;

	route(routing->reader, routing->traffic);
	return NULL;
}

static void threads(void **state)
{
	struct traffic *traffic = traffic_new();
	struct pool_pair pair;
	struct routing routing = { &pair.reader, traffic };
	struct pool_reader own;
	void *writer_free;
	pthread_t thread;
	uint64_t notes;

	(void)state;
	pool_pair_open(&pair, SLOTS, NEAR_TOP);
	/* One mapping of each for both, so that the sanitizer knows them for the same memory. */
	own = pair.reader;
	writer_free = pair.writer.free.base;
	pair.reader.pool.base = pair.writer.pool.base;
	pair.reader.filled = pair.writer.entries;
	pair.reader.slots = pair.writer.data;
	pair.writer.free.base = pair.reader.free.base;
	assert_int_equal(pthread_create(&thread, NULL, route_thread, &routing), 0);
	notes = drain(&pair.writer, traffic);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair.reader.pool.base = own.pool.base;
	pair.writer.free.base = writer_free;
	check(traffic, &pair.writer, notes);
	pool_pair_close(&pair);
}

static void router_process(const int fds[4], struct traffic *traffic)
{
	struct pool_reader reader;

	if (pool_reader_attach(fds, &reader) < 0)
		_exit(1);
	route(&reader, traffic);
	_exit(0);
}

static void processes(void **state)
{
	struct traffic *traffic = traffic_new();
	struct pool_writer writer;
	int fds[4], status;
	uint64_t notes;
	pid_t child;

	(void)state;
	pool_pair_begin_writer(&writer, SLOTS, NEAR_TOP);
	assert_int_equal(pool_writer_share(&writer, fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		router_process(fds, traffic);
	for (int i = 0; i < 4; i++)
		assert_int_equal(close(fds[i]), 0);
	notes = drain(&writer, traffic);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	check(traffic, &writer, notes);
	pool_writer_release(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads),
		cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests_name("pool_traffic", tests, NULL, NULL);
}
