/* The merge: order across CPUs, what holds an event back, what lets it go. */
#include "router/merge.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 4096

static const struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16 };

struct bench {
	struct merge merge;
	uint32_t released[256], release_count;
	uint32_t pages, damaged, missed_pages, told;
};

static void on_page(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after)
{
	struct bench *bench = context;

	(void)cpu;
	(void)after;
	bench->pages++;
	bench->missed_pages += cursor->missed;
}

static void on_damaged(void *context, uint32_t cpu, const struct page_cursor *cursor)
{
	(void)cpu;
	(void)cursor;
	((struct bench *)context)->damaged++;
}

static void on_release(void *context, uint32_t slot, uint32_t told)
{
	struct bench *bench = context;

	bench->told += told;

	bench->released[bench->release_count++] = slot;
}

static void bench_init(struct bench *bench, uint32_t cpus)
{
	struct merge_hooks hooks = { .context = bench, .page = on_page, .damaged = on_damaged, .release = on_release };

	memset(bench, 0, sizeof(*bench));
	assert_int_equal(merge_init(&bench->merge, cpus, &layout, &hooks), 0);
}

/* A sub-buffer with events of 8 bytes (the value of `times[i]`) at the given times, ascending. */
static void *make_page(const uint64_t *times, size_t count)
{
	uint8_t *page = calloc(1, PAGE);
	uint64_t base = count ? times[0] : 0, commit = 0, last = base;

	assert_non_null(page);
	for (size_t i = 0; i < count; i++) {
		uint32_t head = 2U | (uint32_t)(times[i] - last) << 5;

		assert_true(times[i] - last < 1U << 27);
		memcpy(page + 16 + commit, &head, 4);
		memcpy(page + 16 + commit + 4, &times[i], 8);
		commit += 12;
		last = times[i];
	}
	memcpy(page, &base, 8);
	memcpy(page + 8, &commit, 8);
	return page;
}

static void add(struct bench *bench, uint32_t cpu, uint32_t slot, const void *page)
{
	struct merge_slot entry = { .bytes = page, .length = PAGE, .slot = slot };

	assert_int_equal(merge_add(&bench->merge, cpu, &entry), 0);
}

static uint64_t take(struct bench *bench)
{
	struct merge_event event;
	uint64_t value;

	if (merge_next(&bench->merge, &event) != 1)
		return 0;
	memcpy(&value, event.data, 8);
	assert_int_equal(value, event.time);
	assert_int_equal(event.size, 8);
	return event.time;
}

static void test_two_lanes_interleave(void **state)
{
	const uint64_t a[] = { 10, 20, 20, 50 }, b[] = { 15, 20, 30 };
	const uint64_t expected[] = { 10, 15, 20, 20, 20, 30, 50 };
	void *pa = make_page(a, 4), *pb = make_page(b, 3);
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	add(&bench, 0, 1, pa);
	add(&bench, 1, 2, pb);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(take(&bench), expected[i]);
	/* The last event of CPU 0 is younger than all that is known of CPU 1. */
	assert_int_equal(take(&bench), 0);
	assert_int_equal(bench.release_count, 1);
	assert_int_equal(bench.released[0], 2);
	merge_sweep(&bench.merge, 60);
	assert_int_equal(take(&bench), 50);
	assert_int_equal(take(&bench), 0);
	assert_int_equal(bench.release_count, 2);
	assert_int_equal(bench.told, 7);
	assert_int_equal(merge_horizon(&bench.merge), 60);
	merge_release(&bench.merge);
	free(pa);
	free(pb);
}

static void test_idle_lane_holds_back_until_swept(void **state)
{
	const uint64_t a[] = { 100, 200 };
	void *page = make_page(a, 2);
	struct bench bench;

	(void)state;
	bench_init(&bench, 3);
	add(&bench, 1, 7, page);
	assert_int_equal(take(&bench), 0);
	merge_sweep(&bench.merge, 150);
	assert_int_equal(take(&bench), 100);
	assert_int_equal(take(&bench), 0);
	/* A CPU that was not found empty keeps its old horizon. */
	merge_busy(&bench.merge, 2);
	merge_sweep(&bench.merge, 300);
	assert_int_equal(take(&bench), 0);
	merge_sweep(&bench.merge, 300);
	assert_int_equal(take(&bench), 200);
	merge_release(&bench.merge);
	free(page);
}

/* Equal times are in the order of the CPUs, even if the higher one's came first. */
static void test_equal_times_wait_for_the_lower_cpu(void **state)
{
	const uint64_t a[] = { 100, 200 }, b[] = { 100, 100, 200 };
	void *pa = make_page(a, 2), *pb = make_page(b, 3);
	struct merge_event event;
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	merge_sweep(&bench.merge, 100);
	add(&bench, 1, 1, pb);
	/* CPU 0 may still bring one of time 100. */
	assert_int_equal(merge_next(&bench.merge, &event), 0);
	add(&bench, 0, 2, pa);
	assert_int_equal(merge_next(&bench.merge, &event), 1);
	assert_int_equal(event.cpu, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(merge_next(&bench.merge, &event), 1);
		assert_int_equal(event.cpu, 1);
		assert_int_equal(event.time, 100);
	}
	assert_int_equal(merge_next(&bench.merge, &event), 1);
	assert_int_equal(event.cpu, 0);
	assert_int_equal(event.time, 200);
	assert_int_equal(merge_next(&bench.merge, &event), 0);
	merge_sweep(&bench.merge, UINT64_MAX);
	assert_int_equal(merge_next(&bench.merge, &event), 1);
	assert_int_equal(event.cpu, 1);
	assert_int_equal(merge_next(&bench.merge, &event), 0);
	merge_release(&bench.merge);
	free(pa);
	free(pb);
}

static void test_damage_gives_the_slot_back(void **state)
{
	const uint64_t a[] = { 100 };
	uint8_t *bad = make_page(a, 1);
	void *good = make_page(a, 1);
	uint64_t commit = PAGE;
	struct bench bench;

	(void)state;
	memcpy(bad + 8, &commit, 8);
	bench_init(&bench, 1);
	add(&bench, 0, 3, bad);
	add(&bench, 0, 4, good);
	assert_int_equal(take(&bench), 100);
	assert_int_equal(bench.damaged, 1);
	assert_int_equal(bench.release_count, 1);
	assert_int_equal(bench.released[0], 3);
	merge_release(&bench.merge);
	free(bad);
	free(good);
}

static void test_held_counts_what_was_not_told(void **state)
{
	const uint64_t a[] = { 10, 20, 30 }, b[] = { 40, 50 };
	void *pa = make_page(a, 3), *pb = make_page(b, 2);
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	add(&bench, 0, 1, pa);
	add(&bench, 0, 2, pb);
	assert_int_equal(merge_held(&bench.merge), 5);
	merge_sweep(&bench.merge, 25);
	assert_int_equal(take(&bench), 10);
	assert_int_equal(take(&bench), 20);
	assert_int_equal(take(&bench), 0);
	assert_int_equal(merge_held(&bench.merge), 3);
	assert_int_equal(merge_horizon(&bench.merge), 25);
	merge_release(&bench.merge);
	free(pa);
	free(pb);
}

static void test_wrong_cpu_is_refused(void **state)
{
	struct merge_slot entry = { .slot = 1 };
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	assert_int_equal(merge_add(&bench.merge, 2, &entry), -ERANGE);
	merge_busy(&bench.merge, 2);
	merge_release(&bench.merge);
}

/* Random runs on many lanes, added piecemeal with sweeps between: everything comes once and in order. */
static void test_many_lanes_in_order(void **state)
{
	enum { LANES = 9, PAGES = 40, EVENTS = 25 };
	uint64_t clock[LANES] = { 0 }, sum = 0, told = 0, last = 0, time;
	void *pages[LANES * PAGES];
	uint32_t count = 0, seed = 12345;
	struct bench bench;

	(void)state;
	bench_init(&bench, LANES);
	for (int i = 0; i < LANES * PAGES; i++) {
		uint64_t times[EVENTS];
		uint32_t lane;

		seed = seed * 1103515245 + 12345;
		lane = (seed >> 16) % LANES;
		for (int k = 0; k < EVENTS; k++) {
			seed = seed * 1103515245 + 12345;
			clock[lane] += 1 + ((seed >> 16) & 1023);
			times[k] = clock[lane];
			sum += clock[lane];
		}
		pages[count] = make_page(times, EVENTS);
		add(&bench, lane, count % 250, pages[count]);
		count++;
		while ((time = take(&bench))) {
			assert_true(time >= last);
			last = time;
			told += time;
		}
		bench.release_count = 0;
	}
	merge_sweep(&bench.merge, UINT64_MAX);
	while ((time = take(&bench))) {
		assert_true(time >= last);
		last = time;
		told += time;
		bench.release_count = 0;
	}
	assert_int_equal(told, sum);
	merge_release(&bench.merge);
	for (uint32_t i = 0; i < count; i++)
		free(pages[i]);
}

/* What is queued and what is open is told as before, in order, and no slot of a pool that is gone is given back. */
static void test_disowned_slots_are_told(void **state)
{
	const uint64_t first[] = { 10, 30 }, second[] = { 20 }, third[] = { 40 };
	void *pages[] = { make_page(first, 2), make_page(second, 1), make_page(third, 1) };
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	add(&bench, 0, 1, pages[0]);
	add(&bench, 1, 2, pages[1]);
	assert_int_equal(take(&bench), 10);
	assert_int_equal(merge_disown(&bench.merge), 2);
	assert_int_equal(merge_told(&bench.merge, MERGE_DISOWNED), 1);
	assert_int_equal(merge_told(&bench.merge, MERGE_DISOWNED), 0);
	/* A slot of the next pool may have the same number. */
	add(&bench, 0, 1, pages[2]);
	merge_sweep(&bench.merge, UINT64_MAX);
	assert_int_equal(take(&bench), 20);
	assert_int_equal(take(&bench), 30);
	assert_int_equal(merge_disown(&bench.merge), 1);
	assert_int_equal(take(&bench), 40);
	assert_int_equal(take(&bench), 0);
	assert_int_equal(bench.release_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bench.released[i], MERGE_DISOWNED);
	assert_int_equal(bench.told, 3);
	merge_release(&bench.merge);
	for (uint32_t i = 0; i < 3; i++)
		free(pages[i]);
}

/* Events of one time come in the order of the CPUs, on however many, and wherever in the heap they stand. */
static void test_equal_times_of_many_lanes(void **state)
{
	enum { LANES = 7, TIMES = 3 };
	const uint64_t times[TIMES] = { 100, 200, 300 };
	void *page = make_page(times, TIMES);
	struct merge_event event;

	(void)state;
	/* The lanes are filled in each rotation of an order that is none. */
	for (uint32_t shift = 0; shift < LANES; shift++) {
		struct bench bench;

		bench_init(&bench, LANES);
		for (uint32_t i = 0; i < LANES; i++)
			add(&bench, (shift + i * 3) % LANES, i, page);
		merge_sweep(&bench.merge, UINT64_MAX);
		for (uint32_t i = 0; i < LANES * TIMES; i++) {
			assert_int_equal(merge_next(&bench.merge, &event), 1);
			assert_int_equal(event.time, times[i / LANES]);
			assert_int_equal(event.cpu, i % LANES);
		}
		assert_int_equal(merge_next(&bench.merge, &event), 0);
		merge_release(&bench.merge);
	}
	free(page);
}

/* One that waits for the word of a CPU goes on as soon as that CPU has something later, not before. */
static void test_a_lane_holds_back_events_of_its_time(void **state)
{
	const uint64_t a[] = { 100 }, b[] = { 100 };
	void *pa = make_page(a, 1), *pb = make_page(b, 1);
	struct merge_event event;
	struct bench bench;

	(void)state;
	bench_init(&bench, 3);
	add(&bench, 2, 1, pb);
	merge_busy(&bench.merge, 1);
	merge_sweep(&bench.merge, 150);
	/* CPU 1 may have one of time 100 still. */
	assert_int_equal(merge_next(&bench.merge, &event), 0);
	add(&bench, 1, 2, pa);
	assert_int_equal(merge_next(&bench.merge, &event), 1);
	assert_int_equal(event.cpu, 1);
	/* Known up to 100, and another one of 100 may follow there: it stands before CPU 2. */
	assert_int_equal(merge_next(&bench.merge, &event), 0);
	merge_sweep(&bench.merge, 150);
	assert_int_equal(merge_next(&bench.merge, &event), 1);
	assert_int_equal(event.cpu, 2);
	merge_release(&bench.merge);
	free(pa);
	free(pb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_lanes_interleave),
		cmocka_unit_test(test_idle_lane_holds_back_until_swept),
		cmocka_unit_test(test_equal_times_wait_for_the_lower_cpu),
		cmocka_unit_test(test_damage_gives_the_slot_back),
		cmocka_unit_test(test_held_counts_what_was_not_told),
		cmocka_unit_test(test_wrong_cpu_is_refused),
		cmocka_unit_test(test_many_lanes_in_order),
		cmocka_unit_test(test_equal_times_of_many_lanes),
		cmocka_unit_test(test_a_lane_holds_back_events_of_its_time),
		cmocka_unit_test(test_disowned_slots_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
