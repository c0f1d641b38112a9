/* Moving sub-buffers: by chains of linked fixed reads, or by read(2) where the loop has no ring.
 *
 * A read of a file in tracefs must ask for exactly one sub-buffer: io_uring would hold a longer one
 * back until it is full. A read that finds its CPU empty waits in the ring, so the tail of a chain
 * that was too long is called back before the round ends; it has taken nothing. */
#include "reader/raw.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Reads in flight over all CPUs: a chain must not be torn by a full submission queue. */
#define ROUND_MAX 128
/* A shorter chain is not worth its being called back, should it be too long. */
#define CHAIN_LEAST 4
/* Between two looks at reads that a worker is at, and how long they may take in all, on the slowest
 * machine. */
#define LOOK_AGAIN  UINT64_C(5000000)
#define FINISH_WAIT UINT64_C(10000000000)

/* Sub-buffers of one CPU that a sweep is to move if it can have them without waiting for longer than so many ns. */
#define PACE_MOVED 16
#define PACE_MOST  UINT64_C(16000000)
/* The part of a CPU's buffer that may fill up meanwhile. */
#define PACE_PART  8

void raw_look(struct raw *raw)
{
	int r;

	do {
		r = poll(raw->poll, raw->cpu_count, 0);
	} while (r < 0 && errno == EINTR);
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];
		short revents = r < 0 ? POLLIN : raw->poll[i].revents;

		cpu->ready = revents & POLLIN;
		cpu->offline = revents & POLLERR && !cpu->ready;
	}
}

void raw_begin(struct raw *raw)
{
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];

		/* Half of what the last sweep took is likely there again, so that the chain is
		 * seldom too long. */
		cpu->want = cpu->taken / 2;
		if (cpu->want < 1)
			cpu->want = 1;
		if (cpu->want > RAW_CHAIN_MAX)
			cpu->want = RAW_CHAIN_MAX;
		cpu->taken = 0;
		cpu->stalled = false;
	}
}

/* Slots of this CPU that are on their way or with the router. */
static uint32_t out(const struct raw *raw, uint32_t index)
{
	return raw->cpus[index].queued - raw->cpus[index].done +
	       pool_writer_held(raw->base.pool, index);
}

/* Slots that this CPU may take now. The router holds what is ahead of the other CPUs until these
 * catch up, and they need slots for that. So a CPU may have no more out than twice what it leaves:
 * alone it gets two thirds of the pool, and whoever comes late still finds most of the rest. Each
 * can always get one: every CPU that has none out has one kept for it. */
static uint32_t obtainable(struct raw *raw, uint32_t index)
{
	uint32_t available = pool_writer_available(raw->base.pool), own = out(raw, index), kept = 0,
		 most;
	uint32_t fair = 2 * available > own ? (2 * available - own) / 3 : 0;

	if (available / 3 >= raw->cpu_count)
		return fair;
	for (uint32_t i = 0; i < raw->cpu_count; i++)
		kept += i != index && !out(raw, i);
	most = available > kept ? available - kept : 0;
	if (!own && !fair)
		fair = 1;
	if (!own && !most && available)
		most = 1;
	return fair < most ? fair : most;
}

/* Whether enough of a CPU has been read, by the time at which its last sub-buffer begins, the clock's own number: past the
 * sweep's time, since a CPU that makes events as fast as they are read is never found empty; or past the time that
 * will be told, if the next one is likely not full yet. The kernel copies what is in such a one event by event, ten
 * times as dear, and what comes into it later, too. */
static bool read_enough(const struct raw *raw, struct raw_cpu *cpu, uint32_t slot)
{
	const uint64_t before = cpu->begun;
	uint64_t time;

	memcpy(&time, pool_writer_slot(raw->base.pool, slot), sizeof(time));
	cpu->begun = time;
	if (time > raw->until)
		return true;
	return before && time > before && time > raw->told && time - before > (raw->until - time) / 2;
}

static void settle(struct raw_cpu *cpu, uint32_t index, uint32_t slot, int result)
{
	struct raw *raw = cpu->raw;

	if (result > 0) {
		cpu->taken++;
		if (read_enough(raw, cpu, slot))
			cpu->ready = false;
		raw->deliver(raw, index, slot, (uint32_t)result);
	} else {
		pool_writer_put(raw->base.pool, slot);
	}
	if (result == -EAGAIN)
		cpu->ready = false;
	if (result == (int)raw->subbuf_size || result == -ECANCELED || result == -EAGAIN)
		return;
	/* There is nothing that could come of another look. */
	if (result == -ENODEV) {
		cpu->offline = true;
		cpu->ready = false;
		return;
	}
	cpu->stalled = true;
	/* Not empty, and nothing to be had: an event that is reserved and not committed yet. The
	 * next sweep looks again. */
	if (result == 0)
		return;
	if (cpu->told)
		return;
	cpu->told = true;
	if (result < 0)
		log_warning("read of CPU %u: %s", index, strerror(-result));
	else
		log_warning("read of CPU %u brought %d bytes instead of %u", index, result,
			raw->subbuf_size);
}

void raw_read_done(void *context, uint64_t token, int result)
{
	struct raw *raw = context;
	uint32_t index = (uint32_t)(token >> 8);
	struct raw_cpu *cpu = &raw->cpus[index];

	settle(cpu, index, cpu->chain[token & 0xff], result);
	cpu->done++;
	raw->in_flight--;
}

static int queue_chain(struct raw *raw, uint32_t index, uint32_t length)
{
	struct raw_cpu *cpu = &raw->cpus[index];
	uint32_t count = 0;
	int r = 0;

	/* All slots first: the last read of a chain must not be linked to the next CPU's first. */
	while (count < length) {
		uint32_t slot = pool_writer_take(raw->base.pool);

		if (slot == UINT32_MAX)
			break;
		cpu->chain[count++] = slot;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct loop_read read = {
			.file = index,
			.memory = pool_writer_slot(raw->base.pool, cpu->chain[i]),
			.length = raw->subbuf_size,
			.token = (uint64_t)index << 8 | i,
			.linked = i + 1 < count,
		};

		if (!r)
			r = loop_read_queue(raw->base.loop, &read);
		if (r < 0) {
			pool_writer_put(raw->base.pool, cpu->chain[i]);
			continue;
		}
		cpu->queued++;
		raw->in_flight++;
	}
	return r;
}

/* Calls back, once each, the chains whose CPU is empty: what is left of them waits in the ring. */
static void call_back(struct raw *raw)
{
	raw_look(raw);
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];

		if (cpu->ready || cpu->called_back || cpu->done == cpu->queued)
			continue;
		cpu->called_back = true;
		(void)loop_read_cancel(raw->base.loop, (uint64_t)i << 8 | cpu->done);
	}
}

/* Waits for the reads in flight. Where the kernel reads at once, those that found data are complete
 * when they have been submitted; where it has a worker do it, they take their time. */
static int finish_chains(struct raw *raw)
{
	int r = loop_read_submit(raw->base.loop, 0, 0);
	uint64_t deadline = 0;
	uint32_t before;

	while (!r && raw->in_flight) {
		uint64_t now = loop_now();

		if (!deadline)
			deadline = now + FINISH_WAIT;
		if (now > deadline)
			return -EIO;
		before = raw->in_flight;
		call_back(raw);
		r = loop_read_submit(raw->base.loop, 1, LOOK_AGAIN);
		/* A call can come while a worker is at it and miss; nothing has moved, so call
		 * again. */
		for (uint32_t i = 0; raw->in_flight == before && i < raw->cpu_count &&
				     loop_now() - now >= LOOK_AGAIN;
			i++)
			raw->cpus[i].called_back = false;
	}
	return r;
}

/* False: nothing more is to be had. */
static bool read_one(struct raw *raw, uint32_t index)
{
	struct raw_cpu *cpu = &raw->cpus[index];
	uint32_t slot = pool_writer_take(raw->base.pool);
	ssize_t n;

	if (slot == UINT32_MAX)
		return false;
	do {
		n = read(cpu->fd, pool_writer_slot(raw->base.pool, slot), raw->subbuf_size);
	} while (n < 0 && errno == EINTR);
	settle(cpu, index, slot, n < 0 ? -errno : (int)n);
	return n == (ssize_t)raw->subbuf_size;
}

static void read_plain(struct raw *raw, uint32_t index, uint32_t length)
{
	while (length && read_one(raw, index))
		length--;
}

void raw_take_fired(struct raw *raw)
{
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		if (raw->cpus[i].fired && obtainable(raw, i))
			(void)read_one(raw, i);
		raw->cpus[i].fired = false;
	}
}

static uint32_t chain_length(struct raw *raw, uint32_t index)
{
	struct raw_cpu *cpu = &raw->cpus[index];
	uint32_t length = cpu->want, limit;

	if (!length || !cpu->ready || cpu->stalled || cpu->taken >= raw->share)
		return 0;
	if (length > raw->share - cpu->taken)
		length = raw->share - cpu->taken;
	if (raw->in_flight + length > ROUND_MAX)
		length = raw->in_flight < ROUND_MAX ? 1 : 0;
	limit = obtainable(raw, index);
	if (!limit)
		raw->blocked = true;
	return length < limit ? length : limit;
}

int raw_round(struct raw *raw, uint32_t *ret_moved)
{
	uint32_t before = 0, after = 0;
	int r = 0;

	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		before += raw->cpus[i].taken;
		raw->cpus[i].queued = raw->cpus[i].done = 0;
		raw->cpus[i].called_back = false;
	}
	for (uint32_t i = 0; !r && i < raw->cpu_count; i++) {
		uint32_t length = chain_length(raw, i), taken = raw->cpus[i].taken;

		if (!length)
			continue;
		if (raw->base.loop->uring)
			r = queue_chain(raw, i, length);
		else
			read_plain(raw, i, length);
		/* A longer chain next time, if this one turns out full. */
		if (taken + length <= raw->share && raw->cpus[i].want < RAW_CHAIN_MAX)
			raw->cpus[i].want = raw->cpus[i].want * 2 < RAW_CHAIN_MAX
						    ? raw->cpus[i].want * 2
						    : RAW_CHAIN_MAX;
	}
	if (raw->in_flight) {
		int finish = finish_chains(raw);

		r = r ? r : finish;
	}
	for (uint32_t i = 0; i < raw->cpu_count; i++)
		after += raw->cpus[i].taken;
	*ret_moved = after - before;
	return r;
}

/* Chains for what is surely there. False: none is worth while. */
static bool plan_chains(struct raw *raw)
{
	bool any = false;

	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];

		cpu->want = cpu->planned > cpu->taken ? cpu->planned - cpu->taken : 0;
		if (cpu->want > RAW_CHAIN_MAX)
			cpu->want = RAW_CHAIN_MAX;
		any |= cpu->want >= CHAIN_LEAST;
	}
	return any;
}

/* Until a read finds nothing or brings what is newer than the sweep. A look, or a read that waits, would tell the same
 * at the price of an interrupt at this CPU's next event. */
static void read_rest(struct raw *raw, uint32_t index)
{
	struct raw_cpu *cpu = &raw->cpus[index];

	while (cpu->ready && !cpu->stalled && cpu->taken < raw->share) {
		if (!obtainable(raw, index)) {
			raw->blocked = true;
			return;
		}
		if (!read_one(raw, index))
			return;
	}
}

int raw_drain(struct raw *raw, uint64_t time, uint64_t told)
{
	uint32_t moved = 1;
	int r = 0;

	raw->until = time;
	raw->told = told;
	for (uint32_t i = 0; i < raw->cpu_count; i++) {
		struct raw_cpu *cpu = &raw->cpus[i];

		cpu->planned = cpu->taken / 2;
		cpu->taken = 0;
		cpu->begun = 0;
		cpu->ready = true;
		cpu->stalled = cpu->offline = false;
	}
	while (!r && moved && raw->base.loop->uring && plan_chains(raw))
		r = raw_round(raw, &moved);
	for (uint32_t i = 0; !r && i < raw->cpu_count; i++)
		read_rest(raw, i);
	raw->until = UINT64_MAX;
	/* Without a slot nobody knows whether there is anything. */
	if (!r && raw->blocked) {
		raw_look(raw);
		raw->blocked = false;
		for (uint32_t i = 0; i < raw->cpu_count; i++)
			raw->blocked |= raw->cpus[i].ready;
	}
	return r;
}

uint64_t raw_pace(const struct raw *raw, uint64_t span)
{
	const uint64_t room = raw->instance->buffer_size / raw->subbuf_size / PACE_PART;
	const uint64_t moved = room < PACE_MOVED ? room : PACE_MOVED;
	uint64_t most = 0, wait;

	for (uint32_t i = 0; i < raw->cpu_count; i++)
		most = raw->cpus[i].taken > most ? raw->cpus[i].taken : most;
	/* Where a sweep begins and where it ends there are parts of sub-buffers. */
	if (most <= 2)
		return raw->base.interval;
	wait = span / (most - 2) * moved;
	/* How much comes is known for the last span only: what lasted for a moment must not cost a long wait. */
	if (wait > 2 * span)
		wait = 2 * span;
	if (wait > PACE_MOST)
		wait = PACE_MOST;
	return wait > raw->base.interval ? wait : raw->base.interval;
}
