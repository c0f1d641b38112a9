/* The instance's options that write stacks behind events, by what the enabled probes want. */
#ifndef TRACEFAN_READER_PROBE_STACKS_H
#define TRACEFAN_READER_PROBE_STACKS_H

#include "reader/probe.h"

/* What the instance does now, which an earlier reader may have switched. */
void probe_stacks_read(struct probes *probes);
/* Switches to what the enabled probes want, and `more` (enum control_create_flag). Returns 0 or -errno. */
int probe_stacks_switch(struct probes *probes, uint32_t more);
/* Whether the session can have what is asked for. Returns an enum exit_status. */
int probe_stacks_check(const struct probes *probes, const struct control_create *create,
	struct control_failure *ret_failure);

#endif
