/* Calls of one function of a program or library, with its first argument as a string and its second as a number,
 * filled into a structure of our own.
 *
 * usage: example-uprobe FILE FUNCTION [SESSION]      for example /lib/x86_64-linux-gnu/libc.so.6 open64 */
#include <tracefan.h>

#include <stdio.h>

struct call {
	const char *text;
	int number;
};

static const struct tfan_member members[] = {
	{ TFAN_MEMBER(struct call, text), .fetch = "$arg1" },
	{ TFAN_MEMBER(struct call, number), .fetch = "$arg2" },
};
static const struct tfan_shape shape = TFAN_SHAPE(struct call, members);

static void called(void *context, const struct tfan_event *event, const void *filled)
{
	const struct call *call = filled;

	(void)context;
	printf("%d %s: \"%s\", %d\n", tfan_event_pid(event), tfan_event_comm(event), call->text, call->number);
}

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-uprobe: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

int main(int argc, char **argv)
{
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan_trace *trace;
	struct tfan *tfan;

	if (argc < 3)
		return fprintf(stderr, "usage: example-uprobe FILE FUNCTION [SESSION]\n"), 2;
	options.session = argc > 3 ? argv[3] : NULL;
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	/* The file is opened here, with our own rights; the symbol's place in it is found here, too. */
	if (tfan_trace_uprobe(tfan, argv[1], argv[2], &shape, called, NULL, &trace) < 0 ||
		tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);
	fprintf(stderr, "example-uprobe: tracing\n");
	setlinebuf(stdout);
	while (tfan_dispatch(tfan, 0) >= 0 && tfan_wait(tfan, -1) >= 0)
		;
	return fail(tfan);
}
