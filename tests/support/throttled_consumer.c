/* throttled_consumer SESSION PROBE: takes its events, and prints "live", "throttled OF RATE COUNT" (of its probe or user) each
 * time that it is told so, and "came N" with the number of events so far when more have come. Each line on its standard
 * input enables the trace again, which prints "enabled"; the end of it ends the program. */
#include "consumers/client/tracefan.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const struct tfan *tfan, const char *what)
{
	fprintf(stderr, "throttled_consumer: %s: %s\n", what, tfan ? tfan_failure(tfan)->message : "no memory");
	return 1;
}

static void take_all(struct tfan *tfan, uint64_t *came)
{
	const uint64_t before = *came;
	const struct tfan_event *event;
	struct tfan_throttled throttled;

	while (tfan_next(tfan, &event) == 1) {
		*came += tfan_event_kind(event) == TFAN_EVENT;
		if (tfan_event_throttled(event, &throttled) == 0)
			printf("throttled %s %" PRIu64 " %" PRIu64 "\n", throttled.of_user ? "user" : "probe", throttled.rate,
				throttled.count);
	}
	if (*came != before)
		printf("came %" PRIu64 "\n", *came);
	(void)fflush(stdout);
}

static int run(struct tfan *tfan, struct tfan_trace *trace)
{
	struct pollfd fds[2] = { { .fd = tfan_fd(tfan), .events = POLLIN }, { .fd = STDIN_FILENO, .events = POLLIN } };
	uint64_t came = 0;
	char line[16];

	for (;;) {
		take_all(tfan, &came);
		if (poll(fds, 2, -1) < 0)
			return fail(tfan, "poll");
		if (!fds[1].revents)
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			return 0;
		if (tfan_trace_set_enabled(trace, true) != 0)
			return fail(tfan, "enabling");
		puts("enabled");
	}
}

int main(int argc, char *argv[])
{
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan_trace *trace;
	struct tfan *tfan;
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: throttled_consumer SESSION PROBE\n");
		return 2;
	}
	options.session = argv[1];
	if (tfan_open(&options, &tfan) != 0 ||
		tfan_trace_create(tfan, argv[2], &trace) != 0 ||
		tfan_trace_set_enabled(trace, true) != 0)
		return fail(tfan, "beginning");
	puts("live");
	status = run(tfan, trace);
	tfan_close(tfan);
	return status;
}
