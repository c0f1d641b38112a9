/* Taking dynamic events out of tracefs again. Only those that carry the given group and a name of
 * ours. */
#ifndef TRACEFAN_READER_PROBE_REMOVE_H
#define TRACEFAN_READER_PROBE_REMOVE_H

#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file that lists and takes a kind of probes. */
#define PROBE_UPROBES "uprobe_events"
#define PROBE_KPROBES "kprobe_events"
#define PROBE_DYNAMIC "dynamic_events" /* event probes, which have no file of their own */

static inline const char *probe_file(uint32_t kind)
{
	switch (kind) {
	case PROBE_KPROBE:
	case PROBE_KRETPROBE:
		return PROBE_KPROBES;
	case PROBE_EVENT:
		return PROBE_DYNAMIC;
	default:
		return PROBE_UPROBES;
	}
}

struct flow;

/* Removes one event; someone who has enabled it in another instance makes that EBUSY, and then this
 * tries again for a bounded time. `flow`: what goes on meanwhile, or NULL; never of an event that was enabled here,
 * since the buffers are cleared with that. Returns 0 (also when it is gone already) or -errno. */
int probe_remove(struct flow *flow, int root, const char *file, const char *group, const char *event);

/* Finds an instance that has the event enabled, for a message: its name, or "" in *ret_holder. */
void probe_remove_holder(
	int root, const char *group, const char *event, char *ret_holder, size_t size);

/* Removes all events of the group that bear a name of ours, but for those that `keeps` (NULL: none) wants
 * kept; *ret_removed counts them. Goes on after a failure and returns the first one. */
int probe_remove_group(int root, const char *group, bool (*keeps)(void *context, const char *event),
	void *context, unsigned int *ret_removed);

#endif
