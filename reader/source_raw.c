/* The raw source: when to read, and what the router is told about time.
 *
 * Idle: every CPU's file is waited for, without a time-out; a wake-up causes a sweep at once, and
 * the sweep's own time is published. Loaded, that is, after a sweep that moved more than a few
 * sub-buffers or when wake-ups come fast: nothing waits in the kernel, where a waiting reader makes
 * each commit pay for a wake-up. One time-out per interval (longer where much comes: raw_pace) causes a sweep, and the time of the
 * sweep before is published, so that an event which was reserved before that time and committed
 * after the look at its CPU is not overtaken. After a whole interval without data the present time
 * is published, and the source is idle again.
 *
 * One sub-buffer of a CPU may hold one event or hundreds, and the reader does not look into it. So
 * a source that is loaded, but with no more than that, tries how it is to wait: both for the kernel
 * and for the interval's end. If wake-ups come fast, it is loaded again, and tries half as often
 * from then on.
 *
 * Idle, a sweep reads from the CPUs that caused it, then looks at all with one poll(2) and reads from those
 * that have something, until a look finds nothing or each has used up its share of the pool. Its time T is the clock's before the
 * last look: what that look didn't find isn't there, and everything that the sweep published is
 * older. Loaded, it doesn't look, since each look makes the next commit of every CPU pay for an
 * interrupt: T is the clock's at its beginning, and each CPU is read until a read finds nothing or
 * brings what begins after T, or after the time of the sweep before, which is told, if the next sub-buffer is likely not full.
 * So what it published may be newer than T, and some that is older may be left: another sweep follows.
 * No read is in flight between sweeps. */
#include "reader/raw.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/hotplug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sweep that moved more than this many sub-buffers is load; a process that begins or ends makes some events, each of
 * which may come in one of its own. */
#define LOAD_MOVED 16
/* Wake-ups that are no further apart than this, on average, are load; and what a pause counts for
 * at most. */
#define LOAD_GAP   UINT64_C(250000)
#define LOAD_PAUSE UINT64_C(1000000)
/* How many intervals pass between two tries to wait, at most. */
#define PATIENCE_MAX 64
/* The router is woken in the middle of a sweep when so many bytes wait for it. */
#define WAKE_BYTES  (256U << 10)
#define BACKOFF_MAX 100000000
/* How many sweeps in a row, an interval apart, have to find nothing before a stopped session counts
 * as drained: an event that was being written when its probe was disabled is committed by then. */
#define QUIET_SWEEPS 2

static void publish(struct raw *raw, uint32_t cpu, uint32_t slot, uint32_t length)
{
	pool_writer_publish(raw->base.pool, slot, cpu, length);
	raw->unwoken += length;
	if (raw->unwoken < WAKE_BYTES)
		return;
	raw->unwoken = 0;
	(void)pool_writer_wake(raw->base.pool);
}

static void cpu_ready(void *context, short revents)
{
	struct raw_cpu *cpu = context;

	if (revents & POLLERR && !(revents & POLLIN))
		cpu->offline = true;
	cpu->fired = revents & POLLIN;
	cpu->raw->base.deadline = 0;
}

static void cpu_came_online(void *context, short revents)
{
	struct raw *raw = context;

	(void)revents;
	if (hotplug_read(raw->hotplug.fd)) {
		for (uint32_t i = 0; i < raw->cpu_count; i++)
			raw->cpus[i].offline = false;
		raw->base.deadline = 0;
	}
	loop_arm(raw->base.loop, &raw->hotplug);
}

/* Tells the router what this sweep found. Returns false when the filled ring had no room for all of
 * it; what was published then is true by itself: a CPU that is called busy without need only makes
 * the router wait. */
static bool publish_sweep(struct raw *raw, uint64_t time)
{
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct pool_entry busy = { .kind = POOL_BUSY, .time = time, .cpu = i };

		if ((raw->cpus[i].ready || raw->cpus[i].stalled) && !raw->cpus[i].offline &&
			pool_writer_note(raw->base.pool, &busy) < 0)
			return false;
	}
	return !pool_writer_note(
		raw->base.pool, &(struct pool_entry){ .kind = POOL_SWEEP, .time = time });
}

/* Idle: reads from those that have something, until a look finds nothing. *ret_time is before that look. */
static int sweep_by_looks(struct raw *raw, uint64_t *ret_time)
{
	uint32_t moved;
	int r;

	raw_begin(raw);
	raw_take_fired(raw);
	do {
		*ret_time = loop_now();
		raw_look(raw);
		r = raw_round(raw, &moved);
	} while (!r && moved);
	return r;
}

/* One sweep; *ret_time is its T. True in *ret_empty: every CPU was found empty. */
static int sweep(struct raw *raw, uint64_t *ret_time, bool *ret_empty)
{
	int r;

	raw->blocked = false;
	raw->unwoken = 0;
	if (raw->loaded) {
		*ret_time = loop_now();
		r = raw_drain(raw, *ret_time, raw->swept);
	} else {
		r = sweep_by_looks(raw, ret_time);
	}
	raw->moved = 0;
	*ret_empty = true;
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		raw->moved += raw->cpus[i].taken;
		*ret_empty &= !raw->cpus[i].ready && !raw->cpus[i].stalled;
	}
	return r;
}

static void arm_all(struct raw *raw)
{
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		/* An offline CPU would answer at once, again and again; hotplug_read tells when it
		 * comes. */
		if (!raw->cpus[i].offline)
			loop_arm(raw->base.loop, &raw->cpus[i].watch);
	}
}

static void disarm_all(struct raw *raw)
{
	for (uint32_t i = 0; i < raw->cpu_count; i++)
		loop_disarm(raw->base.loop, &raw->cpus[i].watch);
}

static void go_loaded(struct raw *raw, uint64_t next)
{
	if (!raw->loaded)
		disarm_all(raw);
	raw->loaded = true;
	raw->base.deadline = next;
}

static void go_idle(struct raw *raw, uint64_t deadline)
{
	raw->loaded = false;
	raw->base.deadline = deadline;
	arm_all(raw);
}

/* How far apart wake-ups are, as a running mean that begins with a pause. A burst of a few is no load: to be paced would
 * make the events after it wait for milliseconds. */
static void note_wake_up(struct raw *raw, uint64_t time)
{
	uint64_t gap = time - raw->woken;

	raw->gap = (15 * raw->gap + (gap < LOAD_PAUSE ? gap : LOAD_PAUSE)) / 16;
	raw->woken = time;
}

/* Idle, and to stay so: what moves is little, and comes seldom. */
static bool is_sparse(const struct raw *raw)
{
	return raw->moved <= LOAD_MOVED && raw->gap >= LOAD_GAP;
}

/* Loaded, with little enough that it may be none: whether to try. */
static bool may_try(struct raw *raw)
{
	raw->calm = raw->moved <= raw->cpu_count ? raw->calm + 1 : 0;
	return raw->calm > raw->patience;
}

static void try_waiting(struct raw *raw, uint64_t time)
{
	raw->calm = 0;
	raw->patience = raw->patience ? 2 * raw->patience : 1;
	if (raw->patience > PATIENCE_MAX)
		raw->patience = PATIENCE_MAX;
	/* It is to show soon. */
	raw->gap = 2 * LOAD_GAP;
	raw->woken = time;
	/* What this sweep brought was told with the time of the one before, so another has to
	 * follow. */
	go_idle(raw, time + raw->base.interval);
}

/* The pool has no slot for data that is there: the kernel's ring takes the pressure. The router may
 * hold slots only because it waits for word of another CPU, so sweeps go on, ever more slowly while
 * nothing moves. */
static void wait_for_slots(struct raw *raw, uint64_t time)
{
	raw->backoff = raw->moved || !raw->backoff ? raw->base.interval : raw->backoff * 2;
	if (raw->backoff > BACKOFF_MAX)
		raw->backoff = BACKOFF_MAX;
	go_loaded(raw, raw->base.connected ? time + raw->backoff : LOOP_NEVER);
	if (!source_await_slots(&raw->base))
		raw->base.deadline = time;
}

/* What follows a sweep: sleep until the kernel wakes us, until the interval is over, or until slots
 * return. */
static void decide(struct raw *raw, uint64_t time, bool empty, bool told)
{
	const uint64_t span = time - raw->swept;

	raw->swept = time;
	if (raw->blocked) {
		wait_for_slots(raw, time);
		return;
	}
	raw->backoff = 0;
	if (raw->stopping) {
		raw->quiet = empty && !raw->moved && told ? raw->quiet + 1 : 0;
		raw->base.drained = raw->quiet >= QUIET_SWEEPS && !raw->base.mark_count;
		go_loaded(raw, time + raw->base.interval);
	} else if (!told || !empty) {
		/* A CPU that used up its share goes on after the others had their turn; a failed
		 * read waits. */
		go_loaded(raw, told && raw->moved ? time : time + raw->base.interval);
	} else if (raw->loaded && raw->moved && may_try(raw)) {
		try_waiting(raw, time);
	} else if (raw->loaded ? raw->moved > 0 : !is_sparse(raw)) {
		/* A span in which the reader slept tells nothing of what comes now. */
		go_loaded(raw, time + (raw->loaded ? raw_pace(raw, span) : raw->base.interval));
	} else {
		raw->patience = 0;
		go_idle(raw, LOOP_NEVER);
	}
}

static int step(struct source *source, uint64_t now)
{
	struct raw *raw = (struct raw *)source;
	uint64_t time, word;
	bool empty, told, present;

	if (!raw->error && now < source->deadline)
		return 0;
	if (!raw->error)
		raw->error = sweep(raw, &time, &empty);
	if (raw->error)
		return raw->error;
	if (raw->moved)
		source_note_clock(source, now);
	/* The present time, unless there is load: see above. */
	if (!raw->loaded)
		note_wake_up(raw, time);
	present = raw->loaded ? empty && !raw->moved : is_sparse(raw);
	word = present ? time : raw->swept;
	told = !word || publish_sweep(raw, word);
	told &= source_note_marks(source);
	decide(raw, time, empty, told);
	(void)pool_writer_wake(source->pool);
	return 0;
}

static void stop(struct source *source)
{
	((struct raw *)source)->stopping = true;
	source->deadline = 0;
}

static int flush(struct source *source, const struct pool_entry *mark)
{
	source->deadline = 0;
	return mark ? source_note_mark(source, mark) : 0;
}

/* Between sweeps nothing is in flight. */
static int settle(struct source *source)
{
	(void)source;
	return 0;
}

static void raw_close(struct source *source)
{
	struct raw *raw = (struct raw *)source;

	for (uint32_t i = 0; raw->cpus && i < raw->cpu_count; i++) {
		if (source->loop)
			loop_remove(source->loop, &raw->cpus[i].watch);
		(void)close_fd(raw->cpus[i].fd);
	}
	if (source->loop)
		loop_remove(source->loop, &raw->hotplug);
	(void)close_fd(raw->hotplug.fd);
	source_release(source);
	free(raw->cpus);
	free(raw->poll);
	free(raw);
}

static const struct source_ops raw_ops = { .name = "raw",
	.step = step,
	.stop = stop,
	.flush = flush,
	.settle = settle,
	.close = raw_close };

static int make_cpus(struct raw *raw, struct pool_writer *pool)
{
	raw->cpus = calloc(raw->cpu_count, sizeof(*raw->cpus));
	raw->poll = calloc(raw->cpu_count, sizeof(*raw->poll));
	for (uint32_t i = 0; raw->cpus && i < raw->cpu_count; i++)
		raw->cpus[i].fd = -1;
	return raw->cpus && raw->poll ? pool_writer_count(pool, raw->cpu_count) : -ENOMEM;
}

static int open_cpus(struct raw *raw)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];
		char path[64];

		(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", i);
		cpu->raw = raw;
		cpu->fd = openat(raw->instance->dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (cpu->fd < 0)
			return -errno;
		raw->poll[i] = (struct pollfd){ .fd = cpu->fd, .events = POLLIN };
		cpu->watch = (struct loop_watch){
			.fd = cpu->fd, .events = POLLIN, .ready = cpu_ready, .context = cpu, .flows = true
		};
		r = loop_add(raw->base.loop, &cpu->watch);
	}
	return r;
}

static int lock_loop(struct raw *raw)
{
	CLEANUP_FREE int *files = calloc(raw->cpu_count, sizeof(int));
	struct pool_writer *pool = raw->base.pool;

	if (!files)
		return -ENOMEM;
	for (uint32_t i = 0; i < raw->cpu_count; i++)
		files[i] = raw->cpus[i].fd;
	raw->base.loop->read_done = raw_read_done;
	raw->base.loop->read_context = raw;
	return loop_lock(raw->base.loop, files, raw->cpu_count, pool_writer_slot(pool, 0),
		(size_t)pool->slot_count * pool->slot_size);
}

int source_raw_open(const struct instance *instance, struct loop *loop, struct pool_writer *pool,
	uint64_t interval, bool proven, struct source **ret)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	int r;

	if (!raw)
		return -ENOMEM;
	raw->instance = instance;
	raw->hotplug.fd = -1;
	raw->cpu_count = instance->cpu_count;
	raw->subbuf_size = instance->subbuf_size;
	raw->deliver = publish;
	raw->until = UINT64_MAX;
	raw->gap = LOAD_PAUSE;
	raw->share = pool->slot_count / raw->cpu_count ? pool->slot_count / raw->cpu_count : 1;
	r = make_cpus(raw, pool);
	if (!r)
		r = source_init(&raw->base, &raw_ops, loop, pool, interval);
	if (!r)
		r = open_cpus(raw);
	if (!r)
		r = lock_loop(raw);
	if (!r && !proven)
		r = proof_run(raw);
	if (r < 0) {
		raw_close(&raw->base);
		return r;
	}
	raw->hotplug = (struct loop_watch){
		.fd = hotplug_open(), .events = POLLIN, .ready = cpu_came_online, .context = raw
	};
	if (raw->hotplug.fd >= 0 && !loop_add(loop, &raw->hotplug))
		loop_arm(loop, &raw->hotplug);
	source_note_clock(&raw->base, loop_now());
	raw->base.deadline = 0;
	*ret = &raw->base;
	return 0;
}
