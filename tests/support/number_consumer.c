/* number_consumer SESSION FIRST COUNT [RING]: attaches to a session with default options (but for a ring of RING bytes, and a filter that lets no other number through) and takes the events of
 * workload_numbers. Prints "live" once they are coming, and "gap" or "reader N" (so many events lost) whenever one of the
 * session's daemons was restarted; at the end of its standard input it asks for all that was committed before, and prints
 * one JSON object: how many of the numbers FIRST to FIRST + COUNT - 1 came, how many of them more than once, how many
 * events were older than one before them and not flagged as late, how many were, and how many were told as lost. */
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct numbers {
	struct tfan *tfan;
	struct tfan_trace *trace;
	int field;
	uint64_t first, count;
	uint8_t *seen;
	uint64_t came, twice, disordered, late, lost, gaps, last_time;
	bool flushed, ended;
};

static int fail(const struct numbers *numbers, const char *what, int error)
{
	const struct tfan_failure *failure = numbers->tfan ? tfan_failure(numbers->tfan) : NULL;

	fprintf(stderr, "number_consumer: %s: %s\n", what, failure && failure->message ? failure->message : strerror(-error));
	return error;
}

static void take_event(struct numbers *numbers, const struct tfan_event *event)
{
	uint64_t number, time = tfan_event_time(event);

	if (tfan_event_late(event)) {
		numbers->late++;
	} else {
		numbers->disordered += time < numbers->last_time;
		numbers->last_time = time;
	}
	if (tfan_event_u64(event, (size_t)numbers->field, &number) < 0)
		return;
	number -= numbers->first;
	if (number >= numbers->count)
		return;
	if (numbers->seen[number]++)
		numbers->twice++;
	else
		numbers->came++;
}

/* Whoever restarts the daemons waits for these lines. */
static void take_loss(struct numbers *numbers, const struct tfan_event *event)
{
	struct tfan_lost lost;

	if (tfan_event_lost(event, &lost) < 0)
		return;
	numbers->lost += lost.count;
	if (tfan_event_kind(event) == TFAN_GAP) {
		numbers->gaps++;
		puts("gap");
	} else if (lost.source == TFAN_LOST_READER) {
		printf("reader %" PRIu64 "\n", lost.count);
	}
	(void)fflush(stdout);
}

static int take_all(struct numbers *numbers)
{
	const struct tfan_event *event;
	int r;

	while ((r = tfan_next(numbers->tfan, &event)) > 0) {
		switch (tfan_event_kind(event)) {
		case TFAN_EVENT:
			take_event(numbers, event);
			break;
		case TFAN_LOST:
		case TFAN_GAP:
			take_loss(numbers, event);
			break;
		case TFAN_FLUSHED:
			numbers->flushed = true;
			break;
		case TFAN_END:
			numbers->ended = true;
			break;
		default:
			break;
		}
	}
	return r;
}

/* Until standard input has ended and what was committed before has come. */
static int consume(struct numbers *numbers)
{
	bool asked = false;
	char byte;

	while (!numbers->flushed && !numbers->ended) {
		struct pollfd fds[] = {
			{ .fd = tfan_fd(numbers->tfan), .events = POLLIN },
			{ .fd = asked ? -1 : STDIN_FILENO, .events = POLLIN },
		};
		int r = take_all(numbers);

		if (r < 0)
			return fail(numbers, "reading", r);
		if (numbers->flushed || numbers->ended)
			break;
		if (poll(fds, 2, -1) < 0)
			return fail(numbers, "poll", -errno);
		if (fds[1].revents && read(STDIN_FILENO, &byte, 1) <= 0) {
			asked = true;
			r = tfan_flush(numbers->tfan);
			if (r < 0)
				return fail(numbers, "flush", r);
		}
	}
	return 0;
}

static int attach(struct numbers *numbers, const char *session, size_t ring_size)
{
	struct tfan_options options = TFAN_OPTIONS;
	char probe[160];
	int r;

	options.session = session;
	options.ring_size = ring_size;
	r = tfan_open(&options, &numbers->tfan);
	if (r < 0)
		return fail(numbers, session, r);
	(void)snprintf(probe, sizeof(probe), "tracepoint:syscalls:sys_enter_getpgid");
	/* Then losses are of these numbers, too. */
	if (ring_size)
		(void)snprintf(probe + strlen(probe), sizeof(probe) - strlen(probe), " if pid >= %" PRIu64 " && pid < %" PRIu64,
			numbers->first, numbers->first + numbers->count);
	r = tfan_trace_create(numbers->tfan, probe, &numbers->trace);
	if (r < 0)
		return fail(numbers, "sys_enter_getpgid", r);
	numbers->field = tfan_field_find(numbers->trace, "pid");
	if (numbers->field < 0)
		return fail(numbers, "field pid", numbers->field);
	r = tfan_trace_set_enabled(numbers->trace, true);
	if (r < 0)
		return fail(numbers, "enabling", r);
	puts("live");
	(void)fflush(stdout);
	return 0;
}

static int report(struct numbers *numbers)
{
	struct tfan_session_ledger session = { 0 };
	struct tfan_ledger ledger = { 0 };
	int r = tfan_trace_ledger(numbers->trace, &ledger);

	if (r == 0)
		r = tfan_session_ledger(numbers->tfan, &session);
	if (r < 0)
		return fail(numbers, "ledger", r);
	printf("{\"came\":%" PRIu64 ",\"twice\":%" PRIu64 ",\"disordered\":%" PRIu64 ",\"late\":%" PRIu64
	       ",\"lost\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"lost_ring\":%" PRIu64,
		numbers->came, numbers->twice, numbers->disordered, numbers->late, numbers->lost, numbers->gaps,
		ledger.lost_ring);
	printf(",\"session\":{\"committed\":%" PRIu64 ",\"decoded\":%" PRIu64 ",\"undecodable\":%" PRIu64
	       ",\"lost_kernel\":%" PRIu64 "}}\n",
		session.committed, session.decoded, session.undecodable, session.lost_kernel);
	return 0;
}

int main(int argc, char **argv)
{
	struct numbers numbers = { 0 };
	int r;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: number_consumer SESSION FIRST COUNT [RING]\n");
		return 2;
	}
	numbers.first = strtoull(argv[2], NULL, 0);
	numbers.count = strtoull(argv[3], NULL, 0);
	numbers.seen = calloc(numbers.count, 1);
	if (!numbers.seen)
		return 1;
	r = attach(&numbers, argv[1], argc == 5 ? strtoul(argv[4], NULL, 0) : 0);
	if (r == 0)
		r = consume(&numbers);
	if (r == 0)
		r = report(&numbers);
	tfan_close(numbers.tfan);
	free(numbers.seen);
	return r < 0;
}
