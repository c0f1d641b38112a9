/* Who gets which event when many are told at once: that those which are told a few events later keep their places. */
#include "tests/router/fanout_fixture.h"

#include "router/merge.h"

#define PAGE 4096

/* Puts an event of 12 bytes behind the others of a sub-buffer, one ns younger. */
static void page_put(uint8_t *page, uint16_t type, int32_t n)
{
	const struct payload payload = { .type = type, .pid = 1000 + n % 2, .n = n };
	const uint32_t head = sizeof(payload) / 4 | 1U << 5;
	uint64_t commit;

	memcpy(&commit, page + 8, sizeof(commit));
	memcpy(page + 16 + (uint32_t)commit, &head, sizeof(head));
	memcpy(page + 16 + (uint32_t)commit + sizeof(head), &payload, sizeof(payload));
	commit += sizeof(head) + sizeof(payload);
	memcpy(page + 8, &commit, sizeof(commit));
}

static void lose_before_page(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after)
{
	struct fixture *f = context;

	if (!cursor->missed)
		return;
	fanout_catch_up(&f->fanout);
	outlet_lost(&f->outlets[0], LOST_KERNEL, cpu, LOST_COUNT_UNKNOWN, after, cursor->start_time);
}

static void give_back(void *context, uint32_t slot, uint32_t told)
{
	(void)context;
	(void)slot;
	(void)told;
}

/* The next record of the consumer is an event with this number; of whatever kind. */
static void expect_number(struct fixture *f, int consumer, int32_t n)
{
	const struct record_header *record = take(f, consumer);
	struct payload payload;

	assert_non_null(record);
	assert_int_equal(record->kind, RECORD_EVENT);
	memcpy(&payload, record + 1, sizeof(payload));
	assert_int_equal(payload.n, n);
	assert_int_equal(record->pid, payload.pid);
}

/* Events of two threads in turn, each for a consumer of its own; among them some of another kind, which the first consumer
 * gets by a trace like `other`, one for two traces, and in the middle a loss. All keep their places. */
static void drain_in_turn(struct fixture *f, const char *other, bool detailed)
{
	const struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16, .size = PAGE,
		.big_endian = HOST_IS_BIG };
	const struct merge_hooks hooks = { .context = f, .page = lose_before_page, .release = give_back };
	uint8_t pages[2][PAGE] = { { 0 } };
	struct merge merge;
	uint64_t commit;

	assert_int_equal(fanout_route(&f->fanout, catalog_by_type(f->catalog, OTHER), &f->number), 0);
	add_trace(f, 3, 0, other)->detailed = detailed;
	assert_int_equal(fanout_trace_start(fanout_trace_find(&f->fanout, 3), 0, 0), 0);
	assert_int_equal(fanout_route(&f->fanout, catalog_by_type(f->catalog, NUMBER), &f->number), 0);
	(void)live_trace(f, 1, 0, "common_pid == 1000");
	(void)live_trace(f, 2, 1, "common_pid == 1001");
	(void)live_trace(f, 4, 1, "n == 71");
	memcpy(pages[1], &(uint64_t){ 1000 }, sizeof(uint64_t));
	for (int32_t n = 0; n < 100; n++)
		page_put(pages[n / 50], n == 24 || n == 28 || n == 36 ? OTHER : NUMBER, n);
	memcpy(&commit, pages[1] + 8, sizeof(commit));
	commit |= 1U << 31;
	memcpy(pages[1] + 8, &commit, sizeof(commit));
	assert_int_equal(merge_init(&merge, 1, &layout, &hooks), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(merge_add(&merge, 0, &(struct merge_slot){ .bytes = pages[i], .length = PAGE, .slot = i }), 0);
	fanout_drain(&f->fanout, &merge);
	for (int32_t n = 0; n < 100; n++) {
		if (n == 50)
			assert_int_equal(take(f, 0)->kind, RECORD_LOST);
		if (n == 71)
			expect_number(f, 1, n);
		expect_number(f, n % 2, n);
	}
	expect_nothing(f);
	merge_release(&merge);
}

static void drained_in_turn(void **state)
{
	drain_in_turn(*state, NULL, false);
}

static void drained_in_turn_beside_a_lone_filter(void **state)
{
	drain_in_turn(*state, "n > 0", false);
}

static void drained_in_turn_beside_details(void **state)
{
	drain_in_turn(*state, NULL, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drained_in_turn),
		TEST(drained_in_turn_beside_a_lone_filter),
		TEST(drained_in_turn_beside_details),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
