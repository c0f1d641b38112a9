/* What the session's probes are called in tracefs. Pure.
 *
 *   group   tracefan_<session, sanitised>_<crc32 of the session's name>
 *   event   <symbol, sanitised and cut>_<id, 16 hex digits>_<tag of the run, 8 hex digits>
 *
 * The checksum keeps "a-b" and "a_b" apart; id and tag make each name one of its own for as long as
 * the host is up, so that a line of an earlier run can't be taken for ours. */
#ifndef TRACEFAN_READER_PROBE_NAME_H
#define TRACEFAN_READER_PROBE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_NAME_TAG_DIGITS 8

/* `size` is at least CONTROL_NAME_MAX. */
void probe_name_group(const char *session, char *group, size_t size);
void probe_name_event(const char *symbol, uint64_t id, const char *tag, char *event, size_t size);

/* True for the group of a session, whichever it is. */
bool probe_name_is_group(const char *group);

/* True for a name that probe_name_event can have made. */
bool probe_name_is_ours(const char *event);

#endif
