/* The start-up proof: does what the reader is about to rely on work on this kernel? Markers in the
 * session's own instance are counted as bytes; nothing is parsed. */
#include "reader/raw.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define PROOF_MARKERS UINT64_C(3)
#define PROOF_WAIT    500000000

static void count(struct raw *raw, uint32_t cpu, uint32_t slot, uint32_t length)
{
	const char *at = pool_writer_slot(raw->base.pool, slot), *end = at + length;
	const char *needle = raw->proof_text;
	size_t size = strlen(needle);

	(void)cpu;
	while ((at = memmem(at, (size_t)(end - at), needle, size))) {
		raw->proof_count++;
		at += size;
	}
	pool_writer_put(raw->base.pool, slot);
}

static int write_markers(struct raw *raw)
{
	int r = 0;

	for (uint64_t i = 0; !r && i < PROOF_MARKERS; i++)
		r = instance_mark(raw->instance, raw->proof_text);
	return r;
}

/* Waits as the idle source does, then reads until nothing is left. */
static int collect(struct raw *raw, uint64_t expected)
{
	uint64_t deadline = loop_now() + PROOF_WAIT;
	uint32_t moved;
	int r = 0;

	while (!r && raw->proof_count < expected && loop_now() < deadline) {
		for (uint32_t i = 0; i < raw->cpu_count; i++) {
			if (!raw->cpus[i].offline)
				loop_arm(raw->base.loop, &raw->cpus[i].watch);
		}
		r = loop_wait(raw->base.loop, raw->base.deadline ? deadline : 0);
		if (r < 0 || raw->base.deadline)
			continue;
		raw->base.deadline = LOOP_NEVER;
		raw_begin(raw);
		do {
			raw_look(raw);
			r = raw_round(raw, &moved);
		} while (!r && moved);
	}
	return r;
}

static int judge(const struct raw *raw, const char *when, uint64_t expected)
{
	if (raw->proof_count == expected)
		return 0;
	log_note("start-up proof: %llu of %llu markers arrived that were written %s",
		(unsigned long long)raw->proof_count, (unsigned long long)expected, when);
	return -EPROTO;
}

int proof_run(struct raw *raw)
{
	void (*deliver)(struct raw *, uint32_t, uint32_t, uint32_t) = raw->deliver;
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	(void)snprintf(raw->proof_text, sizeof(raw->proof_text), "tracefan proof %016llx",
		(unsigned long long)random);
	raw->deliver = count;
	raw->proof_count = 0;
	r = write_markers(raw);
	if (!r)
		r = collect(raw, PROOF_MARKERS);
	if (!r)
		r = judge(raw, "before waiting", PROOF_MARKERS);
	for (uint32_t i = 0; !r && i < raw->cpu_count; i++) {
		if (!raw->cpus[i].offline)
			loop_arm(raw->base.loop, &raw->cpus[i].watch);
	}
	/* The ring has to know of the waiting before the markers are written. */
	if (!r)
		r = loop_wait(raw->base.loop, 0);
	if (!r)
		r = write_markers(raw);
	if (!r)
		r = collect(raw, 2 * PROOF_MARKERS);
	if (!r)
		r = judge(raw, "while waiting", 2 * PROOF_MARKERS);
	for (uint32_t i = 0; i < raw->cpu_count; i++)
		loop_disarm(raw->base.loop, &raw->cpus[i].watch);
	raw->deliver = deliver;
	raw->base.deadline = LOOP_NEVER;
	/* The kernel's counts of the session start at 0. */
	if (!r)
		r = instance_reset(raw->instance);
	return r;
}
