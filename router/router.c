#include "router/router.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/process.h"
#include "router/connect.h"
#include "router/pushdown.h"
#include "shm/recording_abi.h"
#include "shm/wake.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How long a consumer may take to leave after the end of its session, and the reader for each answer: the kernel's last
 * counts come behind the removal of probes, which takes the kernel a grace period each. */
#define END_PATIENCE_NS 5000000000U
/* Out of descriptors: one may be free again that others on the machine had. */
#define ACCEPT_AGAIN_NS 1000000000U
/* How long a new router waits for the consumers of the last one. What this process or the reader stood still, which shows after
 * so long, is none of it: nobody could come back then. */
#define RETURN_PATIENCE_NS 3000000000U
#define STANDSTILL_NS      1000000000U

/* Without a consumer it has about half of these open. */
#define FILES_NEEDED 48U

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t router_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t router_new_id(struct router *router)
{
	uint64_t id = clock_ns(CLOCK_BOOTTIME) / 1000;

	if (id <= router->last_trace_id)
		id = router->last_trace_id + 1;
	router->last_trace_id = id;
	return id;
}

/* ---- the end ---- */

void router_end(struct router *router, const struct record_end *end)
{
	if (router->ending)
		return;
	router->ending = true;
	router->end = *end;
	router->end_deadline = router_now() + END_PATIENCE_NS;
	if (router->fanout.all_generation && router->fanout.unrouted)
		log_note("%" PRIu64 " events are of kinds that no format file tells of: they are counted, and not shown",
			router->fanout.unrouted);
	if (stream_account(router, 0, 0) < 0)
		router_accounted(router, NULL);
}

/* That of a replay is the last that its recording tells of. */
static uint64_t end_time(const struct router *router)
{
	const uint64_t told = router->fanout.last_time, clock = router->stream.clock.mono;

	if (!router_recorded(router))
		return router_now();
	return told > clock ? told : clock;
}

void router_accounted(struct router *router, const struct ledger_session *session)
{
	if (!router->ending || router->ended)
		return;
	if (session) {
		router->end.session = *session;
		router->end.accounted = 1;
	}
	router->ended = true;
	for (struct consumer *c = router->consumers; c; c = c->next) {
		if (c->state != CONSUMER_READY)
			continue;
		outlet_end(&c->outlet, end_time(router), &router->end);
		fanout_touch(&router->fanout, &c->outlet);
	}
	fanout_publish(&router->fanout);
}

/* The reader is gone or the router was told to go: nothing comes any more. */
static void end_now(struct router *router, enum end_reason reason, const char *message)
{
	struct record_end end = { .reason = reason };

	(void)snprintf(end.message, sizeof(end.message), "%s", message);
	if (!router->ending) {
		router->ending = true;
		router->end = end;
		router->end_deadline = router_now() + END_PATIENCE_NS;
	}
	router_accounted(router, NULL);
}

/* Told to go while the reader lives: what has come is told, and the kernel's counts are asked for. */
static void stop_now(struct router *router)
{
	const struct record_end end = { .reason = END_STOPPED, .message = "the router was told to stop" };

	while (stream_take(router) == 1)
		;
	router_end(router, &end);
	/* Nobody takes over any more. */
	router->takeover.waiting = false;
	consumer_go_on(router);
}

/* ---- the loop ---- */

static void accept_consumers(struct router *router)
{
	for (;;) {
		int fd = accept4(router->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		int r;

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE) {
				log_warning("out of descriptors: new consumers wait");
				(void)epoll_ctl(router->epoll_fd, EPOLL_CTL_DEL, router->listen_fd, NULL);
				router->paused_accept = true;
				router->accept_again = router_now() + ACCEPT_AGAIN_NS;
			} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				log_warning("accepting a consumer: %s", strerror(errno));
			}
			return;
		}
		r = consumer_accept(router, fd);
		if (r < 0)
			log_warning("taking a consumer: %s", strerror(-r));
	}
}

static int watch(struct router *router, int fd, void *tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

	return epoll_ctl(router->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void take_stream(struct router *router)
{
	int r = stream_take(router);

	/* Whoever waits for the event that woke us is not to wait for the signal's being taken back, too. */
	if (r == 0 && router->signalled)
		(void)stream_wake(router);
	if (r < 0) {
		log_error("the reader's filled ring is damaged");
		router->status = EXIT_FAILED;
		end_now(router, END_ERROR, "the reader's filled ring is damaged");
		upstream_lost(&router->upstream);
	}
}

static void take_upstream(struct router *router)
{
	int r;

	while ((r = upstream_receive(&router->upstream)) == 1)
		router->end_deadline = router_now() + END_PATIENCE_NS;
	if (r == -EAGAIN)
		return;
	if (r < 0)
		log_error("answer of the reader: %s", strerror(-r));
	if (takeover_wait(router))
		return;
	/* What it had published is still ours. */
	while (!router->ending && stream_take(router) == 1)
		;
	upstream_lost(&router->upstream);
	if (!router->ending) {
		log_warning("the reader is gone");
		end_now(router, END_ERROR, "the session's reader is gone");
	}
}

static void take_signal(struct router *router)
{
	struct signalfd_siginfo info;

	/* Read, or the loop would not sleep any more; which of the two signals it was is no matter. */
	if (read(router->signal_fd, &info, sizeof(info)) > 0)
		router->stop = true;
}

static void handle(struct router *router, void *tag)
{
	if (tag == &router->listen_fd)
		accept_consumers(router);
	else if (tag == &router->upstream)
		take_upstream(router);
	else if (tag == &router->signal_fd)
		take_signal(router);
	else if (tag == &router->pool)
		router->signalled = true;
	else
		consumer_readable(router, tag);
}

void router_returned(struct router *router)
{
	if (router->awaited && --router->awaited == 0)
		pushdown_all(router);
}

static bool stood_still(const struct router *router, uint64_t now)
{
	return now - router->await_deadline >= STANDSTILL_NS || upstream_silent(&router->upstream, now) >= STANDSTILL_NS;
}

static bool waits_for_consumers(struct router *router)
{
	const uint64_t now = router_now();

	if (router->awaited && now >= router->await_deadline && stood_still(router, now))
		router->await_deadline = now + RETURN_PATIENCE_NS;
	if (router->awaited && now >= router->await_deadline) {
		log_warning("%u consumers of the last router did not come back", router->awaited);
		router->awaited = 0;
		pushdown_all(router);
	}
	return router->awaited && !router->stop;
}

/* ms, for poll(2); -1: `deadline` is UINT64_MAX, never. */
static int ms_until(uint64_t deadline)
{
	uint64_t now = router_now();

	if (deadline == UINT64_MAX)
		return -1;
	return now >= deadline ? 0 : (int)((deadline - now) / 1000000 + 1);
}

/* Wakes those who sleep, before this process does for `sleep` ms (-1: for ever). Returns for how long it may. */
static int wake_others(struct router *router, int sleep)
{
	const int due = ms_until(stream_wake(router));

	return due >= 0 && (sleep < 0 || due < sleep) ? due : sleep;
}

/* How long the loop may sleep (ms, -1: for ever). */
/* Who waits to be let in is looked at when a consumer has left, and from time to time. */
static void resume_accept(struct router *router, bool one_left)
{
	if (!router->paused_accept || (!one_left && router_now() < router->accept_again))
		return;
	if (watch(router, router->listen_fd, &router->listen_fd) == 0)
		router->paused_accept = false;
	else
		router->accept_again = router_now() + ACCEPT_AGAIN_NS;
}

/* Before the next sleep is announced: a signal that comes later is another. */
static void take_signal_back(struct router *router)
{
	if (router->signalled)
		(void)wake_clear(router->pool.filled_fd);
	router->signalled = false;
}

static int stream_sleep(struct router *router)
{
	if (router->ending)
		return ms_until(router->end_deadline);
	if (router->takeover.waiting)
		return ms_until(router->takeover.deadline);
	if (router->awaited)
		return ms_until(router->await_deadline);
	/* The consumer that has no room says when it has. */
	if (router->stream.stalled)
		return -1;
	return pool_reader_prepare_sleep(&router->pool) ? state_sleep(router) : 0;
}

static int sleep_time(struct router *router)
{
	int sleep = stream_sleep(router), again;

	/* After that only a sweep helps, which wakes us. */
	if (router->fanout.waits && router_now() < router->fanout.waits_until) {
		again = ms_until(router->fanout.waits_until);
		sleep = sleep >= 0 && sleep < again ? sleep : again;
	}

	if (!router->paused_accept)
		return sleep;
	again = ms_until(router->accept_again);
	return sleep >= 0 && sleep < again ? sleep : again;
}

static bool finished(struct router *router)
{
	if (!router->ending)
		return false;
	if (router->ended && !router->consumers)
		return true;
	if (router_now() < router->end_deadline)
		return false;
	log_warning("the session is over, %s",
		router->consumers ? "and not everybody has left" : "and the kernel's last counts did not come");
	return true;
}

/* Nobody took over. */
static void give_up_waiting(struct router *router)
{
	char why[sizeof(router->end.message)];

	if (!router->takeover.waiting || router->ending || router_now() < router->takeover.deadline)
		return;
	router->takeover.waiting = false;
	upstream_lost(&router->upstream);
	log_error("no reader has taken over");
	router->status = EXIT_FAILED;
	(void)snprintf(why, sizeof(why), "the session's reader is gone; start it again with: tracefan session start %.32s",
		router->welcome.session);
	end_now(router, END_ERROR, why);
	consumer_go_on(router);
}

static int loop(struct router *router)
{
	struct epoll_event events[64];

	while (!finished(router)) {
		int n, sleep;

		if (!router->ending && !waits_for_consumers(router) && !router->takeover.pausing)
		{
			take_stream(router);
			budget_check(router);
		}
		take_signal_back(router);
		sleep = sleep_time(router);
		consumer_keep_columns(router, sleep != 0);
		if (sleep)
			sleep = wake_others(router, sleep);
		n = epoll_wait(router->epoll_fd, events, 64, sleep);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			handle(router, events[i].data.ptr);
		if (router->stop && !router->ending)
			stop_now(router);
		give_up_waiting(router);
		fanout_publish(&router->fanout);
		resume_accept(router, router->sweep);
		if (router->sweep)
			consumer_sweep(router);
	}
	return 0;
}

/* ---- start ---- */

static int loop_init(struct router *router)
{
	sigset_t signals;
	int r;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	router->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	router->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (router->signal_fd < 0 || router->epoll_fd < 0)
		return -errno;
	r = watch(router, router->signal_fd, &router->signal_fd);
	if (r == 0)
		r = watch(router, router->listen_fd, &router->listen_fd);
	if (r == 0)
		r = watch(router, router->upstream.fd, &router->upstream);
	if (r == 0)
		r = watch(router, router->pool.filled_fd, &router->pool);
	return r;
}

static void release(struct router *router)
{
	int r = recorder_finish(&router->recorder);

	if (r < 0) {
		if (!router->recorder.told)
			log_error("writing the recording: %s", strerror(-r));
		router->status = EXIT_FAILED;
	}
	for (struct consumer *c = router->consumers; c; c = c->next)
		consumer_close(router, c);
	consumer_sweep(router);
	upstream_release(&router->upstream);
	state_release(router);
	stream_release(router);
	budget_release(&router->budget);
	fanout_release(&router->fanout);
	catalog_release(router->catalog);
	pool_reader_release(&router->pool);
	takeover_release(router);
	router->listen_fd = close_fd(router->listen_fd);
	router->epoll_fd = close_fd(router->epoll_fd);
	router->signal_fd = close_fd(router->signal_fd);
	router->notify_fd = close_fd(router->notify_fd);
}

/* As many consumers as the limit allows. */
static bool may_open_enough(void)
{
	unsigned int limit;
	const bool enough = process_need_files(FILES_NEEDED, &limit) == 0;

	if (!enough)
		log_error("only %u files may be open here, and a router needs %u, beside 4 for each consumer: raise the "
			  "limit, by ulimit -n 1024 or LimitNOFILE= in its unit",
			limit, FILES_NEEDED);
	return enough;
}

int router_run(const struct router_options *options)
{
	struct router *router;
	int status, r;

	if (!may_open_enough())
		return EXIT_FAILED;
	router = calloc(1, sizeof(*router));
	if (!router) {
		log_error("no memory");
		return EXIT_FAILED;
	}
	router->options = *options;
	router->epoll_fd = router->signal_fd = router->listen_fd = router->notify_fd = -1;
	router->pool = (struct pool_reader){ .pool = SEGMENT_NONE, .free = SEGMENT_NONE, .filled_fd = -1, .free_fd = -1 };
	/* Zero is standard input; the recording's own comes once a reader has answered. */
	router->recorder.fd = -1;
	upstream_init(&router->upstream, router);
	takeover_init(router);
	/* A limit on files is an error like others, and so is a pipe, of a recording or of the log, that nobody reads any more. */
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	router->status = connect_reader(router);
	if (router->status == EXIT_DONE) {
		router->await_deadline = router_now() + RETURN_PATIENCE_NS;
		r = loop_init(router);
		/* The last router may not have come to it. */
		if (r == 0 && (router->welcome.flags & SESSION_TAKEN_OVER))
			r = stream_look(router);
		if (r == 0)
			r = process_notify(router->notify_fd, "READY=1");
		if (r == 0)
			r = loop(router);
		if (r < 0) {
			log_error("running: %s", strerror(-r));
			router->status = EXIT_FAILED;
		}
	}
	release(router);
	status = router->status;
	free(router);
	return status;
}
