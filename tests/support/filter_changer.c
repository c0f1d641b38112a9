/* filter_changer SESSION CHANGES PID PID: takes the events of two workload_paced (FIRST of one is CHANGER_FIRST, of
 * the other twice that; EXTRA is CHANGER_EXTRA) by filters that all accept the first kind of numbers and differ in the
 * rest. Prints "live" once they are coming; changes its filter CHANGES times when a line comes on standard input, one
 * after the other while events flow, and prints "changed"; at the end of its standard input it asks for all that was
 * committed before, and prints one JSON object of what came. */
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHANGER_FIRST (1UL << 24)
#define CHANGER_COUNT (1UL << 24)
#define CHANGER_EXTRA (1UL << 16)
#define CHANGER_WIDTH 8UL
#define CHANGER_KINDS 8UL

struct changer {
	struct tfan *tfan;
	struct tfan_trace *trace;
	int field;
	uint8_t *seen; /* of both workloads' numbers */
	uint64_t came[2], beyond[2]; /* `beyond`: one more than the greatest */
	uint64_t due[2]; /* of each workload the extra number that has to come next by the filter in force, 0: none */
	int pid[2];
	uint64_t twice, lost, wrong, missed, events, marks, stray, untimely;
	uint64_t last_time;
	unsigned long changes, changed;
	bool told, flushed, ended;
};

static int fail(const struct changer *changer, const char *what, int error)
{
	const struct tfan_failure *failure = changer->tfan ? tfan_failure(changer->tfan) : NULL;

	fprintf(stderr, "filter_changer: %s: %s\n", what, failure && failure->message ? failure->message : strerror(-error));
	return error;
}

/* The n-th filter: the kernel can have all of it, none of it, or a part; each accepts extra numbers of its own. */
static void filter_text(unsigned long n, char *out, size_t size)
{
	unsigned long extra = CHANGER_EXTRA + n % CHANGER_KINDS * CHANGER_WIDTH;
	static const char *const more[] = {
		"", " && comm =~ \"^workload\"", " && CPU >= 0", " && common_pid in {0}",
	};
	char own[128];

	if (n % 50 == 49) {
		*out = '\0';
		return;
	}
	(void)snprintf(own, sizeof(own), "pid >= %lu && pid < %lu%s", extra, extra + CHANGER_WIDTH, more[n / CHANGER_KINDS % 4]);
	(void)snprintf(out, size, "pid >= %lu && pid < %lu || %s", CHANGER_FIRST, CHANGER_FIRST + 2 * CHANGER_COUNT, own);
}

/* Whether the filter in force, by the marks that came, takes an extra number. */
static bool is_right(const struct changer *changer, uint64_t number)
{
	unsigned long n = changer->marks;

	if (n % 50 == 49)
		return true;
	return number >= CHANGER_EXTRA && (number - CHANGER_EXTRA) / CHANGER_WIDTH == n % CHANGER_KINDS &&
	       n / CHANGER_KINDS % 4 != 3;
}

/* Behind each number of the first kind a workload calls an extra one. */
static void take_number(struct changer *changer, int of, uint64_t number)
{
	uint64_t extra = CHANGER_EXTRA + number % (CHANGER_KINDS * CHANGER_WIDTH);

	if (changer->seen[(uint64_t)of * CHANGER_COUNT + number]++)
		changer->twice++;
	else
		changer->came[of]++;
	if (number >= changer->beyond[of])
		changer->beyond[of] = number + 1;
	changer->missed += changer->due[of] != 0;
	changer->due[of] = is_right(changer, extra) ? extra : 0;
}

static void take_extra(struct changer *changer, int of, uint64_t number)
{
	changer->wrong += !is_right(changer, number);
	if (changer->due[of] == number)
		changer->due[of] = 0;
}

static void take_time(struct changer *changer, const struct tfan_event *event)
{
	if (tfan_event_late(event))
		return;
	changer->untimely += tfan_event_time(event) < changer->last_time;
	changer->last_time = tfan_event_time(event);
}

static void take_event(struct changer *changer, const struct tfan_event *event)
{
	uint64_t number, first;

	changer->events++;
	take_time(changer, event);
	if (tfan_event_u64(event, (size_t)changer->field, &number) < 0)
		changer->stray++;
	for (int of = 0; of < 2; of++) {
		first = (uint64_t)(of + 1) * CHANGER_FIRST;
		/* Others make such calls, too. */
		if (tfan_event_pid(event) != changer->pid[of])
			continue;
		if (number >= first && number < first + CHANGER_COUNT)
			take_number(changer, of, number - first);
		else
			take_extra(changer, of, number);
	}
}

static void take_mark(struct changer *changer, const struct tfan_event *event)
{
	changer->marks++;
	/* What was due by the old filter need not be what the new one takes. */
	changer->due[0] = changer->due[1] = 0;
	changer->stray += tfan_event_trace(event) != changer->trace;
	take_time(changer, event);
}

static int take_all(struct changer *changer)
{
	const struct tfan_event *event;
	struct tfan_lost lost;
	int r;

	while ((r = tfan_next(changer->tfan, &event)) > 0) {
		switch (tfan_event_kind(event)) {
		case TFAN_EVENT:
			take_event(changer, event);
			break;
		case TFAN_FILTER:
			take_mark(changer, event);
			break;
		case TFAN_LOST:
		case TFAN_GAP:
			if (tfan_event_lost(event, &lost) == 0)
				changer->lost += lost.count;
			break;
		case TFAN_FLUSHED:
			changer->flushed = true;
			break;
		case TFAN_END:
			changer->ended = true;
			break;
		case TFAN_STATE:
		case TFAN_THROTTLED:
			break;
		}
	}
	return r;
}

/* A filter that is wrong leaves the old one where it is: what comes and the marks go on as if nothing had been. Returns
 * 0 or -EPROTO. */
static int try_wrong(const struct changer *changer)
{
	static const char good[] = "pid >= 0 && ";
	const struct tfan_failure *failure;
	char text[64];

	(void)snprintf(text, sizeof(text), "%snone == 1", good);
	if (tfan_trace_set_filter(changer->trace, text) >= 0)
		return fail(changer, "a filter that is wrong was taken", -EPROTO);
	failure = tfan_failure(changer->tfan);
	if (failure->category != TFAN_USAGE || failure->position != (int)strlen(good))
		return fail(changer, "a filter that is wrong", -EPROTO);
	return 0;
}

static int change_all(struct changer *changer)
{
	char text[256];
	int r = 0;

	while (r >= 0 && changer->changed < changer->changes) {
		r = try_wrong(changer);
		if (r < 0)
			return r;
		filter_text(changer->changed + 1, text, sizeof(text));
		r = tfan_trace_set_filter(changer->trace, text);
		if (r < 0)
			return fail(changer, text, r);
		changer->changed++;
		r = take_all(changer);
	}
	if (r < 0)
		return fail(changer, "reading", r);
	puts("changed");
	(void)fflush(stdout);
	return 0;
}

/* A line on standard input begins the changes, its end the end. */
static int obey(struct changer *changer)
{
	char byte;
	int r;

	if (read(STDIN_FILENO, &byte, 1) == 1)
		return change_all(changer);
	changer->told = true;
	/* Or others' calls might come behind the flush. */
	r = tfan_trace_set_enabled(changer->trace, false);
	if (r >= 0)
		r = tfan_flush(changer->tfan);
	return r < 0 ? fail(changer, "flush", r) : 0;
}

static int consume(struct changer *changer)
{
	int r = 0;

	while (r >= 0) {
		struct pollfd fds[] = {
			{ .fd = tfan_fd(changer->tfan), .events = POLLIN },
			{ .fd = changer->told ? -1 : STDIN_FILENO, .events = POLLIN },
		};

		r = take_all(changer);
		if (r < 0)
			return fail(changer, "reading", r);
		if (changer->flushed || changer->ended)
			return 0;
		if (poll(fds, 2, -1) < 0)
			return fail(changer, "poll", -errno);
		if (fds[1].revents)
			r = obey(changer);
	}
	return r;
}

static int attach(struct changer *changer, const char *session)
{
	struct tfan_options options = TFAN_OPTIONS;
	char text[256];
	int r;

	options.session = session;
	options.ring_size = 32U << 20;
	r = tfan_open(&options, &changer->tfan);
	if (r < 0)
		return fail(changer, session, r);
	r = tfan_trace_create(changer->tfan, "tracepoint:syscalls:sys_enter_getpgid", &changer->trace);
	if (r < 0)
		return fail(changer, "sys_enter_getpgid", r);
	changer->field = tfan_field_find(changer->trace, "pid");
	filter_text(0, text, sizeof(text));
	r = changer->field < 0 ? changer->field : tfan_trace_set_filter(changer->trace, text);
	if (r >= 0)
		r = tfan_trace_set_enabled(changer->trace, true);
	if (r < 0)
		return fail(changer, "enabling", r);
	puts("live");
	(void)fflush(stdout);
	return 0;
}

static int report(struct changer *changer)
{
	struct tfan_ledger ledger;
	int r = tfan_trace_ledger(changer->trace, &ledger);

	if (r < 0)
		return fail(changer, "ledger", r);
	printf("{\"came\":[%" PRIu64 ",%" PRIu64 "],\"beyond\":[%" PRIu64 ",%" PRIu64 "],\"twice\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"events\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"marks\":%" PRIu64 ",\"stray\":%" PRIu64 ",\"untimely\":%" PRIu64,
		changer->came[0], changer->came[1], changer->beyond[0], changer->beyond[1], changer->twice, changer->lost,
		changer->events, changer->wrong, changer->missed, changer->marks, changer->stray, changer->untimely);
	printf(",\"decoded\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"filtered\":%" PRIu64 ",\"lost_ring\":%" PRIu64 "}\n",
		ledger.decoded, ledger.delivered, ledger.filtered, ledger.lost_ring);
	return 0;
}

int main(int argc, char **argv)
{
	struct changer changer = { 0 };
	int r;

	if (argc != 5) {
		fprintf(stderr, "usage: filter_changer SESSION CHANGES PID PID\n");
		return 2;
	}
	changer.changes = strtoul(argv[2], NULL, 0);
	changer.pid[0] = atoi(argv[3]);
	changer.pid[1] = atoi(argv[4]);
	changer.seen = calloc(2, CHANGER_COUNT);
	if (!changer.seen)
		return 1;
	r = attach(&changer, argv[1]);
	if (r >= 0)
		r = consume(&changer);
	if (r >= 0)
		r = report(&changer);
	tfan_close(changer.tfan);
	free(changer.seen);
	return r < 0;
}
