/* watch files: what changes names and attributes in a folder, at any depth.
 *
 * A call is three events of its thread: its names, as the kernel has copied them (a kprobe) or as the C library was
 * called with them; its entry, which has the numbers and where the names lie; its return, which alone makes it happen.
 * Names belong to the entry that points to where they lay. What a relative name is relative to is followed from the
 * beginning on: current folders through fork and chdir, descriptors through open. */
#include "consumers/watch/observer.h"

#include "consumers/watch/descriptor.h"
#include "consumers/watch/file_call.h"
#include "consumers/watch/path.h"
#include "consumers/watch/table.h"
#include "consumers/watch/task.h"
#include "consumers/watch/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_THREADS 16384 /* that are inside a call at a time */
#define FILES_NAMES   4 /* of one call; with library calls inside others there may be more than two */
#define FILES_SITES   64

struct files_site {
	struct files_state *files;
	const struct file_call *call;
	size_t first; /* index of the entry's first argument among its fields */
};

struct files_name {
	uint64_t pointer;
	char *text;
};

/* What is known of a thread's call. */
struct files_call {
	struct table_entry entry; /* by thread */
	const struct file_call *call; /* NULL: the kernel wasn't entered yet */
	int64_t argument[FILE_CALL_ARGS];
	bool created; /* the kernel made a new file in it */
	struct files_name names[FILES_NAMES];
	unsigned int next;
};

struct files_state {
	struct watch *watch;
	struct table calls;
	struct task_set tasks;
	struct descriptor_set descriptors;
	struct tree tree;
	struct files_site entries[FILES_SITES];
	bool from_kernel;     /* names are the kernel's, in the order entry, names, return */
	bool knows_creations; /* the kernel tells them */
	uint64_t nameless, unresolved;
};

struct files_fetched {
	uint64_t p0, p1;
	const char *s0, *s1;
};

#define FILES_FETCH(n, pointer, string) "p" #n "=" pointer ":u64 s" #n "=" string ":string "

static const struct tfan_member files_one_name[] = {
	{ TFAN_MEMBER(struct files_fetched, p0) },
	{ TFAN_MEMBER(struct files_fetched, s0) },
};

static const struct tfan_member files_two_names[] = {
	{ TFAN_MEMBER(struct files_fetched, p0) },
	{ TFAN_MEMBER(struct files_fetched, s0) },
	{ TFAN_MEMBER(struct files_fetched, p1) },
	{ TFAN_MEMBER(struct files_fetched, s1) },
};

struct files_number {
	int64_t value;
};

static const struct tfan_member files_entered_members[] = {
	{ TFAN_MEMBER(struct files_number, value), .field = "__syscall_nr" },
};

static const struct tfan_member files_returned_members[] = {
	{ TFAN_MEMBER(struct files_number, value), .field = "ret" },
};

/* ---- the thread's call ---- */

static void files_call_release(struct table_entry *entry)
{
	struct files_call *call = (struct files_call *)entry;

	for (size_t i = 0; i < FILES_NAMES; i++)
		free(call->names[i].text);
	free(call);
}

static struct files_call *files_find(const struct files_state *state, const struct tfan_event *event)
{
	return (struct files_call *)table_find(&state->calls, (uint64_t)tfan_event_pid(event));
}

static struct files_call *files_make(struct files_state *state, const struct tfan_event *event)
{
	struct files_call *call = calloc(1, sizeof(*call));

	if (call)
		table_put(&state->calls, (uint64_t)tfan_event_pid(event), &call->entry);
	return call;
}

static void files_keep_name(struct files_call *call, uint64_t pointer, const char *text)
{
	struct files_name *name = &call->names[call->next++ % FILES_NAMES];

	free(name->text);
	*name = (struct files_name){ .pointer = pointer, .text = text && pointer ? strdup(text) : NULL };
}

static void files_named(void *context, const struct tfan_event *event, const void *filled)
{
	struct files_state *state = context;
	const struct files_fetched *fetched = filled;
	struct files_call *call = files_find(state, event);

	/* The kernel copies names in every call that has one; only those of a call that was entered matter. */
	if (state->from_kernel && !call)
		return;
	if (!call)
		call = files_make(state, event);
	if (!call)
		return;
	files_keep_name(call, fetched->p0, fetched->s0);
	if (fetched->p1)
		files_keep_name(call, fetched->p1, fetched->s1);
}

static void files_entered(void *context, const struct tfan_event *event, const void *filled)
{
	const struct files_site *site = context;
	struct files_state *state = site->files;
	struct files_call *call = files_find(state, event);

	(void)filled;
	/* Names of a call that did not return, or were told before it. */
	if (!call || call->call || state->from_kernel)
		call = files_make(state, event);
	if (!call)
		return;
	call->call = site->call;
	for (size_t i = 0; i < FILE_CALL_ARGS; i++) {
		uint64_t value = 0;

		if (tfan_event_u64(event, site->first + i, &value) < 0)
			break;
		call->argument[i] = (int64_t)value;
	}
}

static void files_created(void *context, const struct tfan_event *event, const void *filled)
{
	struct files_call *call = files_find(context, event);

	(void)filled;
	if (call)
		call->created = true;
}

/* ---- paths ---- */

static const char *files_name(const struct files_call *call, int argument)
{
	uint64_t pointer = argument >= 0 ? (uint64_t)call->argument[argument] : 0;
	const char *found = NULL;

	/* The last one that lay there. */
	for (unsigned int i = 0; pointer && i < FILES_NAMES; i++) {
		const struct files_name *name = &call->names[(call->next + i) % FILES_NAMES];

		if (name->pointer == pointer && name->text)
			found = name->text;
	}
	return found;
}

/* A path that leads into the folder by a link is told as the folder's own. */
static char *files_by_links(const struct files_state *state, char *path)
{
	char *slash = strrchr(path, '/'), *real, *whole = NULL;

	if (path_inside(state->tree.folder, path) || slash == path)
		return path;
	*slash = '\0';
	real = realpath(path, NULL);
	*slash = '/';
	if (real && path_inside(state->tree.folder, real) && asprintf(&whole, "%s%s", real, slash) < 0)
		whole = NULL;
	free(real);
	if (!whole)
		return path;
	free(path);
	return whole;
}

struct files_path {
	char *path;       /* NULL: it isn't known */
	const char *base; /* what it was relative to */
};

/* The path that an argument names, as it was said. */
static struct files_path files_said(struct files_state *state, const struct files_call *call, int thread, int dir, int argument)
{
	int fd = dir >= 0 ? (int)call->argument[dir] : AT_FDCWD;
	const char *name = files_name(call, argument);
	struct files_path found = { .base = "root" };
	char *base = NULL;

	if (!name)
		return found;
	if (name[0] != '/') {
		const char *folder = fd == AT_FDCWD ? task_folder(&state->tasks, thread) : NULL;

		found.base = fd == AT_FDCWD ? "cwd" : "descriptor";
		base = folder ? strdup(folder) : fd == AT_FDCWD ? NULL : descriptor_path(&state->descriptors, thread, fd);
	}
	found.path = path_resolve(base, name);
	free(base);
	return found;
}

/* The same of what is changed there. */
static struct files_path files_path(struct files_state *state, const struct files_call *call, int thread, int dir, int argument)
{
	struct files_path found = files_said(state, call, thread, dir, argument);

	if (found.path)
		found.path = files_by_links(state, found.path);
	else if (files_name(call, argument))
		state->unresolved++;
	else
		state->nameless++;
	return found;
}

/* ---- what happened ---- */

static bool files_inside(const struct files_state *state, const struct files_path *path)
{
	return path->path && path_inside(state->tree.folder, path->path);
}

static void files_begin(struct files_state *state, struct watch_record *record, const struct tfan_event *event, const char *op,
	const struct files_path *path)
{
	observer_begin(record, "file", event);
	observer_text(record, "op", op);
	observer_text(record, "path", path->path);
	observer_text(record, "base", path->path ? path->base : NULL);
	observer_text(record, "by", state->from_kernel ? "kernel" : "call");
}

static void files_tell(struct files_state *state, const struct tfan_event *event, const char *op, const struct files_path *path)
{
	struct watch_record record;

	files_begin(state, &record, event, op, path);
	observer_tell(state->watch, &record);
}

/* Whether open made the file: by its own word, the kernel's, or what is known of the folder. */
static const char *files_new(const struct files_state *state, const struct files_call *call, const char *path, unsigned int flags)
{
	if (call->created || flags & O_EXCL)
		return "proven";
	if (state->knows_creations || tree_has(&state->tree, path) == TREE_YES)
		return NULL;
	return "guessed";
}

static void files_opened(struct files_state *state, const struct tfan_event *event, const struct files_call *call, int fd)
{
	unsigned int flags = call->call->flags >= 0 ? (unsigned int)call->argument[call->call->flags] : O_CREAT | O_TRUNC;
	int thread = tfan_event_pid(event), dir = call->call->dir, name = call->call->path;
	struct files_path path = flags & O_CREAT ? files_path(state, call, thread, dir, name) : files_said(state, call, thread, dir, name);
	struct watch_record record;
	const char *new = NULL;

	descriptor_keep(&state->descriptors, thread, fd, path.path);
	if (flags & O_CREAT && files_inside(state, &path))
		new = files_new(state, call, path.path, flags);
	if (new) {
		tree_add(&state->tree, path.path);
		files_begin(state, &record, event, "create", &path);
		observer_text(&record, "new", new);
		observer_tell(state->watch, &record);
	}
	free(path.path);
}

static void files_made(struct files_state *state, const struct tfan_event *event, const struct files_call *call, const char *op)
{
	struct files_path path = files_path(state, call, tfan_event_pid(event), call->call->dir, call->call->path);

	if (files_inside(state, &path)) {
		tree_add(&state->tree, path.path);
		files_tell(state, event, op, &path);
	}
	free(path.path);
}

static void files_unmade(struct files_state *state, const struct tfan_event *event, const struct files_call *call, bool folder)
{
	struct files_path path = files_path(state, call, tfan_event_pid(event), call->call->dir, call->call->path);

	if (files_inside(state, &path)) {
		tree_remove(&state->tree, path.path);
		files_tell(state, event, folder ? "rmdir" : "delete", &path);
	}
	free(path.path);
}

static void files_symlinked(struct files_state *state, const struct tfan_event *event, const struct files_call *call)
{
	struct files_path path = files_path(state, call, tfan_event_pid(event), call->call->new_dir, call->call->target);
	struct watch_record record;

	if (files_inside(state, &path)) {
		tree_add(&state->tree, path.path);
		files_begin(state, &record, event, "symlink", &path);
		observer_text(&record, "target", files_name(call, call->call->path));
		observer_tell(state->watch, &record);
	}
	free(path.path);
}

static void files_moved(struct files_state *state, const struct tfan_event *event, const struct files_call *call)
{
	unsigned int flags = call->call->flags >= 0 ? (unsigned int)call->argument[call->call->flags] : 0;
	bool linked = call->call->op == FILE_LINK, exchanged = flags & RENAME_EXCHANGE;
	int thread = tfan_event_pid(event);
	struct files_path from = files_path(state, call, thread, call->call->dir, call->call->path);
	struct files_path to = files_path(state, call, thread, call->call->new_dir, call->call->target);
	struct watch_record record;

	/* What is exchanged is all there, before and after. */
	if (linked && files_inside(state, &to))
		tree_add(&state->tree, to.path);
	else if (!linked && !exchanged && (files_inside(state, &from) || files_inside(state, &to)))
		tree_move(&state->tree, from.path ? from.path : "", to.path ? to.path : "");
	if (files_inside(state, &to) || (!linked && files_inside(state, &from))) {
		files_begin(state, &record, event, linked ? "link" : "rename", &from);
		observer_text(&record, "to", to.path);
		observer_text(&record, "to_base", to.path ? to.base : NULL);
		observer_bool(&record, "exchanged", exchanged);
		observer_tell(state->watch, &record);
	}
	free(from.path);
	free(to.path);
}

/* The path of what a call is about by name or, where it has none, by descriptor. */
static struct files_path files_subject(struct files_state *state, const struct files_call *call, int thread)
{
	const struct file_call *row = call->call;
	struct files_path path = { .base = "descriptor" };

	if (row->path >= 0 && call->argument[row->path] != 0)
		return files_path(state, call, thread, row->dir, row->path);
	if (row->fd < 0)
		return path;
	path.path = descriptor_path(&state->descriptors, thread, (int)call->argument[row->fd]);
	state->unresolved += !path.path;
	return path;
}

static void files_changed(struct files_state *state, const struct tfan_event *event, const struct files_call *call)
{
	struct files_path path = files_subject(state, call, tfan_event_pid(event));
	struct watch_record record;

	if (files_inside(state, &path)) {
		files_begin(state, &record, event, "attrib", &path);
		observer_text(&record, "attribute", call->call->attribute);
		observer_tell(state->watch, &record);
	}
	free(path.path);
}

static void files_went(struct files_state *state, const struct tfan_event *event, const struct files_call *call)
{
	struct files_path path = files_subject(state, call, tfan_event_pid(event));

	if (path.path)
		task_set_folder(&state->tasks, tfan_event_pid(event), path.path, tfan_event_time(event));
	free(path.path);
}

static void files_happened(struct files_state *state, const struct tfan_event *event, const struct files_call *call, int64_t result)
{
	const struct file_call *row = call->call;

	switch (row->op) {
	case FILE_OPEN:
		files_opened(state, event, call, (int)result);
		break;
	case FILE_MKDIR:
		files_made(state, event, call, "mkdir");
		break;
	case FILE_MKNOD:
		files_made(state, event, call, "mknod");
		break;
	case FILE_UNLINK:
		files_unmade(state, event, call, row->flags >= 0 && call->argument[row->flags] & AT_REMOVEDIR);
		break;
	case FILE_RMDIR:
		files_unmade(state, event, call, true);
		break;
	case FILE_RENAME:
	case FILE_LINK:
		files_moved(state, event, call);
		break;
	case FILE_SYMLINK:
		files_symlinked(state, event, call);
		break;
	case FILE_ATTRIB:
		files_changed(state, event, call);
		break;
	case FILE_CHDIR:
		files_went(state, event, call);
		break;
	case FILE_DUP:
		descriptor_copy(&state->descriptors, tfan_event_pid(event), (int)call->argument[row->fd], (int)result);
		break;
	}
}

static void files_returned(void *context, const struct tfan_event *event, const void *filled)
{
	int64_t result = ((const struct files_number *)filled)->value;
	const struct files_site *site = context;
	struct files_state *state = site->files;
	const struct files_call *call = files_find(state, event);

	if (!call || call->call != site->call)
		return;
	if (result >= 0)
		files_happened(state, event, call, result);
	table_remove(&state->calls, call->entry.key);
}

/* ---- traces ---- */

static int files_trace_call(struct files_state *state, const struct file_call *call, struct files_site *site)
{
	struct tfan_shape entered = TFAN_SHAPE(struct files_number, files_entered_members);
	static const struct tfan_shape returned = TFAN_SHAPE(struct files_number, files_returned_members);
	struct tfan_trace *trace;
	char place[64];
	int r;

	*site = (struct files_site){ .files = state, .call = call };
	entered.condition = call->condition;
	(void)snprintf(place, sizeof(place), "tracepoint:syscalls:sys_enter_%s", call->name);
	r = tfan_trace_bind(state->watch->tfan, place, &entered, files_entered, site, &trace);
	if (r < 0)
		return r;
	site->first = (size_t)tfan_field_find(trace, "__syscall_nr") + 1;
	(void)snprintf(place, sizeof(place), "tracepoint:syscalls:sys_exit_%s", call->name);
	return observer_trace_for(state->watch, place, &returned, files_returned, site);
}

/* Not every architecture and kernel has every call. */
static int files_trace_calls(struct files_state *state)
{
	const struct file_call *call;
	size_t made = 0;
	int r = 0;

	for (size_t i = 0; (call = file_call_at(i)); i++) {
		r = files_trace_call(state, call, &state->entries[made]);
		if (r == 0)
			made++;
		else if (!observer_may_do_without(state->watch, r) || tfan_failure(state->watch->tfan)->category == TFAN_NOT_PERMITTED)
			return r;
	}
	return made > 0 ? 0 : r;
}

static int files_trace_kernel_names(struct files_state *state)
{
	static const struct tfan_shape name = TFAN_SHAPE(struct files_fetched, files_one_name);
	/* struct filename: the text and, until a kernel whose copies are made by do_getname, where it was copied from. */
	static const char *const places[] = {
		"kretprobe:do_getname " FILES_FETCH(0, "$arg1", "+0(+0($retval))"),
		"kretprobe:getname_flags " FILES_FETCH(0, "+8($retval)", "+0(+0($retval))"),
		"kretprobe:getname_flags.part.0 " FILES_FETCH(0, "+8($retval)", "+0(+0($retval))"),
	};
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		r = observer_trace_for(state->watch, places[i], &name, files_named, state);
		if (r < 0 && !observer_may_do_without(state->watch, r))
			return r;
		state->from_kernel |= r == 0;
		/* The others would tell again what the first has. */
		if (r == 0 && i == 0)
			break;
	}
	if (!state->from_kernel)
		return r;
	r = observer_trace_for(state->watch, "kprobe:security_inode_create p0=$arg1:u64 s0=\\\"\":string", &name, files_created, state);
	state->knows_creations = r == 0;
	return r < 0 && !observer_may_do_without(state->watch, r) ? r : 0;
}

static int files_trace_function(struct files_state *state, const struct file_function *function)
{
	static const struct tfan_shape one = TFAN_SHAPE(struct files_fetched, files_one_name);
	static const struct tfan_shape two = TFAN_SHAPE(struct files_fetched, files_two_names);
	char text[256];
	int used = snprintf(text, sizeof(text), "%s p0=$arg%u:u64 s0=+0($arg%u):string", function->name, function->first, function->first);

	if (function->second)
		(void)snprintf(text + used, sizeof(text) - (size_t)used, " p1=$arg%u:u64 s1=+0($arg%u):string", function->second,
			function->second);
	return observer_library(state->watch, text, function->second ? &two : &one, files_named, state);
}

static int files_trace_library_names(struct files_state *state)
{
	const struct file_function *function;
	size_t made = 0;
	int r = 0;

	for (size_t i = 0; (function = file_function_at(i)); i++) {
		r = files_trace_function(state, function);
		made += r == 0;
		if (r < 0 && !observer_may_do_without(state->watch, r))
			return r;
	}
	if (made == 0)
		return r;
	observer_note(state->watch, "names are taken from calls of the C library; what programs do that call the kernel by themselves is not "
				    "told, but counted");
	return 0;
}

static int files_trace(struct files_state *state)
{
	int r = files_trace_calls(state);

	if (r == 0)
		r = files_trace_kernel_names(state);
	if (r < 0 && !state->from_kernel && observer_may_do_without(state->watch, r))
		r = files_trace_library_names(state);
	return r < 0 ? r : task_set_trace(state->watch, &state->tasks);
}

static int files_folder(struct files_state *state, const char *folder, int *ret_folder_error)
{
	struct stat st;
	char *real = realpath(folder, NULL);
	int r;

	if (!real || stat(real, &st) < 0 || !S_ISDIR(st.st_mode)) {
		*ret_folder_error = real ? -ENOTDIR : -errno;
		free(real);
		return *ret_folder_error;
	}
	r = tree_init(&state->tree, real);
	free(real);
	return r;
}

static int files_open(struct watch *watch, const char *folder, int *ret_folder_error)
{
	struct files_state *state = calloc(1, sizeof(*state));
	int r;

	watch->state = state;
	if (!state)
		return -ENOMEM;
	state->watch = watch;
	r = files_folder(state, folder, ret_folder_error);
	if (r < 0)
		return r;
	if (table_init(&state->calls, FILES_THREADS, files_call_release) < 0 ||
		task_set_init(&state->tasks, true) < 0 || descriptor_set_init(&state->descriptors, &state->tasks) < 0)
		return -ENOMEM;
	return files_trace(state);
}

static void files_start(void *context)
{
	struct files_state *state = context;

	task_set_ask(&state->tasks);
	tree_look(&state->tree);
}

static void files_close(void *context)
{
	struct files_state *state = context;
	char text[128];

	if (!state)
		return;
	(void)snprintf(text, sizeof(text), "changes somewhere on this machine whose names were not seen: %llu; whose folder was not known: %llu",
		(unsigned long long)state->nameless, (unsigned long long)state->unresolved);
	if (state->nameless || state->unresolved)
		observer_note(state->watch, text);
	table_free(&state->calls);
	descriptor_set_free(&state->descriptors);
	task_set_free(&state->tasks);
	tree_free(&state->tree);
	free(state);
}

/* What was followed may have gone another way meanwhile. Threads are asked anew when they are met again; to look at the
 * folder again would take the time that lost the events. */
static void files_lost(void *context)
{
	struct files_state *state = context;

	table_clear(&state->calls);
	descriptor_set_forget(&state->descriptors);
	task_set_forget(&state->tasks);
	tree_forget(&state->tree);
}

static const char *const files_needs[] = { "tracepoint:syscalls:sys_*", "tracepoint:task:task_newtask", "tracepoint:sched:sched_process_exit", "library", NULL };

const struct observer observer_files = {
	.name = "files",
	.needs = files_needs,
	.of_folder = true,
	.open = files_open,
	.start = files_start,
	.close = files_close,
	.lost = files_lost,
};
