#include "router/consumer.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/answer.h"
#include "router/consumer_filter.h"
#include "router/consumer_status.h"
#include "router/consumer_switch.h"
#include "router/consumer_traces.h"
#include "router/kept.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* What filters keep from consumers is written down so often; before this process sleeps, too, where that costs nothing. */
#define COLUMNS_NS  100000000U
#define COLUMNS_FEW 16

/* Of one user. */
#define CONSUMER_WAITING_MAX 64

/* ---- hello, attach ---- */

static void on_hello(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_hello *hello = (const struct control_hello *)message->bytes;
	struct control_welcome welcome = {
		.source = router->welcome.source,
		.flags = router->welcome.flags,
	};

	memcpy(consumer->program, hello->program, sizeof(consumer->program));
	memcpy(welcome.session, router->welcome.session, sizeof(welcome.session));
	welcome.flags |= router->takeover.waiting ? SESSION_READERLESS : 0U;
	welcome.failure.position = -1;
	consumer->state = CONSUMER_GREETED;
	answer_send(router, consumer, &welcome, CONTROL_HELLO, sizeof(welcome), hello->header.cookie, NULL, 0);
}

static void answer_attached(struct router *router, struct consumer *consumer, uint32_t status, const struct control_failure *failure)
{
	struct control_attached attached = { .status = status };
	int fds[3] = { -1, -1, -1 };
	unsigned int count = 0;

	attached.failure.position = -1;
	if (failure)
		attached.failure = *failure;
	if (status == 0) {
		int r = ring_writer_share(&consumer->outlet.ring, fds);

		if (r < 0) {
			attached.status = EXIT_FAILED;
			control_failure_set(&attached.failure, -r, -1, "sharing the ring: %s", strerror(-r));
		} else {
			attached.ring_capacity = consumer->outlet.ring.capacity;
			count = 3;
		}
	}
	consumer->state = attached.status ? CONSUMER_GREETED : CONSUMER_READY;
	if (consumer->state == CONSUMER_READY && (consumer->flags & ATTACH_PROCESS))
		tasks_ask(&router->fanout.tasks);
	if (consumer->state == CONSUMER_READY && router->stream.clock.mono) {
		outlet_clock(&consumer->outlet, &router->stream.clock);
		fanout_touch(&router->fanout, &consumer->outlet);
	}
	answer_send(router, consumer, &attached, CONTROL_ATTACH, sizeof(attached), consumer->attach_cookie, fds, count);
	for (unsigned int i = 0; i < count; i++)
		(void)close_fd(fds[i]);
}

/* A recording begins to flow once somebody wants its events. */
static void replay_go(struct router *router)
{
	struct control_set_enabled go = { .id = 0, .enabled = 1 };
	struct upstream_request request = { .done = answer_nobody };
	int r = upstream_send(&router->upstream, &go, CONTROL_PROBE_ENABLE, sizeof(go), NULL, 0, &request);

	struct record_end end = { .reason = END_ERROR };

	if (r == 0)
		return;
	/* Nothing would ever come. */
	log_error("starting the replay: %s", strerror(-r));
	(void)snprintf(end.message, sizeof(end.message), "the replay can't be started: %s", strerror(-r));
	router_end(router, &end);
}

/* The reader hears of it in the order in which it happened. */
static void tell_left(struct router *router, struct consumer *consumer)
{
	struct control_consumer left = { .state = CONSUMER_LEFT, .consumer = consumer->number };
	struct upstream_request request = { .done = answer_nobody };

	if (!consumer->vouched)
		return;
	(void)upstream_send(&router->upstream, &left, CONTROL_CONSUMER, sizeof(left), &consumer->fd, 1, &request);
	/* The session's own processes are kept out of the trace. */
	tasks_unseen(&router->fanout.tasks);
	consumer->vouched = false;
}

/* Memory is taken only for whom the reader has let in. Returns an exit status. */
static uint32_t make_ring(struct router *router, struct consumer *consumer, struct control_failure *failure)
{
	int r = outlet_init(&consumer->outlet, consumer->ring_capacity, consumer->overflow);

	if (r == 0) {
		consumer->has_outlet = true;
		consumer->outlet.event_gone = fanout_event_gone;
		consumer->outlet.columns = fanout_columns;
		return EXIT_DONE;
	}
	control_failure_set(failure, -r, -1, "making the ring: %s", strerror(-r));
	tell_left(router, consumer);
	return EXIT_FAILED;
}

static void attach_vouched(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_failure failure = { .position = -1 };
	uint32_t status;

	if (!consumer || consumer->state != CONSUMER_ATTACHING)
		return;
	status = answer_from_reader(reply, &failure);
	consumer->vouched = status == 0;
	if (!status)
		status = make_ring(router, consumer, &failure);
	answer_attached(router, consumer, status, &failure);
	if (!status && consumer->state == CONSUMER_READY && (consumer->flags & ATTACH_ALL_EVENTS)) {
		router->fanout.all_generation++;
		replay_go(router);
	}
}

/* A replay waits for room for a whole slot's events, so its rings hold several. */
static size_t ring_capacity(const struct router *router, uint64_t asked)
{
	size_t capacity = router_recorded(router) ? RING_CAPACITY_MIN + 4 * stream_slot_room(router) : RING_CAPACITY_MIN;

	capacity = (size_t)1 << (64 - __builtin_clzll(capacity - 1));

	while (capacity < asked && capacity < RING_CAPACITY_MAX)
		capacity *= 2;
	return capacity;
}

static void on_attach(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_attach *attach = (const struct control_attach *)message->bytes;
	struct control_consumer vouch = { .state = CONSUMER_ATTACHED, .flags = attach->flags, .consumer = consumer->number };
	struct upstream_request request = { .consumer = consumer->number, .done = attach_vouched };
	struct control_failure failure = { .position = -1 };
	int r;

	consumer->attach_cookie = attach->header.cookie;
	consumer->flags = attach->flags;
	consumer->seen_time = attach->seen_time;
	consumer->seen_cpu = attach->seen_cpu;
	if ((attach->flags & ATTACH_ALL_EVENTS) && !router_recorded(router)) {
		control_failure_set(&failure, EINVAL, -1, "all events at once are for recordings: name the probes of a live session");
		answer_attached(router, consumer, EXIT_USAGE, &failure);
		return;
	}
	consumer->ring_capacity = ring_capacity(router, attach->ring_capacity);
	consumer->overflow = (enum ring_overflow)attach->overflow;
	vouch.ring_capacity = consumer->ring_capacity;
	r = upstream_send(&router->upstream, &vouch, CONTROL_CONSUMER, sizeof(vouch), &consumer->fd, 1, &request);
	if (r < 0) {
		control_failure_set(&failure, -r, -1, r == -ENOTCONN ? "the session's reader is gone: start it again" : "asking the reader: %s", strerror(-r));
		answer_attached(router, consumer, r == -ENOTCONN ? EXIT_MISSING : EXIT_FAILED, &failure);
		return;
	}
	consumer->vouched = true;
	consumer->state = CONSUMER_ATTACHING;
}

/* ---- session ---- */

static void list_answered(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_status status = { 0 };

	if (!consumer)
		return;
	status.status = answer_from_reader(reply, &status.failure);
	answer_send(router, consumer, &status, CONTROL_LIST, sizeof(status), request->consumer_cookie,
		reply ? reply->fds : NULL, reply && !status.status ? reply->fd_count : 0);
}

static void on_list(struct router *router, struct consumer *consumer, struct control_message *message)
{
	struct control_id forward = { .id = 0 };
	struct upstream_request request = {
		.consumer = consumer->number,
		.consumer_cookie = message->header.cookie,
		.done = list_answered,
	};
	int r = upstream_send(&router->upstream, &forward, CONTROL_READER_LIST, sizeof(forward), &consumer->fd, 1, &request);

	if (r < 0)
		answer_failed(router, consumer, message->header.type, message->header.cookie, r, "asking the reader");
}

static void on_flush(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_id *request = (const struct control_id *)message->bytes;
	int r = -EBUSY;

	/* After the end of the stream everything has been told already. */
	if (router->ending) {
		answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
		return;
	}
	if (consumer->flushes + outlet_flushes(&consumer->outlet) < OUTLET_FLUSHES_MAX)
		r = stream_flush(router, consumer->number, request->id);
	if (r < 0) {
		answer_failed(router, consumer, message->header.type, message->header.cookie, r, "flush");
		return;
	}
	consumer->flushes++;
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

void consumer_flushed(struct router *router, uint64_t number, uint64_t cookie, uint64_t time)
{
	struct consumer *consumer = consumer_find(router, number);

	if (!consumer || consumer->state != CONSUMER_READY)
		return;
	consumer->flushes--;
	outlet_flushed(&consumer->outlet, cookie, time);
	fanout_touch(&router->fanout, &consumer->outlet);
}

static void on_ledger(struct router *router, struct consumer *consumer, struct control_message *message)
{
	int r = stream_account(router, consumer->number, message->header.cookie);

	if (r < 0)
		consumer_accounted(router, consumer->number, message->header.cookie, NULL);
}

void consumer_accounted(struct router *router, uint64_t number, uint64_t cookie, const struct ledger_session *session)
{
	struct control_ledger ledger = { 0 };
	struct consumer *consumer;

	if (number == 0) {
		router_accounted(router, session);
		return;
	}
	consumer = consumer_find(router, number);
	if (!consumer)
		return;
	ledger.failure.position = -1;
	if (session) {
		ledger.session = *session;
		kept_sum(&router->fanout, &ledger.kept);
	} else {
		ledger.status = EXIT_FAILED;
		control_failure_set(&ledger.failure, EAGAIN, -1, "the kernel's counts can't be had now");
	}
	answer_send(router, consumer, &ledger, CONTROL_LEDGER, sizeof(ledger), cookie, NULL, 0);
}

/* All its traces are back: from here on it is like any other. */
static void on_resumed(struct router *router, struct consumer *consumer, struct control_message *message)
{
	if (consumer->flags & ATTACH_RESUME) {
		consumer->flags &= ~(uint32_t)ATTACH_RESUME;
		/* Nobody is awaited any more: what came meanwhile was not kept for it, or not even recorded. */
		outlet_gap(&consumer->outlet, consumer->seen_time, router->awaited ? 0 : router_now());
		fanout_touch(&router->fanout, &consumer->outlet);
		router_returned(router);
	}
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

/* That it came is all: the loop tries the stream again. */
static void on_room(struct router *router, struct consumer *consumer, struct control_message *message)
{
	fanout_touch(&router->fanout, &consumer->outlet);
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
}

static void on_detach(struct router *router, struct consumer *consumer, struct control_message *message)
{
	answer_status(router, consumer, message->header.type, message->header.cookie, 0, NULL);
	if (consumer->state != CONSUMER_GONE)
		consumer_close(router, consumer);
}

/* ---- messages ---- */

struct handler {
	uint16_t type;
	uint16_t states; /* enum consumer_state: where it may come */
	bool waits;      /* while there is no reader: the answer takes one */
	void (*handle)(struct router *router, struct consumer *consumer, struct control_message *message);
};

static const struct handler handlers[] = {
	{ CONTROL_HELLO, CONSUMER_NEW, false, on_hello },
	{ CONTROL_ATTACH, CONSUMER_GREETED, true, on_attach },
	{ CONTROL_CREATE, CONSUMER_READY, true, consumer_on_create },
	{ CONTROL_SCHEMA, CONSUMER_READY, false, consumer_on_schema },
	{ CONTROL_SET_FILTER, CONSUMER_READY, true, consumer_on_set_filter },
	{ CONTROL_SET_SHARED, CONSUMER_READY, true, consumer_on_set_filter },
	{ CONTROL_SET_ENABLED, CONSUMER_READY, true, consumer_on_set_enabled },
	{ CONTROL_STATS, CONSUMER_READY, false, consumer_on_stats },
	{ CONTROL_EXPLAIN, CONSUMER_READY, false, consumer_on_explain },
	{ CONTROL_CLOSE, CONSUMER_READY, true, consumer_on_close },
	{ CONTROL_LIST, CONSUMER_GREETED | CONSUMER_READY, true, on_list },
	{ CONTROL_FLUSH, CONSUMER_READY, true, on_flush },
	{ CONTROL_LEDGER, CONSUMER_READY, true, on_ledger },
	{ CONTROL_RESUMED, CONSUMER_READY, true, on_resumed },
	{ CONTROL_CAPTURE, CONSUMER_READY, true, state_on_capture },
	{ CONTROL_ROOM, CONSUMER_READY, false, on_room },
	{ CONTROL_STATUS, CONSUMER_GREETED | CONSUMER_READY, false, consumer_on_status },
	{ CONTROL_DETACH, CONSUMER_GREETED | CONSUMER_READY, false, on_detach },
	{ CONTROL_READER, CONSUMER_NEW, false, takeover_on_reader },
	{ CONTROL_READER_END, CONSUMER_NEW, false, takeover_on_end },
};

static int keep(struct consumer *consumer, struct control_message *message)
{
	consumer->kept = malloc(sizeof(*consumer->kept));
	if (!consumer->kept)
		return -ENOMEM;
	*consumer->kept = *message;
	/* Its descriptors, too. */
	message->fd_count = 0;
	return 0;
}

static void drop_kept(struct consumer *consumer)
{
	if (consumer->kept)
		control_message_release(consumer->kept);
	free(consumer->kept);
	consumer->kept = NULL;
}

static int dispatch(struct router *router, struct consumer *consumer, struct control_message *message)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type != message->header.type)
			continue;
		if (!(handlers[i].states & consumer->state))
			return -EPROTO;
		if (handlers[i].waits && router->takeover.waiting)
			return keep(consumer, message);
		handlers[i].handle(router, consumer, message);
		return 0;
	}
	return -EPROTO;
}

/* One request at a time. */
static void watch_socket(struct router *router, struct consumer *consumer)
{
	bool paused = consumer->unanswered;
	struct epoll_event event = { .events = paused ? 0 : EPOLLIN, .data.ptr = consumer };

	if (consumer->paused != paused && epoll_ctl(router->epoll_fd, EPOLL_CTL_MOD, consumer->fd, &event) == 0)
		consumer->paused = paused;
}

void consumer_answered(struct router *router, struct consumer *consumer)
{
	consumer->unanswered = false;
	watch_socket(router, consumer);
}

static void take_message(struct router *router, struct consumer *consumer, struct control_message *message)
{
	int r = control_check(message);

	consumer->unanswered = true;
	if (r == 0)
		r = dispatch(router, consumer, message);
	control_message_release(message);
	/* What more of them would cost the reader, others would wait for. */
	if (r == 0 && consumer->state != CONSUMER_GONE)
		watch_socket(router, consumer);
	if (r < 0) {
		log_note("consumer %" PRIu64 " broke the protocol: %s", consumer->number, strerror(-r));
		consumer_close(router, consumer);
	}
}

void consumer_tell_reader(struct router *router, bool has_one)
{
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->has_outlet)
			ring_writer_tell_reader(&c->outlet.ring, has_one);
	}
}

void consumer_keep_columns(struct router *router, bool sleeps)
{
	const uint64_t now = router_now();
	unsigned int few = 0;

	/* A recording's router has no successor. */
	if (router_recorded(router))
		return;
	for (const struct consumer *c = router->consumers; c && few <= COLUMNS_FEW; c = c->next)
		few++;
	if (now < router->columns_due && !(sleeps && few <= COLUMNS_FEW))
		return;
	router->columns_due = now + COLUMNS_NS;
	fanout_publish(&router->fanout);
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->has_outlet)
			fanout_columns(&c->outlet);
	}
}

void consumer_go_on(struct router *router)
{
	for (struct consumer *c = router->consumers; c; c = c->next) {
		struct control_message *kept = c->kept;

		if (!kept || router->takeover.waiting)
			continue;
		c->kept = NULL;
		take_message(router, c, kept);
		free(kept);
	}
}

void consumer_readable(struct router *router, struct consumer *consumer)
{
	struct control_message message;
	int r;

	if (consumer->state == CONSUMER_GONE)
		return;
	/* Nothing but its end is told of it. */
	if (consumer->paused) {
		consumer_close(router, consumer);
		return;
	}
	r = control_receive(consumer->fd, &message);
	if (r == 1) {
		take_message(router, consumer, &message);
	} else if (r != -EAGAIN) {
		if (r < 0)
			log_note("consumer %" PRIu64 " broke the protocol: %s", consumer->number, strerror(-r));
		consumer_close(router, consumer);
	}
}

/* A user who only connects must not take the descriptors that others attach with. Root could have them all anyway. */
static bool may_wait(const struct router *router, uid_t uid)
{
	unsigned int waiting = 0;

	for (const struct consumer *c = router->consumers; c && uid; c = c->next)
		waiting += c->uid == uid && c->state < CONSUMER_READY;
	return waiting < CONSUMER_WAITING_MAX;
}

/* Says why, without having been asked: nothing that the user sends is waited for. */
static void turn_away(int fd, uid_t uid)
{
	struct control_welcome welcome = { .status = EXIT_NOT_PERMITTED };

	control_header_init(&welcome.header, CONTROL_HELLO + CONTROL_REPLY, sizeof(welcome), 0);
	control_failure_set(&welcome.failure, EDQUOT, -1,
		"user %u has %d connections that are not attached, which is the limit: close some", (unsigned int)uid, CONSUMER_WAITING_MAX);
	(void)control_send(fd, &welcome, NULL, 0);
	(void)close_fd(fd);
}

int consumer_accept(struct router *router, int fd)
{
	struct consumer *consumer;
	struct epoll_event event = { .events = EPOLLIN };
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || !may_wait(router, who.uid)) {
		turn_away(fd, who.uid);
		return 0;
	}
	consumer = aligned_alloc(_Alignof(struct consumer), sizeof(*consumer));
	if (consumer)
		memset(consumer, 0, sizeof(*consumer));
	event.data.ptr = consumer;

	if (!consumer || epoll_ctl(router->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = consumer ? -errno : -ENOMEM;

		free(consumer);
		(void)close_fd(fd);
		return r;
	}
	consumer->fd = fd;
	consumer->uid = who.uid;
	consumer->pid = who.pid;
	consumer->state = CONSUMER_NEW;
	consumer->number = ++router->next_consumer;
	consumer->next = router->consumers;
	router->consumers = consumer;
	return 0;
}

void consumer_close(struct router *router, struct consumer *consumer)
{
	if (consumer->state == CONSUMER_GONE)
		return;
	/* It will not come back any more, so nobody needs to wait for it. */
	if (consumer->state == CONSUMER_READY && (consumer->flags & ATTACH_RESUME))
		router_returned(router);
	if (consumer->state == CONSUMER_READY && (consumer->flags & ATTACH_PROCESS))
		router->fanout.tasks.asks--;
	if (consumer->has_outlet) {
		consumer_traces_drop(router, consumer->number);
		fanout_forget(&router->fanout, &consumer->outlet);
		outlet_release(&consumer->outlet);
		consumer->has_outlet = false;
	}
	tell_left(router, consumer);
	drop_kept(consumer);
	consumer->state = CONSUMER_GONE;
	/* Closing alone does not end the watch: the reader got this socket, too, and as long as it lies there,
	 * be it in a message that was not read yet, the kernel would go on to name a consumer that was freed. */
	(void)epoll_ctl(router->epoll_fd, EPOLL_CTL_DEL, consumer->fd, NULL);
	consumer->fd = close_fd(consumer->fd);
	router->sweep = true;
}

void consumer_sweep(struct router *router)
{
	struct consumer **place = &router->consumers;

	while (*place) {
		struct consumer *consumer = *place;

		if (consumer->state != CONSUMER_GONE) {
			place = &consumer->next;
			continue;
		}
		*place = consumer->next;
		free(consumer);
	}
	router->sweep = false;
}

struct consumer *consumer_find(struct router *router, uint64_t number)
{
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->number == number)
			return c->state == CONSUMER_GONE ? NULL : c;
	}
	return NULL;
}
