/* watch exec: each program that was executed, with its arguments, and how its process ended.
 *
 * The kernel's own events tell that a program was executed and that a process is gone, so none is missed. Its
 * arguments are taken where execve(2) is called, and its status where the process says or is told to end; what comes
 * from where is said in each record. */
#include "consumers/watch/observer.h"

#include "consumers/watch/proc.h"
#include "consumers/watch/table.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EXEC_ARGUMENTS 16
#define EXEC_CALLS     4096  /* threads that are inside execve at a time */
#define EXEC_PROCESSES 65536
#define EXEC_THREADS   65536

#define EXEC_CLONE_THREAD 0x10000

struct exec_call {
	struct table_entry entry; /* by thread */
	char *argument[EXEC_ARGUMENTS];
	size_t count;
	bool cut; /* there were more */
};

/* How a process ends, by what told it. */
struct exec_status {
	const char *by; /* NULL: not told yet */
	int code, signal; /* one of them; signal 0: none */
	bool core;
};

struct exec_process {
	struct table_entry entry; /* by the first thread's id */
	char *file;
	uint64_t began;
	unsigned int threads;
	struct exec_status group, leader;
	int sent;    /* the last signal that is fatal where it isn't handled, 0: none */
	bool killed; /* SIGKILL was sent */
};

/* A thread that isn't its process's first. */
struct exec_thread {
	struct table_entry entry; /* by its id */
	uint64_t process;
};

struct exec_state {
	struct watch *watch;
	struct table calls, processes, threads;
};

/* ---- what the traces are filled into ---- */

struct exec_argv {
	struct tfan_string_address a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15;
	uint64_t next; /* 0: there are no more */
};

struct exec_called {
	struct exec_argv v;
};

#define EXEC_ARGUMENT(n, at, user) { TFAN_MEMBER(struct exec_argv, a##n), .fetch = (at), .user_memory = (user) }

static const struct tfan_member exec_user_argv[] = {
	EXEC_ARGUMENT(0, "+0({1})", false), EXEC_ARGUMENT(1, "+8({1})", false), EXEC_ARGUMENT(2, "+16({1})", false),
	EXEC_ARGUMENT(3, "+24({1})", false), EXEC_ARGUMENT(4, "+32({1})", false), EXEC_ARGUMENT(5, "+40({1})", false),
	EXEC_ARGUMENT(6, "+48({1})", false), EXEC_ARGUMENT(7, "+56({1})", false), EXEC_ARGUMENT(8, "+64({1})", false),
	EXEC_ARGUMENT(9, "+72({1})", false), EXEC_ARGUMENT(10, "+80({1})", false), EXEC_ARGUMENT(11, "+88({1})", false),
	EXEC_ARGUMENT(12, "+96({1})", false), EXEC_ARGUMENT(13, "+104({1})", false), EXEC_ARGUMENT(14, "+112({1})", false),
	EXEC_ARGUMENT(15, "+120({1})", false), { TFAN_MEMBER(struct exec_argv, next), .fetch = "+128({1})" },
};

/* In the memory of the program that called. */
static const struct tfan_member exec_kernel_argv[] = {
	EXEC_ARGUMENT(0, "+u0({1})", true), EXEC_ARGUMENT(1, "+u8({1})", true), EXEC_ARGUMENT(2, "+u16({1})", true),
	EXEC_ARGUMENT(3, "+u24({1})", true), EXEC_ARGUMENT(4, "+u32({1})", true), EXEC_ARGUMENT(5, "+u40({1})", true),
	EXEC_ARGUMENT(6, "+u48({1})", true), EXEC_ARGUMENT(7, "+u56({1})", true), EXEC_ARGUMENT(8, "+u64({1})", true),
	EXEC_ARGUMENT(9, "+u72({1})", true), EXEC_ARGUMENT(10, "+u80({1})", true), EXEC_ARGUMENT(11, "+u88({1})", true),
	EXEC_ARGUMENT(12, "+u96({1})", true), EXEC_ARGUMENT(13, "+u104({1})", true), EXEC_ARGUMENT(14, "+u112({1})", true),
	EXEC_ARGUMENT(15, "+u120({1})", true), { TFAN_MEMBER(struct exec_argv, next), .fetch = "+u128({1})" },
};

struct exec_executed {
	const char *filename;
	int pid, old_pid;
};

static const struct tfan_member exec_executed_members[] = {
	{ TFAN_MEMBER(struct exec_executed, filename) },
	{ TFAN_MEMBER(struct exec_executed, pid) },
	{ TFAN_MEMBER(struct exec_executed, old_pid) },
};

struct exec_cloned {
	int pid;
	uint64_t clone_flags;
};

static const struct tfan_member exec_cloned_members[] = {
	{ TFAN_MEMBER(struct exec_cloned, pid) },
	{ TFAN_MEMBER(struct exec_cloned, clone_flags) },
};

struct exec_code {
	int error_code;
};

static const struct tfan_member exec_code_members[] = {
	{ TFAN_MEMBER(struct exec_code, error_code) },
};

static const struct tfan_member exec_kernel_code_members[] = {
	{ TFAN_MEMBER(struct exec_code, error_code), .fetch = "$arg1" },
};

struct exec_delivered {
	int sig;
	uint64_t handler;
};

static const struct tfan_member exec_delivered_members[] = {
	{ TFAN_MEMBER(struct exec_delivered, sig) },
	{ TFAN_MEMBER(struct exec_delivered, handler), .field = "sa_handler" },
};

struct exec_sent {
	int sig, pid, result;
};

static const struct tfan_member exec_sent_members[] = {
	{ TFAN_MEMBER(struct exec_sent, sig) },
	{ TFAN_MEMBER(struct exec_sent, pid) },
	/* Neither ignored nor pending already. */
	{ TFAN_MEMBER(struct exec_sent, result), .condition = "result == 0" },
};

struct exec_gone {
	int pid;
};

static const struct tfan_member exec_gone_members[] = {
	{ TFAN_MEMBER(struct exec_gone, pid) },
};

/* ---- calls ---- */

static void exec_call_release(struct table_entry *entry)
{
	struct exec_call *call = (struct exec_call *)entry;

	for (size_t i = 0; call && i < call->count; i++)
		free(call->argument[i]);
	free(call);
}

static void exec_called(void *context, const struct tfan_event *event, const void *filled)
{
	const struct exec_argv *argv = &((const struct exec_called *)filled)->v;
	const struct tfan_string_address *all[EXEC_ARGUMENTS] = { &argv->a0, &argv->a1, &argv->a2, &argv->a3, &argv->a4, &argv->a5,
		&argv->a6, &argv->a7, &argv->a8, &argv->a9, &argv->a10, &argv->a11, &argv->a12, &argv->a13, &argv->a14, &argv->a15 };
	struct exec_state *state = ((struct watch *)context)->state;
	struct exec_call *call = calloc(1, sizeof(*call));

	if (!call)
		return;
	while (call->count < EXEC_ARGUMENTS && all[call->count]->address) {
		call->argument[call->count] = strdup(all[call->count]->string ? all[call->count]->string : "");
		if (!call->argument[call->count])
			break;
		call->count++;
	}
	call->cut = call->count == EXEC_ARGUMENTS ? argv->next != 0 : all[call->count]->address != 0;
	table_put(&state->calls, (uint64_t)tfan_event_pid(event), &call->entry);
}

/* ---- a program was executed ---- */

/* The kernel's copy of the arguments, as it is by now. */
static size_t exec_split(const struct proc_text *text, struct watch_text *list, size_t most)
{
	size_t count = 0;

	for (size_t at = 0; at < text->size && count < most; count++) {
		list[count].bytes = text->bytes + at;
		list[count].size = strnlen(list[count].bytes, text->size - at);
		at += list[count].size + 1;
	}
	return count;
}

static void exec_tell_arguments(struct watch_record *record, const struct exec_call *call, const struct proc_text *text,
	struct watch_text *list, size_t most)
{
	bool from_call = call && (!call->cut || text->size == 0);
	size_t count = 0;

	if (from_call) {
		for (; count < call->count; count++)
			list[count] = (struct watch_text){ call->argument[count], strlen(call->argument[count]) };
	} else {
		count = exec_split(text, list, most);
	}
	if (count > 0 || from_call)
		observer_list(record, "args", list, count);
	else
		observer_unknown(record, "args");
	observer_text(record, "args_by", from_call ? "call" : count > 0 ? "cmdline" : NULL);
	observer_bool(record, "args_cut", from_call ? call->cut : text->cut || count == most);
}

static void exec_tell(struct watch *watch, const struct tfan_event *event, const struct exec_executed *executed,
	const struct exec_call *call)
{
	static const size_t most = 4096;
	struct watch_text *list = calloc(most, sizeof(*list));
	struct proc_text text = { 0 };
	struct watch_record record;

	if (!list)
		return;
	if (!call || call->cut)
		proc_read(executed->pid, "cmdline", &text);
	observer_begin(&record, "exec", event);
	observer_text(&record, "file", executed->filename);
	exec_tell_arguments(&record, call, &text, list, most);
	observer_tell(watch, &record);
	proc_text_release(&text);
	free(list);
}

static void exec_process_release(struct table_entry *entry)
{
	free(((struct exec_process *)entry)->file);
	free(entry);
}

static void exec_executed(void *context, const struct tfan_event *event, const void *filled)
{
	const struct exec_executed *executed = filled;
	struct watch *watch = context;
	struct exec_state *state = watch->state;
	struct exec_process *process = calloc(1, sizeof(*process));

	exec_tell(watch, event, executed, (struct exec_call *)table_find(&state->calls, (uint64_t)executed->old_pid));
	table_remove(&state->calls, (uint64_t)executed->old_pid);
	/* All other threads are gone, and the one that is left has its process's id. */
	table_remove(&state->threads, (uint64_t)executed->old_pid);
	if (!process)
		return;
	process->file = strdup(executed->filename);
	process->began = tfan_event_time(event);
	process->threads = 1;
	table_put(&state->processes, (uint64_t)executed->pid, &process->entry);
}

/* ---- a process ends ---- */

static void exec_thread_release(struct table_entry *entry)
{
	free(entry);
}

static struct exec_process *exec_process_of(const struct exec_state *state, uint64_t thread)
{
	const struct exec_thread *known = (const struct exec_thread *)table_find(&state->threads, thread);

	return (struct exec_process *)table_find(&state->processes, known ? known->process : thread);
}

static void exec_cloned(void *context, const struct tfan_event *event, const void *filled)
{
	const struct exec_cloned *cloned = filled;
	struct exec_state *state = ((struct watch *)context)->state;
	struct exec_process *process = exec_process_of(state, (uint64_t)tfan_event_pid(event));
	struct exec_thread *thread;

	/* Nothing of an earlier one with this id holds for it. */
	table_remove(&state->threads, (uint64_t)cloned->pid);
	table_remove(&state->calls, (uint64_t)cloned->pid);
	if (!process || !(cloned->clone_flags & EXEC_CLONE_THREAD)) {
		table_remove(&state->processes, (uint64_t)cloned->pid);
		return;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return;
	thread->process = process->entry.key;
	process->threads++;
	table_put(&state->threads, (uint64_t)cloned->pid, &thread->entry);
}

/* The first word on it counts: what follows is how the other threads are ended. */
static void exec_settle(struct exec_status *status, const char *by, int code, int signal, bool core)
{
	if (!status->by)
		*status = (struct exec_status){ .by = by, .code = code, .signal = signal, .core = core };
}

static void exec_group_exit(void *context, const struct tfan_event *event, const void *filled)
{
	struct exec_process *process = exec_process_of(((struct watch *)context)->state, (uint64_t)tfan_event_pid(event));

	if (process)
		exec_settle(&process->group, "exit_group", ((const struct exec_code *)filled)->error_code & 0xff, 0, false);
}

static void exec_exit(void *context, const struct tfan_event *event, const void *filled)
{
	struct exec_state *state = ((struct watch *)context)->state;
	struct exec_process *process = (struct exec_process *)table_find(&state->processes, (uint64_t)tfan_event_pid(event));

	if (process)
		exec_settle(&process->leader, "exit", ((const struct exec_code *)filled)->error_code & 0xff, 0, false);
}

/* What do_exit() is given is what wait(2) gives. Of a process's first thread it is the process's. */
static void exec_do_exit(void *context, const struct tfan_event *event, const void *filled)
{
	struct exec_state *state = ((struct watch *)context)->state;
	struct exec_process *process = (struct exec_process *)table_find(&state->processes, (uint64_t)tfan_event_pid(event));
	unsigned int status = (unsigned int)((const struct exec_code *)filled)->error_code;

	if (!process)
		return;
	process->group = (struct exec_status){ .by = "do_exit", .code = (int)(status >> 8 & 0xff), .signal = (int)(status & 0x7f),
		.core = (status & 0x80) != 0 };
}

static bool exec_is_fatal(int sig)
{
	switch (sig) {
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return true;
	}
}

static void exec_sent(void *context, const struct tfan_event *event, const void *filled)
{
	const struct exec_sent *sent = filled;
	struct exec_process *process = exec_process_of(((struct watch *)context)->state, (uint64_t)sent->pid);

	(void)event;
	if (!process || !exec_is_fatal(sent->sig))
		return;
	process->killed |= sent->sig == SIGKILL;
	process->sent = sent->sig;
}

/* Where a signal is fatal and leaves no core, the kernel ends every thread by SIGKILL, whichever it was. */
static void exec_delivered(void *context, const struct tfan_event *event, const void *filled)
{
	const struct exec_delivered *delivered = filled;
	struct exec_process *process = exec_process_of(((struct watch *)context)->state, (uint64_t)tfan_event_pid(event));
	int sig = delivered->sig;

	if (!process)
		return;
	if (delivered->handler != 0) {
		process->sent = process->sent == sig ? 0 : process->sent;
		return;
	}
	if (sig == SIGKILL && !process->killed && process->sent != 0)
		sig = process->sent;
	if (exec_is_fatal(sig))
		exec_settle(&process->group, "signal_deliver", 0, sig, false);
}

static void exec_tell_end(struct watch *watch, const struct tfan_event *event, const struct exec_process *process)
{
	const struct exec_status *status = process->group.by ? &process->group : &process->leader;
	struct watch_record record;

	observer_begin(&record, "exit", event);
	observer_integer(&record, "process", (int64_t)process->entry.key);
	observer_text(&record, "file", process->file);
	if (status->by && status->signal == 0)
		observer_integer(&record, "code", status->code);
	else
		observer_unknown(&record, "code");
	if (status->by && status->signal != 0)
		observer_integer(&record, "signal", status->signal);
	else
		observer_unknown(&record, "signal");
	observer_text(&record, "by", status->by);
	observer_integer(&record, "ran_ns", (int64_t)(tfan_event_time(event) - process->began));
	observer_tell(watch, &record);
}

static void exec_gone(void *context, const struct tfan_event *event, const void *filled)
{
	struct watch *watch = context;
	struct exec_state *state = watch->state;
	uint64_t thread = (uint64_t)((const struct exec_gone *)filled)->pid;
	struct exec_process *process = exec_process_of(state, thread);

	table_remove(&state->threads, thread);
	table_remove(&state->calls, thread);
	if (!process || --process->threads > 0)
		return;
	exec_tell_end(watch, event, process);
	table_remove(&state->processes, process->entry.key);
}

/* ---- traces ---- */

static int exec_trace_calls(struct watch *watch)
{
	static const struct {
		const char *place, *argv;
		bool in_kernel;
	} rows[] = {
		/* The kernel's entry has the caller's registers: of x86-64 and arm64, as they lie in struct pt_regs. */
		{ "execve=kprobe:__x64_sys_execve", "+104($arg1)", true },
		{ "execveat=kprobe:__x64_sys_execveat", "+96($arg1)", true },
		{ "execve=kprobe:__arm64_sys_execve", "+8($arg1)", true },
		{ "execveat=kprobe:__arm64_sys_execveat", "+16($arg1)", true },
		{ "execve", "$arg2", false },
		{ "execveat", "$arg3", false },
		{ "fexecve", "$arg2", false },
	};
	bool kernel = false, library = false;
	int r = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tfan_member members[] = {
			{ .name = "v", .offset = offsetof(struct exec_called, v), .size = sizeof(struct exec_argv),
				.kind = TFAN_MEMBER_GROUP, .group = rows[i].in_kernel ? exec_kernel_argv : exec_user_argv,
				.group_count = sizeof(exec_user_argv) / sizeof(exec_user_argv[0]), .fetch = rows[i].argv },
		};
		const struct tfan_shape shape = TFAN_SHAPE(struct exec_called, members);

		if (kernel && !rows[i].in_kernel)
			break;
		r = rows[i].in_kernel ? observer_trace(watch, rows[i].place, &shape, exec_called) :
					observer_library(watch, rows[i].place, &shape, exec_called, watch);
		if (r < 0 && !observer_may_do_without(watch, r))
			return r;
		kernel |= r == 0 && rows[i].in_kernel;
		library |= r == 0 && !rows[i].in_kernel;
	}
	if (!kernel && !library)
		observer_note(watch, "arguments are read from /proc/PID/cmdline alone, after the fact: neither a probe of the kernel's "
				     "execve nor of the C library's can be had");
	else if (!kernel)
		observer_note(watch, "arguments are taken from calls of the C library's execve; of programs that call the kernel by "
				     "themselves they are read from /proc/PID/cmdline, after the fact");
	return 0;
}

static int exec_trace_ends(struct watch *watch)
{
	static const struct tfan_shape code = TFAN_SHAPE(struct exec_code, exec_code_members);
	static const struct tfan_shape kernel_code = TFAN_SHAPE(struct exec_code, exec_kernel_code_members);
	static const struct tfan_shape sent = TFAN_SHAPE(struct exec_sent, exec_sent_members);
	static const struct tfan_shape delivered = TFAN_SHAPE(struct exec_delivered, exec_delivered_members);
	int r = observer_trace(watch, "kprobe:do_exit", &kernel_code, exec_do_exit);

	if (r == 0 || !observer_may_do_without(watch, r))
		return r;
	r = observer_trace(watch, "tracepoint:syscalls:sys_enter_exit_group", &code, exec_group_exit);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:syscalls:sys_enter_exit", &code, exec_exit);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:signal:signal_generate", &sent, exec_sent);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:signal:signal_deliver", &delivered, exec_delivered);
	if (r == 0 || !observer_may_do_without(watch, r))
		return r;
	observer_note(watch, "how processes end can't be told completely: this kernel, or the session's policy, lacks some of the events "
			     "that tell it");
	return 0;
}

static int exec_trace(struct watch *watch)
{
	static const struct tfan_shape executed = TFAN_SHAPE(struct exec_executed, exec_executed_members);
	static const struct tfan_shape cloned = TFAN_SHAPE(struct exec_cloned, exec_cloned_members);
	static const struct tfan_shape gone = TFAN_SHAPE(struct exec_gone, exec_gone_members);
	int r = observer_trace(watch, "tracepoint:sched:sched_process_exec", &executed, exec_executed);

	if (r == 0)
		r = exec_trace_calls(watch);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:task:task_newtask", &cloned, exec_cloned);
	if (r == 0)
		r = exec_trace_ends(watch);
	if (r == 0)
		r = observer_trace(watch, "tracepoint:sched:sched_process_exit", &gone, exec_gone);
	return r;
}

static int exec_open(struct watch *watch, const char *folder, int *ret_folder_error)
{
	struct exec_state *state = calloc(1, sizeof(*state));

	(void)folder;
	(void)ret_folder_error;
	watch->state = state;
	if (!state || table_init(&state->calls, EXEC_CALLS, exec_call_release) < 0 ||
		table_init(&state->processes, EXEC_PROCESSES, exec_process_release) < 0 ||
		table_init(&state->threads, EXEC_THREADS, exec_thread_release) < 0)
		return -ENOMEM;
	return exec_trace(watch);
}

static void exec_close(void *context)
{
	struct exec_state *state = context;

	if (!state)
		return;
	table_free(&state->calls);
	table_free(&state->processes);
	table_free(&state->threads);
	free(state);
}

static void exec_lost(void *context)
{
	struct exec_state *state = context;

	table_clear(&state->calls);
	table_clear(&state->processes);
	table_clear(&state->threads);
}

static const char *const exec_needs[] = { "tracepoint:sched:sched_process_exec", "tracepoint:task:task_newtask", "tracepoint:sched:sched_process_exit", NULL };

const struct observer observer_exec = {
	.name = "exec",
	.needs = exec_needs,
	.open = exec_open,
	.close = exec_close,
	.lost = exec_lost,
};
