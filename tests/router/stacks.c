/* Which stacks belong to which event: by place, thread and flags, across sub-buffers, and for how long they are
 * waited for. */
#include "router/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 4096
#define EVENT 900
#define KERNEL 4
#define USER 13
#define HARDIRQ 0x08

static const struct page_layout layout = { .commit_offset = 8, .commit_size = 8, .data_offset = 16 };

/* Every event here: common fields, a number, and up to four frames. */
struct event {
	uint16_t type;
	uint8_t flags, preempt;
	int32_t pid;
	uint32_t number, pad;
	uint64_t frames[4];
};

struct fixture {
	struct merge merge;
	struct stacks stacks;
	uint8_t pages[4][PAGE];
	uint32_t used[4]; /* bytes of events */
	uint64_t last[4];
	struct merge_event taken;
	bool preemptible;
};

static void on_page(void *context, uint32_t cpu, const struct page_cursor *cursor, uint64_t after)
{
	(void)context, (void)cpu, (void)cursor, (void)after;
}

static void on_damaged(void *context, uint32_t cpu, const struct page_cursor *cursor)
{
	(void)context, (void)cpu, (void)cursor;
}

static void on_release(void *context, uint32_t slot, uint32_t told)
{
	(void)context, (void)slot, (void)told;
}

static int setup(void **state)
{
	const struct merge_hooks hooks = { .page = on_page, .damaged = on_damaged, .release = on_release };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(merge_init(&f->merge, 1, &layout, &hooks), 0);
	f->stacks = (struct stacks){
		.kernel = { .type = KERNEL, .caller = 16, .number = 8 },
		.user = { .type = USER, .caller = 16, .number = 8 },
		.flags = 2, .preempt = 3, .pid = 4, .long_size = 8, .merge = &f->merge, .slots_most = 100,
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	merge_release(&f->merge);
	free(f);
	return 0;
}

static void put(struct fixture *f, int page, uint64_t time, struct event event)
{
	uint8_t *base = f->pages[page], *at;
	uint64_t commit;
	uint32_t head;

	if (!f->used[page]) {
		memcpy(base, &time, 8);
		f->last[page] = time;
	}
	at = base + 16 + f->used[page];
	head = (uint32_t)(sizeof(event) / 4) | (uint32_t)(time - f->last[page]) << 5;
	memcpy(at, &head, 4);
	memcpy(at + 4, &event, sizeof(event));
	f->used[page] += 4 + (uint32_t)sizeof(event);
	f->last[page] = time;
	commit = f->used[page];
	memcpy(base + 8, &commit, 8);
}

static void give(struct fixture *f, int page)
{
	const struct merge_slot slot = { .bytes = f->pages[page], .length = PAGE, .slot = (uint32_t)page };

	assert_int_equal(merge_add(&f->merge, 0, &slot), 0);
}

static void take(struct fixture *f)
{
	assert_int_equal(merge_next(&f->merge, &f->taken), 1);
}

static bool gather(struct fixture *f)
{
	return stacks_gather(&f->stacks, &f->taken, STACK_KERNEL | STACK_USER, f->preemptible);
}

static struct event an_event(int32_t pid, uint8_t flags)
{
	return (struct event){ .type = EVENT, .flags = flags, .pid = pid };
}

static struct event a_kernel_stack(int32_t pid, uint8_t flags, uint64_t frame)
{
	return (struct event){ .type = KERNEL, .flags = flags, .pid = pid, .number = 2, .frames = { frame, frame + 1, 77, 77 } };
}

static struct event a_user_stack(int32_t pid, uint8_t flags, uint64_t frame)
{
	return (struct event){ .type = USER, .flags = flags, .pid = pid, .number = 4242, .frames = { frame, frame + 1, frame + 2, 0 } };
}

static void both_stand_behind_it(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	put(f, 0, 11, a_kernel_stack(1, 0, 100));
	put(f, 0, 12, a_user_stack(1, 0, 200));
	give(f, 0);
	take(f);
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, STACK_KERNEL | STACK_USER);
	assert_int_equal(f->stacks.head.process, 4242);
	/* So many as the event says; and up to the first that is 0. */
	assert_int_equal(f->stacks.head.kernel_count, 2);
	assert_int_equal(f->stacks.kernel_frames[0], 100);
	assert_int_equal(f->stacks.kernel_frames[1], 101);
	assert_int_equal(f->stacks.head.user_count, 3);
	assert_int_equal(f->stacks.user_frames[2], 202);
}

/* An interrupt has its own event with its own stack in between. */
static void each_has_its_own(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	put(f, 0, 11, an_event(1, HARDIRQ));
	put(f, 0, 12, a_kernel_stack(1, HARDIRQ, 500));
	put(f, 0, 13, a_kernel_stack(1, 0, 100));
	put(f, 0, 14, a_user_stack(1, 0, 200));
	give(f, 0);
	take(f);
	assert_true(gather(f));
	assert_int_equal(f->stacks.kernel_frames[0], 100);
	assert_int_equal(f->stacks.head.found, STACK_KERNEL | STACK_USER);
	take(f);
	merge_sweep(&f->merge, 20);
	f->stacks.impatient = true;
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, STACK_KERNEL);
	assert_int_equal(f->stacks.kernel_frames[0], 500);
}

/* The kernel wrote none for the first: what follows is the next one's. */
static void none_is_anothers(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	put(f, 0, 11, an_event(1, 0));
	put(f, 0, 12, a_kernel_stack(1, 0, 100));
	put(f, 0, 13, a_kernel_stack(1, 0, 300));
	give(f, 0);
	take(f);
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, 0);
	take(f);
	assert_true(gather(f));
	/* A second one of a kind is nobody's. */
	assert_int_equal(f->stacks.head.found, STACK_KERNEL);
	assert_int_equal(f->stacks.kernel_frames[0], 100);
}

static void another_threads_is_passed_over(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	put(f, 0, 11, a_kernel_stack(2, 0, 900));
	put(f, 0, 12, a_kernel_stack(1, 0, 100));
	/* A program's probe may be put off its CPU, for however long. */
	put(f, 0, 100000000, a_user_stack(1, 0, 200));
	give(f, 0);
	take(f);
	/* Any other event's stacks are written before another thread is there. */
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, 0);
	f->preemptible = true;
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, STACK_KERNEL | STACK_USER);
	assert_int_equal(f->stacks.kernel_frames[0], 100);
}

static void the_next_sub_buffer_is_waited_for(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	give(f, 0);
	take(f);
	assert_false(gather(f));
	/* What a sweep before it found says nothing. */
	merge_sweep(&f->merge, 10);
	assert_false(gather(f));
	put(f, 1, 11, a_kernel_stack(1, 0, 100));
	give(f, 1);
	assert_false(gather(f));
	assert_int_equal(f->stacks.head.found, STACK_KERNEL);
	put(f, 2, 12, a_user_stack(1, 0, 200));
	give(f, 2);
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, STACK_KERNEL | STACK_USER);
}

static void the_wait_ends(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, an_event(1, 0));
	give(f, 0);
	take(f);
	assert_false(gather(f));
	f->stacks.slots_most = 1;
	assert_true(gather(f));
	f->stacks.slots_most = 100;
	assert_false(gather(f));
	merge_sweep(&f->merge, 11);
	assert_false(gather(f));
	f->stacks.impatient = true;
	assert_true(gather(f));
	assert_int_equal(f->stacks.head.found, 0);
	/* At the end of the stream nothing follows. */
	f->stacks.impatient = false;
	merge_sweep(&f->merge, UINT64_MAX);
	assert_true(gather(f));
}

static void the_record_has_what_is_wanted(void **state)
{
	struct fixture *f = *state;
	struct record_header event = { .size = 64, .kind = RECORD_EVENT, .flags = RECORD_COMM, .time = 10, .trace_id = 7, .payload_size = 16 };
	uint64_t room[64];
	struct record_header *record = (struct record_header *)room;
	const struct record_stack *head = (const struct record_stack *)(record + 1);
	const uint64_t *frames = (const uint64_t *)(head + 1);

	put(f, 0, 10, an_event(1, 0));
	put(f, 0, 11, a_kernel_stack(1, 0, 100));
	put(f, 0, 12, a_user_stack(1, 0, 200));
	give(f, 0);
	take(f);
	assert_true(gather(f));
	stacks_write(&f->stacks, STACK_KERNEL | STACK_USER, &event, record);
	assert_int_equal(record->size, 48 + 16 + 5 * 8);
	assert_int_equal(record->payload_size, 16 + 5 * 8);
	assert_int_equal(record->kind, RECORD_STACK);
	assert_int_equal(record->trace_id, 7);
	assert_int_equal(record->time, 10);
	assert_int_equal(frames[1], 101);
	assert_int_equal(frames[2], 200);
	/* Whoever wants the one is not shown the other. */
	stacks_write(&f->stacks, STACK_USER, &event, record);
	assert_int_equal(stacks_size(&f->stacks, STACK_USER), record->size);
	assert_int_equal(record->size, 48 + 16 + 3 * 8);
	assert_int_equal(head->found, STACK_USER);
	assert_int_equal(head->kernel_count, 0);
	assert_int_equal(frames[0], 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_stand_behind_it, setup, teardown),
		cmocka_unit_test_setup_teardown(each_has_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(none_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(another_threads_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_sub_buffer_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_wait_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(the_record_has_what_is_wanted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
