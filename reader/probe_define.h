/* Putting a definition into the kernel, and finding out what was wrong with it. */
#ifndef TRACEFAN_READER_PROBE_DEFINE_H
#define TRACEFAN_READER_PROBE_DEFINE_H

#include "reader/probe.h"

/* The descriptor came from a consumer: a regular file that it can read, and an offset inside it,
 * can be probed. Returns an enum exit_status. */
int probe_check_target(
	const struct control_create *create, int target, struct control_failure *ret_failure);

/* Makes the event in tracefs and fills in probe->system and probe->event; a tracepoint only has to
 * exist. Returns an enum exit_status: EXIT_LOCATION and EXIT_FETCH_ARG tell a bad place from bad
 * arguments. */
int probe_define(const struct probes *probes, struct probe *probe,
	const struct control_create *create, int target, struct control_failure *ret_failure);

#endif
