/* Reads that fail, by their error; and the ledger of what was seen, from a program that has a loop of its own.
 *
 * usage: example-kretprobe [SECONDS [SESSION]] */
#include <tracefan.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ERRORS 134 /* one more than Linux has */

struct read_end {
	long result;
};

static const struct tfan_member members[] = {
	{ TFAN_MEMBER(struct read_end, result), .fetch = "$retval", .condition = "result < 0" },
};

static void returned(void *context, const struct tfan_event *event, const void *filled)
{
	unsigned long *counts = context;
	long error = -((const struct read_end *)filled)->result;

	(void)event;
	if (error > 0 && error < ERRORS)
		counts[error]++;
}

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-kretprobe: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

int main(int argc, char **argv)
{
	struct tfan_shape shape = TFAN_SHAPE(struct read_end, members);
	struct tfan_options options = TFAN_OPTIONS;
	unsigned long counts[ERRORS] = { 0 };
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	struct tfan_ledger ledger;
	struct tfan_trace *trace;
	struct pollfd fd;
	struct tfan *tfan;

	shape.at_return = true;
	options.session = argc > 2 ? argv[2] : NULL;
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	/* Room for 512 reads that wait at the same time; what finds none is counted as missed. */
	if (tfan_trace_kprobe(tfan, "vfs_read+maxactive=512", &shape, returned, counts, &trace) < 0 ||
		tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);
	fprintf(stderr, "example-kretprobe: tracing\n");
	fd = (struct pollfd){ .fd = tfan_fd(tfan), .events = POLLIN };
	while (time(NULL) < end) {
		if (tfan_dispatch(tfan, 0) < 0)
			return fail(tfan);
		(void)poll(&fd, 1, 1000);
	}
	for (int i = 1; i < ERRORS; i++)
		if (counts[i])
			printf("%8lu %s\n", counts[i], strerror(i));
	if (tfan_trace_ledger(trace, &ledger) < 0)
		return fail(tfan);
	printf("%llu decoded, %llu delivered, %llu lost, %llu missed by the probe\n", (unsigned long long)ledger.decoded,
		(unsigned long long)ledger.delivered, (unsigned long long)ledger.lost_ring,
		(unsigned long long)ledger.missed);
	tfan_close(tfan);
	return 0;
}
