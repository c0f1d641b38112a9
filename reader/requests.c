#include "reader/requests.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/admission.h"
#include "reader/reader.h"
#include "reader/standing.h"
#include "shm/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How many refusals are logged in how many ns. */
#define REFUSALS_MAX    20
#define REFUSALS_WINDOW UINT64_C(10000000000)

/* When a request is allowed. Before its hello the router may say nothing else. */
enum request_state {
	STATE_NEW = 1 << 0, /* connected, no hello yet */
	STATE_RUNNING = 1 << 1,
	STATE_ENDING = 1 << 2, /* the session is being stopped, or has been */
};

typedef int request_fn(struct reader *reader, struct peer *peer, struct control_message *message);

struct request {
	uint16_t type;
	uint16_t states;
	request_fn *handle;
};

/* The router's own probes: what it needs to know who a thread is. */
static const struct {
	const char *system;
	const char *event;
} router_events[] = {
	{ "task", "task_newtask" },
	{ "task", "task_rename" },
	{ "sched", "sched_process_exec" },
	{ "sched", "sched_process_exit" },
	{ "cgroup", "cgroup_attach_task" },
	{ "syscalls", "sys_exit_setuid" },
	{ "syscalls", "sys_exit_setreuid" },
	{ "syscalls", "sys_exit_setresuid" },
	{ "syscalls", "sys_exit_setgid" },
	{ "syscalls", "sys_exit_setregid" },
	{ "syscalls", "sys_exit_setresgid" },
};

static int refuse(struct peer *peer, const struct control_message *message, int status, int error,
	const char *why)
{
	struct control_failure failure;

	control_failure_set(&failure, error, -1, "%s", why);
	return peer_status(peer, &message->header, status, &failure);
}

/* Replies with a status and one descriptor, which is closed. A negative descriptor is the error. */
static int reply_blob(
	struct peer *peer, const struct control_message *message, int blob, const char *what)
{
	CLEANUP_CLOSE int fd = blob;
	struct control_status reply = { .status = EXIT_DONE };
	struct control_failure failure;

	if (blob < 0) {
		control_failure_set(&failure, blob, -1, "%s: %s", what, strerror(-blob));
		return peer_status(peer, &message->header, EXIT_FAILED, &failure);
	}
	control_header_init(&reply.header, message->header.type | CONTROL_REPLY, sizeof(reply),
		message->header.cookie);
	return peer_reply(peer, &reply, &fd, 1);
}

/* ---- the router's ---- */

static int send_welcome(
	struct reader *reader, struct peer *peer, const struct control_message *message)
{
	struct control_router_welcome reply = { .status = EXIT_DONE };
	const struct provider *provider = reader->provider;
	int fds[7] = { -1, -1, -1, -1, -1, -1, -1 };
	int r;

	control_header_init(&reply.header, message->header.type | CONTROL_REPLY, sizeof(reply),
		message->header.cookie);
	reply.source = provider->source;
	reply.flags = provider->flags | reader->flags;
	reply.cpu_count = provider->cpu_count;
	reply.consumers = reader->consumers + reader->missing;
	(void)control_text(reply.session, sizeof(reply.session), reader->options->session);
	memcpy(reply.group, provider->group, sizeof(reply.group));
	memcpy(reply.tag, provider->tag, sizeof(reply.tag));
	r = pool_writer_share(&reader->pool, fds);
	if (r < 0)
		return r;
	fds[4] = reader->dir.consumers;
	fds[5] = provider->ops->facts(reader->provider);
	fds[6] = provider->ops->names(reader->provider);
	if (fds[5] < 0 || fds[6] < 0)
		r = fds[5] < 0 ? fds[5] : fds[6];
	else
		r = peer_reply(peer, &reply, fds, 7);
	for (int i = 0; i < 7; i++) {
		if (i != 4)
			(void)close_fd(fds[i]);
	}
	return r;
}

static int hello(struct reader *reader, struct peer *peer, struct control_message *message)
{
	int r = 0;

	/* The last router may have died with slots in its hands, and with entries that it had not
	 * looked at. */
	if (reader->router_seen)
		r = pool_writer_republish(&reader->pool);
	reader->router_seen = true;
	if (!r)
		r = reader->provider->ops->exclude(reader->provider, KEPT_OUT_ROUTER, peer->pid);
	/* A kernel without set_event_notrace_pid traces the router, too. */
	if (r == -ENOENT)
		r = 0;
	if (!r)
		r = send_welcome(reader, peer, message);
	if (r < 0) {
		/* It was no router yet, so that nobody tells when it is gone. */
		reader->provider->ops->include(reader->provider, KEPT_OUT_ROUTER);
		return r;
	}
	reader->router_ready = true;
	reader->routers++;
	/* They come back one by one, and are counted as they do. */
	reader->missing += reader->consumers;
	reader->consumers = 0;
	/* Consumers come back within a moment, and then refer to what the old router had for them.
	 */
	if (reader->grace != LOOP_NEVER)
		reader->grace = loop_now() + PROVIDER_GRACE;
	reader->source->connected = true;
	(void)source_flush(reader->source, NULL);
	log_debug("router is process %d", (int)peer->pid);
	return 0;
}

/* Somebody who is refused again and again must not fill the log. */
static void log_refusal(struct reader *reader, const struct control_failure *failure)
{
	uint64_t now = loop_now();

	if (now - reader->refusals_since >= REFUSALS_WINDOW) {
		reader->refusals_since = now;
		reader->refusals = 0;
	}
	if (reader->refusals++ < REFUSALS_MAX)
		log_note("refused: %s", failure->message);
	else
		log_debug("refused: %s", failure->message);
	if (reader->refusals == REFUSALS_MAX + 1)
		log_note("refused: more, which are told of again in %d seconds",
			(int)(REFUSALS_WINDOW / 1000000000));
}

/* Who is behind the consumer's socket, which comes first among the descriptors. Returns an enum
 * exit_status. */
static int identify(struct reader *reader, const struct control_message *message,
	struct policy_identity *ret, struct control_failure *failure)
{
	struct pollfd state = { .fd = message->fds[0] };
	int r = policy_identify(message->fds[0], reader->consumers_path, ret);

	if (r < 0) {
		control_failure_set(failure, r, -1,
			"the descriptor is not the socket of a consumer of this session");
		return EXIT_NOT_PERMITTED;
	}
	/* The kernel's word of who was there outlasts the connection; nobody speaks for the absent.
	 */
	if (poll(&state, 1, 0) > 0 && state.revents & (POLLHUP | POLLERR)) {
		control_failure_set(failure, ENOTCONN, -1,
			"the consumer of user %u is not connected any more",
			(unsigned int)ret->uid);
		return EXIT_NOT_PERMITTED;
	}
	return EXIT_DONE;
}

static int check_own(const struct control_create *create, struct control_failure *failure)
{
	for (size_t i = 0; create->kind == PROBE_TRACEPOINT && i < ARRAY_SIZE(router_events); i++) {
		if (!strcmp(create->system, router_events[i].system) &&
			!strcmp(create->event, router_events[i].event))
			return EXIT_DONE;
	}
	control_failure_set(failure, EPERM, -1,
		"the router may ask for %s:%s in a consumer's name only", create->system,
		create->event);
	return EXIT_NOT_PERMITTED;
}

/* Whose probe it will be, and under which conditions. Returns an enum exit_status. */
static int admit_probe(struct reader *reader, const struct control_message *message,
	struct control_probe_created *reply)
{
	const struct control_create *create = (const void *)message->bytes;
	int target = message->fd_count > 1 ? message->fds[1] : -1;
	struct policy_identity identity;
	struct policy_grant grant;
	int status;

	reply->owner = CONTROL_OWNER_ROUTER;
	if (!message->fd_count)
		return check_own(create, &reply->failure);
	status = identify(reader, message, &identity, &reply->failure);
	if (!status)
		status = admission_probe(
			&reader->policy, &identity, create, target, &grant, &reply->failure);
	if (!status)
		status = users_room(&reader->users, &reader->policy, &identity, &reply->failure);
	if (status)
		return status;
	reply->owner = identity.uid;
	reply->scope = grant.own ? SCOPE_OWN : SCOPE_ALL;
	reply->rate = grant.rate;
	reply->owner_rate = policy_limits_of(&reader->policy, &identity)->rate;
	return EXIT_DONE;
}

/* What a consumer means by an event of the system of standing probes: the configuration's definition of it. */
static int find_standing(const struct reader *reader, const struct control_create **create, int *target,
	struct control_failure *failure)
{
	const struct standing *standing;

	if ((*create)->kind != PROBE_TRACEPOINT || strcmp((*create)->system, STANDING_SYSTEM) != 0 || reader->replay)
		return EXIT_DONE;
	standing = standing_find(reader->options->standing, reader->options->standing_count, *create);
	if (!standing) {
		control_failure_set(failure, ENOENT, -1, "the session's configuration has no probe \"%s\"", (*create)->event);
		return EXIT_LOCATION;
	}
	*create = &standing->create;
	*target = standing->target;
	return EXIT_DONE;
}

static int create_probe(struct reader *reader, const struct control_message *message,
	struct provider_created *created, struct control_probe_created *reply)
{
	const struct control_create *create = (const void *)message->bytes;
	int target = message->fd_count > 1 ? message->fds[1] : -1;
	int status = admit_probe(reader, message, reply);
	struct control_failure ignored;

	if (status) {
		log_refusal(reader, &reply->failure);
		return status;
	}
	status = find_standing(reader, &create, &target, &reply->failure);
	if (!status)
		status = reader->provider->ops->create(
			reader->provider, create, target, created, &reply->failure);
	/* Mostly a mistake of the user's, who is told. */
	if (status)
		log_debug("refused: %s", reply->failure.message);
	if (!status && reply->owner == CONTROL_OWNER_ROUTER && reader->provider->ops->own)
		reader->provider->ops->own(reader->provider, created->id);
	if (status || users_own(&reader->users, reply->owner, created->id) == 0)
		return status;
	created->format = close_fd(created->format);
	(void)reader->provider->ops->close_probe(reader->provider, created->id, &ignored);
	control_failure_set(&reply->failure, ENOMEM, -1, "no memory for the probe");
	return EXIT_FAILED;
}

static int probe_create_request(
	struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct control_probe_created reply = { 0 };
	struct provider_created created = { .format = -1 };
	int r;

	control_header_init(&reply.header, message->header.type | CONTROL_REPLY, sizeof(reply),
		message->header.cookie);
	if (reader->state != READER_RUNNING) {
		control_failure_set(&reply.failure, ESHUTDOWN, -1, "the session is being stopped");
		reply.status = EXIT_FAILED;
	} else {
		reply.status = (uint32_t)create_probe(reader, message, &created, &reply);
	}
	if (reply.status)
		return peer_reply(peer, &reply, NULL, 0);
	reply.shared = created.shared;
	reply.probe_id = created.id;
	memcpy(reply.system, created.system, sizeof(reply.system));
	memcpy(reply.event, created.event, sizeof(reply.event));
	memset(&reply.failure, 0, sizeof(reply.failure));
	r = peer_reply(peer, &reply, &created.format, 1);
	(void)close_fd(created.format);
	return r;
}

static int probe_enable(struct reader *reader, struct peer *peer, struct control_message *message)
{
	const struct control_set_enabled *request = (const void *)message->bytes;
	struct control_failure failure;
	int status;

	/* A replay may have read all its file already, and the router holds it still. */
	if (request->enabled && reader->state != READER_RUNNING && !reader->replay)
		return refuse(
			peer, message, EXIT_FAILED, ESHUTDOWN, "the session is being stopped");
	status = reader->provider->ops->enable(
		reader->provider, request->id, request->enabled, &failure);
	return peer_status(peer, &message->header, status, &failure);
}

static int probe_filter(struct reader *reader, struct peer *peer, struct control_message *message)
{
	const struct control_set_filter *request = (const void *)message->bytes;
	struct control_failure failure;
	int status = reader->provider->ops->filter(
		reader->provider, request->id, request->filter, &failure);

	return peer_status(peer, &message->header, status, &failure);
}

static int probe_close(struct reader *reader, struct peer *peer, struct control_message *message)
{
	const struct control_probe_close *request = (const void *)message->bytes;
	struct control_failure failure;
	int status;

	if (!users_disown(&reader->users, request->owner, request->id)) {
		control_failure_set(&failure, ENOENT, -1, "user %u has no probe %llu",
			request->owner, (unsigned long long)request->id);
		log_refusal(reader, &failure);
		return peer_status(peer, &message->header, EXIT_FAILED, &failure);
	}
	status = reader->provider->ops->close_probe(reader->provider, request->id, &failure);

	return peer_status(peer, &message->header, status, &failure);
}

/* Policy was asked when the probe was made; who has lost a right since then is not looked for. */
static int keep_probe(struct reader *reader, const struct control_probe_keep *request,
	struct control_failure *failure)
{
	const struct provider_ops *ops = reader->provider->ops;
	uid_t owner = CONTROL_OWNER_ROUTER;
	int status;

	if (!ops->keep || !reader->adopted) {
		control_failure_set(failure, EPROTO, -1, "this reader took over from nobody");
		return EXIT_FAILED;
	}
	if (request->consumer && !users_who(&reader->users, request->consumer, &owner)) {
		control_failure_set(failure, ENOENT, -1, "there is no consumer %llu",
			(unsigned long long)request->consumer);
		return EXIT_FAILED;
	}
	if (users_own(&reader->users, owner, request->id) < 0) {
		control_failure_set(failure, ENOMEM, -1, "no memory for the probe");
		return EXIT_FAILED;
	}
	status = ops->keep(reader->provider, request->id, request->enabled, failure);
	if (status)
		(void)users_disown(&reader->users, owner, request->id);
	else if (owner == CONTROL_OWNER_ROUTER && ops->own)
		ops->own(reader->provider, request->id);
	return status;
}

static int probe_kept(struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct control_failure failure;
	int status = keep_probe(reader, (const void *)message->bytes, &failure);

	return peer_status(peer, &message->header, status, &failure);
}

/* With no read in flight the counts, which are read first, belong to this very place in the stream. After the end
 * there is no stream to mark, and nothing that could come between. */
static int account(struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct pool_entry entry = {
		.kind = POOL_ACCOUNT, .time = loop_now(), .value = message->header.cookie
	};
	int r = reader->state == READER_ENDED ? 0 : reader->source->ops->settle(reader->source);

	if (!r && reader->state != READER_ENDED && pool_writer_note(&reader->pool, &entry) < 0)
		return refuse(peer, message, EXIT_BUSY, EAGAIN,
			"the router has not read what is in the filled ring");
	(void)pool_writer_wake(&reader->pool);
	r = r < 0 ? r : reader->provider->ops->account(reader->provider);
	return reply_blob(peer, message, r, "the kernel's counts");
}

static int flush(struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct pool_entry entry = {
		.kind = POOL_FLUSH, .time = loop_now(), .value = message->header.cookie
	};

	if (reader->state == READER_ENDED)
		return refuse(peer, message, EXIT_FAILED, ESHUTDOWN,
			"the session has ended, and all of it is published");
	if (source_flush(reader->source, &entry) < 0)
		return refuse(peer, message, EXIT_BUSY, EAGAIN, "too many flushes are waiting");
	return peer_status(peer, &message->header, EXIT_DONE, NULL);
}

static void list_standing(const struct reader *reader, struct facts *events)
{
	char line[sizeof(STANDING_SYSTEM) + CONTROL_NAME_MAX + 1];

	for (size_t i = 0; i < reader->options->standing_count; i++) {
		int n = snprintf(line, sizeof(line), STANDING_SYSTEM ":%s\n", reader->options->standing[i].create.name);

		facts_append(events, line, (size_t)n);
	}
}

static int list(struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct policy_identity identity;
	struct control_failure failure;
	struct facts events = { 0 };
	int r;
	int status = identify(reader, message, &identity, &failure);

	if (!status)
		status = policy_admit(&reader->policy, &identity, &failure);
	if (status) {
		log_refusal(reader, &failure);
		return peer_status(peer, &message->header, status, &failure);
	}
	r = reader->provider->ops->events(reader->provider, &events);
	if (!r)
		list_standing(reader, &events);
	if (!r)
		r = admission_list(&reader->policy, &identity, &events);
	facts_release(&events);
	return reply_blob(peer, message, r, "list of events");
}

/* What a consumer may see: root all, anybody else what is theirs alone. */
static int rundown_scope(struct reader *reader, const struct control_message *message,
	struct rundown_request *request, struct control_failure *failure)
{
	struct policy_identity identity;
	int status = identify(reader, message, &identity, failure);

	if (!status)
		status = policy_admit(&reader->policy, &identity, failure);
	if (status) {
		log_refusal(reader, failure);
		return status;
	}
	request->scoped = identity.uid != 0;
	request->uid = identity.uid;
	return EXIT_DONE;
}

/* The answer comes when the helper has done its work. */
static int rundown(struct reader *reader, struct peer *peer, struct control_message *message)
{
	const struct control_rundown *asked = (const void *)message->bytes;
	const struct helper_asker asker = {
		.router = reader->routers, .cookie = message->header.cookie
	};
	struct rundown_request request = { .what = asked->what, .id_count = asked->id_count };
	struct control_failure failure = { .position = -1 };
	int status = EXIT_DONE, r;

	memcpy(request.ids, asked->ids, sizeof(request.ids));
	/* The router knows of processes what its table holds; their command lines are for consumers. */
	if (message->fd_count)
		status = rundown_scope(reader, message, &request, &failure);
	else
		request.what = 0;
	if (status)
		return peer_status(peer, &message->header, status, &failure);
	r = helper_ask(&reader->helper, &request, message->fd_count > 0, &asker);
	if (r == -ENOTCONN)
		return refuse(peer, message, EXIT_MISSING, -r,
			"the state of processes can't be read: the session has no helper (a recording "
			"has none)");
	return r < 0 ? refuse(peer, message, EXIT_BUSY, -r,
			       "too many are asking for the state of processes")
		     : 0;
}

void requests_of_helper(
	void *context, const struct helper_asker *asker, int error, const int fds[2])
{
	struct reader *reader = context;
	struct control_status reply = { .status = error < 0 ? EXIT_FAILED : EXIT_DONE };

	if (!reader->router_ready || asker->router != reader->routers)
		return;
	control_header_init(&reply.header, CONTROL_RUNDOWN | CONTROL_REPLY, sizeof(reply), asker->cookie);
	reply.failure.position = -1;
	if (error < 0)
		control_failure_set(&reply.failure, error, -1, "reading the state of processes: %s",
			strerror(-error));
	if (peer_reply_late(&reader->router, &reply, fds, error < 0 ? 0 : 2) < 0)
		peer_close(&reader->router);
}

/* Keeps the consumer's process out of the trace. Returns an enum exit_status. */
static int keep_out(struct reader *reader, const struct control_consumer *request,
	const struct policy_identity *identity, struct control_failure *failure)
{
	int r = 0;

	if (!(request->flags & ATTACH_INCLUDE_SELF))
		r = reader->provider->ops->exclude(
			reader->provider, request->consumer, identity->pid);
	/* A kernel that lacks the means is not the consumer's failure. */
	if (r == 0 || r == -ENOENT)
		return EXIT_DONE;
	control_failure_set(
		failure, r, -1, "the consumer's process could not be kept out of the trace");
	return EXIT_FAILED;
}

static int attach(struct reader *reader, const struct control_message *message,
	struct control_failure *failure)
{
	const struct control_consumer *request = (const void *)message->bytes;
	struct policy_identity identity;
	int status = identify(reader, message, &identity, failure);

	if (!status)
		status = policy_admit(&reader->policy, &identity, failure);
	if (!status)
		status = users_attach(&reader->users, &reader->policy, &identity, request->consumer,
			request->ring_capacity, failure);
	if (status) {
		log_refusal(reader, failure);
		return status;
	}
	status = keep_out(reader, request, &identity, failure);
	if (status)
		(void)users_leave(&reader->users, request->consumer);
	else
		reader->consumers++;
	if (!status && reader->missing && (request->flags & ATTACH_RESUME))
		reader->missing--;
	return status;
}

/* Whoever leaves may be gone by now, and whoever was not let in has nothing to leave. */
static void leave(struct reader *reader, const struct control_consumer *request)
{
	if (!users_leave(&reader->users, request->consumer))
		return;
	if (reader->consumers)
		reader->consumers--;
	reader->provider->ops->include(reader->provider, request->consumer);
}

static int consumer(struct reader *reader, struct peer *peer, struct control_message *message)
{
	const struct control_consumer *request = (const void *)message->bytes;
	struct control_failure failure;
	int status = EXIT_DONE;

	if (request->state == CONSUMER_ATTACHED)
		status = attach(reader, message, &failure);
	else
		leave(reader, request);
	return peer_status(peer, &message->header, status, &failure);
}

static const struct request router_requests[] = {
	{ CONTROL_ROUTER, STATE_NEW, hello },
	{ CONTROL_PROBE_CREATE, STATE_RUNNING | STATE_ENDING, probe_create_request },
	{ CONTROL_PROBE_ENABLE, STATE_RUNNING | STATE_ENDING, probe_enable },
	{ CONTROL_PROBE_FILTER, STATE_RUNNING | STATE_ENDING, probe_filter },
	{ CONTROL_PROBE_CLOSE, STATE_RUNNING | STATE_ENDING, probe_close },
	{ CONTROL_PROBE_KEEP, STATE_RUNNING | STATE_ENDING, probe_kept },
	{ CONTROL_ACCOUNT, STATE_RUNNING | STATE_ENDING, account },
	{ CONTROL_READER_FLUSH, STATE_RUNNING | STATE_ENDING, flush },
	{ CONTROL_READER_LIST, STATE_RUNNING | STATE_ENDING, list },
	{ CONTROL_CONSUMER, STATE_RUNNING | STATE_ENDING, consumer },
	{ CONTROL_RUNDOWN, STATE_RUNNING | STATE_ENDING, rundown },
};

/* ---- the operator's ---- */

static int session_status(struct reader *reader, struct peer *peer, struct control_message *message)
{
	struct control_session_status reply = { .status = EXIT_DONE };

	control_header_init(&reply.header, message->header.type | CONTROL_REPLY, sizeof(reply),
		message->header.cookie);
	reply.source = reader->provider->source;
	reply.flags = reader->provider->flags | reader->flags;
	reply.reader_pid = (int32_t)getpid();
	reply.router_pid = reader->router.fd >= 0 ? (int32_t)reader->router.pid : 0;
	reply.started = reader->started;
	reply.buffer_size = reader->has_instance ? reader->instance.buffer_size : 0;
	reply.subbuf_size = reader->pool.slot_size;
	reply.cpu_count = reader->provider->cpu_count;
	reply.probes = reader->provider->ops->probes(reader->provider);
	(void)control_text(reply.session, sizeof(reply.session), reader->options->session);
	(void)control_text(reply.instance, sizeof(reply.instance),
		reader->has_instance ? reader->instance.name : "");
	return peer_reply(peer, &reply, NULL, 0);
}

static int session_stop(struct reader *reader, struct peer *peer, struct control_message *message)
{
	/* The reply comes when the session has ended. */
	peer->stop_waits = true;
	peer->stop_cookie = message->header.cookie;
	reader_stop(reader, END_STOPPED, "an operator's request");
	return 0;
}

static const struct request operator_requests[] = {
	{ CONTROL_SESSION_STATUS, STATE_RUNNING | STATE_ENDING, session_status },
	{ CONTROL_SESSION_STOP, STATE_RUNNING | STATE_ENDING, session_stop },
	{ CONTROL_SESSION_FLUSH, STATE_RUNNING | STATE_ENDING, flush },
};

static int dispatch(const struct request *table, size_t rows, uint16_t state, struct reader *reader,
	struct peer *peer, struct control_message *message)
{
	for (size_t i = 0; i < rows; i++) {
		if (table[i].type == message->header.type)
			return table[i].states & state ? table[i].handle(reader, peer, message)
						       : -EPROTO;
	}
	return -EPROTO;
}

static uint16_t running_state(const struct reader *reader)
{
	return reader->state == READER_RUNNING ? STATE_RUNNING : STATE_ENDING;
}

int requests_of_router(void *context, struct peer *peer, struct control_message *message)
{
	struct reader *reader = context;
	uint16_t state = reader->router_ready ? running_state(reader) : STATE_NEW;

	return dispatch(router_requests, ARRAY_SIZE(router_requests), state, reader, peer, message);
}

int requests_of_operator(void *context, struct peer *peer, struct control_message *message)
{
	struct reader *reader = context;

	return dispatch(operator_requests, ARRAY_SIZE(operator_requests), running_state(reader),
		reader, peer, message);
}
