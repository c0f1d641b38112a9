/* What the files of the text format share. */
#ifndef TRACEFAN_CLI_OUTPUT_TEXT_H
#define TRACEFAN_CLI_OUTPUT_TEXT_H

#include "consumers/cli/output.h"

#include <stdbool.h>
#include <stdint.h>

/* TIME CPU PID COMM and a blank. */
void text_columns(struct output *output, const struct tfan_event *event);
/* A blank and KEY= */
void text_key(struct writer *writer, const char *name, bool decorated);

/* " process=PID parent=PID uid=UID exe=PATH cgroup=PATH", as far as it is known; a '?' behind what is guessed. */
void output_text_process(struct writer *writer, const struct tfan_event *event, bool decorated);
/* A record of the host's state: a line. */
void output_text_state(struct output *output, const struct tfan_event *event);

#endif
