/* watch connect: each connect(2), where to, and what came of it.
 *
 * Four places tell one story of a thread: the C library's function, whose arguments a probe can read; the system call's
 * entry; the kernel's own word on the address (a kprobe's, or TCP's change of state); the call's return. */
#include "consumers/watch/observer.h"

#include "consumers/watch/socket.h"
#include "consumers/watch/table.h"

#include <errno.h>
#include <stdlib.h>

#define CONNECT_CALLS 16384 /* threads that are inside connect at a time */

struct connect_fetched {
	struct socket_fetched address;
	int length;
};

static const struct tfan_member connect_fetched_members[] = {
	SOCKET_ROWS(struct connect_fetched),
	{ TFAN_MEMBER(struct connect_fetched, length) },
};

struct connect_entered {
	int fd;
	uint64_t pointer;
};

static const struct tfan_member connect_entered_members[] = {
	{ TFAN_MEMBER(struct connect_entered, fd) },
	{ TFAN_MEMBER(struct connect_entered, pointer), .field = "uservaddr" },
};

struct connect_returned {
	int64_t result;
};

static const struct tfan_member connect_returned_members[] = {
	{ TFAN_MEMBER(struct connect_returned, result), .field = "ret" },
};

struct connect_call {
	struct table_entry entry; /* by thread */
	bool entered;             /* the kernel was */
	int fd;
	uint64_t pointer; /* of the library's caller */
	struct socket_address address;
};

struct connect_state {
	struct table calls;
};

static void connect_release(struct table_entry *entry)
{
	free(entry);
}

static struct connect_call *connect_find(const struct watch *watch, const struct tfan_event *event)
{
	const struct connect_state *state = watch->state;

	return (struct connect_call *)table_find(&state->calls, (uint64_t)tfan_event_pid(event));
}

static struct connect_call *connect_make(const struct watch *watch, const struct tfan_event *event)
{
	struct connect_state *state = watch->state;
	struct connect_call *call = calloc(1, sizeof(*call));

	if (call)
		table_put(&state->calls, (uint64_t)tfan_event_pid(event), &call->entry);
	return call;
}

static void connect_called(void *context, const struct tfan_event *event, const void *filled)
{
	const struct connect_fetched *fetched = filled;
	struct connect_call *call = connect_make(context, event);

	if (!call)
		return;
	call->pointer = fetched->address.pointer;
	socket_from_fetched(&call->address, &fetched->address, fetched->length, "call");
}

/* What the library was called with belongs to this call if it passed on the same address. */
static void connect_entered(void *context, const struct tfan_event *event, const void *filled)
{
	const struct connect_entered *entered = filled;
	struct connect_call *call = connect_find(context, event);

	if (!call || call->entered || call->pointer != entered->pointer)
		call = connect_make(context, event);
	if (!call)
		return;
	call->entered = true;
	call->fd = entered->fd;
}

static void connect_addressed(void *context, const struct tfan_event *event, const void *filled)
{
	const struct connect_fetched *fetched = filled;
	struct connect_call *call = connect_find(context, event);

	if (call && call->entered)
		socket_from_fetched(&call->address, &fetched->address, fetched->length, "kernel");
}

static void connect_state_changed(void *context, const struct tfan_event *event, const void *filled)
{
	const struct socket_state *changed = filled;
	struct connect_call *call = connect_find(context, event);

	/* A kprobe has told the address as the caller passed it. */
	if (!call || !call->entered || changed->newstate != SOCKET_SYN_SENT || (call->address.by && call->address.by[0] == 'k'))
		return;
	socket_from_state(&call->address, changed, false);
}

static void connect_returned(void *context, const struct tfan_event *event, const void *filled)
{
	int64_t result = ((const struct connect_returned *)filled)->result;
	struct watch *watch = context;
	struct connect_state *state = watch->state;
	const struct connect_call *call = connect_find(watch, event);
	struct watch_record record;
	struct socket_text text;

	if (!call || !call->entered)
		return;
	observer_begin(&record, "connect", event);
	observer_integer(&record, "fd", call->fd);
	socket_tell(&record, &text, &call->address);
	socket_tell_error(&record, result);
	observer_tell(watch, &record);
	table_remove(&state->calls, call->entry.key);
}

/* Where addresses come from, best first; less is better than nothing. */
static int connect_trace_addresses(struct watch *watch)
{
	static const struct tfan_shape fetched = TFAN_SHAPE(struct connect_fetched, connect_fetched_members);
	static const struct tfan_shape changed = TFAN_SHAPE(struct socket_state, socket_state_members);
	int r = observer_trace(watch, "kprobe:security_socket_connect " SOCKET_FETCH(2) " length=$arg3:s32", &fetched, connect_addressed);
	bool tcp, calls;

	if (r == 0 || !observer_may_do_without(watch, r))
		return r;
	r = observer_library(watch, "connect " SOCKET_FETCH(2) " length=$arg3:s32", &fetched, connect_called, watch);
	calls = r == 0;
	if (r < 0 && !observer_may_do_without(watch, r))
		return r;
	r = observer_trace(watch, "tracepoint:sock:inet_sock_set_state", &changed, connect_state_changed);
	tcp = r == 0;
	if (r < 0 && !observer_may_do_without(watch, r))
		return r;
	if (!calls)
		observer_note(watch, tcp ? "addresses are known of TCP alone, from the kernel's events" :
					   "no addresses are known: neither a probe nor an event that has them can be had");
	else
		observer_note(watch, tcp ? "addresses of others than TCP are taken from calls of the C library's connect; of programs that call "
					   "the kernel by themselves they are not known" :
					   "addresses are taken from calls of the C library's connect; of programs that call the kernel by "
					   "themselves they are not known");
	return 0;
}

static int connect_trace(struct watch *watch)
{
	static const struct tfan_shape entered = TFAN_SHAPE(struct connect_entered, connect_entered_members);
	static const struct tfan_shape returned = TFAN_SHAPE(struct connect_returned, connect_returned_members);
	static const char *const entries[] = { "tracepoint:syscalls:sys_enter_connect",
		"connect_entry=kprobe:__sys_connect fd=$arg1:s32 uservaddr=$arg2:u64", NULL };
	static const char *const returns[] = { "tracepoint:syscalls:sys_exit_connect",
		"connect_return=kretprobe:__sys_connect ret=$retval:s32", NULL };
	int r = observer_first(watch, entries, &entered, connect_entered);

	if (r == 0)
		r = connect_trace_addresses(watch);
	if (r == 0)
		r = observer_first(watch, returns, &returned, connect_returned);
	return r;
}

static int connect_open(struct watch *watch, const char *folder, int *ret_folder_error)
{
	struct connect_state *state = calloc(1, sizeof(*state));

	(void)folder;
	(void)ret_folder_error;
	watch->state = state;
	if (!state || table_init(&state->calls, CONNECT_CALLS, connect_release) < 0)
		return -ENOMEM;
	return connect_trace(watch);
}

static void connect_close(void *context)
{
	struct connect_state *state = context;

	if (!state)
		return;
	table_free(&state->calls);
	free(state);
}

static void connect_lost(void *context)
{
	table_clear(&((struct connect_state *)context)->calls);
}

static const char *const connect_needs[] = { "tracepoint:syscalls:sys_enter_connect", "tracepoint:syscalls:sys_exit_connect", NULL };

const struct observer observer_connect = {
	.name = "connect",
	.needs = connect_needs,
	.open = connect_open,
	.close = connect_close,
	.lost = connect_lost,
};
