/* Which programs are started: the kernel's own tracepoint, its fields read by name.
 *
 * usage: example-tracepoint [SESSION] */
#include <tracefan.h>

#include <stdio.h>
#include <string.h>

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-tracepoint: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

int main(int argc, char **argv)
{
	struct tfan_options options = TFAN_OPTIONS;
	const struct tfan_event *event;
	struct tfan_trace *trace;
	struct tfan_lost lost;
	struct tfan *tfan;
	int filename, rc;

	options.session = argc > 1 ? argv[1] : NULL;
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	if (tfan_trace_create(tfan, "tracepoint:sched:sched_process_exec", &trace) < 0)
		return fail(tfan);
	filename = tfan_field_find(trace, "filename");
	if (filename < 0 || tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);

	fprintf(stderr, "example-tracepoint: tracing\n");
	setlinebuf(stdout);
	for (;;) {
		/* Read until there is no more, then sleep. */
		while ((rc = tfan_next(tfan, &event)) == 1) {
			const void *path;
			size_t size;

			if (tfan_event_kind(event) == TFAN_EVENT &&
				tfan_event_bytes(event, (size_t)filename, &path, &size) == 0)
				printf("%d %s %.*s\n", tfan_event_pid(event), tfan_event_comm(event), (int)size,
					(const char *)path);
			else if (tfan_event_kind(event) == TFAN_END)
				return tfan_close(tfan), 0;
			else if (tfan_event_lost(event, &lost) == 0)
				printf("%s%llu events were lost\n", lost.counted ? "" : "at least ",
					(unsigned long long)lost.count);
		}
		if (rc < 0 || tfan_wait(tfan, -1) < 0)
			return fail(tfan);
	}
}
