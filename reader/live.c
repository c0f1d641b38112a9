#include "reader/live.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/facts.h"
#include "reader/loop.h"
#include "shm/control.h"
#include "shm/segment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How often the list of those who are kept out is written anew while somebody is attached. */
#define PURGE_EACH_NS UINT64_C(60000000000)

static struct live *live_of(struct provider *provider)
{
	return (struct live *)provider;
}

static int facts(struct provider *provider)
{
	return facts_of_kernel(live_of(provider)->instance);
}

/* The helper reads them. */
static int names(struct provider *provider)
{
	(void)provider;
	return segment_blob_create("tracefan-names", "", 0);
}

static int account(struct provider *provider)
{
	return facts_of_account(live_of(provider)->instance);
}

static int events(struct provider *provider, struct facts *ret)
{
	return facts_of_events(live_of(provider)->instance, ret);
}

static int format_blob(const struct probes *probes, const struct probe *probe)
{
	CLEANUP_FREE char *data = NULL;
	size_t size;
	int r = probe_format(probes, probe, &data, &size);

	return r < 0 ? r : segment_blob_create("tracefan-format", data, size);
}

static int create(struct provider *provider, const struct control_create *create, int target,
	struct provider_created *ret, struct control_failure *ret_failure)
{
	struct probes *probes = &live_of(provider)->probes;
	struct control_failure ignored;
	struct probe *probe;
	bool shared;
	int r = probe_create(probes, create, target, &probe, &shared, ret_failure), format;

	if (r)
		return r;
	format = format_blob(probes, probe);
	if (format < 0) {
		control_failure_set(ret_failure, format, -1, "format of %s:%s: %s", probe->system,
			probe->event, strerror(-format));
		(void)probe_unreference(probes, probe, &ignored);
		return EXIT_FAILED;
	}
	*ret = (struct provider_created){ .id = probe->id, .shared = shared, .format = format };
	memcpy(ret->system, probe->system, sizeof(ret->system));
	memcpy(ret->event, probe->event, sizeof(ret->event));
	return EXIT_DONE;
}

static struct probe *find(struct provider *provider, uint64_t id, struct control_failure *failure)
{
	struct probe *probe = probes_find(&live_of(provider)->probes, id);

	/* One that only waits for a router to come back isn't this router's. */
	if (probe && probe->references)
		return probe;
	control_failure_set(failure, ENOENT, -1, "no probe %llu", (unsigned long long)id);
	return NULL;
}

static int enable(
	struct provider *provider, uint64_t id, bool enabled, struct control_failure *ret_failure)
{
	struct probe *probe = find(provider, id, ret_failure);

	return probe ? probe_set_enabled(&live_of(provider)->probes, probe, enabled, ret_failure)
		     : EXIT_FAILED;
}

static int filter(struct provider *provider, uint64_t id, const char *text,
	struct control_failure *ret_failure)
{
	struct probe *probe = find(provider, id, ret_failure);

	return probe ? probe_set_filter(&live_of(provider)->probes, probe, text, ret_failure)
		     : EXIT_FAILED;
}

static int close_probe(struct provider *provider, uint64_t id, struct control_failure *ret_failure)
{
	struct probe *probe = find(provider, id, ret_failure);

	return probe ? probe_unreference(&live_of(provider)->probes, probe, ret_failure)
		     : EXIT_FAILED;
}

/* Takes the stale ones off the kernel's list, which can only be added to, or cleared: it is written
 * anew. */
static int purge(struct live *live)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < live->excluded_count; i++) {
		if (live->numbers[i] == LIVE_STALE)
			continue;
		live->numbers[kept] = live->numbers[i];
		live->processes[kept++] = live->processes[i];
	}
	live->excluded_count = kept;
	return instance_exclude(live->instance, live->processes, live->excluded_count, true);
}

static int exclude(struct provider *provider, uint64_t number, pid_t process)
{
	struct live *live = live_of(provider);
	bool listed = false;

	/* A process that this namespace can't see has no number to write. */
	if (process <= 0)
		return 0;
	for (unsigned int i = live->own_count; i < live->excluded_count; i++) {
		if (live->processes[i] != process)
			continue;
		/* It is on the kernel's list still. */
		if (live->numbers[i] == LIVE_STALE) {
			live->numbers[i] = number;
			return 0;
		}
		listed = true;
	}
	/* Its own events are a nuisance, and no reason to send anybody away. */
	if (live->excluded_count == LIVE_EXCLUDED_MAX) {
		log_note("process %d is not kept out of the trace: so many came and went",
			(int)process);
		return 0;
	}
	live->numbers[live->excluded_count] = number;
	live->processes[live->excluded_count++] = process;
	/* The kernel waits for its readers at each, and a process may be many consumers. */
	return listed ? 0 : instance_exclude(live->instance, &process, 1, false);
}

/* While the list is written anew the kernel leaves out events of others for microseconds to
 * milliseconds: it stops looking at who runs where before it stops checking, and begins to check
 * before it has looked. So this waits until nobody is attached who could miss them, or so many
 * processes have left that one of their numbers might be another's soon; and somebody who comes and
 * goes all the time, to make others miss something, makes them do so once a minute. */
static int purge_if_due(struct live *live)
{
	const uint64_t now = loop_now();
	unsigned int stale = 0, consumers = 0;

	for (unsigned int i = live->own_count; i < live->excluded_count; i++) {
		stale += live->numbers[i] == LIVE_STALE;
		consumers += live->numbers[i] != LIVE_STALE && live->numbers[i] != LIVE_ROUTER;
	}
	if (!stale || (consumers && (stale < LIVE_STALE_MAX || now - live->purged < PURGE_EACH_NS)))
		return 0;
	if (consumers)
		live->purged = now;
	return purge(live);
}

/* It need not be kept out any more. A process that is on the list for another reason, too, needs no
 * place for this one. */
static void retire(struct live *live, unsigned int i)
{
	for (unsigned int k = live->own_count; k < live->excluded_count; k++) {
		if (k == i || live->processes[k] != live->processes[i])
			continue;
		live->excluded_count--;
		live->numbers[i] = live->numbers[live->excluded_count];
		live->processes[i] = live->processes[live->excluded_count];
		return;
	}
	live->numbers[i] = LIVE_STALE;
}

static int include(struct provider *provider, uint64_t number)
{
	struct live *live = live_of(provider);

	/* The first are the session's own. */
	for (unsigned int i = live->excluded_count; i-- > live->own_count;) {
		if (live->numbers[i] == number)
			retire(live, i);
	}
	return purge_if_due(live);
}

/* The router is gone. Its consumers will be back, and are still to miss nothing. */
static void orphan(struct provider *provider)
{
	struct live *live = live_of(provider);

	probes_orphan(&live->probes);
	for (unsigned int i = live->excluded_count; i-- > live->own_count;)
		retire(live, i);
}

static void own(struct provider *provider, uint64_t id)
{
	struct probe *probe = probes_find(&live_of(provider)->probes, id);

	if (probe)
		probe->own++;
}

static int tidy(struct provider *provider)
{
	return probes_tidy(&live_of(provider)->probes);
}

static void sweep(struct provider *provider)
{
	probes_sweep(&live_of(provider)->probes);
}

static void stop(struct provider *provider)
{
	int r = instance_disable(live_of(provider)->instance);

	if (r < 0)
		log_warning("the events could not be disabled: %s", strerror(-r));
}

static int keep(
	struct provider *provider, uint64_t id, bool enabled, struct control_failure *ret_failure)
{
	struct probes *probes = &live_of(provider)->probes;
	struct probe *probe = probes_find(probes, id);

	if (probe)
		return probe_keep(probes, probe, enabled, ret_failure);
	control_failure_set(ret_failure, ENOENT, -1, "probe %llu is gone", (unsigned long long)id);
	return EXIT_FAILED;
}

static uint32_t probes(const struct provider *provider)
{
	return ((const struct live *)provider)->probes.count;
}

static void live_close(struct provider *provider)
{
	int r = probes_close(&live_of(provider)->probes);

	if (r < 0)
		log_warning("some probes stay in tracefs: %s", strerror(-r));
}

static const struct provider_ops live_ops = {
	.facts = facts,
	.names = names,
	.account = account,
	.events = events,
	.create = create,
	.enable = enable,
	.filter = filter,
	.close_probe = close_probe,
	.keep = keep,
	.exclude = exclude,
	.include = include,
	.orphan = orphan,
	.sweep = sweep,
	.own = own,
	.tidy = tidy,
	.stop = stop,
	.probes = probes,
	.close = live_close,
};

int live_open(struct live *live, struct instance *instance, const char *session, bool text,
	pid_t helper, struct legacy *legacy)
{
	int r;

	*live = (struct live){ .provider = { .ops = &live_ops }, .instance = instance };
	live->processes[live->excluded_count++] = getpid();
	if (helper > 0)
		live->processes[live->excluded_count++] = helper;
	live->own_count = live->excluded_count;
	r = helper > 0 ? instance_exclude(instance, &helper, 1, false) : 0;
	/* A kernel that lacks the means traces it, too. */
	if (r < 0 && r != -ENOENT)
		return r;
	r = probes_open(&live->probes, instance, session, text, legacy);
	if (r < 0)
		return r;
	live->provider.cpu_count = instance->cpu_count;
	memcpy(live->provider.group, live->probes.group, sizeof(live->provider.group));
	memcpy(live->provider.tag, live->probes.tag, sizeof(live->provider.tag));
	return 0;
}

/* The dead reader's consumers and router are still kept out. Whoever is alive will be named again.
 */
static void adopt_excluded(struct live *live)
{
	pid_t numbers[LIVE_EXCLUDED_MAX / 2];
	int count = instance_excluded(live->instance, numbers, LIVE_EXCLUDED_MAX / 2);

	for (int i = 0; i < count; i++) {
		bool own = false;

		for (unsigned int k = 0; k < live->own_count; k++)
			own |= numbers[i] == live->processes[k];
		if (own)
			continue;
		live->numbers[live->excluded_count] = LIVE_STALE;
		live->processes[live->excluded_count++] = numbers[i];
	}
}

int live_adopt(struct live *live, struct instance *instance, const char *session, bool text,
	pid_t helper, struct legacy *legacy, const char *tag)
{
	int r = live_open(live, instance, session, text, helper, legacy);

	if (r < 0)
		return r;
	adopt_excluded(live);
	memset(live->provider.tag, 0, sizeof(live->provider.tag));
	(void)snprintf(live->provider.tag, sizeof(live->provider.tag), "%s", tag);
	return probes_adopt(&live->probes, tag);
}

void live_abandon(struct live *live)
{
	probes_abandon(&live->probes);
}
