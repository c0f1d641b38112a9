/* bench_consumer --session NAME [--ring BYTES] --count EVENTS [--ages] [--include-self]: reads every
 * field of every event, through the library as any program would.
 *
 * Each line of standard input, up to an empty one, is a connection with one probe; with a '+'
 * before it, one more probe of the connection before; with a '-', the same, but not enabled. Then
 * prints "ready", and when EVENTS events of all connections have been read or told lost, a line:
 * events, lost ones, the time on CLOCK_MONOTONIC, the nanoseconds of processor time since "ready",
 * and the sum of all fields' values, which keeps the compiler from leaving something out. With
 * --ages the ages of the events, one in a line, follow. Ends with its input. */
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct consumer {
	struct tfan_options options;
	struct tfan **connections;
	size_t connection_count;
	int epoll;
	uint64_t wanted, events, lost, sum;
	const struct tfan_trace *trace; /* of the last event, how many fields it has, and their values */
	size_t fields;
	uint64_t *values;
	uint64_t *ages; /* NULL: nobody asked */
};

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int fail(const struct tfan *tfan, const char *what)
{
	const struct tfan_failure *failure = tfan ? tfan_failure(tfan) : NULL;

	(void)fprintf(stderr, "bench_consumer: %s: %s\n", what,
		failure ? failure->message : strerror(errno));
	return -1;
}

static int connect_one(struct consumer *consumer)
{
	struct tfan **more = realloc(
		consumer->connections, (consumer->connection_count + 1) * sizeof(struct tfan *));
	struct epoll_event event = { .events = EPOLLIN };
	struct tfan *tfan = NULL;

	if (!more)
		return fail(NULL, "connections");
	consumer->connections = more;
	if (tfan_open(&consumer->options, &tfan) < 0) {
		(void)fail(tfan, "attaching");
		tfan_close(tfan);
		return -1;
	}
	more[consumer->connection_count++] = tfan;
	event.data.ptr = tfan;
	return epoll_ctl(consumer->epoll, EPOLL_CTL_ADD, tfan_fd(tfan), &event) < 0
		       ? fail(NULL, "epoll")
		       : 0;
}

static int add_probe(struct consumer *consumer, const char *line)
{
	const char *probe = line + (*line == '+' || *line == '-');
	struct tfan_trace *trace;
	struct tfan *tfan;

	if (probe == line && connect_one(consumer) < 0)
		return -1;
	if (consumer->connection_count == 0)
		return fail(NULL, "a probe without a connection");
	tfan = consumer->connections[consumer->connection_count - 1];
	if (tfan_trace_create(tfan, probe, &trace) < 0)
		return fail(tfan, probe);
	if (*line != '-' && tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan, probe);
	return 0;
}

static int add_all(struct consumer *consumer)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int r = 0;

	while (r == 0 && (size = getline(&line, &room, stdin)) > 1) {
		line[size - 1] = '\0';
		r = add_probe(consumer, line);
	}
	free(line);
	return r;
}

/* Another trace's events come. Returns 0 or -1. */
static int change_trace(struct consumer *consumer, const struct tfan_trace *trace)
{
	size_t count = tfan_field_count(trace);
	uint64_t *values = realloc(consumer->values, (count + 1) * sizeof(*values));

	if (!values)
		return fail(NULL, "fields");
	consumer->values = values;
	consumer->fields = count;
	consumer->trace = trace;
	return 0;
}

static int take_event(struct consumer *consumer, const struct tfan_event *event)
{
	const struct tfan_head *head = tfan_event_head(event);
	uint64_t sum = head->time + (uint64_t)head->pid + (uint64_t)head->cpu;

	if (head->trace != consumer->trace && change_trace(consumer, head->trace) < 0)
		return -1;
	if (tfan_event_integers(event, consumer->values, consumer->fields) < 0)
		return fail(NULL, "an event without its fields");
	for (size_t i = 0; i < consumer->fields; i++)
		sum += consumer->values[i];
	consumer->sum += sum;
	if (consumer->ages && consumer->events < consumer->wanted)
		consumer->ages[consumer->events] = now(CLOCK_MONOTONIC) - head->time;
	consumer->events++;
	return 0;
}

static void take_lost(struct consumer *consumer, const struct tfan_event *event)
{
	struct tfan_lost lost;

	if (tfan_event_lost(event, &lost) == 0)
		consumer->lost += lost.count;
}

/* Takes what is there. Returns 0 or -1. */
static int take(struct consumer *consumer, struct tfan *tfan)
{
	const struct tfan_event *event;
	int r;

	while ((r = tfan_next(tfan, &event)) == 1) {
		const enum tfan_kind kind = tfan_event_head(event)->kind;

		if (kind == TFAN_LOST)
			take_lost(consumer, event);
		else if (kind == TFAN_EVENT && take_event(consumer, event) < 0)
			return -1;
		if (consumer->events + consumer->lost >= consumer->wanted)
			return 0;
	}
	return r < 0 ? fail(tfan, "reading") : 0;
}

static int wait_one(struct consumer *consumer)
{
	int r = tfan_wait(consumer->connections[0], -1);

	return r < 0 && r != -EINTR ? fail(consumer->connections[0], "waiting")
				    : take(consumer, consumer->connections[0]);
}

static int wait_many(struct consumer *consumer)
{
	struct epoll_event ready[64];
	int n = epoll_wait(consumer->epoll, ready, 64, -1), r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = take(consumer, ready[i].data.ptr);
	return r;
}

static int run(struct consumer *consumer)
{
	uint64_t begin;
	int r = 0;

	/* Each connection announces that it sleeps. */
	for (size_t i = 0; r == 0 && i < consumer->connection_count; i++)
		r = take(consumer, consumer->connections[i]);
	(void)puts("ready");
	(void)fflush(stdout);
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	while (r == 0 && consumer->events + consumer->lost < consumer->wanted)
		r = consumer->connection_count == 1 ? wait_one(consumer) : wait_many(consumer);
	(void)printf("%llu %llu %llu %llu %llu\n", (unsigned long long)consumer->events,
		(unsigned long long)consumer->lost, (unsigned long long)now(CLOCK_MONOTONIC),
		(unsigned long long)(now(CLOCK_PROCESS_CPUTIME_ID) - begin),
		(unsigned long long)consumer->sum);
	for (uint64_t i = 0; consumer->ages && i < consumer->events && i < consumer->wanted; i++)
		(void)printf("%llu\n", (unsigned long long)consumer->ages[i]);
	(void)fflush(stdout);
	while (r == 0 && getchar() != EOF)
		;
	return r;
}

static int parse(int argc, char **argv, struct consumer *consumer)
{
	static const struct option options[] = {
		{ "session", required_argument, NULL, 's' },
		{ "ring", required_argument, NULL, 'r' },
		{ "count", required_argument, NULL, 'c' },
		{ "ages", no_argument, NULL, 'a' },
		{ "include-self", no_argument, NULL, 'i' },
		{ 0 },
	};
	int c, ages = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			consumer->options.session = optarg;
		else if (c == 'r')
			consumer->options.ring_size = strtoull(optarg, NULL, 10);
		else if (c == 'c')
			consumer->wanted = strtoull(optarg, NULL, 10);
		else if (c == 'a')
			ages = 1;
		else if (c == 'i')
			consumer->options.include_self = true;
		else
			return -1;
	}
	if (ages)
		consumer->ages = calloc(consumer->wanted + 1, sizeof(*consumer->ages));
	return consumer->wanted && (!ages || consumer->ages) ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct consumer consumer = { .options = TFAN_OPTIONS,
		.epoll = epoll_create1(EPOLL_CLOEXEC) };
	int r = parse(argc, argv, &consumer);

	if (r == 0)
		r = add_all(&consumer);
	if (r == 0)
		r = run(&consumer);
	for (size_t i = 0; i < consumer.connection_count; i++)
		tfan_close(consumer.connections[i]);
	free(consumer.connections);
	free(consumer.values);
	free(consumer.ages);
	(void)close(consumer.epoll);
	return r == 0 ? 0 : 1;
}
