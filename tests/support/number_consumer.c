/* number_consumer SESSION FIRST COUNT [OPTION]...: attaches to a session and takes the events of workload_numbers whose
 * numbers are FIRST to FIRST + COUNT - 1. Prints "live" once they are coming; at the end of its standard input it wants no
 * more, asks for all that was committed before, and prints one JSON object: how many of the numbers came, how many of them
 * more than once, how many events were older than one before them and not flagged as late, how many were, how many were told
 * as lost, and the ledgers. Options:
 *
 *   filter=TEXT   a filter, beside that on the numbers
 *   all           no filter at all
 *   ring=BYTES    instead of the usual size
 *   overwrite     the oldest are lost
 *   pause=US      after every 64 events
 *   seen=FILE     a byte for each number there: whether it came
 *   tell          prints "gap" or "reader N" (so many events lost) whenever one of the session's daemons was restarted */
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct numbers {
	struct tfan *tfan;
	struct tfan_trace *trace;
	int field;
	uint64_t first, count;
	uint8_t *seen;
	uint64_t came, twice, disordered, late, last_time, records;
	uint64_t lost, lost_kernel, lost_ring, gaps; /* as told in the stream */
	bool flushed, ended, uncounted, all, tells;
	const char *filter, *seen_path;
	struct tfan_options options;
	uint64_t pause;
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
static void tell(const struct tfan_event *event, const struct tfan_lost *lost)
{
	if (tfan_event_kind(event) == TFAN_GAP)
		puts("gap");
	else if (lost->source == TFAN_LOST_READER)
		printf("reader %" PRIu64 "\n", lost->count);
	(void)fflush(stdout);
}

static void take_lost(struct numbers *numbers, const struct tfan_event *event)
{
	struct tfan_lost lost = { 0 };
	bool is_gap = tfan_event_kind(event) == TFAN_GAP;

	if (tfan_event_lost(event, &lost) < 0 || !lost.counted)
		numbers->uncounted = true;
	else if (!is_gap && lost.source == TFAN_LOST_RING)
		numbers->lost_ring += lost.count;
	else
		numbers->lost_kernel += lost.count;
	numbers->lost += lost.count;
	numbers->gaps += is_gap;
	if (numbers->tells)
		tell(event, &lost);
}

static void dawdle(struct numbers *numbers)
{
	const struct timespec pause = {
		.tv_sec = (time_t)(numbers->pause / 1000000), .tv_nsec = (long)(numbers->pause % 1000000 * 1000)
	};

	if (numbers->pause && ++numbers->records % 64 == 0)
		(void)nanosleep(&pause, NULL);
}

/* Returns 1 when there may be more: what never stops coming must not keep it from its input. */
static int take_some(struct numbers *numbers)
{
	const struct tfan_event *event;
	int r = 1;

	for (unsigned int i = 0; i < 256 && (r = tfan_next(numbers->tfan, &event)) > 0; i++) {
		switch (tfan_event_kind(event)) {
		case TFAN_EVENT:
			take_event(numbers, event);
			dawdle(numbers);
			break;
		case TFAN_LOST:
		case TFAN_GAP:
			take_lost(numbers, event);
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
		int r = take_some(numbers);

		if (r < 0)
			return fail(numbers, "reading", r);
		if (numbers->flushed || numbers->ended)
			break;
		if (poll(fds, 2, r > 0 ? 0 : -1) < 0)
			return fail(numbers, "poll", -errno);
		if (fds[1].revents && read(STDIN_FILENO, &byte, 1) <= 0) {
			asked = true;
			r = tfan_trace_set_enabled(numbers->trace, false);
			if (r == 0)
				r = tfan_flush(numbers->tfan);
			if (r < 0)
				return fail(numbers, "the end", r);
		}
	}
	return 0;
}

static int attach(struct numbers *numbers, const char *session)
{
	char probe[512];
	int r;

	(void)snprintf(probe, sizeof(probe), "tracepoint:syscalls:sys_enter_getpgid");
	if (!numbers->all)
		(void)snprintf(probe, sizeof(probe), "tracepoint:syscalls:sys_enter_getpgid if pid >= %" PRIu64 " && pid < %" PRIu64 "%s%s%s",
			numbers->first, numbers->first + numbers->count, numbers->filter ? " && (" : "",
			numbers->filter ? numbers->filter : "", numbers->filter ? ")" : "");
	numbers->options.session = session;
	r = tfan_open(&numbers->options, &numbers->tfan);
	if (r < 0)
		return fail(numbers, session, r);
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

static int save_seen(const struct numbers *numbers)
{
	FILE *file = numbers->seen_path ? fopen(numbers->seen_path, "wb") : NULL;

	if (!numbers->seen_path)
		return 0;
	if (!file || fwrite(numbers->seen, 1, numbers->count, file) != numbers->count || fclose(file) != 0)
		return fail(numbers, numbers->seen_path, -errno);
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
	printf("{\"came\":%" PRIu64 ",\"twice\":%" PRIu64 ",\"disordered\":%" PRIu64 ",\"late\":%" PRIu64 ",\"uncounted\":%d"
	       ",\"lost\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"told\":{\"kernel\":%" PRIu64 ",\"ring\":%" PRIu64 "}",
		numbers->came, numbers->twice, numbers->disordered, numbers->late, numbers->uncounted, numbers->lost, numbers->gaps,
		numbers->lost_kernel, numbers->lost_ring);
	printf(",\"trace\":{\"decoded\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"filtered\":%" PRIu64 ",\"lost_ring\":%" PRIu64 "}",
		ledger.decoded, ledger.delivered, ledger.filtered, ledger.lost_ring);
	printf(",\"session\":{\"committed\":%" PRIu64 ",\"decoded\":%" PRIu64 ",\"undecodable\":%" PRIu64 ",\"lost_kernel\":%" PRIu64 "}}\n",
		session.committed, session.decoded, session.undecodable, session.lost_kernel);
	return save_seen(numbers);
}

static bool take_option(struct numbers *numbers, const char *word)
{
	if (strncmp(word, "filter=", 7) == 0)
		numbers->filter = word + 7;
	else if (strncmp(word, "ring=", 5) == 0)
		numbers->options.ring_size = strtoull(word + 5, NULL, 0);
	else if (strncmp(word, "pause=", 6) == 0)
		numbers->pause = strtoull(word + 6, NULL, 0);
	else if (strncmp(word, "seen=", 5) == 0)
		numbers->seen_path = word + 5;
	else if (strcmp(word, "all") == 0)
		numbers->all = true;
	else if (strcmp(word, "tell") == 0)
		numbers->tells = true;
	else if (strcmp(word, "overwrite") == 0)
		numbers->options.overflow = TFAN_OVERWRITE;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct numbers numbers = { .options = TFAN_OPTIONS };
	bool right = argc >= 4;
	int r;

	for (int i = 4; i < argc; i++)
		right = take_option(&numbers, argv[i]) && right;
	if (!right) {
		fprintf(stderr, "usage: number_consumer SESSION FIRST COUNT [OPTION]...\n");
		return 2;
	}
	numbers.first = strtoull(argv[2], NULL, 0);
	numbers.count = strtoull(argv[3], NULL, 0);
	numbers.seen = calloc(numbers.count, 1);
	if (!numbers.seen) {
		(void)fail(&numbers, "the numbers", -ENOMEM);
		return 1;
	}
	r = attach(&numbers, argv[1]);
	if (r == 0)
		r = consume(&numbers);
	if (r == 0)
		r = report(&numbers);
	tfan_close(numbers.tfan);
	free(numbers.seen);
	return r < 0;
}
