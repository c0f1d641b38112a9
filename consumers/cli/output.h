/* Records as lines: one vocabulary, two formats (output_text.c, output_json.c). */
#ifndef TRACEFAN_CLI_OUTPUT_H
#define TRACEFAN_CLI_OUTPUT_H

#include "consumers/cli/options.h"
#include "consumers/cli/plan.h"
#include "consumers/cli/summary.h"
#include "consumers/cli/wall_clock.h"
#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"
#include "consumers/watch/watch.h"

#include <stdbool.h>

struct output;

struct output_format {
	struct plan_style plan;
	enum wall_clock_form wall;
	void (*event)(struct output *output, const struct tfan_event *event, const struct plan *plan);
	void (*lost)(struct output *output, const struct tfan_event *event, const struct tfan_lost *lost);
	void (*end)(struct output *output, const struct tfan_event *event, enum tfan_end_reason reason, const char *message);
	void (*state)(struct output *output, const struct tfan_event *event);
	void (*filter)(struct output *output, const struct tfan_event *event);
	void (*throttled)(struct output *output, const struct tfan_event *event, const struct tfan_throttled *throttled);
	void (*watched)(struct output *output, const struct watch_record *record);
};

extern const struct output_format output_text;
extern const struct output_format output_json;

struct output {
	const struct output_format *format;
	struct writer *writer; /* the caller's */
	struct plan_set plans;
	struct wall_clock wall;
	bool decorated; /* to a terminal: aligned and coloured */
	bool processes; /* events tell whose they are */
};

void output_open(struct output *output, const struct output_format *format, struct writer *writer, bool decorated);
void output_close(struct output *output);

/* Writes one record as one line; kinds that aren't shown write nothing. Returns 0 or a negative errno; what the
 * writer met is the writer's to tell. */
int output_record(struct output *output, const struct tfan_event *event);

/* Element i of a field that isn't one integer or string. 0, -ERANGE past the last, or another negative errno. */
int output_element(const struct tfan_event *event, const struct plan_field *field, size_t i, uint64_t *ret);

const char *output_lost_source(enum tfan_lost_source source);
const char *output_end_reason(enum tfan_end_reason reason);

void output_json_summary(struct writer *writer, const struct summary *summary);
void output_text_summary(struct writer *writer, const struct summary *summary);

#endif
