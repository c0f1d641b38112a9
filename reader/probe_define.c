#include "reader/probe_define.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/flow.h"
#include "reader/probe_line.h"
#include "reader/probe_name.h"
#include "reader/probe_remove.h"
#include "reader/tracedir.h"
#include "shm/control.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBE_CANARY_DIGITS 16

static int fail(struct control_failure *failure, int status, int error,
	const struct control_create *create, const char *message)
{
	control_failure_set(failure, error, -1, "probe \"%s\": %s", create->name, message);
	return status;
}

/* A name that can stand in a path: no slash, no dot at its head. */
static bool name_valid(const char *name)
{
	if (!*name || *name == '.')
		return false;
	for (; *name; name++) {
		if (!isascii(*name) || (!isalnum((unsigned char)*name) && !strchr("_-.", *name)))
			return false;
	}
	return true;
}

static int find_tracepoint(const struct probes *probes, const struct control_create *create,
	struct control_failure *failure)
{
	char path[2 * CONTROL_NAME_MAX + 32];

	if (!name_valid(create->system) || !name_valid(create->event))
		return fail(failure, EXIT_LOCATION, EINVAL, create,
			"not the name of a system or an event");
	(void)snprintf(path, sizeof(path), "events/%s", create->system);
	if (faccessat(probes->instance->dir, path, F_OK, 0) < 0) {
		control_failure_set(failure, errno, -1,
			"no system \"%s\" among the kernel's events", create->system);
		return EXIT_LOCATION;
	}
	(void)snprintf(path, sizeof(path), "events/%s/%s/enable", create->system, create->event);
	if (faccessat(probes->instance->dir, path, F_OK, 0) < 0) {
		control_failure_set(failure, errno, -1, "no event \"%s\" in system \"%s\"",
			create->event, create->system);
		return EXIT_LOCATION;
	}
	return EXIT_DONE;
}

int probe_check_target(
	const struct control_create *create, int target, struct control_failure *ret_failure)
{
	struct stat st;
	int flags;

	if (target < 0)
		return fail(ret_failure, EXIT_LOCATION, EBADF, create,
			"the file to be probed did not come with the request");
	flags = fcntl(target, F_GETFL);
	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return fail(ret_failure, EXIT_NOT_PERMITTED, EACCES, create,
			"the file must be open for reading");
	if (fstat(target, &st) < 0 || !S_ISREG(st.st_mode))
		return fail(ret_failure, EXIT_LOCATION, EINVAL, create, "not a regular file");
	/* The kernel takes such an offset, and refuses to enable the probe. */
	if (create->offset >= (uint64_t)st.st_size || create->ref_offset >= (uint64_t)st.st_size)
		return fail(ret_failure, EXIT_LOCATION, EINVAL, create,
			"the offset lies behind the end of the file");
	return EXIT_DONE;
}

/* Says in the kernel's own words what it refused. */
static void say(const struct probes *probes, const struct probe_line *line,
	const struct control_create *create, int error, bool in_fetch,
	struct control_failure *failure)
{
	CLEANUP_FREE char *log = NULL;
	struct probe_line_words words;
	int position = -1;

	if (tracedir_read(probes->instance->root, "error_log", &log, NULL) < 0 ||
		!probe_line_words(log, line->text, &words)) {
		(void)fail(failure, 0, error, create, strerror(error < 0 ? -error : error));
		return;
	}
	if (in_fetch)
		position = probe_line_position(line, words.column);
	control_failure_set(
		failure, error, position, "probe \"%s\": %s", create->name, words.message);
}

/* The file that such probes are defined in isn't there. */
static const char *no_such_file(uint32_t kind)
{
	if (kind == PROBE_EVENT)
		return "tracefs has no dynamic_events: this kernel has no event probes "
		       "(CONFIG_EPROBE_EVENTS), so a tracepoint takes no arguments here";
	if (probe_kind_in_file(kind))
		return "tracefs has no uprobe_events: this kernel has no uprobes "
		       "(CONFIG_UPROBE_EVENTS)";
	return "tracefs has no kprobe_events: this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
}

/* The file is there, and takes not even the simplest. */
static int no_event_probes(
	const struct control_create *create, int error, struct control_failure *failure)
{
	control_failure_set(failure, ENOENT, -1,
		"probe \"%s\": dynamic_events refuses even an event probe without arguments (%s): "
		"this kernel has no event probes (CONFIG_EPROBE_EVENTS), so a tracepoint takes no "
		"arguments here",
		create->name, strerror(-error));
	return EXIT_MISSING;
}

/* The kernel refused the whole line. Whether the place or the arguments were wrong shows in what it
 * says of the place alone. */
static int tell_apart(const struct probes *probes, const struct probe *probe,
	struct probe_line *line, const char *file, const struct control_create *create, int error,
	struct control_failure *failure)
{
	struct probe_line bare = *line;
	int r;

	bare.text[bare.bare] = '\0';
	r = tracedir_append(probes->instance->root, file, bare.text);
	/* The event is there, and nothing else stands in the line. */
	if (r < 0 && create->kind == PROBE_EVENT && r != -EACCES && r != -EPERM)
		return no_event_probes(create, r, failure);
	if (r < 0) {
		say(probes, &bare, create, r, false, failure);
		return r == -EACCES || r == -EPERM ? EXIT_NOT_PERMITTED : EXIT_LOCATION;
	}
	(void)probe_remove(probes->instance->flow, probes->instance->root, file, probe->system, probe->event);
	say(probes, line, create, error, true, failure);
	return EXIT_FETCH_ARG;
}

/* Each probe's canaries have a tag of their own: consumers see the names of their own probes, and
 * one that may define probes must not learn from them what guards another's. */
static int draw_tag(char tag[PROBE_CANARY_DIGITS + 1])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	(void)snprintf(tag, PROBE_CANARY_DIGITS + 1, "%016llx", (unsigned long long)number);
	return 0;
}

static int define_dynamic(const struct probes *probes, const struct probe *probe,
	const struct control_create *create, int target, struct control_failure *failure)
{
	const char *file = probe_file(create->kind);
	struct probe_line_error wrong;
	struct probe_line line;
	char tag[PROBE_CANARY_DIGITS + 1];
	int r = 0;

	if (probes->guards_strings)
		r = draw_tag(tag);
	if (r < 0)
		return fail(failure, EXIT_FAILED, r, create, strerror(-r));
	r = probe_line_build(create, probe->system, probe->event, target,
		probes->guards_strings ? tag : NULL, &line, &wrong);
	if (r < 0) {
		control_failure_set(failure, EINVAL, wrong.position, "probe \"%s\": %s",
			create->name, wrong.message);
		return wrong.part == PROBE_LINE_FETCH ? EXIT_FETCH_ARG : EXIT_LOCATION;
	}
	r = flow_write(probes->instance->flow, probes->instance->root, file, true, line.text);
	if (!r)
		return EXIT_DONE;
	if (r == -ENOENT && faccessat(probes->instance->root, file, F_OK, 0) < 0)
		return fail(failure, EXIT_MISSING, ENOENT, create, no_such_file(create->kind));
	return tell_apart(probes, probe, &line, file, create, r, failure);
}

/* What the event is called after: the symbol, or the consumer's name for the probe. */
static void name_event(
	const struct probes *probes, struct probe *probe, const struct control_create *create)
{
	const char *symbol = create->kind == PROBE_EVENT ? create->event
			     : *create->symbol	    ? create->symbol
						    : create->name;

	memcpy(probe->system, probes->group, sizeof(probe->system));
	probe_name_event(symbol, probe->id, probes->tag, probe->event, sizeof(probe->event));
}

int probe_define(const struct probes *probes, struct probe *probe,
	const struct control_create *create, int target, struct control_failure *ret_failure)
{
	if (create->kind == PROBE_TRACEPOINT || create->kind == PROBE_EVENT) {
		int status = find_tracepoint(probes, create, ret_failure);

		if (status || create->kind == PROBE_TRACEPOINT)
			return status;
	}
	name_event(probes, probe, create);
	return define_dynamic(probes, probe, create, target, ret_failure);
}
