#include "reader/recorded.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "shm/control.h"
#include "shm/segment.h"

#include <errno.h>
#include <string.h>

/* Ids of events that are known by name only begin here. */
#define TEXT_IDS (UINT64_C(1) << 32)

static struct recorded *recorded_of(struct provider *provider)
{
	return (struct recorded *)provider;
}

static int facts(struct provider *provider)
{
	return facts_blob(&recorded_of(provider)->replay->facts, "tracefan-facts");
}

static int names(struct provider *provider)
{
	return facts_blob(&recorded_of(provider)->replay->names, "tracefan-names");
}

/* The kernel's counts are not in a recording; what its pages say of losses is. */
static int account(struct provider *provider)
{
	(void)provider;
	return segment_blob_create("tracefan-account", "", 0);
}

static int events(struct provider *provider, struct facts *ret)
{
	const struct replay *replay = recorded_of(provider)->replay;
	struct facts list = { 0 };

	for (uint32_t i = 0; i < replay->format_count; i++) {
		facts_append(&list, replay->formats[i].system, strlen(replay->formats[i].system));
		facts_append(&list, ":", 1);
		facts_append(&list, replay->formats[i].event, strlen(replay->formats[i].event));
		facts_append(&list, "\n", 1);
	}
	*ret = list;
	return 0;
}

/* A tracepoint by what it is called in tracefs; any other probe by the name that its consumer had
 * for it, since the place in a program or kernel isn't recorded. */
static bool matches(const struct replay_format *format, const struct control_create *create)
{
	if (create->kind == PROBE_TRACEPOINT)
		return !strcmp(format->system, create->system) &&
		       !strcmp(format->event, create->event);
	return *format->name && !strcmp(format->name, create->name);
}

/* What a log has in the place of a format file is one of the event's lines. */
static int create_from_text(struct recorded *recorded, const struct control_create *create,
	struct provider_created *ret, struct control_failure *failure)
{
	const char *event = create->kind == PROBE_TRACEPOINT ? create->event : create->name;
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;
	int format, r = recorded->replay->ops->find(recorded->replay, event, &line, &size);

	if (r == -ENOENT) {
		control_failure_set(failure, ENOENT, -1, "the log holds no event \"%s\"", event);
		return EXIT_LOCATION;
	}
	format = r < 0 ? r : segment_blob_create("tracefan-format", line, size);
	if (format < 0) {
		control_failure_set(failure, format, -1, "%s", strerror(-format));
		return EXIT_FAILED;
	}
	*ret = (struct provider_created){ .id = TEXT_IDS + ++recorded->next_id, .format = format };
	memcpy(ret->system, create->system, sizeof(ret->system));
	(void)control_text(ret->event, sizeof(ret->event), event);
	return EXIT_DONE;
}

static int create(struct provider *provider, const struct control_create *create, int target,
	struct provider_created *ret, struct control_failure *ret_failure)
{
	struct recorded *recorded = recorded_of(provider);
	const struct replay *replay = recorded->replay;

	(void)target;
	/* Those that were recorded lie behind their events; in text nobody knows their format. */
	if (create->flags & CREATE_STACKS && replay->source != SOURCE_RAW) {
		control_failure_set(ret_failure, EOPNOTSUPP, -1,
			"what is replayed is text, whose stacks belong to no event");
		return EXIT_MISSING;
	}
	for (uint32_t i = 0; i < replay->format_count; i++) {
		const struct replay_format *format = &replay->formats[i];

		if (!matches(format, create))
			continue;
		*ret = (struct provider_created){ .id = format->id };
		memcpy(ret->system, format->system, sizeof(ret->system));
		memcpy(ret->event, format->event, sizeof(ret->event));
		ret->format =
			segment_blob_create("tracefan-format", format->format, format->format_size);
		if (ret->format >= 0)
			return EXIT_DONE;
		control_failure_set(ret_failure, ret->format, -1, "%s", strerror(-ret->format));
		return EXIT_FAILED;
	}
	if (replay->ops->find)
		return create_from_text(recorded, create, ret, ret_failure);
	control_failure_set(ret_failure, ENOENT, -1, "the recording holds no event of probe \"%s\"",
		create->name);
	return EXIT_LOCATION;
}

static bool known(const struct recorded *recorded, uint64_t id)
{
	return (id && id <= recorded->replay->format_count) ||
	       (id > TEXT_IDS && id <= TEXT_IDS + recorded->next_id);
}

static int unknown(uint64_t id, struct control_failure *failure)
{
	control_failure_set(failure, ENOENT, -1, "no probe %llu", (unsigned long long)id);
	return EXIT_FAILED;
}

/* Id 0 stands for all of them. The first wish sets the replay going. */
static int enable(
	struct provider *provider, uint64_t id, bool enabled, struct control_failure *ret_failure)
{
	struct recorded *recorded = recorded_of(provider);

	if (id && !known(recorded, id))
		return unknown(id, ret_failure);
	recorded->asked |= enabled;
	return EXIT_DONE;
}

/* There is no kernel that could leave events out; the router filters anyway. */
static int filter(struct provider *provider, uint64_t id, const char *text,
	struct control_failure *ret_failure)
{
	(void)text;
	return known(recorded_of(provider), id) ? EXIT_DONE : unknown(id, ret_failure);
}

static int close_probe(struct provider *provider, uint64_t id, struct control_failure *ret_failure)
{
	return known(recorded_of(provider), id) ? EXIT_DONE : unknown(id, ret_failure);
}

static int exclude(struct provider *provider, uint64_t number, pid_t process)
{
	(void)provider;
	(void)number;
	(void)process;
	return 0;
}

static void include(struct provider *provider, uint64_t number)
{
	(void)provider;
	(void)number;
}

static void nothing(struct provider *provider)
{
	(void)provider;
}

static uint32_t probes(const struct provider *provider)
{
	return ((const struct recorded *)provider)->replay->format_count;
}

static const struct provider_ops recorded_ops = {
	.facts = facts,
	.names = names,
	.account = account,
	.events = events,
	.create = create,
	.enable = enable,
	.filter = filter,
	.close_probe = close_probe,
	.exclude = exclude,
	.include = include,
	.orphan = nothing,
	.sweep = nothing,
	.stop = nothing,
	.probes = probes,
	.close = nothing,
};

void recorded_open(struct recorded *recorded, const struct replay *replay)
{
	*recorded = (struct recorded){ .provider = { .ops = &recorded_ops }, .replay = replay };
	recorded->provider.source = replay->source;
	recorded->provider.flags = SESSION_RECORDED;
	recorded->provider.cpu_count = replay->cpu_count;
	memcpy(recorded->provider.group, replay->group, sizeof(recorded->provider.group));
	memcpy(recorded->provider.tag, replay->tag, sizeof(recorded->provider.tag));
}
