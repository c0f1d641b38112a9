#include "consumers/cli/attachment.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/probe_text.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than a million events: a burst of a second of both CPUs, while this program, which writes every event
 * out as text, may get no time at all. Pages of it that were never reached cost nothing. */
#define DEFAULT_RING ((size_t)128 << 20)

/* ms that a request may take. The kernel's grace periods take their time when probes are placed and removed. */
#define ATTACHMENT_PATIENCE       20000U
#define ATTACHMENT_PROBE_PATIENCE 500U
/* As many as the largest observer has. */
#define ATTACHMENT_WATCH_PROBES   110U

static void attachment_note(void *context, int level, const char *text)
{
	(void)context;
	message("%s%s", level == TFAN_NOTE_WARNING ? "warning: " : "", text);
}

unsigned int attachment_state(const struct options *options)
{
	return options->state | (options->processes ? (unsigned int)TFAN_WANT_PROCESSES : 0U);
}

static int attachment_connect(struct attachment *attachment, bool all_events)
{
	const struct options *from = attachment->options;
	bool private = attachment->config != NULL;
	struct tfan_options options = TFAN_OPTIONS;
	unsigned int probes;
	size_t effective;
	int status;

	options.session = private ? attachment->session.name : from->session;
	options.directory = private ? attachment->session.directory : from->directory;
	options.program = "tracefan";
	options.ring_size = from->ring_size ? from->ring_size : DEFAULT_RING;
	/* In a private session the reader keeps this pace. */
	options.interval = private ? 0 : from->interval_ms;
	options.overflow = from->overflow;
	options.include_self = from->include_self;
	options.force = from->force;
	options.all_events = all_events;
	options.await_state = attachment_state(from) != 0;
	options.processes = from->processes;
	/* The daemons of a private session are started once. */
	options.no_return = private;
	probes = from->action ? ATTACHMENT_WATCH_PROBES : (unsigned int)from->event_count;
	options.patience = ATTACHMENT_PATIENCE + probes * ATTACHMENT_PROBE_PATIENCE;
	options.logger = attachment_note;
	options.wait = attachment->wait;
	options.wait_context = attachment->wait_context;
	if (tfan_open(&options, &attachment->tfan) < 0) {
		status = message_failure(attachment->tfan ? tfan_failure(attachment->tfan) : NULL, NULL);
		/* What could not be opened has no account, either. */
		tfan_close(attachment->tfan);
		attachment->tfan = NULL;
		return status;
	}
	effective = tfan_session(attachment->tfan)->ring_size;
	if (from->ring_size && from->ring_size != ATTACHMENT_LEAST_RING && from->ring_size != effective)
		message("note: the ring has %zu bytes; %zu were asked for", effective, from->ring_size);
	return 0;
}

int attachment_open(struct attachment *attachment, const struct options *options,
	const struct private_session_config *config, bool all_events)
{
	static const struct private_session_config live = PRIVATE_SESSION_LIVE;
	int status = 0;

	attachment->options = options;
	attachment->config = config || options->session ? config : &live;
	if (attachment->config && !attachment->config->input_option && geteuid() != 0) {
		message("a session of one's own needs root: run it with sudo, or attach to a running session with --session NAME");
		return EXIT_NOT_PERMITTED;
	}
	if (attachment->config)
		status = private_session_start(&attachment->session, attachment->config);
	return status ? status : attachment_connect(attachment, all_events);
}

bool attachment_replays(const struct attachment *attachment)
{
	return attachment->config && attachment->config->input_option;
}

/* What the library is given for a probe: in a replay its name. */
static char *attachment_probe_text(const struct attachment *attachment, const char *probe)
{
	return attachment_replays(attachment) ? probe_text_recorded(probe) : strdup(probe);
}

/* Two probes of one name would be one in the output and its summary. */
static int attachment_check_name(const struct attachment *attachment, const struct tfan_trace *trace)
{
	const char *name = tfan_trace_name(trace);

	for (size_t i = 0;; i++) {
		const struct tfan_trace *other = tfan_trace_at(attachment->tfan, i);

		if (!other || other == trace)
			return 0;
		if (strcmp(tfan_trace_name(other), name) == 0) {
			message("two probes are called %s: give one another name, as in -e 'other=KIND:PLACE'", name);
			return EXIT_USAGE;
		}
	}
}

/* The mark stands under what the user wrote, not under what the library was given. */
static int attachment_refused(const struct attachment *attachment, const char *probe, const char *text)
{
	const struct tfan_failure *failure = tfan_failure(attachment->tfan);
	struct tfan_failure shown;

	if (!failure || !attachment_replays(attachment))
		return message_failure(failure, probe);
	shown = *failure;
	shown.position = probe_text_position(probe, text, failure->position);
	return message_failure(&shown, probe);
}

static bool attachment_has_field(const struct tfan_trace *trace, const char *name, size_t size)
{
	struct tfan_field field;

	for (size_t i = 0; i < tfan_field_count(trace); i++) {
		if (tfan_field_at(trace, i, &field) == 0 && strlen(field.name) == size && memcmp(field.name, name, size) == 0)
			return true;
	}
	return false;
}

/* What a recording holds was fetched when it was made: that can be named again, and nothing else be had. */
static int attachment_check_arguments(const struct tfan_trace *trace, const char *probe)
{
	const char *argument;
	char what[512];
	size_t size;

	for (size_t i = 0; (argument = probe_text_argument(probe, i, &size)); i++) {
		size_t name = strcspn(argument, "=");

		if (name < size && attachment_has_field(trace, argument, name))
			continue;
		name = name < size ? name : size;
		(void)snprintf(what, sizeof(what),
			name < size ? "'%.*s' was not recorded with %s, and nothing can be fetched from a recording"
				    : "'%.*s' is out of place: behind %s stand stack, ustack and \"if FILTER\"",
			(int)(name < 100 ? name : 100), argument, tfan_trace_name(trace));
		message_at(probe, (int)(argument - probe), what);
		return EXIT_USAGE;
	}
	return 0;
}

static int attachment_create_one(struct attachment *attachment, const char *probe)
{
	char *text = attachment_probe_text(attachment, probe);
	struct tfan_trace *trace = NULL;
	int status;

	if (!text) {
		message("out of memory");
		return EXIT_FAILED;
	}
	if (tfan_trace_create(attachment->tfan, text, &trace) < 0)
		status = attachment_refused(attachment, probe, text);
	else
		status = attachment_check_name(attachment, trace);
	if (status == 0 && attachment_replays(attachment))
		status = attachment_check_arguments(trace, probe);
	free(text);
	return status;
}

int attachment_create(struct attachment *attachment)
{
	int status = 0;

	attachment->session.probes = attachment->options->event_count;
	for (size_t i = 0; i < attachment->options->event_count && status == 0; i++)
		status = attachment_create_one(attachment, attachment->options->events[i]);
	if (status == 0 && attachment->options->filter && tfan_set_filter(attachment->tfan, attachment->options->filter) < 0)
		status = message_failure(tfan_failure(attachment->tfan), attachment->options->filter);
	return status;
}

int attachment_enable(struct attachment *attachment, bool enabled)
{
	struct tfan_trace *trace;

	for (size_t i = 0; (trace = tfan_trace_at(attachment->tfan, i)); i++) {
		int rc = tfan_trace_set_enabled(trace, enabled);

		attachment->returning = rc == -EAGAIN;
		if (attachment->returning)
			return EXIT_BUSY;
		if (rc < 0) {
			attachment->unanswered = rc == -ETIMEDOUT;
			return message_failure(tfan_failure(attachment->tfan), NULL);
		}
	}
	return 0;
}

int attachment_close(struct attachment *attachment)
{
	tfan_close(attachment->tfan);
	attachment->tfan = NULL;
	return private_session_stop(&attachment->session, attachment->unanswered);
}
