/* Events of the running kernel in both forms, as text and as bytes, each decoded by the router's own modules: what the
 * comparisons here, and the tests of the text source alone, look at. */
#ifndef TRACEFAN_TESTS_DIFFERENTIAL_BOTH_FORMS_H
#define TRACEFAN_TESTS_DIFFERENTIAL_BOTH_FORMS_H

#include "router/catalog.h"
#include "shm/schema.h"
#include "tests/support/trace_instance.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOTH_FORMS_CPUS 1024

struct both_event {
	const struct catalog_event *kind;
	uint32_t cpu;
	int32_t pid;
	uint64_t time;
	char comm[32];
	bool suspect, partial, swallowed;
	void *payload;
	size_t size;
};

struct both_events {
	struct both_event *at;
	size_t count, room;
	uint64_t lost[BOTH_FORMS_CPUS];
};

/* A kind of event that the instance traces, with both its schemas. */
struct both_kind {
	const struct catalog_event *event;
	void *text_bytes;
	struct schema text;
	unsigned int compared, absent; /* fields */
	unsigned int printed;          /* whole lines that were compared, because a field has no value in them */
};

/* An instance of the test's own, and the kinds of events that it knows. Owned by the test. */
struct both_forms {
	struct trace_instance instance;
	struct catalog *catalog;
	struct both_kind *kinds[8192];
	size_t kind_count;
	struct {
		const char *file; /* that it was defined in */
		char name[64];
	} probes[16];
	size_t probe_count;
};

/* Everything here fails the test where the kernel refuses, unless it says otherwise. */
void both_forms_begin(struct both_forms *both, const char *part);
void both_forms_end(struct both_forms *both);

/* Reads the event's format file; NULL: this kernel has none. */
struct both_kind *both_forms_add(struct both_forms *both, const char *system, const char *name);
/* The same, and traces it. False: this kernel has no such event. */
bool both_forms_enable(struct both_forms *both, const char *system, const char *name);
/* The kind of this name, which was added before. */
struct both_kind *both_forms_kind(struct both_forms *both, const char *name);

/* Defines and traces a probe of the instance's group: `file` is /uprobe_events or /kprobe_events, `kind` p or r. */
void both_forms_probe(struct both_forms *both, const char *file, char kind, const char *name, const char *place,
	const char *arguments);
/* Of `arguments`, blank-separated, those that this kernel takes at the place; the others are told on standard output. */
void both_forms_known_arguments(struct both_forms *both, const char *file, const char *place, const char *arguments,
	char *ret, size_t room);

/* Runs `work` in a child, and traces it and its children. */
void both_forms_trace_child(struct both_forms *both, void (*work)(void));

/* What stands in the instance's text file, trace or trace_pipe, as a router would see it. */
void both_forms_read_text(struct both_forms *both, const char *file, struct both_events *ret);
/* What stands in the sub-buffers of one CPU, which are taken out. */
void both_forms_read_raw(struct both_forms *both, uint32_t cpu, struct both_events *ret);
void both_events_release(struct both_events *events);

/* What is known of an event beforehand; `n` counts the events of its kind. */
typedef void both_truth_fn(const struct schema *schema, const struct both_event *event, size_t n);

/* Every event of every CPU, in both forms: the same number, in the same order, field by field. Those of the kind `name` are
 * looked at by `truth`, if given, on the one CPU where they were made. Returns the number of all. */
size_t both_forms_compare(struct both_forms *both, const char *name, both_truth_fn *truth);

#endif
