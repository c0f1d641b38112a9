/* Where a session's bytes come from: `raw`, `text` or a file, each in its own source_*.c behind
 * this one interface. A source moves bytes into slots of the pool and, but for
 * the time at which a sub-buffer begins, never looks into them. */
#ifndef TRACEFAN_READER_SOURCE_H
#define TRACEFAN_READER_SOURCE_H

#include "reader/instance.h"
#include "reader/loop.h"
#include "shm/pool.h"

#include <stdbool.h>
#include <stdint.h>

#define SOURCE_MARKS_MAX 64

struct source;
struct replay;

struct source_ops {
	const char *name;
	/* Does what is due: called after every wake-up, whatever it was for. Returns 0 or -errno,
	 * which ends the session. */
	int (*step)(struct source *source, uint64_t now);
	/* Nothing new will come: publish what is left, then set source->drained. */
	void (*stop)(struct source *source);
	/* Somebody waits for what is there now; `mark` is a POOL_FLUSH to publish, or NULL. Returns
	 * 0 or -EAGAIN. */
	int (*flush)(struct source *source, const struct pool_entry *mark);
	/* Brings the stream and the kernel's counts together: after it no read is in flight, and
	 * what was read is published. Returns 0 or -errno. */
	int (*settle)(struct source *source);
	void (*close)(struct source *source);
};

/* What all sources share. */
struct source {
	const struct source_ops *ops;
	struct loop *loop;
	struct pool_writer *pool;
	uint64_t interval; /* ns */
	uint64_t deadline; /* when step is due at the latest, 0: whatever woke the reader for this source; LOOP_NEVER while
			      only a wake-up matters */
	bool connected;    /* a router reads the pool */
	bool drained;      /* everything is published: after stop, or since a file is at its end */
	uint64_t clock_noted;    /* when the last POOL_CLOCK was published */
	struct loop_watch slots; /* fires when the router has returned slots to a reader that waits
				    for them */
	/* Flushes that the filled ring had no room for. */
	struct pool_entry marks[SOURCE_MARKS_MAX];
	unsigned int mark_count;
};

/* Makes the source for one kind. `instance` is the session's own, and outlives the source; `loop`
 * is open and not yet locked: this registers files and slots, and locks it. *ret is owned by the
 * caller, who ends it with source_close. `proven`: what is in the instance's buffers must stay there, and an earlier
 * reader has proved the way, so this one doesn't. Return 0 or -errno. */
int source_raw_open(const struct instance *instance, struct loop *loop, struct pool_writer *pool,
	uint64_t interval, bool proven, struct source **ret);
int source_text_open(const struct instance *instance, const char *tag, struct loop *loop,
	struct pool_writer *pool, uint64_t interval, bool proven, struct source **ret);

/* `asked` turns true when the replay shall begin; both outlive the source. The loop needs no
 * locking. */
int source_file_open(struct replay *replay, const bool *asked, struct loop *loop,
	struct pool_writer *pool, uint64_t interval, struct source **ret);

/* Takes NULL. */
void source_close(struct source *source);

/* Asks a source to look now: for a flush, or because a router came. */
static inline int source_flush(struct source *source, const struct pool_entry *mark)
{
	return source->ops->flush(source, mark);
}

/* ---- for the sources ---- */
int source_init(struct source *source, const struct source_ops *ops, struct loop *loop,
	struct pool_writer *pool, uint64_t interval);
void source_release(struct source *source);

/* Publishes CLOCK_MONOTONIC and CLOCK_REALTIME, read together, unless that was done less than a
 * second ago. */
void source_note_clock(struct source *source, uint64_t now);
/* Publishes an entry without a slot, or keeps it until there is room (flush marks, in order).
 * Returns 0 or -EAGAIN: too many are waiting. */
int source_note_mark(struct source *source, const struct pool_entry *entry);
/* Publishes marks that waited. True when none is left. */
bool source_note_marks(struct source *source);
/* Waits for the router to return slots; false when some are there already. */
bool source_await_slots(struct source *source);

#endif
