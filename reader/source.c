#include "reader/source.h"

#include "shm/wake.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define CLOCK_PERIOD 1000000000

static void slots_ready(void *context, short revents)
{
	struct source *source = context;

	(void)revents;
	(void)wake_clear(source->pool->free_fd);
	source->deadline = 0;
}

int source_init(struct source *source, const struct source_ops *ops, struct loop *loop,
	struct pool_writer *pool, uint64_t interval)
{
	source->ops = ops;
	source->loop = loop;
	source->pool = pool;
	source->interval = interval;
	source->deadline = LOOP_NEVER;
	source->slots = (struct loop_watch){
		.fd = pool->free_fd, .events = POLLIN, .ready = slots_ready, .context = source, .flows = true };
	return loop_add(loop, &source->slots);
}

void source_release(struct source *source)
{
	if (source->loop)
		loop_remove(source->loop, &source->slots);
}

void source_close(struct source *source)
{
	if (source)
		source->ops->close(source);
}

static uint64_t clock_real(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void source_note_clock(struct source *source, uint64_t now)
{
	struct pool_entry entry = { .kind = POOL_CLOCK };
	uint64_t before, after;

	if (source->clock_noted && now - source->clock_noted < CLOCK_PERIOD)
		return;
	before = loop_now();
	entry.value = clock_real();
	after = loop_now();
	entry.time = before + (after - before) / 2;
	entry.length = after - before < UINT32_MAX ? (uint32_t)(after - before) : UINT32_MAX;
	if (!pool_writer_note(source->pool, &entry))
		source->clock_noted = now;
}

bool source_note_marks(struct source *source)
{
	unsigned int done = 0;

	while (done < source->mark_count && !pool_writer_note(source->pool, &source->marks[done]))
		done++;
	source->mark_count -= done;
	memmove(source->marks, source->marks + done, source->mark_count * sizeof(source->marks[0]));
	return !source->mark_count;
}

int source_note_mark(struct source *source, const struct pool_entry *entry)
{
	if (source_note_marks(source) && !pool_writer_note(source->pool, entry))
		return 0;
	if (source->mark_count == SOURCE_MARKS_MAX)
		return -EAGAIN;
	source->marks[source->mark_count++] = *entry;
	return 0;
}

bool source_await_slots(struct source *source)
{
	if (!pool_writer_prepare_sleep(source->pool))
		return false;
	loop_arm(source->loop, &source->slots);
	return true;
}
