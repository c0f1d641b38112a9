/* The notation of a probe, as far as this program has to look into it (the library parses it):
 *   [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [if FILTER] */
#ifndef TRACEFAN_CLI_PROBE_TEXT_H
#define TRACEFAN_CLI_PROBE_TEXT_H

/* The probe with one more condition: its own filter and `filter` must both hold. The caller frees it; NULL: no memory. */
char *probe_text_add_filter(const char *probe, const char *filter);

/* `probe` for a recording, where a bare SYSTEM:EVENT is enough: with "tracepoint:" before it when it names no kind. The caller frees
 * it; NULL: no memory. */
char *probe_text_recorded(const char *probe);

#endif
