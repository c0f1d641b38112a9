#include "reader/probe.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/flow.h"
#include "reader/probe_define.h"
#include "reader/probe_line.h"
#include "reader/probe_name.h"
#include "reader/probe_remove.h"
#include "reader/probe_stacks.h"
#include "shm/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

int probes_open(struct probes *probes, struct instance *instance, const char *session,
	bool text, struct legacy *legacy)
{
	uint32_t tag;

	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		return -EIO;
	*probes = (struct probes){ .instance = instance, .guards_strings = text, .legacy = legacy };
	probe_name_group(session, probes->group, sizeof(probes->group));
	(void)snprintf(probes->tag, sizeof(probes->tag), "%08x", tag);
	probe_stacks_read(probes);
	return 0;
}

struct probe *probes_find(const struct probes *probes, uint64_t id)
{
	struct probe *probe = probes->first;

	while (probe && probe->id != id)
		probe = probe->next;
	return probe;
}

/* Microseconds since the host came up, made unique: no other probe has this number before the next
 * boot. */
static uint64_t next_id(struct probes *probes)
{
	struct timespec now;
	uint64_t id;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	id = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	if (id <= probes->last_id)
		id = probes->last_id + 1;
	probes->last_id = id;
	return id;
}

static int define_key(const struct control_create *create, int target, struct probe *probe)
{
	struct stat st;

	probe->kind = create->kind;
	if (create->kind == PROBE_TRACEPOINT) {
		memcpy(probe->system, create->system, sizeof(probe->system));
		memcpy(probe->event, create->event, sizeof(probe->event));
		return 0;
	}
	memcpy(probe->fetch, create->fetch, sizeof(probe->fetch));
	probe->fetch_count = create->fetch_count;
	probe->offset = create->offset;
	if (create->kind == PROBE_EVENT) {
		(void)snprintf(probe->symbol, sizeof(probe->symbol), "%s.%s", create->system,
			create->event);
		return 0;
	}
	if (!probe_kind_in_file(create->kind)) {
		memcpy(probe->symbol, create->symbol, sizeof(probe->symbol));
		probe->maxactive = create->kind == PROBE_KRETPROBE ? create->maxactive : 0;
		return 0;
	}
	if (fstat(target, &st) < 0)
		return -errno;
	probe->ref_offset = create->ref_offset;
	probe->device = st.st_dev;
	probe->inode = st.st_ino;
	return 0;
}

static size_t fetch_size(const struct probe *probe)
{
	const char *at = probe->fetch;

	for (uint32_t i = 0; i < probe->fetch_count; i++)
		at += strlen(at) + 1;
	return (size_t)(at - probe->fetch);
}

static bool equal(const struct probe *a, const struct probe *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == PROBE_TRACEPOINT)
		return !strcmp(a->system, b->system) && !strcmp(a->event, b->event);
	return a->offset == b->offset && a->ref_offset == b->ref_offset && a->device == b->device &&
	       a->inode == b->inode && a->maxactive == b->maxactive &&
	       !strcmp(a->symbol, b->symbol) && a->fetch_count == b->fetch_count &&
	       !memcmp(a->fetch, b->fetch, fetch_size(a));
}

static struct probe *find_equal(const struct probes *probes, const struct probe *key)
{
	struct probe *probe = probes->first;

	while (probe && !equal(probe, key))
		probe = probe->next;
	return probe;
}

static int undefine(struct probes *probes, const struct probe *probe)
{
	char holder[256];
	int r;

	if (probe->kind == PROBE_TRACEPOINT || probe->gone)
		return 0;
	r = probe_remove(probe->was_enabled ? NULL : probes->instance->flow, probes->instance->root,
		probe_file(probe->kind), probe->system, probe->event);
	if (r < 0) {
		probe_remove_holder(probes->instance->root, probe->system, probe->event, holder,
			sizeof(holder));
		log_warning("%s:%s can't be removed: %s%s%s", probe->system, probe->event,
			strerror(-r), *holder ? "; it is enabled in instance " : "", holder);
	}
	return r;
}

int probe_create(struct probes *probes, const struct control_create *create, int target,
	struct probe **ret, bool *ret_shared, struct control_failure *ret_failure)
{
	CLEANUP_FREE struct probe *probe = calloc(1, sizeof(*probe));
	struct probe *same;
	int r = probe_stacks_check(probes, create, ret_failure);

	if (r)
		return r;
	if (probe_kind_in_file(create->kind)) {
		r = probe_check_target(create, target, ret_failure);
		if (r)
			return r;
	}
	r = probe ? define_key(create, target, probe) : -ENOMEM;
	if (r < 0) {
		control_failure_set(
			ret_failure, r, -1, "probe \"%s\": %s", create->name, strerror(-r));
		return EXIT_FAILED;
	}
	same = find_equal(probes, probe);
	if (same) {
		probes->parked -= same->parked;
		probes->count += same->parked;
		same->stacks = same->parked ? 0 : same->stacks;
		same->parked = false;
		same->references++;
		same->stacks |= create->flags & CREATE_STACKS;
		*ret = same;
		*ret_shared = true;
		return EXIT_DONE;
	}
	probe->id = next_id(probes);
	r = probe_define(probes, probe, create, target, ret_failure);
	if (r)
		return r;
	/* One that was defined and not noted yet when this process dies is removed by the next reader. */
	r = legacy_add(probes->legacy, probe);
	if (r < 0) {
		(void)undefine(probes, probe);
		control_failure_set(ret_failure, r, -1, "probe \"%s\" can't be noted in the session's folder: %s",
			create->name, strerror(-r));
		return EXIT_FAILED;
	}
	probe->references = 1;
	probe->stacks = create->flags & CREATE_STACKS;
	probe->next = probes->first;
	probes->first = probe;
	probes->count++;
	*ret = TAKE_PTR(probe);
	*ret_shared = false;
	return EXIT_DONE;
}

static void event_path(const struct probe *probe, const char *file, char *path, size_t size)
{
	(void)snprintf(path, size, "events/%s/%s/%s", probe->system, probe->event, file);
}

/* Stacks are there before the first event, and until after the last. */
int probe_switch(struct probes *probes, struct probe *probe, bool on)
{
	char path[2 * CONTROL_NAME_MAX + 32];
	int r = on ? probe_stacks_switch(probes, probe->stacks) : 0;

	if (probe->enabled == on)
		return r;
	event_path(probe, "enable", path, sizeof(path));
	if (!r)
		r = flow_write(probes->instance->flow, probes->instance->dir, path, false, on ? "1" : "0");
	if (!r)
		probe->enabled = on;
	probe->was_enabled = probe->was_enabled || probe->enabled;
	if (!probe->enabled && probe_stacks_switch(probes, 0) < 0)
		log_warning("the stacks could not be switched off");
	return r;
}

int probe_set_enabled(struct probes *probes, struct probe *probe, bool enabled,
	struct control_failure *ret_failure)
{
	uint32_t wanted = enabled ? probe->enables + 1 : probe->enables - 1;
	int r;

	if (enabled ? probe->enables == probe->references : !probe->enables) {
		control_failure_set(ret_failure, EINVAL, -1,
			"probe %llu is %s by all its owners already", (unsigned long long)probe->id,
			enabled ? "enabled" : "disabled");
		return EXIT_FAILED;
	}
	r = probe_switch(probes, probe, wanted > 0);
	if (r < 0) {
		control_failure_set(ret_failure, r, -1, "%s:%s can't be %s: %s", probe->system,
			probe->event, enabled ? "enabled" : "disabled", strerror(-r));
		return r == -EINVAL || r == -EOPNOTSUPP ? EXIT_LOCATION : EXIT_FAILED;
	}
	probe->enables = wanted;
	return EXIT_DONE;
}

/* After a refused filter the file shows the text, a line with a caret, and "parse_error: words". */
static void filter_words(const char *text, int error, struct control_failure *ret_failure)
{
	static const char head[] = "parse_error: ";
	const char *line = strchr(text, '\n'), *words = strstr(text, head), *end;
	int position = -1;

	if (line && line[1 + strspn(line + 1, " ")] == '^')
		position = (int)strspn(line + 1, " ");
	if (!words) {
		control_failure_set(ret_failure, error, -1, "the kernel refuses the filter: %s",
			strerror(-error));
		return;
	}
	words += sizeof(head) - 1;
	end = strchr(words, '\n');
	control_failure_set(ret_failure, error, position, "the kernel refuses the filter: %.*s",
		end ? (int)(end - words) : (int)strlen(words), words);
}

static bool same_filter(const char *a, const char *b)
{
	bool none_a = !*a || !strcmp(a, "0"), none_b = !*b || !strcmp(b, "0");

	return none_a || none_b ? none_a == none_b : !strcmp(a, b);
}

int probe_set_filter(struct probes *probes, struct probe *probe, const char *filter,
	struct control_failure *ret_failure)
{
	CLEANUP_FREE char *text = NULL;
	char path[2 * CONTROL_NAME_MAX + 32];
	int dir = probes->instance->dir, r;

	for (const char *c = filter; *c; c++) {
		if ((unsigned char)*c < 0x20) {
			control_failure_set(ret_failure, EINVAL, (int)(c - filter),
				"a filter can't hold control characters");
			return EXIT_USAGE;
		}
	}
	/* The kernel waits for its readers at each change, and one that took over is told what it found. */
	if (same_filter(filter, probe->filter))
		return EXIT_DONE;
	event_path(probe, "filter", path, sizeof(path));
	r = flow_write(probes->instance->flow, dir, path, false, *filter ? filter : "0");
	if (!r) {
		memcpy(probe->filter, filter, strlen(filter) + 1);
		return EXIT_DONE;
	}
	if (tracedir_read(dir, path, &text, NULL) < 0)
		text = NULL;
	filter_words(text ? text : "", r, ret_failure);
	/* The kernel dropped the old filter with the wrong one. */
	if (flow_write(probes->instance->flow, dir, path, false, *probe->filter ? probe->filter : "0") < 0)
		log_warning(
			"the filter of %s:%s could not be put back", probe->system, probe->event);
	return EXIT_USAGE;
}

/* Takes the probe out of the table and the kernel. What the kernel won't let go is left to the next
 * start's removal of leftovers. */
int probe_remove_now(struct probes *probes, struct probe *probe)
{
	struct probe **at = &probes->first;
	int r;

	while (*at && *at != probe)
		at = &(*at)->next;
	if (*at) {
		*at = probe->next;
		probes->parked -= probe->parked;
		probes->count -= !probe->parked;
	}
	(void)probe_switch(probes, probe, false);
	/* A dynamic event's goes with it. */
	if (*probe->filter && probe->kind == PROBE_TRACEPOINT) {
		char path[2 * CONTROL_NAME_MAX + 32];

		event_path(probe, "filter", path, sizeof(path));
		(void)tracedir_write(probes->instance->dir, path, "0");
	}
	r = undefine(probes, probe);
	legacy_drop(probes->legacy, probe);
	free(probe);
	return r;
}

int probe_unreference(
	struct probes *probes, struct probe *probe, struct control_failure *ret_failure)
{
	int r;

	if (probe->references > 1) {
		probe->references--;
		if (probe->enables > probe->references)
			probe->enables = probe->references;
		return EXIT_DONE;
	}
	r = probe_retire(probes, probe);
	if (!r)
		return EXIT_DONE;
	control_failure_set(ret_failure, r, -1, "the kernel keeps the probe: %s", strerror(-r));
	return r == -EBUSY ? EXIT_BUSY : EXIT_FAILED;
}

int probe_keep(struct probes *probes, struct probe *probe, bool enabled,
	struct control_failure *ret_failure)
{
	int status = EXIT_DONE;

	probe->references++;
	if (enabled)
		status = probe_set_enabled(probes, probe, true, ret_failure);
	if (status != EXIT_DONE)
		probe->references--;
	return status;
}

void probes_orphan(struct probes *probes)
{
	for (struct probe *probe = probes->first; probe; probe = probe->next)
		probe->references = probe->enables = probe->own = 0;
}

void probes_sweep(struct probes *probes)
{
	struct probe *next;

	/* All off first: the kernel waits for its readers once per change, and the trace ends at
	 * once. */
	for (struct probe *probe = probes->first; probe; probe = probe->next) {
		if (!probe->enables)
			(void)probe_switch(probes, probe, false);
	}
	for (struct probe *probe = probes->first; probe; probe = next) {
		next = probe->next;
		if (!probe->references && !probe->parked)
			(void)probe_retire(probes, probe);
	}
}

int probes_close(struct probes *probes)
{
	int result = 0;

	if (!probes->instance)
		return 0;
	(void)instance_disable(probes->instance);
	for (struct probe *probe = probes->first; probe; probe = probe->next)
		probe->enabled = false;
	probes_undefine(probes, NULL);
	while (probes->first) {
		int r = probe_remove_now(probes, probes->first);

		if (r < 0 && !result)
			result = r;
	}
	return result;
}

void probes_abandon(struct probes *probes)
{
	struct probe *next;

	for (struct probe *probe = probes->first; probe; probe = next) {
		next = probe->next;
		free(probe);
	}
	probes->first = NULL;
	probes->count = 0;
}

int probe_format(
	const struct probes *probes, const struct probe *probe, char **ret_data, size_t *ret_size)
{
	char path[2 * CONTROL_NAME_MAX + 32];

	event_path(probe, "format", path, sizeof(path));
	return flow_read(probes->instance->flow, probes->instance->dir, path, ret_data, ret_size);
}
