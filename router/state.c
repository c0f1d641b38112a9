#include "router/state.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "router/answer.h"
#include "router/consumer_traces.h"
#include "router/router.h"
#include "router/state_table.h"
#include "shm/recording_abi.h"
#include "shm/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define TABLE_MAX (512UL << 20)
/* While events are lost all the time, the whole is read again no more often than this. */
#define REFRESH_EACH_NS UINT64_C(1000000000)

enum work_kind {
	WORK_WHOLE,
	WORK_QUERY,
	WORK_CAPTURE,
};

struct state_work {
	struct state_work *next;
	uint64_t number;
	enum work_kind kind;
	void *table; /* what was read; NULL: it has not come yet */
	size_t table_size;
	/* Captures. */
	int details;
	uint64_t consumer, cookie;
	uint64_t due; /* ns: the place in the stream that the snapshot is of */
	bool scoped, snapped;
	uint32_t uid;
	struct tasks_snapshot snapshot;
};

/* ---- works ---- */

static struct state_work *work_make(struct router *router, enum work_kind kind)
{
	struct state_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->kind = kind;
	work->details = -1;
	work->number = ++router->state.last_number;
	work->next = router->state.works;
	router->state.works = work;
	return work;
}

static struct state_work *work_find(const struct router *router, uint64_t number)
{
	struct state_work *work = router->state.works;

	while (work && work->number != number)
		work = work->next;
	return work;
}

/* The place from which on the next snapshot is due. */
static void set_snapshot_due(struct router *router)
{
	router->fanout.snapshot_due = UINT64_MAX;
	for (const struct state_work *work = router->state.works; work; work = work->next) {
		if (work->kind == WORK_CAPTURE && !work->snapped && work->due < router->fanout.snapshot_due)
			router->fanout.snapshot_due = work->due;
	}
}

static void work_end(struct router *router, struct state_work *work)
{
	struct state_work **place = &router->state.works;

	while (*place != work)
		place = &(*place)->next;
	*place = work->next;
	if (work->kind == WORK_WHOLE)
		router->state.refreshing = false;
	if (work->kind == WORK_QUERY)
		router->state.querying = false;
	tasks_snapshot_release(&work->snapshot);
	(void)close_fd(work->details);
	free(work->table);
	free(work);
	set_snapshot_due(router);
}

void state_release(struct router *router)
{
	while (router->state.works)
		work_end(router, router->state.works);
}

/* ---- asking ---- */

static void set_boot_offset(struct router *router)
{
	struct timespec boot, mono;

	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	(void)clock_gettime(CLOCK_MONOTONIC, &mono);
	router->fanout.tasks.boot_offset = (int64_t)(boot.tv_sec - mono.tv_sec) * 1000000000 + (boot.tv_nsec - mono.tv_nsec);
}

static void capture_fail(struct router *router, struct state_work *work, uint32_t status, const struct control_failure *failure)
{
	struct consumer *consumer = consumer_find(router, work->consumer);

	if (consumer)
		answer_status(router, consumer, CONTROL_CAPTURE, work->cookie, status, failure);
}

static void work_fail(struct router *router, struct state_work *work, uint32_t status, const struct control_failure *failure)
{
	if (work->kind == WORK_CAPTURE)
		capture_fail(router, work, status, failure);
	else
		log_debug("the state of processes: %s", failure->message);
	/* Tried again, a while later. */
	if (work->kind != WORK_CAPTURE && status != EXIT_MISSING)
		router->fanout.tasks.query_all = true;
	work_end(router, work);
}

static void answered(void *context, const struct upstream_request *request, struct control_message *reply)
{
	struct router *router = context;
	struct state_work *work = work_find(router, request->trace);
	struct control_failure failure = { .position = -1 };
	uint32_t status;
	int r = -EBADMSG;

	if (!work)
		return;
	status = answer_from_reader(reply, &failure);
	if (status) {
		work_fail(router, work, status, &failure);
		return;
	}
	if (reply->fd_count == 2)
		r = segment_blob_read(reply->fds[0], TABLE_MAX, &work->table, &work->table_size);
	if (r == 0) {
		work->details = TAKE_FD(reply->fds[1]);
		r = stream_state(router, work->number);
	}
	if (r < 0) {
		control_failure_set(&failure, r, -1, "the state of processes: %s", strerror(-r));
		work_fail(router, work, EXIT_FAILED, &failure);
	}
}

/* `socket`: of the consumer it is for, or -1. On failure the work is the caller's to end. */
static int ask(struct router *router, const struct state_work *work, struct control_rundown *rundown, int socket)
{
	struct upstream_request request = { .trace = work->number, .done = answered };

	set_boot_offset(router);
	return upstream_send(&router->upstream, rundown, CONTROL_RUNDOWN, sizeof(*rundown), &socket, socket >= 0 ? 1 : 0,
		&request);
}

static void ask_whole(struct router *router)
{
	struct control_rundown rundown = { .what = STATE_WANT_PROCESSES };
	struct state_work *work = work_make(router, WORK_WHOLE);

	router->state.began = router_now();
	router->fanout.tasks.query_all = false;
	router->fanout.tasks.query_count = 0;
	if (!work)
		return;
	router->state.refreshing = true;
	if (ask(router, work, &rundown, -1) < 0)
		work_end(router, work);
}

static void ask_queries(struct router *router)
{
	struct tasks *tasks = &router->fanout.tasks;
	struct control_rundown rundown = { .what = STATE_WANT_PROCESSES, .id_count = tasks->query_count };
	struct state_work *work = work_make(router, WORK_QUERY);

	_Static_assert(TASKS_QUERIES <= CONTROL_RUNDOWN_IDS, "one request takes all");
	memcpy(rundown.ids, tasks->queries, tasks->query_count * sizeof(rundown.ids[0]));
	tasks->query_count = 0;
	if (!work)
		return;
	router->state.querying = true;
	if (ask(router, work, &rundown, -1) < 0)
		work_end(router, work);
}

static bool may_ask(const struct router *router)
{
	return !router_recorded(router) && !router->ending;
}

void state_doubt(struct router *router, uint64_t time)
{
	tasks_doubt(&router->fanout.tasks, time);
}

void state_turn(struct router *router)
{
	const struct tasks *tasks = &router->fanout.tasks;

	if ((!tasks->query_all && !tasks->query_count) || !may_ask(router))
		return;
	if (tasks->query_all && !router->state.refreshing && state_sleep(router) == 0)
		ask_whole(router);
	if (tasks->query_count && !router->state.querying)
		ask_queries(router);
}

int state_sleep(const struct router *router)
{
	uint64_t since = router_now() - router->state.began;

	if (!router->fanout.tasks.query_all || router->state.refreshing || !may_ask(router))
		return -1;
	return since >= REFRESH_EACH_NS ? 0 : (int)((REFRESH_EACH_NS - since) / 1000000 + 1);
}

/* ---- what came ---- */

static void learn_all(struct router *router, const struct state_work *work)
{
	int r = state_table_learn(&router->fanout.tasks, work->table, work->table_size, work->kind == WORK_WHOLE);

	if (r < 0)
		log_warning("the state of processes: %s", strerror(-r));
}

static void capture_answer(struct router *router, struct state_work *work)
{
	struct consumer *consumer = consumer_find(router, work->consumer);
	struct control_status status = { .status = EXIT_DONE };
	const struct state_table_of what = {
		.tasks = &router->fanout.tasks,
		.snapshot = &work->snapshot,
		.due = work->due,
		.scoped = work->scoped,
		.uid = work->uid,
		.read = work->table,
		.read_size = work->table_size,
	};
	int fds[2] = { -1, work->details };

	if (!consumer)
		return;
	status.failure.position = -1;
	fds[0] = work->snapshot.copies ? state_table_make(&what) : -ENOMEM;
	if (fds[0] < 0) {
		answer_failed(router, consumer, CONTROL_CAPTURE, work->cookie, fds[0], "the state of processes");
		return;
	}
	answer_send(router, consumer, &status, CONTROL_CAPTURE, sizeof(status), work->cookie, fds, 2);
	(void)close_fd(fds[0]);
}

static void snap(struct router *router, struct state_work *work)
{
	if (tasks_copy_all(&router->fanout.tasks, work->due, &work->snapshot) < 0)
		log_error("no memory for a copy of the tasks");
	work->snapped = true;
}

/* The next of the session's own events is not older than the place of a snapshot. */
static void snapshots_due(void *context)
{
	struct router *router = context;

	for (struct state_work *work = router->state.works; work; work = work->next) {
		if (work->kind == WORK_CAPTURE && !work->snapped && work->due <= router->fanout.snapshot_due)
			snap(router, work);
	}
	set_snapshot_due(router);
}

void state_due(struct router *router, uint64_t number)
{
	struct state_work *work = work_find(router, number);

	if (!work)
		return;
	if (work->kind == WORK_CAPTURE) {
		/* No event has changed anything since. */
		if (!work->snapped)
			snap(router, work);
		capture_answer(router, work);
	} else {
		learn_all(router, work);
	}
	work_end(router, work);
}

/* ---- captures ---- */

static int capture_scope(const struct consumer *consumer, struct state_work *work)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(consumer->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	work->scoped = credentials.uid != 0;
	work->uid = credentials.uid;
	return 0;
}

static bool is_capturing(const struct router *router, const struct consumer *consumer)
{
	const struct state_work *work = router->state.works;

	while (work && (work->kind != WORK_CAPTURE || work->consumer != consumer->number))
		work = work->next;
	return work;
}

void state_on_capture(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_capture *asked = (const struct control_capture *)message->bytes;
	struct control_rundown rundown = { .what = asked->what };
	struct control_failure failure = { .position = -1 };
	struct state_work *work;
	int r = -ENOMEM;

	if (router_recorded(router)) {
		control_failure_set(&failure, ENODATA, -1, "a recording holds no state of processes: ask a live session");
		answer_status(router, consumer, CONTROL_CAPTURE, message->header.cookie, EXIT_MISSING, &failure);
		return;
	}
	if (is_capturing(router, consumer)) {
		control_failure_set(&failure, EBUSY, -1, "the last state that was asked for has not come yet");
		answer_status(router, consumer, CONTROL_CAPTURE, message->header.cookie, EXIT_BUSY, &failure);
		return;
	}
	work = work_make(router, WORK_CAPTURE);
	if (work) {
		work->consumer = consumer->number;
		work->cookie = message->header.cookie;
		work->due = router_now();
		r = capture_scope(consumer, work);
	}
	if (r == 0)
		r = ask(router, work, &rundown, consumer->fd);
	if (r == 0) {
		set_snapshot_due(router);
		consumer_traces_release(router, consumer, work->due);
		return;
	}
	if (work)
		work_end(router, work);
	answer_failed(router, consumer, CONTROL_CAPTURE, message->header.cookie, r, "the state of processes");
}

/* ---- the start ---- */

static int take_names(struct router *router, const void *table, size_t size)
{
	CLEANUP_FREE void *names = NULL;
	size_t names_size = 0;
	int r = state_table_names(table, size, &names, &names_size);

	if (r == 0)
		recorder_blob(&router->recorder, FRAME_NAMES, names, names_size);
	return r;
}

int state_start(struct router *router)
{
	struct control_rundown rundown = { .what = STATE_WANT_PROCESSES };
	CLEANUP_FREE void *table = NULL;
	struct control_message reply;
	const struct control_status *status = (const struct control_status *)reply.bytes;
	size_t size = 0;
	int r;

	router->fanout.snapshot = snapshots_due;
	set_boot_offset(router);
	if (router_recorded(router))
		return 0;
	control_header_init(&rundown.header, CONTROL_RUNDOWN, sizeof(rundown), ++router->upstream.next_cookie);
	r = control_call(router->upstream.fd, &rundown, NULL, 0, &reply);
	if (r < 0)
		return r;
	if (status->status)
		log_warning("%s: threads are known from their events on", status->failure.message);
	else
		r = reply.fd_count == 2 ? segment_blob_read(reply.fds[0], TABLE_MAX, &table, &size) : -EBADMSG;
	control_message_release(&reply);
	if (r == 0 && table)
		r = state_table_learn(&router->fanout.tasks, table, size, true);
	if (r == 0 && table)
		r = take_names(router, table, size);
	router->knows_processes = r == 0 && table;
	return r;
}
