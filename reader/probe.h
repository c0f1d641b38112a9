/* The session's probes: definitions that became events in tracefs, shared and counted. */
#ifndef TRACEFAN_READER_PROBE_H
#define TRACEFAN_READER_PROBE_H

#include "reader/instance.h"
#include "reader/legacy.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct probe {
	struct probe *next;
	uint64_t id;
	uint32_t place;                /* in the file for the next reader */
	uint32_t kind;                 /* enum control_probe_kind */
	uint32_t references;           /* of the present router */
	uint32_t enables;              /* of those, how many want it enabled */
	uint32_t own;                  /* of those, the router's own */
	bool enabled;                  /* in the kernel */
	bool was_enabled;              /* ... now or before: to remove it clears the buffers */
	bool parked;                   /* nobody refers to it, and it waits for its removal */
	bool gone;                     /* from the kernel, together with others */
	uint32_t stacks;               /* enum control_create_flag: what somebody wanted with its events */
	char system[CONTROL_NAME_MAX]; /* the event in tracefs */
	char event[CONTROL_NAME_MAX];
	char filter[CONTROL_FILTER_MAX];
	/* What makes two definitions equal. Members that don't belong to the kind are zero. */
	char symbol[CONTROL_SYMBOL_MAX];
	char fetch[CONTROL_FETCH_MAX];
	uint32_t fetch_count;
	uint32_t maxactive;
	uint64_t offset, ref_offset;
	dev_t device;
	ino_t inode;
};

struct probes {
	struct instance *instance;
	struct probe *first;
	uint32_t count;  /* without the parked ones */
	uint32_t parked;
	uint64_t last_id;
	char group[CONTROL_NAME_MAX];
	char tag[CONTROL_NAME_MAX];
	uint32_t stacks; /* enum control_create_flag: what the instance writes behind every event now */
	bool guards_strings; /* the events are read as text: strings need a canary behind them */
	struct legacy *legacy;   /* where they are noted for the next reader */
};

/* Names the session's group and draws the run's tag. `text`: the events are read as text. `legacy` outlives
 * the probes. Returns 0 or -errno. */
int probes_open(struct probes *probes, struct instance *instance, const char *session,
	bool text, struct legacy *legacy);
/* Takes over, under their ids, the probes that a dead reader noted and that are still in the kernel, as if their
 * router were gone; `tag` is the dead one's. What else carries the session's mark is removed. Returns 0 or -errno. */
int probes_adopt(struct probes *probes, const char *tag);
/* Disables and removes all. Returns 0 or the first failure. */
int probes_close(struct probes *probes);
/* Forgets all, and leaves them in the kernel. */
void probes_abandon(struct probes *probes);

struct probe *probes_find(const struct probes *probes, uint64_t id);

/* Makes a probe, disabled, or finds the equal one, and adds a reference. `target` is the open file
 * of a uprobe, -1 otherwise; it stays the caller's. Returns an enum exit_status; on any but
 * EXIT_DONE *ret_failure says why. */
int probe_create(struct probes *probes, const struct control_create *create, int target,
	struct probe **ret, bool *ret_shared, struct control_failure *ret_failure);

/* Counts one enabling or disabling; the first and the last reach the kernel. As probe_create. */
int probe_set_enabled(struct probes *probes, struct probe *probe, bool enabled,
	struct control_failure *ret_failure);

/* Writes the kernel's filter; when the kernel refuses it the old one is put back, and the kernel's
 * words and the position are in *ret_failure. Empty: none. */
int probe_set_filter(struct probes *probes, struct probe *probe, const char *filter,
	struct control_failure *ret_failure);

/* Counts a reference, and perhaps an enabling, that the router has from a reader that died. As probe_create. */
int probe_keep(struct probes *probes, struct probe *probe, bool enabled,
	struct control_failure *ret_failure);

/* Drops a reference; the last one disables, and removes, now or by probes_tidy. */
int probe_unreference(
	struct probes *probes, struct probe *probe, struct control_failure *ret_failure);

/* The router is gone: its references drop, but everything stays as it is until probes_sweep. */
void probes_orphan(struct probes *probes);
/* Disables what nobody wants enabled and removes what nobody refers to. */
void probes_sweep(struct probes *probes);

/* Removes the parked probes if nobody loses an event by that, and in any case if there are too many
 * of them. Returns 0, or 1 when events may have gone unread. */
int probes_tidy(struct probes *probes);

/* What the reader that is taken over from knew of the kernel's earlier counts. Returns 0 or -errno. */
int probes_take_counts(struct probes *probes);

/* ---- for probe_park.c ---- */
int probe_switch(struct probes *probes, struct probe *probe, bool on);
int probe_remove_now(struct probes *probes, struct probe *probe);
/* Takes out of the kernel those that `keeps` (NULL: none) does not want kept; what it does not get rid of is left to
 * probe_remove_now. */
void probes_undefine(struct probes *probes, bool (*keeps)(void *context, const char *event));
/* Disables a probe that nobody refers to any more and removes it, or parks it. */
int probe_retire(struct probes *probes, struct probe *probe);

/* Reads the event's format file. Returns 0 or -errno; *ret_data is the caller's. */
int probe_format(
	const struct probes *probes, const struct probe *probe, char **ret_data, size_t *ret_size);

#endif
