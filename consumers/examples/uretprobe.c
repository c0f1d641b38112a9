/* What a shell's user types: the string that bash's readline() returns, where it isn't empty.
 *
 * usage: example-uretprobe [SHELL [SESSION]] */
#include <tracefan.h>

#include <stdio.h>

struct line {
	const char *text;
	uint64_t address;
};

static const struct tfan_member members[] = {
	{ TFAN_MEMBER(struct line, text), .fetch = "$retval" },
	/* NULL at the end of input. */
	{ TFAN_MEMBER(struct line, address), .fetch = "$retval", .condition = "address != 0" },
};

static void returned(void *context, const struct tfan_event *event, const void *filled)
{
	const struct line *line = filled;

	(void)context;
	if (line->text[0])
		printf("%d: %s\n", tfan_event_pid(event), line->text);
}

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-uretprobe: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

int main(int argc, char **argv)
{
	struct tfan_shape shape = TFAN_SHAPE(struct line, members);
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan_trace *trace;
	struct tfan *tfan;

	shape.at_return = true;
	options.session = argc > 2 ? argv[2] : NULL;
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	if (tfan_trace_uprobe(tfan, argc > 1 ? argv[1] : "/bin/bash", "readline", &shape, returned, NULL, &trace) < 0 ||
		tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);
	fprintf(stderr, "example-uretprobe: tracing\n");
	setlinebuf(stdout);
	while (tfan_dispatch(tfan, 0) >= 0 && tfan_wait(tfan, -1) >= 0)
		;
	return fail(tfan);
}
