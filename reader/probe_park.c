/* The removal of probes. When a dynamic event goes that was ever enabled in an instance, the kernel clears that
 * instance's buffers, with whatever is in them, and begins its counts again: nobody would know what
 * was lost. So a probe that nobody wants any more is disabled, and stays until nothing is recorded for
 * anybody and all has been read. */
#include "reader/probe.h"

#include "base/log.h"
#include "reader/legacy.h"
#include "reader/probe_remove.h"

#include <string.h>

/* Each is a few KiB of the kernel's memory and a hold on its program's file. */
#define PARKED_MAX 64

/* Whether events are being recorded that a consumer wants. */
static bool recording(const struct probes *probes)
{
	for (const struct probe *probe = probes->first; probe; probe = probe->next) {
		if (probe->enabled && probe->enables > probe->own)
			return true;
	}
	return false;
}

int probe_retire(struct probes *probes, struct probe *probe)
{
	int r;

	if (probe->kind == PROBE_TRACEPOINT || !probe->was_enabled)
		return probe_remove_now(probes, probe);
	r = probe_switch(probes, probe, false);
	if (r < 0)
		return r;
	probe->references = probe->enables = probe->own = 0;
	probe->parked = true;
	probes->parked++;
	probes->count--;
	return 0;
}

void probes_undefine(struct probes *probes, bool (*keeps)(void *context, const char *event))
{
	unsigned int removed = 0;

	if (probe_remove_group(probes->instance->root, probes->group, keeps, probes, &removed) < 0)
		return;
	for (struct probe *probe = probes->first; probe; probe = probe->next)
		probe->gone = probe->kind != PROBE_TRACEPOINT && !(keeps && keeps(probes, probe->event));
}

/* What isn't known is left alone. */
static bool is_wanted(void *context, const char *event)
{
	const struct probes *probes = context;
	const struct probe *probe = probes->first;

	while (probe && strcmp(probe->event, event) != 0)
		probe = probe->next;
	return !probe || !probe->parked;
}

static void remove_parked(struct probes *probes)
{
	struct probe *next;

	probes_undefine(probes, is_wanted);
	for (struct probe *probe = probes->first; probe; probe = next) {
		next = probe->next;
		if (probe->parked)
			(void)probe_remove_now(probes, probe);
	}
}

/* The kernel's counts begin anew; those so far are kept, and what was not read is as good as overwritten. */
static void keep_counts(struct instance *instance, const struct instance_counts *now)
{
	instance->cleared.read += now->read;
	instance->cleared.overrun += now->overrun + now->waiting;
	instance->cleared.dropped += now->dropped;
}

/* Nothing is written in one step with what the kernel does: whoever takes over finds out what it has done. */
static void note(const struct probes *probes, const struct instance_counts *now, bool under_way)
{
	const struct legacy_clearing clearing = {
		.before = probes->instance->cleared, .now = *now, .under_way = under_way
	};
	int r = legacy_set_clearing(probes->legacy, &clearing);

	if (r < 0)
		log_warning("the kernel's counts can't be noted for the next reader: %s", strerror(-r));
}

int probes_take_counts(struct probes *probes)
{
	struct instance_counts current = { 0 };
	struct legacy_clearing clearing;
	int r = legacy_clearing(probes->legacy, &clearing);

	if (r == 0)
		r = instance_count(probes->instance, &current);
	if (r < 0)
		return r;
	probes->instance->cleared = clearing.before;
	/* They only grow otherwise. */
	if (clearing.under_way && current.read + current.overrun < clearing.now.read + clearing.now.overrun)
		keep_counts(probes->instance, &clearing.now);
	return 0;
}

int probes_tidy(struct probes *probes)
{
	const uint32_t count = probes->parked;
	struct instance_counts now;
	bool quiet;

	if (!count)
		return 0;
	quiet = !recording(probes);
	if (!quiet && count <= PARKED_MAX)
		return 0;
	if (instance_count(probes->instance, &now) < 0)
		return 0;
	/* They will be read, and this process is woken for them. */
	if (quiet && now.waiting)
		return 0;
	note(probes, &now, true);
	remove_parked(probes);
	keep_counts(probes->instance, &now);
	note(probes, &now, false);
	if (!quiet)
		log_note("%u probes that nobody wants any more were removed while others are in use: events may be lost by that",
			count);
	return !quiet;
}
