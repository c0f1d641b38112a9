#include "router/takeover.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/answer.h"
#include "router/pushdown.h"
#include "router/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a session goes on without a reader. */
#define PATIENCE_SECONDS 30

static const struct pool_reader pool_none = { .pool = SEGMENT_NONE, .free = SEGMENT_NONE, .filled_fd = -1, .free_fd = -1 };

void takeover_init(struct router *router)
{
	router->takeover = (struct takeover){ .heir = -1, .remover = -1, .next = pool_none };
}

void takeover_release(struct router *router)
{
	struct takeover *takeover = &router->takeover;

	takeover->heir = close_fd(takeover->heir);
	takeover->remover = close_fd(takeover->remover);
	if (takeover->has_next)
		pool_reader_release(&takeover->next);
	takeover->has_next = false;
	takeover->slots = 0;
	takeover_tidy(router);
}

/* ---- asking the new reader for what we had from the last one ---- */

static void keep_answered(void *context, const struct upstream_request *request, struct control_message *answer)
{
	struct router *router = context;
	struct consumer *consumer = consumer_find(router, request->consumer);
	struct control_failure failure;

	/* Without an answer this reader is gone, too, and the next will be asked. */
	if (!answer || !answer_from_reader(answer, &failure))
		return;
	log_warning("the new reader: %s", failure.message);
	/* It comes back by itself, and makes its traces anew. */
	if (consumer)
		consumer_close(router, consumer);
}

static int keep_probe(struct router *router, uint64_t probe_id, bool enabled, uint64_t consumer)
{
	struct control_probe_keep message = { .id = probe_id, .consumer = consumer, .enabled = enabled };
	struct upstream_request request = { .consumer = consumer, .done = keep_answered };

	return upstream_send(&router->upstream, &message, CONTROL_PROBE_KEEP, sizeof(message), NULL, 0, &request);
}

static int keep_probes(struct router *router)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < router->fanout.route_count; i++) {
		struct route *route = router->fanout.routes[i];

		if (route->own_probe)
			r = keep_probe(router, route->own_probe, true, 0);
		for (uint32_t k = 0; r == 0 && k < route->trace_count; k++)
			r = keep_probe(router, route->traces[k]->probe_id, route->traces[k]->enabled, route->traces[k]->consumer);
		/* Whether the last filter reached the kernel is not known. */
		if (route->pushed && route->trace_count) {
			free(route->pushed);
			route->pushed = strdup("?");
			r = r == 0 && !route->pushed ? -ENOMEM : r;
		}
	}
	return r;
}

static void name_consumers(struct router *router)
{
	for (struct consumer *c = router->consumers; c; c = c->next) {
		struct control_consumer message = {
			.state = CONSUMER_ATTACHED, .flags = c->flags | ATTACH_RESUME, .consumer = c->number, .ring_capacity = c->ring_capacity,
		};
		struct upstream_request request = { .done = answer_nobody };

		if (c->state == CONSUMER_READY &&
			upstream_send(&router->upstream, &message, CONTROL_CONSUMER, sizeof(message), &c->fd, 1, &request) < 0)
			log_warning("consumer %" PRIu64 " can't be named to the new reader", c->number);
	}
}

/* ---- the new reader ---- */

static void refuse(int fd, uint64_t cookie, uint32_t status, int error, const char *why)
{
	struct control_heir answer = { .status = status };

	control_failure_set(&answer.failure, error, -1, "%s", why);
	control_header_init(&answer.header, CONTROL_READER + CONTROL_REPLY, sizeof(answer), cookie);
	(void)control_send(fd, &answer, NULL, 0);
	(void)close_fd(fd);
}

/* What the router was built on has to be the same. */
static bool same_session(const struct control_router_welcome *old, const struct control_router_welcome *new)
{
	return old->source == new->source && old->cpu_count == new->cpu_count && !strcmp(old->session, new->session) &&
		!strcmp(old->group, new->group) && !strcmp(old->tag, new->tag);
}

static int take_pool(struct router *router, struct control_message *answer)
{
	struct takeover *takeover = &router->takeover;
	struct pool_reader pool;
	int r = pool_reader_attach(answer->fds, &pool);

	if (r < 0)
		return r;
	for (int i = 0; i < 4; i++)
		answer->fds[i] = -1;
	/* Of a reader that died before its turn came: what it published is told as lost. */
	if (takeover->has_next)
		pool_reader_release(&takeover->next);
	takeover->next = pool;
	takeover->has_next = true;
	takeover->pausing = false;
	return 0;
}

static void welcomed(void *context, const struct upstream_request *request, struct control_message *answer)
{
	struct router *router = context;
	const struct control_router_welcome *welcome = answer ? (const struct control_router_welcome *)answer->bytes : NULL;
	int r;

	(void)request;
	if (!welcome)
		return;
	r = welcome->status || !same_session(&router->welcome, welcome) ? -EPROTO : take_pool(router, answer);
	if (r == 0) {
		log_note("another reader has taken over");
		return;
	}
	log_error("the reader that takes over: %s", welcome->status ? welcome->failure.message : strerror(-r));
	/* Its end is what the loop sees next. */
	(void)shutdown(router->upstream.fd, SHUT_RDWR);
}

static int greet(struct router *router)
{
	struct control_router_hello hello;
	struct upstream_request request = { .done = welcomed };

	return upstream_send(&router->upstream, &hello, CONTROL_ROUTER, sizeof(hello), NULL, 0, &request);
}

/* All that it has to know goes out at once, in this order; it is answered when the reader runs. */
static int begin(struct router *router)
{
	struct takeover *takeover = &router->takeover;
	struct control_heir heir = {
		.router_pid = (int32_t)getpid(),
		.decoded = router->fanout.decoded,
		.undecodable = router->fanout.undecodable,
		.told_lost = router->stream.told_lost,
		.lost_reader = router->stream.counters.lost_reader,
	};
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &router->upstream };
	int r;

	for (const struct consumer *c = router->consumers; c; c = c->next)
		heir.consumers += c->state == CONSUMER_READY;
	takeover->pausing = true;
	heir.failure.position = -1;
	control_header_init(&heir.header, CONTROL_READER + CONTROL_REPLY, sizeof(heir), takeover->heir_cookie);
	router->upstream.fd = TAKE_FD(takeover->heir);
	if (epoll_ctl(router->epoll_fd, EPOLL_CTL_ADD, router->upstream.fd, &event) < 0)
		return -errno;
	takeover->waiting = false;
	r = control_send(router->upstream.fd, &heir, &router->listen_fd, 1);
	if (r == 0)
		r = greet(router);
	if (r < 0)
		return r;
	name_consumers(router);
	r = keep_probes(router);
	if (r == 0)
		r = upstream_send_again(&router->upstream);
	if (r < 0)
		return r;
	pushdown_all(router);
	stream_ask_again(router);
	consumer_tell_reader(router, true);
	consumer_go_on(router);
	return stream_look(router);
}

static void try_begin(struct router *router)
{
	int r = begin(router);

	if (r == 0)
		return;
	log_error("taking a new reader: %s", strerror(-r));
	if (router->upstream.fd >= 0)
		(void)shutdown(router->upstream.fd, SHUT_RDWR);
}

static bool is_reader(const struct router *router, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == router->takeover.reader_uid;
}

/* It is no consumer. Returns its connection. */
static int take_connection(struct router *router, struct consumer *consumer)
{
	int fd = consumer->fd;

	(void)epoll_ctl(router->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	consumer->fd = -1;
	consumer->state = CONSUMER_GONE;
	router->sweep = true;
	return fd;
}

void takeover_on_end(struct router *router, struct consumer *consumer, struct control_message *message)
{
	struct takeover *takeover = &router->takeover;
	struct control_status answer = { .failure.position = -1 };
	CLEANUP_CLOSE int fd = take_connection(router, consumer);

	if (!is_reader(router, fd)) {
		answer.status = EXIT_NOT_PERMITTED;
		control_failure_set(&answer.failure, EPERM, -1, "only a user who may read the kernel's buffers can end a session");
	}
	control_header_init(&answer.header, CONTROL_READER_END + CONTROL_REPLY, sizeof(answer), message->header.cookie);
	if (control_send(fd, &answer, NULL, 0) < 0 || answer.status)
		return;
	log_note("told to end, since the session is to be removed");
	/* Whose end of file says that this router is gone. */
	(void)close_fd(takeover->remover);
	takeover->remover = TAKE_FD(fd);
	router->stop = true;
}

void takeover_on_reader(struct router *router, struct consumer *consumer, struct control_message *message)
{
	struct takeover *takeover = &router->takeover;
	int fd = take_connection(router, consumer);

	if (!is_reader(router, fd)) {
		refuse(fd, message->header.cookie, EXIT_NOT_PERMITTED, EPERM, "only a user who may read the kernel's buffers can take over");
	} else if (router->ending || !(router->welcome.flags & SESSION_LASTING)) {
		refuse(fd, message->header.cookie, EXIT_BUSY, ESHUTDOWN, "the session is at its end");
	} else if (takeover->heir >= 0) {
		refuse(fd, message->header.cookie, EXIT_BUSY, EBUSY, "another reader is about to take over");
	} else {
		takeover->heir = fd;
		takeover->heir_cookie = message->header.cookie;
		if (takeover->waiting)
			try_begin(router);
	}
}

bool takeover_wait(struct router *router)
{
	struct takeover *takeover = &router->takeover;

	if (router->ending || !(router->welcome.flags & SESSION_LASTING))
		return false;
	/* A reader that dies while it takes over does not make the wait any longer. */
	if (router->takeover.deadline <= router_now())
		takeover->deadline = router_now() + UINT64_C(1000000000) * PATIENCE_SECONDS;
	takeover->waiting = true;
	takeover->pausing = false;
	upstream_cut(&router->upstream);
	log_warning("the reader is gone; waiting for one that takes over");
	consumer_tell_reader(router, false);
	if (takeover->heir >= 0)
		try_begin(router);
	return true;
}

/* ---- pools ---- */

static int watch_pool(struct router *router)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &router->pool };

	return epoll_ctl(router->epoll_fd, EPOLL_CTL_ADD, router->pool.filled_fd, &event) < 0 ? -errno : 0;
}

int takeover_switch(struct router *router)
{
	struct takeover *takeover = &router->takeover;
	struct stream *stream = &router->stream;
	struct pool_reader *pools;
	uint32_t *done;

	if (!takeover->has_next)
		return 0;
	pools = realloc(takeover->pools, (takeover->pool_count + 1) * sizeof(*pools));
	if (!pools)
		return -ENOMEM;
	takeover->pools = pools;
	done = calloc(takeover->next.slot_count, sizeof(*done));
	if (!done)
		return -ENOMEM;
	free(stream->done);
	stream->done = done;
	(void)epoll_ctl(router->epoll_fd, EPOLL_CTL_DEL, router->pool.filled_fd, NULL);
	takeover->slots += merge_disown(&stream->merge);
	takeover->lost_from = router_text(router) ? router->fanout.last_time : merge_horizon(&stream->merge);
	takeover->pools[takeover->pool_count++] = router->pool;
	router->pool = takeover->next;
	takeover->next = pool_none;
	takeover->has_next = false;
	takeover->deadline = 0;
	takeover_count(router);
	takeover_tidy(router);
	return watch_pool(router) < 0 ? -ENOMEM : 1;
}

void takeover_released(struct router *router)
{
	router->takeover.slots--;
}

void takeover_count(struct router *router)
{
	struct takeover *takeover = &router->takeover;
	struct pool_counters counters = router->stream.counters;

	if (takeover->has_next) {
		counters.decoded = router->fanout.decoded;
		pool_reader_count(&takeover->next, &counters);
	} else if (takeover->pool_count) {
		router->stream.counters.decoded += merge_told(&router->stream.merge, MERGE_DISOWNED);
		pool_reader_count(&router->pool, &router->stream.counters);
	}
}

void takeover_tidy(struct router *router)
{
	struct takeover *takeover = &router->takeover;

	if (takeover->slots || !takeover->pools)
		return;
	while (takeover->pool_count)
		pool_reader_release(&takeover->pools[--takeover->pool_count]);
	free(takeover->pools);
	takeover->pools = NULL;
}

/* ---- what was lost ---- */

void takeover_accounted(struct router *router, const struct ledger_kernel *kernel, uint64_t decoded, uint64_t undecodable)
{
	struct stream *stream = &router->stream;
	const uint64_t known = decoded + undecodable + stream->counters.lost_reader;

	if (kernel->read <= known)
		return;
	log_note("a reader that died took %" PRIu64 " events with it", kernel->read - known);
	stream->counters.lost_reader += kernel->read - known;
	/* Threads may have come and gone among them. */
	state_doubt(router, router_now());
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		c->outlet.reader_total = stream->counters.lost_reader;
		outlet_lost(&c->outlet, LOST_READER, RECORD_CPU_NONE, kernel->read - known, router->takeover.lost_from, router_now());
		fanout_touch(&router->fanout, &c->outlet);
	}
}
