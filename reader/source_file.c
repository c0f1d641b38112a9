/* The file source: publishes what a replay holds as fast as the router takes it, from the moment
 * that somebody wants it. */
#include "reader/source.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Items published before the loop looks at its other descriptors again. */
#define BATCH 64

struct file_source {
	struct source base;
	struct replay *replay;
	const bool *asked;
	bool started;
	bool ended;   /* the replay has nothing more; the last word is the item */
	bool waiting; /* `item` could not be published yet */
	struct replay_item item;
};

/* Returns 1 when the item is published, 0 when the router has to make room first, or -errno. */
static int publish(struct file_source *file)
{
	struct pool_writer *pool = file->base.pool;
	const struct pool_entry *entry = &file->item.entry;
	uint8_t *bytes;
	uint32_t slot;
	int r;

	if (entry->kind != POOL_DATA) {
		if (!pool_writer_note(pool, entry))
			return 1;
		/* The router says nothing when it has read an entry that holds no slot. */
		file->base.deadline = loop_now() + file->base.interval;
		return 0;
	}
	slot = pool_writer_take(pool);
	if (slot == UINT32_MAX) {
		file->base.deadline = source_await_slots(&file->base) ? LOOP_NEVER : 0;
		return 0;
	}
	bytes = pool_writer_slot(pool, slot);
	r = replay_read(file->item.fd, file->item.offset, bytes, file->item.stored);
	if (r < 0) {
		pool_writer_put(pool, slot);
		return r;
	}
	memset(bytes + file->item.stored, 0, entry->length - file->item.stored);
	pool_writer_publish(pool, slot, entry->cpu, entry->length);
	return 1;
}

/* Behind the last one the router learns that no CPU has anything left. */
static int next_item(struct file_source *file)
{
	int r = file->replay->ops->next(file->replay, &file->item);

	if (r == 0 && !file->ended) {
		file->ended = true;
		file->item =
			(struct replay_item){ .entry = { .kind = POOL_SWEEP, .time = UINT64_MAX } };
		return 1;
	}
	return r;
}

static int play(struct file_source *file)
{
	int r = 1;

	file->base.deadline = 0;
	for (int i = 0; r > 0 && i < BATCH; i++) {
		if (!file->waiting)
			r = next_item(file);
		if (r <= 0)
			break;
		file->waiting = true;
		r = publish(file);
		if (r > 0)
			file->waiting = false;
	}
	if (!r && !file->waiting) {
		file->base.drained = true;
		file->base.deadline = LOOP_NEVER;
	}
	return r < 0 ? r : 0;
}

static int step(struct source *source, uint64_t now)
{
	struct file_source *file = (struct file_source *)source;
	int r = 0;

	(void)source_note_marks(source);
	if (*file->asked && !file->started) {
		file->started = true;
		source->deadline = 0;
	}
	if (file->started && !source->drained && now >= source->deadline)
		r = play(file);
	else if (!file->started || source->drained)
		source->deadline = LOOP_NEVER;
	(void)pool_writer_wake(source->pool);
	return r;
}

static void stop(struct source *source)
{
	source->drained = true;
	source->deadline = LOOP_NEVER;
}

static int flush(struct source *source, const struct pool_entry *mark)
{
	return mark ? source_note_mark(source, mark) : 0;
}

static int settle(struct source *source)
{
	(void)source;
	return 0;
}

static void file_close(struct source *source)
{
	source_release(source);
	free(source);
}

static const struct source_ops file_ops = { .name = "file",
	.step = step,
	.stop = stop,
	.flush = flush,
	.settle = settle,
	.close = file_close };

int source_file_open(struct replay *replay, const bool *asked, struct loop *loop,
	struct pool_writer *pool, uint64_t interval, struct source **ret)
{
	struct file_source *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->replay = replay;
	file->asked = asked;
	r = source_init(&file->base, &file_ops, loop, pool, interval);
	if (r < 0) {
		file_close(&file->base);
		return r;
	}
	*ret = &file->base;
	return 0;
}
