#include "reader/reader.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/process.h"
#include "reader/policy_parse.h"
#include "reader/reader_start.h"
#include "reader/requests.h"
#include "reader/sandbox.h"
#include "reader/successor.h"
#include "shm/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long the router is waited for after the end, each time that it shows signs of life. */
#define LAST_CALL 5000000000
/* How long after each other the last looks at the kernel's buffers come at most, whatever the session's own interval: somebody
 * waits for the end. */
#define LAST_INTERVAL 4000000

/* Beside one for each CPU; while it serves it has about half of these open. */
#define FILES_NEEDED 48U

/* ---- the way to the end ---- */

static void call_last(struct reader *reader, uint64_t now)
{
	reader->last_call = now + LAST_CALL;
	reader->freed = reader->pool.freed;
	reader->probes_left = reader->provider->ops->probes(reader->provider);
}

/* A router that still works through the rest gives slots back or lets go of probes, which takes the
 * kernel its time each, and is waited for; one that doesn't is left. */
static bool router_hangs(struct reader *reader, uint64_t now)
{
	if (now < reader->last_call)
		return false;
	(void)pool_writer_available(&reader->pool);
	if (reader->pool.freed == reader->freed &&
		reader->provider->ops->probes(reader->provider) >= reader->probes_left)
		return true;
	call_last(reader, now);
	return false;
}

void reader_stop(struct reader *reader, int reason, const char *why)
{
	if (reader->state != READER_RUNNING)
		return;
	log_debug("stopping: %s", why);
	reader->state = READER_STOPPING;
	reader->end_reason = reason;
	reader->provider->ops->stop(reader->provider);
	if (reader->source->interval > LAST_INTERVAL)
		reader->source->interval = LAST_INTERVAL;
	reader->source->ops->stop(reader->source);
	call_last(reader, loop_now());
}

/* Nobody can take what is left; there is no reason to wait. */
static bool nobody_listens(const struct reader *reader)
{
	return reader->router.fd < 0;
}

static void end_stream(struct reader *reader)
{
	struct pool_entry end = {
		.kind = POOL_END, .time = loop_now(), .value = (uint64_t)reader->end_reason
	};

	if (!reader->end_noted && !pool_writer_note(&reader->pool, &end))
		reader->end_noted = true;
	(void)pool_writer_wake(&reader->pool);
	if (!reader->end_noted)
		return;
	reader->state = READER_ENDED;
	call_last(reader, loop_now());
}

/* What could be replayed of a damaged one has been. */
static void finish_replay(struct reader *reader)
{
	bool damaged = reader->replay->damaged;

	if (damaged)
		reader->status = EXIT_FAILED;
	reader_stop(reader, damaged ? END_ERROR : END_FINISHED, "the recording is at its end");
}

static void proceed(struct reader *reader, uint64_t now)
{
	if (reader->state == READER_RUNNING && reader->source->drained)
		finish_replay(reader);
	if (reader->state == READER_STOPPING && reader->source->drained)
		end_stream(reader);
	if (reader->state != READER_STOPPING && reader->state != READER_ENDED)
		return;
	if (nobody_listens(reader)) {
		reader->state = READER_DONE;
	} else if (router_hangs(reader, now)) {
		log_warning(reader->end_noted
				    ? "the router did not close after the session's end"
				    : "the router does not take what is left; it is lost");
		reader->state = READER_DONE;
	}
}

/* ---- connections ---- */

static void router_gone(void *context, struct peer *peer)
{
	struct reader *reader = context;

	(void)peer;
	reader->source->connected = false;
	if (!reader->router_ready)
		return;
	reader->router_ready = false;
	reader->provider->ops->orphan(reader->provider);
	users_forget(&reader->users);
	reader->grace = loop_now() + PROVIDER_GRACE;
	if (reader->state == READER_RUNNING)
		log_note("the router is gone; its probes stay for %d seconds",
			(int)(PROVIDER_GRACE / 1000000000));
}

static void router_connects(void *context, short revents)
{
	struct reader *reader = context;
	pid_t pid = 0;
	int fd = peer_accept(reader->dir.router, reader->router_uid, 0, &pid);

	(void)revents;
	if (fd == -EACCES)
		log_warning(
			"a process that is not the router's user connected to the router's socket");
	/* A router that was started anew may be here before the old one's end has been looked at.
	 */
	if (fd >= 0 && reader->router.fd >= 0 && peer_is_gone(&reader->router))
		peer_close(&reader->router);
	/* One router at a time: another one would read the same slots. */
	if (fd >= 0 && (reader->router.fd >= 0 ||
			       peer_open(&reader->router, &reader->loop, fd, pid) < 0)) {
		log_warning("process %d connected as a second router and was sent away", (int)pid);
		(void)close_fd(fd);
	}
	loop_arm(&reader->loop, &reader->router_listener);
}

/* The router that lived on has its connection already. */
static int take_inherited(struct reader *reader)
{
	int r = 0;

	if (reader->inherited >= 0)
		r = peer_open(&reader->router, &reader->loop, reader->inherited, reader->inherited_pid);
	if (!r)
		reader->inherited = -1;
	return r;
}

static void operator_connects(void *context, short revents)
{
	struct reader *reader = context;
	pid_t pid = 0;
	int fd = peer_accept(reader->dir.control, 0, geteuid(), &pid), r = -ENOSPC;

	(void)revents;
	for (size_t i = 0; fd >= 0 && r < 0 && i < READER_OPERATORS_MAX; i++) {
		if (reader->operators[i].fd < 0)
			r = peer_open(&reader->operators[i], &reader->loop, fd, pid);
	}
	if (fd >= 0 && r < 0)
		(void)close_fd(fd);
	loop_arm(&reader->loop, &reader->control_listener);
}

static void signal_came(void *context, short revents)
{
	struct reader *reader = context;
	struct signalfd_siginfo info;

	(void)revents;
	while (read(reader->signals.fd, &info, sizeof(info)) == sizeof(info))
		reader_stop(reader, END_STOPPED, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	loop_arm(&reader->loop, &reader->signals);
}

static void owner_speaks(void *context, short revents)
{
	struct reader *reader = context;
	char ignored[64];
	ssize_t n = read(reader->owner.fd, ignored, sizeof(ignored));

	(void)revents;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		loop_arm(&reader->loop, &reader->owner);
	else
		reader_stop(reader, END_STOPPED, "the owner is gone");
}

static int watch(
	struct reader *reader, struct loop_watch *watch, int fd, void (*ready)(void *, short))
{
	int r;

	*watch = (struct loop_watch){
		.fd = fd, .events = POLLIN, .ready = ready, .context = reader
	};
	r = loop_add(&reader->loop, watch);
	if (!r)
		loop_arm(&reader->loop, watch);
	return r;
}

/* Its children are no part of what is traced, either. */
static void helper_child(void *context, pid_t child, bool gone)
{
	struct reader *reader = context;
	const struct provider_ops *ops = reader->provider->ops;
	int r = 0;

	if (gone)
		ops->include(reader->provider, KEPT_OUT_HELPER + (uint64_t)child);
	else
		r = ops->exclude(reader->provider, KEPT_OUT_HELPER + (uint64_t)child, child);
	if (r < 0 && r != -ENOENT)
		log_warning("the helper can't be kept out of the trace: %s", strerror(-r));
}

static int watch_all(struct reader *reader)
{
	sigset_t signals;
	int fd, r;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = watch(reader, &reader->signals, fd, signal_came);
	if (!r)
		r = watch(reader, &reader->router_listener, reader->dir.router, router_connects);
	if (!r)
		r = watch(
			reader, &reader->control_listener, reader->dir.control, operator_connects);
	if (!r)
		r = helper_watch(&reader->helper, &reader->loop);
	if (!r && reader->options->owner_fd >= 0)
		r = watch(reader, &reader->owner, reader->options->owner_fd, owner_speaks);
	return r;
}

/* ---- the start ---- */

static int enter_sandbox(struct reader *reader)
{
	const struct sandbox_folders folders = {
		.tracefs = reader->has_instance ? reader->instance.root : -1,
		.instance = reader->has_instance ? reader->instance.dir : -1,
		.sessions = reader->dir.parent,
		.session = reader->dir.dir,
	};
	int r = sandbox_enter(&folders, reader->options->confinement);

	if (r < 0)
		reader->status = EXIT_FAILED;
	return r;
}

static int start(struct reader *reader)
{
	int r = reader_start(reader);

	if (r < 0)
		return r;
	r = watch_all(reader);
	if (!r)
		r = take_inherited(reader);
	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "event loop");
	/* While there is still a right to connect to it. */
	r = process_notify_open(&reader->notify);
	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "readiness socket");
	return enter_sandbox(reader);
}

/* Whoever waits for the word would wait for ever. */
static int announce(struct reader *reader)
{
	int r = process_notify(reader->notify, "READY=1");

	reader->notify = close_fd(reader->notify);
	return r < 0 ? reader_fail(reader, EXIT_FAILED, r, "telling that the session is ready") : 0;
}

/* ---- run and end ---- */

/* When the provider has something to do. */
static uint64_t provider_due(const struct reader *reader)
{
	const struct provider *provider = reader->provider;

	return reader->state == READER_RUNNING && provider->ops->due ? provider->ops->due(provider) : LOOP_NEVER;
}

static uint64_t next_deadline(const struct reader *reader)
{
	const uint64_t due = provider_due(reader);
	uint64_t deadline = reader->source->deadline;

	if (due < deadline)
		deadline = due;
	if (reader->state == READER_ENDED)
		deadline = reader->last_call;
	if (reader->state == READER_STOPPING && reader->last_call < deadline)
		deadline = reader->last_call;
	/* Only the filled ring's being full keeps a drained source from its end, and nobody tells
	 * when it isn't any more. */
	if (reader->state == READER_STOPPING && reader->source->drained)
		deadline = loop_now() + reader->source->interval;
	if (reader->grace < deadline)
		deadline = reader->grace;
	return deadline;
}

/* What the provider kept back goes at a moment when that costs nobody an event; or, if there is too
 * much of it, at once, and then consumers are told. */
static void tidy(struct reader *reader)
{
	struct pool_entry cleared = { .kind = POOL_CLEARED };

	if (reader->state == READER_RUNNING && reader->provider->ops->tidy)
		cleared.value = reader->provider->ops->tidy(reader->provider);
	if (!cleared.value)
		return;
	cleared.time = loop_now();
	if (source_note_mark(reader->source, &cleared) < 0)
		log_warning("a loss of events could not be told: too many marks wait");
}

static void run(struct reader *reader)
{
	reader->flow = (struct flow){ .loop = &reader->loop, .source = reader->source };
	reader->instance.flow = reader->has_instance ? &reader->flow : NULL;
	while (reader->state != READER_DONE) {
		uint64_t now;
		int r = loop_wait(&reader->loop, next_deadline(reader));

		now = loop_now();
		if (!r && reader->state != READER_ENDED)
			r = reader->source->ops->step(reader->source, now);
		if (r < 0) {
			(void)reader_fail(reader, EXIT_FAILED, r, "the session is interrupted");
			reader->end_reason = END_ERROR;
			end_stream(reader);
			return;
		}
		if (now >= reader->grace) {
			reader->grace = LOOP_NEVER;
			/* Who is not back by now has left. */
			reader->missing = 0;
			reader->provider->ops->sweep(reader->provider);
		}
		if (now >= provider_due(reader))
			reader->provider->ops->renew(reader->provider);
		proceed(reader, now);
		tidy(reader);
	}
}

static void answer_stops(struct reader *reader)
{
	struct control_header request = { .type = CONTROL_SESSION_STOP };

	for (size_t i = 0; i < READER_OPERATORS_MAX; i++) {
		struct peer *peer = &reader->operators[i];

		request.cookie = peer->stop_cookie;
		if (peer->fd >= 0 && peer->stop_waits)
			(void)peer_status(peer, &request, EXIT_DONE, NULL);
	}
}

/* One that could not take over leaves everything to the next that tries. */
static void abandon(struct reader *reader)
{
	reader->router.gone = NULL;
	peer_close(&reader->router);
	source_close(reader->source);
	if (reader->provider)
		live_abandon(&reader->live);
	reader->inherited = close_fd(reader->inherited);
	helper_close(&reader->helper);
	loop_close(&reader->loop);
	(void)close_fd(reader->signals.fd);
	(void)close_fd(reader->notify);
	if (reader->has_pool)
		pool_writer_release(&reader->pool);
	if (reader->has_instance)
		instance_release(&reader->instance);
	legacy_close(&reader->legacy);
	session_dir_release(&reader->dir);
}

/* Undoes whatever of the start was done. The loop goes before the instance, whose files it holds;
 * an operator who waits hears of the end when nothing is left. */
static void end(struct reader *reader)
{
	int r;

	reader->instance.flow = NULL;

	if (reader->provider)
		reader->provider->ops->stop(reader->provider);
	source_close(reader->source);
	if (reader->provider)
		reader->provider->ops->close(reader->provider);
	reader->router.gone = NULL;
	peer_close(&reader->router);
	helper_close(&reader->helper);
	loop_close(&reader->loop);
	(void)close_fd(reader->signals.fd);
	(void)close_fd(reader->notify);
	if (reader->has_pool)
		pool_writer_release(&reader->pool);
	if (reader->has_instance) {
		r = instance_remove(&reader->instance);
		if (r < 0)
			(void)reader_fail(reader, reader->status ? reader->status : EXIT_FAILED, r,
				"removal of the instance");
	}
	users_forget(&reader->users);
	policy_release(&reader->policy);
	replay_close(reader->replay);
	legacy_close(&reader->legacy);
	session_dir_remove(&reader->dir);
	answer_stops(reader);
	for (size_t i = 0; i < READER_OPERATORS_MAX; i++)
		peer_close(&reader->operators[i]);
}

static void block_signals(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	/* From here on a signal waits for the loop, so an early one also ends the session in order.
	 */
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	/* A limit on files is an error like others. */
	(void)signal(SIGXFSZ, SIG_IGN);
}

static bool may_open_enough(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	const unsigned int needed = FILES_NEEDED + (cpus > 0 ? (unsigned int)cpus : 1);
	unsigned int limit;
	const bool enough = process_need_files(needed, &limit) == 0;

	if (!enough)
		log_error("only %u files may be open here, and a reader needs %u: raise the limit, by ulimit -n 1024 or "
			  "LimitNOFILE= in its unit",
			limit, needed);
	return enough;
}

int reader_run(const struct reader_options *options)
{
	CLEANUP_FREE struct reader *reader = NULL;

	if (!may_open_enough())
		return EXIT_FAILED;
	reader = calloc(1, sizeof(*reader));
	if (!reader) {
		log_error("no memory");
		return EXIT_FAILED;
	}
	reader->options = options;
	reader->dir = (struct session_dir)SESSION_DIR_NONE;
	reader->grace = LOOP_NEVER;
	reader->started = loop_now();
	reader->signals.fd = -1;
	reader->notify = -1;
	reader->helper = (struct helper){
		.fd = -1, .done = requests_of_helper, .child = helper_child, .context = reader
	};
	reader->inherited = -1;
	reader->legacy = (struct legacy)LEGACY_NONE;
	reader->router = (struct peer){
		.fd = -1, .handle = requests_of_router, .gone = router_gone, .context = reader
	};
	for (size_t i = 0; i < READER_OPERATORS_MAX; i++)
		reader->operators[i] = (struct peer){
			.fd = -1, .handle = requests_of_operator, .context = reader
		};
	/* Modes are set one by one; until then nothing that is made here is open to anybody else.
	 */
	(void)umask(077);
	block_signals();
	if (!start(reader)) {
		if (!announce(reader))
			run(reader);
		end(reader);
	} else if (reader->adopted) {
		abandon(reader);
	} else {
		end(reader);
	}
	return reader->status;
}

int reader_remove(const struct reader_options *options)
{
	struct session_dir dir = SESSION_DIR_NONE;
	struct tracedir_problem problem;
	CLEANUP_CLOSE int root = -1;
	int r = session_dir_open(options->directory, options->session, &dir, &problem);

	/* The lock is ours, so there is no reader; what holds its place goes first. */
	if (!r) {
		r = successor_end_router(&dir);
		if (r < 0) {
			log_error("session \"%s\" has a router that does not end: %s; end it by hand", options->session,
				strerror(-r));
			session_dir_release(&dir);
			return EXIT_BUSY;
		}
		root = tracedir_open(options->tracefs, &problem);
		r = root < 0 ? root : instance_remove_leftovers(root, options->session, &problem);
	}
	session_dir_remove(&dir);
	if (r < 0)
		log_error("%s", problem.message);
	return r < 0 ? problem.status : EXIT_DONE;
}
