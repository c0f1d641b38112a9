/* switching_consumer SESSION PROBE: enables its trace when a line comes on its standard input, and disables it at the next, for
 * ever; prints "created" at first, and "enabled" or "disabled" each time that it has been answered. For who kills it between. */
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stdio.h>

static int fail(const struct tfan *tfan, const char *what)
{
	fprintf(stderr, "switching_consumer: %s: %s\n", what, tfan ? tfan_failure(tfan)->message : "no memory");
	return 1;
}

static void say(const char *what)
{
	puts(what);
	(void)fflush(stdout);
}

int main(int argc, char *argv[])
{
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan_trace *trace;
	struct tfan *tfan = NULL;
	bool enabled = false;
	char line[16];

	if (argc != 3) {
		fprintf(stderr, "usage: switching_consumer SESSION PROBE\n");
		return 2;
	}
	options.session = argv[1];
	if (tfan_open(&options, &tfan) != 0 || tfan_trace_create(tfan, argv[2], &trace) != 0)
		return fail(tfan, "beginning");
	say("created");
	while (fgets(line, sizeof(line), stdin)) {
		if (tfan_trace_set_enabled(trace, !enabled) != 0)
			return fail(tfan, "switching");
		enabled = !enabled;
		say(enabled ? "enabled" : "disabled");
	}
	tfan_close(tfan);
	return 0;
}
