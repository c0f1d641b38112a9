/* Who gets which event when many are told at once: that those which are told later, ring by ring, keep their places. */
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

/* ---- the same events one by one and at once ---- */

#define PAGES  40
#define EVENTS 240 /* a page */

/* What a consumer got, as bytes. */
struct heard {
	uint8_t *bytes;
	size_t size;
};

/* One way to tell the same events, with all that can happen between two of them. */
struct play {
	struct fixture f;
	uint8_t pages[PAGES][PAGE];
	uint32_t last[PAGES]; /* bytes of the page's events */
	uint64_t ends[PAGES]; /* the time of the last */
	struct merge merge;
	uint32_t begun;     /* pages */
	uint32_t own_taken; /* events */
	struct trace *traces[8];
	struct heard heard[CONSUMERS];
};

/* The same each time: what is compared must have happened. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525U + 1013904223U;
	return *state >> 8;
}

static void put_events(struct play *play)
{
	uint32_t state = 7;

	for (uint32_t p = 0; p < PAGES; p++) {
		const uint64_t begin = 1000 + p / 2 * 1000;

		memcpy(play->pages[p], &begin, sizeof(begin));
		for (uint32_t i = 0; i < EVENTS; i++) {
			const uint32_t n = next_random(&state) % 16;

			page_put(play->pages[p], next_random(&state) % 40 == 0 ? OTHER : NUMBER, (int32_t)n);
		}
		play->ends[p] = begin + EVENTS;
	}
}

/* What the session itself takes changes the names of threads. */
static void rename_thread(void *context, const struct own_event *event)
{
	struct play *play = context;
	char name[RECORD_COMM_SIZE];

	(void)snprintf(name, sizeof(name), "name%u", play->own_taken++);
	tasks_rename(&play->f.fanout.tasks, event->time, event->tid, name, strlen(name));
}

static void lose(struct play *play, int consumer, uint64_t from, uint64_t to)
{
	outlet_lost(&play->f.outlets[consumer], LOST_KERNEL, 1, 3, from, to);
	fanout_touch(&play->f.fanout, &play->f.outlets[consumer]);
}

/* As the router's own hooks do: caught up first. */
static void page_begins(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after)
{
	struct play *play = context;
	const uint32_t page = play->begun++;

	(void)cpu;
	if (page % 3 == 0)
		return;
	fanout_catch_up(&play->f.fanout);
	if (page % 3 == 1)
		lose(play, page % CONSUMERS, after, cursor->start_time);
	if (page == 5) {
		play->f.number = play->traces[0]->route;
		assert_int_equal(fanout_trace_filter(play->traces[0], compile(play->f.number, "common_pid == 1001"), NULL), 0);
		outlet_filter(play->traces[0]->outlet, play->traces[0]->id, 77, cursor->start_time);
	}
	if (page == 8)
		fanout_trace_stop(play->traces[1], cursor->start_time + EVENTS / 2);
	if (page == 11)
		assert_int_equal(fanout_trace_start(play->traces[2], cursor->start_time + EVENTS / 3, 0), 0);
	if (page == 14)
		outlet_flushed(&play->f.outlets[1], 99, cursor->start_time);
	if (page == 17)
		fanout_trace_stop(play->traces[3], 0);
}

static void large_ring(struct fixture *f, int consumer)
{
	int fds[3];

	ring_reader_release(&f->readers[consumer]);
	outlet_release(&f->outlets[consumer]);
	assert_int_equal(outlet_init(&f->outlets[consumer], 4U << 20, RING_DROP), 0);
	assert_int_equal(ring_writer_share(&f->outlets[consumer].ring, fds), 0);
	assert_int_equal(ring_reader_attach(fds, &f->readers[consumer]), 0);
}

static void play_begin(struct play *play, const char *const filters[8], bool stacked, bool loses)
{
	const struct merge_hooks hooks = { .context = play, .page = page_begins, .release = give_back };
	static const struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16, .size = PAGE,
		.big_endian = HOST_IS_BIG };
	struct route *other;

	begin(&play->f, false, HOST_IS_BIG);
	for (int i = 0; !loses && i < CONSUMERS; i++)
		large_ring(&play->f, i);
	assert_int_equal(fanout_route(&play->f.fanout, catalog_by_type(play->f.catalog, OTHER), &other), 0);
	for (int32_t tid = 1000; tid < 1002; tid++)
		assert_int_equal(tasks_set(&play->f.fanout.tasks, tid, "first", 5, false), 0);
	for (uint64_t i = 0; i < 8; i++) {
		const char *filter = filters[i];
		const bool detailed = filter && *filter == '!';

		/* The last is of the other kind, which the session looks at, too. */
		if (i == 7)
			play->f.number = other;
		filter = detailed ? filter + 1 : filter;
		play->traces[i] = add_trace(&play->f, i + 1, i % CONSUMERS, filter && *filter ? filter : NULL);
		play->traces[i]->detailed = detailed;
		if (filter && i != 2)
			assert_int_equal(fanout_trace_start(play->traces[i], 0, 0), 0);
	}
	if (stacked)
		play->traces[7]->stacks = other->stacks = STACK_KERNEL;
	play->f.fanout.stacks.merge = &play->merge;
	play->f.fanout.stacks.slots_most = PAGES;
	fanout_route_use(other, false, rename_thread, play);
	put_events(play);
	assert_int_equal(merge_init(&play->merge, 2, &layout, &hooks), 0);
}

static void hear(struct play *play)
{
	for (int i = 0; i < CONSUMERS; i++) {
		struct heard *heard = &play->heard[i];
		const struct record_header *record;

		while ((record = take(&play->f, i))) {
			/* Behind the payload there may be anything. */
			const size_t size = sizeof(*record) + record->payload_size;

			heard->bytes = realloc(heard->bytes, heard->size + size);
			assert_non_null(heard->bytes);
			memcpy(heard->bytes + heard->size, record, size);
			heard->size += size;
		}
	}
}

/* Tells all, and reads what came each `batch` pages. */
static void play_all(struct play *play, bool at_once, uint32_t batch)
{
	struct merge_event event;

	for (uint32_t p = 0; p < PAGES; p++) {
		const struct merge_slot slot = { .bytes = play->pages[p], .length = PAGE, .slot = p };

		assert_int_equal(merge_add(&play->merge, p % 2, &slot), 0);
		if ((p + 1) % batch)
			continue;
		merge_sweep(&play->merge, play->ends[p] + 1);
		if (at_once)
			fanout_drain(&play->f.fanout, &play->merge);
		else
			/* One that waits for its stacks comes again. */
			while (fanout_next(&play->f.fanout, &play->merge, &event) == 1 && fanout_event(&play->f.fanout, &event))
				;
		hear(play);
	}
}

static void play_end(struct play *play)
{
	merge_release(&play->merge);
	fanout_release(&play->f.fanout);
	catalog_release(play->f.catalog);
	for (int i = 0; i < CONSUMERS; i++) {
		ring_reader_release(&play->f.readers[i]);
		outlet_release(&play->f.outlets[i]);
		free(play->heard[i].bytes);
	}
	free(play);
}

/* Every consumer gets the same bytes in the same order, be its events told at once or one by one. */
static void compare_plays(const char *const filters[8], bool stacked, uint32_t batch, bool loses)
{
	struct play *plays[2];
	uint64_t lost = 0, delivered = 0;

	for (int i = 0; i < 2; i++) {
		plays[i] = calloc(1, sizeof(*plays[i]));
		assert_non_null(plays[i]);
		play_begin(plays[i], filters, stacked, loses);
		play_all(plays[i], i == 1, batch);
		assert_int_equal(plays[i]->begun, PAGES);
	}
	for (int i = 0; i < CONSUMERS; i++) {
		assert_int_equal(plays[0]->heard[i].size, plays[1]->heard[i].size);
		assert_memory_equal(plays[0]->heard[i].bytes, plays[1]->heard[i].bytes, plays[0]->heard[i].size);
	}
	for (int i = 0; i < 8; i++) {
		const struct ledger_trace one = fanout_trace_ledger(plays[0]->traces[i]);

		assert_ledger(plays[1]->traces[i], one.delivered, one.filtered, one.lost_ring);
		lost += one.lost_ring;
		delivered += one.delivered;
	}
	assert_true(plays[0]->own_taken > PAGES);
	assert_true(delivered > (uint64_t)FANOUT_WINDOW);
	assert_int_equal(lost > 0, loses);
	play_end(plays[0]);
	play_end(plays[1]);
}

/* Filters by one number, and by what is more: NULL takes nothing, "" everything, '!' wants details. */
static const char *const by_number[8] = { "common_pid == 1000", "common_pid == 1001", "common_pid == 5", NULL, NULL, NULL, NULL, "n < 9" };
static const char *const by_all[8] = { "common_pid == 1000", "common_pid == 1001", "n == 2", "n in {1, 2, 3}", "", "!", "!n > 12", "" };

static void at_once_as_one_by_one(void **state)
{
	(void)state;
	compare_plays(by_number, false, 2, false);
	compare_plays(by_all, false, 2, false);
}

/* More events than are told at once, and rings that have no room for them: what is lost is lost at the same place. */
static void at_once_with_losses(void **state)
{
	(void)state;
	compare_plays(by_number, false, PAGES, true);
	compare_plays(by_all, false, PAGES, true);
}

static void at_once_with_stacks(void **state)
{
	(void)state;
	compare_plays(by_all, true, 2, false);
}

/* More than one window, to one ring and to both in turn. */
static void more_than_a_window(void **state)
{
	static const char *const all[8] = { "common_pid == 1000", "common_pid == 1001", NULL, "n == 3", NULL, NULL, NULL, "" };

	(void)state;
	compare_plays(all, false, 4, false);
}

/* An event that nobody takes, known by its number alone, is still the last one before a late one. */
static void late_after_nobodys(void **state)
{
	struct fixture *f = *state;

	(void)live_trace(f, 1, 0, "common_pid == 1001");
	(void)live_trace(f, 2, 1, "common_pid == 1002");
	/* The first of a kind has more to do. */
	emit(f, 10, 0, 3);
	emit(f, 100, 0, 3);
	emit(f, 90, 1, 1);
	assert_int_equal(expect(f, 0, 1, 1)->flags & RECORD_LATE, RECORD_LATE);
	emit(f, 101, 0, 2);
	assert_int_equal(expect(f, 1, 2, 2)->flags & RECORD_LATE, 0);
	expect_nothing(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drained_in_turn),
		TEST(drained_in_turn_beside_a_lone_filter),
		TEST(drained_in_turn_beside_details),
		TEST(late_after_nobodys),
		cmocka_unit_test(at_once_as_one_by_one),
		cmocka_unit_test(at_once_with_losses),
		cmocka_unit_test(at_once_with_stacks),
		cmocka_unit_test(more_than_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
