/* What the files of the JSON format share. */
#ifndef TRACEFAN_CLI_OUTPUT_JSON_H
#define TRACEFAN_CLI_OUTPUT_JSON_H

#include "consumers/cli/output.h"

#include <stddef.h>
#include <stdint.h>

/* Room for the columns of a line, without comm. */
#define JSON_COLUMNS_ROOM 256

char *json_copy(char *p, const char *text);
void json_string(struct writer *writer, const void *bytes, size_t size);
/* {"kind":"KIND","time":T,"wall":W,"cpu":C */
void json_columns(struct output *output, const char *kind, const struct tfan_event *event);
/* ,"pid":P,"comm":"COMM" */
void json_task(struct writer *writer, const struct tfan_event *event);

/* ,"process":{...}, or null when it isn't known */
void output_json_process(struct writer *writer, const struct tfan_event *event);
/* A record of the host's state: a line. */
void output_json_state(struct output *output, const struct tfan_event *event);

#endif
