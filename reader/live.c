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

static int exclude(struct provider *provider, uint64_t number, pid_t process)
{
	return kept_out_add(&live_of(provider)->kept, number, process);
}

static void include(struct provider *provider, uint64_t number)
{
	kept_out_leave(&live_of(provider)->kept, number);
}

static uint64_t due(const struct provider *provider)
{
	return ((const struct live *)provider)->kept.due;
}

static void renew(struct provider *provider)
{
	kept_out_renew(&live_of(provider)->kept);
}

/* The router is gone. Its consumers will be back, and are still to miss nothing. */
static void orphan(struct provider *provider)
{
	struct live *live = live_of(provider);

	probes_orphan(&live->probes);
	kept_out_leave_all(&live->kept, PROVIDER_GRACE);
}

static void own(struct provider *provider, uint64_t id)
{
	struct probe *probe = probes_find(&live_of(provider)->probes, id);

	if (probe)
		probe->own++;
}

static uint64_t tidy(struct provider *provider)
{
	struct live *live = live_of(provider);
	const uint64_t now = loop_now(), doubt = kept_out_doubt(&live->kept);

	if (probes_tidy(&live->probes) <= 0 || doubt)
		return doubt;
	return now;
}

static void sweep(struct provider *provider)
{
	probes_sweep(&live_of(provider)->probes);
}

static void stop(struct provider *provider)
{
	struct instance *instance = live_of(provider)->instance;
	int r = instance_disable(instance);

	instance->stopped = true;
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
	.due = due,
	.renew = renew,
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

	live->provider = (struct provider){ .ops = &live_ops };
	live->instance = instance;
	r = kept_out_open(&live->kept, instance, helper);
	if (r < 0)
		return r;
	r = probes_open(&live->probes, instance, session, text, legacy);
	if (r < 0)
		return r;
	live->provider.cpu_count = instance->cpu_count;
	memcpy(live->provider.group, live->probes.group, sizeof(live->provider.group));
	memcpy(live->provider.tag, live->probes.tag, sizeof(live->provider.tag));
	return 0;
}

int live_adopt(struct live *live, struct instance *instance, const char *session, bool text,
	pid_t helper, struct legacy *legacy, const char *tag)
{
	int r = live_open(live, instance, session, text, helper, legacy);

	if (r < 0)
		return r;
	/* The dead reader's consumers and router. Whoever is alive will be named again. */
	kept_out_adopt(&live->kept, PROVIDER_GRACE);
	memset(live->provider.tag, 0, sizeof(live->provider.tag));
	(void)snprintf(live->provider.tag, sizeof(live->provider.tag), "%s", tag);
	return probes_adopt(&live->probes, tag);
}

void live_abandon(struct live *live)
{
	probes_abandon(&live->probes);
}
