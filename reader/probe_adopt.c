/* Taking over the probes of a reader that died. What they are comes from the file that it kept; what is true of them now,
 * from the kernel. */
#include "reader/probe.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/probe_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "1", and "1*" where it is enabled for some only; "0" otherwise. */
static bool read_enabled(const char *text)
{
	return text[0] == '1';
}

/* The text as it was written, with a newline; "none" is none. One that was refused shows the kernel's words. */
static void read_filter(const char *text, char *filter, size_t size)
{
	size_t length = strcspn(text, "\n");

	*filter = '\0';
	if (length >= size || text[length] != '\n' || text[length + 1] || !strncmp(text, "none\n", 5))
		return;
	memcpy(filter, text, length);
	filter[length] = '\0';
}

/* Returns 1, 0 (the kernel has no such event any more) or -errno. */
static int read_state(const struct probes *probes, struct probe *probe)
{
	CLEANUP_FREE char *enabled = NULL, *filter = NULL;
	char path[2 * CONTROL_NAME_MAX + 32];
	int r;

	(void)snprintf(path, sizeof(path), "events/%s/%s/enable", probe->system, probe->event);
	r = tracedir_read(probes->instance->dir, path, &enabled, NULL);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	(void)snprintf(path, sizeof(path), "events/%s/%s/filter", probe->system, probe->event);
	r = tracedir_read(probes->instance->dir, path, &filter, NULL);
	if (r < 0)
		return r;
	probe->references = probe->enables = 0;
	probe->enabled = read_enabled(enabled);
	/* It may have been, at least. */
	probe->was_enabled = true;
	probe->own = 0;
	probe->parked = false;
	read_filter(filter, probe->filter, sizeof(probe->filter));
	return 1;
}

static int adopt(struct probes *probes, const struct probe *record)
{
	CLEANUP_FREE struct probe *probe = malloc(sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	*probe = *record;
	r = read_state(probes, probe);
	if (r == 0)
		legacy_drop(probes->legacy, probe);
	if (r <= 0)
		return r;
	if (probe->id > probes->last_id)
		probes->last_id = probe->id;
	probe->next = probes->first;
	probes->first = TAKE_PTR(probe);
	probes->count++;
	return 0;
}

static bool is_adopted(void *context, const char *event)
{
	const struct probes *probes = context;

	for (const struct probe *probe = probes->first; probe; probe = probe->next) {
		if (probe->kind != PROBE_TRACEPOINT && !strcmp(probe->event, event))
			return true;
	}
	return false;
}

int probes_adopt(struct probes *probes, const char *tag)
{
	struct probe record;
	unsigned int removed;
	uint32_t at = 0;
	int r;

	(void)snprintf(probes->tag, sizeof(probes->tag), "%s", tag);
	r = probes_take_counts(probes);
	if (r < 0)
		return r;
	while ((r = legacy_next(probes->legacy, &at, &record)) == 1) {
		r = adopt(probes, &record);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	r = probe_remove_group(probes->instance->root, probes->group, is_adopted, probes, &removed);
	if (removed)
		log_note("removed %u probes of %s that were never given to anybody", removed, probes->group);
	if (r < 0)
		log_warning("some probes of %s could not be removed: %s", probes->group, strerror(-r));
	return 0;
}
