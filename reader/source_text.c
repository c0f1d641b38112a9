/* The text source: the kernel's own merged trace_pipe, for where the binary files can't be used.
 *
 * While the pipe is empty, a blocking read is in flight in a worker of the ring's, and comes back with
 * whatever whole lines there are. (With O_NONBLOCK the ring would hold them back until the slot is
 * full.) While reads come back full, this process makes them by itself, without waiting: each is a
 * page or two of text that the kernel has to write first, and a worker's answer to each would cost a
 * change of processes. Under load the next read waits for the rest of the interval once the kernel's
 * buffer has been found empty, so that commits don't pay for wake-ups.
 *
 * Nothing can be said of time here but by the stream itself: a flush is a line that this process
 * writes to trace_marker, and that the router finds where it stands. */
#include "reader/source.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* A shorter answer means that the kernel had no more when it gave it. */
#define FULL_READ 2048
/* Reads in a row, before requests are looked at. */
#define ROW_MAX 8
/* Between two tries while someone has switched the instance off. */
#define OFF_PAUSE 100000000
/* A read that has been woken by a marker comes back at once; a machine under load gets this long.
 */
#define SETTLE_WAIT   100000000
#define SETTLE_TRIES  20
#define OPEN_TRIES    40
#define OPEN_PAUSE_NS 50000000

#define PROOF_MARKERS 3

struct text {
	struct source base;
	const struct instance *instance;
	const char *tag;
	int fd;
	bool reading;  /* one is in flight, into this slot */
	uint32_t slot;
	bool flowing;  /* the reads come back full, and none waits: the file has O_NONBLOCK */
	bool stopping;
	bool told;               /* that the instance is off */
	unsigned int quiet;      /* looks in a row that found nothing, while stopping */
	int error;               /* that a read came back with */
	uint64_t last;           /* when the last read came back */
	struct loop_watch watch; /* without a ring: trace_pipe has something */
	/* The proof's: how many of its markers have come. */
	const char *proof;
	unsigned int proof_count;
};

static void deliver(struct text *text, uint32_t slot, uint32_t length)
{
	const char *at = pool_writer_slot(text->base.pool, slot), *end = at + length;

	if (!text->proof) {
		pool_writer_publish(text->base.pool, slot, POOL_CPU_ALL, length);
		return;
	}
	while ((at = memmem(at, (size_t)(end - at), text->proof, strlen(text->proof)))) {
		text->proof_count++;
		at += strlen(text->proof);
	}
	pool_writer_put(text->base.pool, slot);
}

/* What a read brought, a length or -errno; how long to wait before the next. */
static uint64_t take(struct text *text, uint32_t slot, int result)
{
	uint64_t now = loop_now(), since = now - text->last;

	text->last = now;
	if (result > 0) {
		deliver(text, slot, (uint32_t)result);
		return result < FULL_READ && since < text->base.interval / 2 ? text->base.interval
									     : 0;
	}
	pool_writer_put(text->base.pool, slot);
	if (!result && !text->stopping) {
		/* The end of file: tracing_on is 0, and the buffer is empty. */
		if (!text->told)
			log_note("tracing is switched off in %s", text->instance->name);
		text->told = true;
		return OFF_PAUSE;
	}
	if (result < 0 && result != -EINTR && result != -EAGAIN && result != -ECANCELED)
		text->error = result;
	return 0;
}

/* One read is over. */
static void settle(struct text *text, uint32_t slot, int result)
{
	uint64_t pause = take(text, slot, result);

	text->base.deadline = text->last + pause;
}

/* Only while no read is in flight. */
static int set_flowing(struct text *text, bool flowing)
{
	if (text->flowing == flowing || !text->base.loop->uring)
		return 0;
	if (fcntl(text->fd, F_SETFL, flowing ? O_NONBLOCK : 0) < 0)
		return -errno;
	text->flowing = flowing;
	return 0;
}

static void read_done(void *context, uint64_t token, int result)
{
	struct text *text = context;
	int r;

	(void)token;
	text->reading = false;
	settle(text, text->slot, result);
	r = set_flowing(text, result >= FULL_READ);
	if (r < 0)
		text->error = r;
}

/* True when a slot could be had. */
static bool take_slot(struct text *text, uint32_t *ret)
{
	*ret = pool_writer_take(text->base.pool);
	if (*ret != UINT32_MAX)
		return true;
	if (source_await_slots(&text->base))
		text->base.deadline = LOOP_NEVER;
	return false;
}

static int start_read(struct text *text)
{
	struct loop_read read = { .length = text->base.pool->slot_size, .worker = true };
	int r;

	if (!take_slot(text, &text->slot))
		return 0;
	read.memory = pool_writer_slot(text->base.pool, text->slot);
	r = loop_read_queue(text->base.loop, &read);
	if (r < 0) {
		pool_writer_put(text->base.pool, text->slot);
		return r;
	}
	text->reading = true;
	text->base.deadline = LOOP_NEVER;
	return 0;
}

static bool pipe_has_text(const struct text *text)
{
	struct pollfd ready = { .fd = text->fd, .events = POLLIN };

	return poll(&ready, 1, 0) > 0;
}

/* Reads what is there. Returns false when nothing is left for now. */
static bool read_row(struct text *text)
{
	uint32_t slot;
	ssize_t n = 0;

	for (int i = 0; i < ROW_MAX; i++) {
		if (!take_slot(text, &slot))
			return true;
		n = read(text->fd, pool_writer_slot(text->base.pool, slot),
			text->base.pool->slot_size);
		settle(text, slot, n < 0 ? -errno : (int)n);
		if (n < FULL_READ)
			return false;
	}
	return true;
}

/* Without a ring. */
static void read_plain(struct text *text)
{
	if (read_row(text) || text->base.deadline > loop_now() || text->stopping)
		return;
	text->base.deadline = LOOP_NEVER;
	loop_arm(text->base.loop, &text->watch);
}

/* The tracing is off: once nothing has come for a whole interval, nothing will. A read isn't asked,
 * since on an empty pipe the ring would wait for ever. */
static bool found_empty(struct text *text, uint64_t now)
{
	if (pipe_has_text(text)) {
		text->quiet = 0;
		return false;
	}
	text->base.drained = text->quiet++ > 0;
	text->base.deadline = text->base.drained ? LOOP_NEVER : now + text->base.interval;
	return true;
}

static void pipe_ready(void *context, short revents)
{
	struct text *text = context;

	(void)revents;
	text->base.deadline = 0;
}

/* The tracing is off: a read that found the pipe empty would wait for ever. A call can come before
 * the worker has begun the read, and miss it; so it is repeated. */
static int call_back(struct text *text, uint64_t now)
{
	text->base.deadline = LOOP_NEVER;
	if (pipe_has_text(text))
		return 0;
	text->base.deadline = now + text->base.interval;
	return loop_read_cancel(text->base.loop, 0);
}

/* Begins the next read if it is time for it. */
static int proceed(struct text *text, uint64_t now)
{
	if (text->error)
		return text->error;
	if (text->reading)
		return text->stopping ? call_back(text, now) : 0;
	if (text->base.drained || now < text->base.deadline)
		return 0;
	if (text->stopping && found_empty(text, now))
		return 0;
	if (!text->base.loop->uring)
		read_plain(text);
	else if (!text->flowing)
		return start_read(text);
	else if (!read_row(text))
		return set_flowing(text, false);
	return text->error;
}

static int step(struct source *source, uint64_t now)
{
	struct text *text = (struct text *)source;
	int r;

	source_note_clock(source, now);
	r = proceed(text, now);
	(void)pool_writer_wake(source->pool);
	return r;
}

static int write_flush(const struct text *text, uint64_t cookie)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "tracefan %s flush %llu", text->tag,
		(unsigned long long)cookie);
	return instance_mark(text->instance, line);
}

/* The events are off already. The marker is the last thing that comes, and ends the waiting of the
 * read in flight. */
static void stop(struct source *source)
{
	struct text *text = (struct text *)source;

	text->stopping = true;
	if (write_flush(text, 0) < 0)
		log_warning("the last line can't be written to trace_marker of %s",
			text->instance->name);
	if (tracedir_write(text->instance->dir, "tracing_on", "0") < 0)
		log_warning("the tracing of %s can't be switched off", text->instance->name);
	source->deadline = 0;
}

static int flush(struct source *source, const struct pool_entry *mark)
{
	return mark ? write_flush((struct text *)source, mark->value) : 0;
}

static int settle_source(struct source *source)
{
	struct text *text = (struct text *)source;
	int r = text->reading ? write_flush(text, 0) : 0;

	for (int tries = 0; !r && text->reading && tries < SETTLE_TRIES; tries++)
		r = loop_read_submit(source->loop, 1, SETTLE_WAIT);
	return r < 0 ? r : text->reading ? -ETIMEDOUT : 0;
}

static void text_close(struct source *source)
{
	struct text *text = (struct text *)source;

	if (source->loop)
		loop_remove(source->loop, &text->watch);
	(void)close_fd(text->fd);
	source_release(source);
	free(text);
}

static const struct source_ops text_ops = { .name = "text",
	.step = step,
	.stop = stop,
	.flush = flush,
	.settle = settle_source,
	.close = text_close };

/* Since Linux 6.5 trace_pipe has one opener. A ring that was closed a moment ago still counts as
 * one. */
static int open_pipe(struct text *text)
{
	const struct timespec pause = { .tv_nsec = OPEN_PAUSE_NS };
	int flags = O_RDONLY | O_CLOEXEC | (text->base.loop->uring ? 0 : O_NONBLOCK);
	pid_t holder;

	for (int i = 0; i < OPEN_TRIES; i++) {
		text->fd = openat(text->instance->dir, "trace_pipe", flags);
		if (text->fd >= 0 || errno != EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	if (text->fd >= 0)
		return 0;
	holder = errno == EBUSY ? holder_find(text->instance->dir, "trace_pipe") : 0;
	if (holder)
		log_warning("trace_pipe of %s is held by process %d", text->instance->name,
			(int)holder);
	return -errno;
}

/* Reads until `wanted` of the proof's markers have come. */
static int prove_some(struct text *text, unsigned int wanted)
{
	uint64_t until = loop_now() + (uint64_t)SETTLE_WAIT * SETTLE_TRIES;
	int r = step(&text->base, loop_now());

	while (!r && text->proof_count < wanted && loop_now() < until) {
		r = loop_wait(
			text->base.loop, text->base.deadline < until ? text->base.deadline : until);
		if (!r)
			r = step(&text->base, loop_now());
	}
	return r;
}

static int write_proof(struct text *text)
{
	int r = 0;

	for (int i = 0; !r && i < PROOF_MARKERS; i++)
		r = instance_mark(text->instance, text->proof);
	return r;
}

/* Markers written before a read is under way, and then while one waits. */
static int prove(struct text *text)
{
	char marker[48];
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	(void)snprintf(
		marker, sizeof(marker), "tracefan proof %016llx", (unsigned long long)random);
	text->proof = marker;
	text->base.deadline = 0;
	r = write_proof(text);
	if (!r)
		r = prove_some(text, PROOF_MARKERS);
	/* Under way before the next markers are written. */
	if (!r)
		r = loop_wait(text->base.loop, 0);
	if (!r)
		r = write_proof(text);
	if (!r)
		r = prove_some(text, 2 * PROOF_MARKERS);
	text->proof = NULL;
	if (!r && text->proof_count != 2 * PROOF_MARKERS) {
		log_note("start-up proof: %u of %d markers arrived", text->proof_count,
			2 * PROOF_MARKERS);
		r = -EPROTO;
	}
	return r ? r : instance_reset(text->instance);
}

int source_text_open(const struct instance *instance, const char *tag, struct loop *loop,
	struct pool_writer *pool, uint64_t interval, bool proven, struct source **ret)
{
	struct text *text = calloc(1, sizeof(*text));
	int r;

	if (!text)
		return -ENOMEM;
	text->instance = instance;
	text->tag = tag;
	text->fd = -1;
	r = source_init(&text->base, &text_ops, loop, pool, interval);
	if (!r)
		r = open_pipe(text);
	loop->read_done = read_done;
	loop->read_context = text;
	if (!r)
		r = loop_lock(loop, &text->fd, 1, pool_writer_slot(pool, 0),
			(size_t)pool->slot_count * pool->slot_size);
	text->watch = (struct loop_watch){
		.fd = text->fd, .events = POLLIN, .ready = pipe_ready, .context = text, .flows = true };
	if (!r && !loop->uring)
		r = loop_add(loop, &text->watch);
	if (!r && !proven)
		r = prove(text);
	/* At the first look there may be something already. */
	text->base.deadline = 0;
	if (r < 0) {
		text_close(&text->base);
		return r;
	}
	*ret = &text->base;
	return 0;
}
