/* The notation of a probe, as far as this program has to look into it (the library parses it):
 *   [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [if FILTER] */
#ifndef TRACEFAN_CLI_PROBE_TEXT_H
#define TRACEFAN_CLI_PROBE_TEXT_H

#include <stddef.h>

/* The definition that selects a probe of a recording. A tracepoint is known by its SYSTEM:EVENT, with or without the word
 * "tracepoint"; any other by the name that it had, given alone or within the definition that made it: neither the program that
 * it was placed in nor its arguments are needed again. The caller frees it; NULL: no memory. */
char *probe_text_recorded(const char *probe);
/* Which byte of `probe` is meant by this one of its `recorded` definition; -1 stays. */
int probe_text_position(const char *probe, const char *recorded, int position);

/* The i-th of the words between its place and its filter that ask for no stack; NULL: there are no more. */
const char *probe_text_argument(const char *probe, size_t i, size_t *ret_size);

#endif
