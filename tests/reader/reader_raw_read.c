/* How far a loaded sweep reads: files that hold sub-buffers of known times stand for the CPUs'. */
#include "reader/raw.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CPUS   2
#define SUBBUF UINT64_C(4096)
#define SLOTS  16
#define SHARE  8
#define NOW    UINT64_C(1000)

struct bench {
	struct raw raw;
	struct raw_cpu cpus[CPUS];
	struct pollfd poll[CPUS];
	struct loop loop;
	struct pool_writer pool;
	int ends[CPUS];
	uint64_t times[64]; /* of what was read, CPU by CPU */
	unsigned int count;
};

static void deliver(struct raw *raw, uint32_t cpu, uint32_t slot, uint32_t length)
{
	struct bench *bench = (struct bench *)raw;

	(void)cpu;
	assert_int_equal(length, SUBBUF);
	memcpy(&bench->times[bench->count++], pool_writer_slot(&bench->pool, slot), sizeof(uint64_t));
	pool_writer_put(&bench->pool, slot);
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	assert_int_equal(pool_writer_create(SLOTS, SUBBUF, &bench->pool), 0);
	assert_int_equal(pool_writer_count(&bench->pool, CPUS), 0);
	bench->raw = (struct raw){
		.base = { .loop = &bench->loop, .pool = &bench->pool },
		.cpu_count = CPUS,
		.subbuf_size = SUBBUF,
		.cpus = bench->cpus,
		.poll = bench->poll,
		.share = SHARE,
		.deliver = deliver,
		.until = UINT64_MAX,
	};
	for (uint32_t i = 0; i < CPUS; i++) {
		int ends[2];

		assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
		bench->cpus[i].raw = &bench->raw;
		bench->cpus[i].fd = ends[0];
		bench->ends[i] = ends[1];
		bench->poll[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	}
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	for (uint32_t i = 0; i < CPUS; i++) {
		close(bench->cpus[i].fd);
		close(bench->ends[i]);
	}
	pool_writer_release(&bench->pool);
	free(bench);
	return 0;
}

static void put(const struct bench *bench, uint32_t cpu, uint64_t time)
{
	uint8_t bytes[SUBBUF] = { 0 };

	memcpy(bytes, &time, sizeof(time));
	assert_int_equal(write(bench->ends[cpu], bytes, sizeof(bytes)), SUBBUF);
}

static void test_until_nothing_is_left(void **state)
{
	struct bench *bench = *state;

	for (uint64_t time = 1; time <= 5; time++)
		put(bench, 0, time);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_int_equal(bench->count, 5);
	assert_int_equal(bench->cpus[0].taken, 5);
	assert_int_equal(bench->cpus[1].taken, 0);
	for (uint32_t i = 0; i < CPUS; i++)
		assert_false(bench->cpus[i].ready || bench->cpus[i].stalled);
	assert_false(bench->raw.blocked);
}

/* A CPU that makes events faster than they are read is left after the first that is newer than the sweep. */
static void test_until_the_time_of_the_sweep(void **state)
{
	struct bench *bench = *state;

	put(bench, 0, NOW - 1);
	put(bench, 0, NOW);
	for (uint64_t time = NOW + 1; time < NOW + 5; time++)
		put(bench, 0, time);
	put(bench, 1, NOW - 2);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_int_equal(bench->cpus[0].taken, 3);
	assert_int_equal(bench->times[2], NOW + 1);
	/* It was read past that time, as far as the sweep goes. */
	assert_false(bench->cpus[0].ready);
	assert_int_equal(bench->cpus[1].taken, 1);
	assert_int_equal(bench->count, 4);
	/* Nothing was taken and not delivered. */
	assert_int_equal(raw_drain(&bench->raw, 2 * NOW, 2 * NOW), 0);
	assert_int_equal(bench->times[4], NOW + 2);
	assert_int_equal(bench->count, 7);
}

static void put_six(const struct bench *bench)
{
	for (uint64_t time = NOW - 500; time <= NOW; time += 100)
		put(bench, 0, time);
}

/* The next one is likely full only when as much time has gone by as two of them take. */
static void test_what_is_not_full_is_left(void **state)
{
	struct bench *bench = *state;

	put_six(bench);
	put(bench, 1, NOW - 100);
	put(bench, 1, NOW - 50);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW - 350), 0);
	assert_int_equal(bench->cpus[0].taken, 5);
	assert_int_equal(bench->times[4], NOW - 100);
	/* From one alone nobody knows how long they take. */
	assert_int_equal(bench->cpus[1].taken, 2);
	assert_false(bench->cpus[0].ready || bench->cpus[1].ready || bench->raw.blocked);
	/* It comes with the next sweep. */
	assert_int_equal(raw_drain(&bench->raw, 2 * NOW, NOW), 0);
	assert_int_equal(bench->cpus[0].taken, 1);
	assert_int_equal(bench->times[7], NOW);
}

static void test_what_will_be_told_is_read(void **state)
{
	struct bench *bench = *state;

	put_six(bench);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW - 100), 0);
	assert_int_equal(bench->cpus[0].taken, 6);
}

static void test_until_the_share_is_used_up(void **state)
{
	struct bench *bench = *state;

	for (uint64_t time = 1; time <= SHARE + 2U; time++)
		put(bench, 0, time);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_int_equal(bench->count, SHARE);
	assert_true(bench->cpus[0].ready);
	assert_false(bench->cpus[1].ready || bench->raw.blocked);
}

static void test_without_a_slot_a_look_tells(void **state)
{
	struct bench *bench = *state;
	uint32_t taken[SLOTS];

	for (uint32_t i = 0; i < SLOTS; i++)
		taken[i] = pool_writer_take(&bench->pool);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_false(bench->raw.blocked || bench->cpus[0].ready || bench->cpus[1].ready);
	put(bench, 1, 1);
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_true(bench->raw.blocked && bench->cpus[1].ready && !bench->cpus[0].ready);
	for (uint32_t i = 0; i < SLOTS; i++)
		pool_writer_put(&bench->pool, taken[i]);
	bench->raw.blocked = false;
	assert_int_equal(raw_drain(&bench->raw, NOW, NOW), 0);
	assert_int_equal(bench->count, 1);
	assert_false(bench->raw.blocked || bench->cpus[1].ready);
}

static void test_who_woke_the_reader_is_read_at_once(void **state)
{
	struct bench *bench = *state;

	put(bench, 0, 1);
	put(bench, 1, 2);
	put(bench, 1, 3);
	bench->cpus[1].fired = true;
	raw_take_fired(&bench->raw);
	assert_int_equal(bench->count, 1);
	assert_int_equal(bench->times[0], 2);
	raw_take_fired(&bench->raw);
	assert_int_equal(bench->count, 1);
}

/* Much is moved at a time, if that takes no longer than 16 ms, and an eighth of the buffer has room for it. */
static void test_pace(void **state)
{
	struct bench *bench = *state;
	struct instance instance = { .buffer_size = 1024 * SUBBUF };
	const uint64_t ms = 1000000;

	bench->raw.instance = &instance;
	bench->raw.base.interval = 4 * ms;
	bench->cpus[0].taken = 2;
	assert_int_equal(raw_pace(&bench->raw, 4 * ms), 4 * ms);
	bench->cpus[1].taken = 2 + 8;
	assert_int_equal(raw_pace(&bench->raw, 4 * ms), 8 * ms);
	assert_int_equal(raw_pace(&bench->raw, 10 * ms), 16 * ms);
	assert_int_equal(raw_pace(&bench->raw, 1 * ms), 4 * ms);
	bench->cpus[1].taken = 2 + 2;
	assert_int_equal(raw_pace(&bench->raw, 4 * ms), 8 * ms);
	bench->cpus[1].taken = 2 + 8;
	instance.buffer_size = 80 * SUBBUF;
	assert_int_equal(raw_pace(&bench->raw, 4 * ms), 5 * ms);
	bench->raw.base.interval = 100 * ms;
	assert_int_equal(raw_pace(&bench->raw, 100 * ms), 100 * ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_until_nothing_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_until_the_time_of_the_sweep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_full_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_will_be_told_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_until_the_share_is_used_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_slot_a_look_tells, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_woke_the_reader_is_read_at_once, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
