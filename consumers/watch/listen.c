/* watch listen: each listen(2), on which address, and what came of it.
 *
 * The address was given to bind(2) before. TCP's change of state has it; of other sockets what bind was called with is
 * kept until then: by the socket where a kprobe sees it, otherwise by the process's descriptor. */
#include "consumers/watch/observer.h"

#include "consumers/watch/socket.h"
#include "consumers/watch/table.h"
#include "consumers/watch/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN_CALLS   4096  /* threads that are inside bind or listen at a time */
#define LISTEN_BOUND   65536 /* sockets */

struct listen_fetched {
	struct socket_fetched address;
	uint64_t socket; /* in the kernel; 0: called from outside */
	int length;
};

static const struct tfan_member listen_fetched_members[] = {
	SOCKET_ROWS(struct listen_fetched),
	{ TFAN_MEMBER(struct listen_fetched, socket) },
	{ TFAN_MEMBER(struct listen_fetched, length) },
};

struct listen_entered {
	int fd;
	uint64_t second; /* bind: the address; listen: the backlog */
};

static const struct tfan_member listen_bind_members[] = {
	{ TFAN_MEMBER(struct listen_entered, fd) },
	{ TFAN_MEMBER(struct listen_entered, second), .field = "umyaddr" },
};

static const struct tfan_member listen_entered_members[] = {
	{ TFAN_MEMBER(struct listen_entered, fd) },
	{ TFAN_MEMBER(struct listen_entered, second), .field = "backlog" },
};

struct listen_value {
	int64_t value;
};

static const struct tfan_member listen_returned_members[] = {
	{ TFAN_MEMBER(struct listen_value, value), .field = "ret" },
};

static const struct tfan_member listen_socket_members[] = {
	{ TFAN_MEMBER(struct listen_value, value), .field = "socket" },
};

/* A thread is in one call at a time. */
struct listen_call {
	struct table_entry entry; /* by thread */
	bool entered, is_bind;
	int fd, backlog;
	uint64_t pointer, socket;
	struct socket_address address;
};

struct listen_bound {
	struct table_entry entry; /* by socket, or by table of descriptors and descriptor */
	struct socket_address address;
};

struct listen_state {
	struct table calls, bound;
	struct task_set tasks;
};

static void listen_release(struct table_entry *entry)
{
	free(entry);
}

static uint64_t listen_key(struct listen_state *state, const struct listen_call *call, const struct tfan_event *event)
{
	/* A kernel's address has its high bits set, a thread's number has not. */
	if (call->socket)
		return call->socket;
	return task_files(&state->tasks, tfan_event_pid(event)) << 32 | (uint32_t)call->fd;
}

/* ---- calls ---- */

static struct listen_call *listen_find(const struct watch *watch, const struct tfan_event *event)
{
	const struct listen_state *state = watch->state;

	return (struct listen_call *)table_find(&state->calls, (uint64_t)tfan_event_pid(event));
}

static struct listen_call *listen_make(const struct watch *watch, const struct tfan_event *event)
{
	struct listen_state *state = watch->state;
	struct listen_call *call = calloc(1, sizeof(*call));

	if (call)
		table_put(&state->calls, (uint64_t)tfan_event_pid(event), &call->entry);
	return call;
}

static void listen_bind_called(void *context, const struct tfan_event *event, const void *filled)
{
	const struct listen_fetched *fetched = filled;
	struct listen_call *call = listen_make(context, event);

	if (!call)
		return;
	call->pointer = fetched->address.pointer;
	socket_from_fetched(&call->address, &fetched->address, fetched->length, "call");
}

static void listen_bind_entered(void *context, const struct tfan_event *event, const void *filled)
{
	const struct listen_entered *entered = filled;
	struct listen_call *call = listen_find(context, event);

	if (!call || call->entered || call->pointer != entered->second)
		call = listen_make(context, event);
	if (!call)
		return;
	call->entered = call->is_bind = true;
	call->fd = entered->fd;
}

static void listen_bind_addressed(void *context, const struct tfan_event *event, const void *filled)
{
	const struct listen_fetched *fetched = filled;
	struct listen_call *call = listen_find(context, event);

	if (!call || !call->is_bind)
		return;
	call->socket = fetched->socket;
	socket_from_fetched(&call->address, &fetched->address, fetched->length, "kernel");
}

static void listen_bind_returned(void *context, const struct tfan_event *event, const void *filled)
{
	struct watch *watch = context;
	struct listen_state *state = watch->state;
	const struct listen_call *call = listen_find(watch, event);
	struct listen_bound *bound;

	if (!call || !call->is_bind)
		return;
	if (((const struct listen_value *)filled)->value == 0) {
		bound = calloc(1, sizeof(*bound));
		if (bound) {
			bound->address = call->address;
			table_put(&state->bound, listen_key(state, call, event), &bound->entry);
		}
	}
	table_remove(&state->calls, call->entry.key);
}

static void listen_entered(void *context, const struct tfan_event *event, const void *filled)
{
	const struct listen_entered *entered = filled;
	struct listen_call *call = listen_make(context, event);

	if (!call)
		return;
	call->entered = true;
	call->fd = entered->fd;
	call->backlog = (int)entered->second;
}

static void listen_on_socket(void *context, const struct tfan_event *event, const void *filled)
{
	struct listen_call *call = listen_find(context, event);

	if (call && !call->is_bind)
		call->socket = (uint64_t)((const struct listen_value *)filled)->value;
}

static void listen_state_changed(void *context, const struct tfan_event *event, const void *filled)
{
	const struct socket_state *changed = filled;
	struct listen_call *call = listen_find(context, event);

	if (call && call->entered && !call->is_bind && changed->newstate == SOCKET_LISTEN)
		socket_from_state(&call->address, changed, true);
}

static void listen_returned(void *context, const struct tfan_event *event, const void *filled)
{
	struct watch *watch = context;
	struct listen_state *state = watch->state;
	struct listen_call *call = listen_find(watch, event);
	const struct listen_bound *bound;
	struct watch_record record;
	struct socket_text text;

	if (!call || !call->entered || call->is_bind)
		return;
	bound = (const struct listen_bound *)table_find(&state->bound, listen_key(state, call, event));
	if (bound && !call->address.by)
		call->address = bound->address;
	observer_begin(&record, "listen", event);
	observer_integer(&record, "fd", call->fd);
	socket_tell(&record, &text, &call->address);
	observer_integer(&record, "backlog", call->backlog);
	socket_tell_error(&record, ((const struct listen_value *)filled)->value);
	observer_tell(watch, &record);
	table_remove(&state->calls, call->entry.key);
}

/* ---- traces ---- */

static int listen_trace_addresses(struct watch *watch)
{
	static const struct tfan_shape fetched = TFAN_SHAPE(struct listen_fetched, listen_fetched_members);
	static const struct tfan_shape socket = TFAN_SHAPE(struct listen_value, listen_socket_members);
	int r = observer_trace(watch, "kprobe:security_socket_bind " SOCKET_FETCH(2) " socket=$arg1:u64 length=$arg3:s32", &fetched,
		listen_bind_addressed);

	if (r == 0)
		return observer_trace(watch, "kprobe:security_socket_listen socket=$arg1:u64", &socket, listen_on_socket);
	if (!observer_may_do_without(watch, r))
		return r;
	r = observer_library(watch, "bind " SOCKET_FETCH(2) " socket=\\0:u64 length=$arg3:s32", &fetched, listen_bind_called, watch);
	if (r == 0)
		r = task_set_trace(watch, &((struct listen_state *)watch->state)->tasks);
	if (r < 0 && !observer_may_do_without(watch, r))
		return r;
	observer_note(watch, r == 0 ? "addresses of others than TCP are taken from calls of the C library's bind; of programs that call the "
				      "kernel by themselves, and of what was bound before now, they are not known" :
				      "addresses are known of TCP alone, from the kernel's events");
	return 0;
}

static int listen_trace(struct watch *watch)
{
	static const struct tfan_shape bind_entered = TFAN_SHAPE(struct listen_entered, listen_bind_members);
	static const struct tfan_shape entered = TFAN_SHAPE(struct listen_entered, listen_entered_members);
	static const struct tfan_shape returned = TFAN_SHAPE(struct listen_value, listen_returned_members);
	static const struct tfan_shape changed = TFAN_SHAPE(struct socket_state, socket_state_members);
	static const char *const rows[][3] = {
		{ "tracepoint:syscalls:sys_enter_bind", "bind_entry=kprobe:__sys_bind fd=$arg1:s32 umyaddr=$arg2:u64" },
		{ "tracepoint:syscalls:sys_exit_bind", "bind_return=kretprobe:__sys_bind ret=$retval:s32" },
		{ "tracepoint:syscalls:sys_enter_listen", "listen_entry=kprobe:__sys_listen fd=$arg1:s32 backlog=$arg2:s32" },
		{ "tracepoint:syscalls:sys_exit_listen", "listen_return=kretprobe:__sys_listen ret=$retval:s32" },
	};
	int r = observer_first(watch, rows[0], &bind_entered, listen_bind_entered);

	if (r == 0)
		r = listen_trace_addresses(watch);
	if (r == 0)
		r = observer_first(watch, rows[1], &returned, listen_bind_returned);
	if (r == 0)
		r = observer_first(watch, rows[2], &entered, listen_entered);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:sock:inet_sock_set_state", &changed, listen_state_changed);
	if (r < 0 && observer_may_do_without(watch, r))
		r = 0;
	if (r == 0)
		r = observer_first(watch, rows[3], &returned, listen_returned);
	return r;
}

static int listen_open(struct watch *watch, const char *folder, int *ret_folder_error)
{
	struct listen_state *state = calloc(1, sizeof(*state));

	(void)folder;
	(void)ret_folder_error;
	watch->state = state;
	if (!state || table_init(&state->calls, LISTEN_CALLS, listen_release) < 0 ||
		table_init(&state->bound, LISTEN_BOUND, listen_release) < 0 ||
		task_set_init(&state->tasks, false) < 0)
		return -ENOMEM;
	return listen_trace(watch);
}

static void listen_close(void *context)
{
	struct listen_state *state = context;

	if (!state)
		return;
	table_free(&state->calls);
	table_free(&state->bound);
	task_set_free(&state->tasks);
	free(state);
}

static void listen_lost(void *context)
{
	struct listen_state *state = context;

	table_clear(&state->calls);
	table_clear(&state->bound);
	task_set_forget(&state->tasks);
}

static const char *const listen_needs[] = { "tracepoint:syscalls:sys_*_bind", "tracepoint:syscalls:sys_*_listen", "tracepoint:task:task_newtask", "tracepoint:sched:sched_process_exit", NULL };

const struct observer observer_listen = {
	.name = "listen",
	.needs = listen_needs,
	.open = listen_open,
	.close = listen_close,
	.lost = listen_lost,
};
