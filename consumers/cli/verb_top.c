#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/ledger.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"
#include "consumers/cli/options.h"
#include "consumers/cli/top.h"
#include "consumers/cli/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Events taken between two looks at the rest. */
#define TOP_BATCH 4096

struct verb_top {
	const struct options *options;
	struct attachment attachment;
	struct writer writer;
	struct top top;
	int signal_fd;
	bool on_screen, over, stopped;
	uint64_t shown, due, end;
	int status;
};

/* ---- showing ---- */

static void top_json_row(struct writer *writer, const struct top_row *row)
{
	const char *name = tfan_trace_name(row->trace);

	writer_char(writer, '"');
	escape_json(writer, name, strlen(name));
	writer_number(writer, "\":{\"rate\":", row->rate);
	writer_char(writer, ',');
	ledger_json_trace(writer, &row->ledger);
	writer_char(writer, '}');
}

static void top_json(struct writer *writer, const struct top *top)
{
	writer_number(writer, "{\"kind\":\"top\",\"time\":", top->time);
	writer_text(writer, ",\"session\":{");
	ledger_json_session(writer, &top->session);
	writer_text(writer, "},\"probes\":{");
	for (size_t i = 0; i < top->count; i++) {
		if (i > 0)
			writer_char(writer, ',');
		top_json_row(writer, &top->rows[i]);
	}
	writer_text(writer, "}}");
	writer_end_line(writer);
}

static void top_text(struct writer *writer, const struct top *top)
{
	for (size_t i = 0; i < top->count; i++) {
		const struct top_row *row = &top->rows[i];
		const char *name = tfan_trace_name(row->trace);

		escape_text(writer, name, strlen(name));
		writer_number(writer, " rate=", row->rate);
		writer_number(writer, " decoded=", row->ledger.decoded);
		writer_number(writer, " delivered=", row->ledger.delivered);
		writer_number(writer, " filtered=", row->ledger.filtered);
		writer_number(writer, " lost_ring=", row->ledger.lost_ring);
		writer_number(writer, " lost_kernel=", top->session.lost_kernel);
		writer_end_line(writer);
	}
}

static void top_show(struct verb_top *v)
{
	struct tfan *tfan = v->attachment.tfan;

	if (top_look(&v->top, tfan, monotonic_now()) < 0) {
		v->over = true;
		/* It has ended, and says so as an event. */
		if (tfan_failure(tfan)->category != TFAN_BUSY)
			v->status = message_failure(tfan_failure(tfan), NULL);
		return;
	}
	if (v->on_screen)
		top_screen_show(&v->top);
	else if (v->options->format == OPTIONS_JSON)
		top_json(&v->writer, &v->top);
	else
		top_text(&v->writer, &v->top);
	if (writer_flush(&v->writer) < 0)
		v->stopped = true;
	v->shown++;
}

/* ---- events, which nobody looks at ---- */

/* Returns whether there may be more now. */
static bool top_take(struct verb_top *v)
{
	for (int i = 0; i < TOP_BATCH; i++) {
		const struct tfan_event *event;
		int r = tfan_next(v->attachment.tfan, &event);

		if (r == 0)
			return false;
		if (r < 0) {
			v->over = true;
			v->status = r == -ESHUTDOWN ? v->status : message_failure(tfan_failure(v->attachment.tfan), NULL);
			return false;
		}
		if (tfan_event_kind(event) == TFAN_END)
			v->over = true;
	}
	return true;
}

static void top_wait(struct verb_top *v, bool more)
{
	uint64_t until = more ? 0 : v->due < v->end ? v->due : v->end;
	struct pollfd fds[] = {
		{ .fd = tfan_fd(v->attachment.tfan), .events = POLLIN },
		{ .fd = v->signal_fd, .events = POLLIN },
		{ .fd = v->on_screen ? STDIN_FILENO : -1, .events = POLLIN },
	};

	(void)monotonic_poll(fds, sizeof(fds) / sizeof(fds[0]), until);
	v->stopped = v->stopped || fds[1].revents || (v->on_screen && top_screen_quits());
}

static void top_run(struct verb_top *v)
{
	const struct options *options = v->options;
	uint64_t every = options->every ? options->every : MONOTONIC_SECOND, now = monotonic_now();

	v->due = now;
	v->end = options->duration ? now + options->duration : MONOTONIC_NEVER;
	while (!v->over && !v->stopped && now < v->end && (!options->count || v->shown < options->count)) {
		bool more = top_take(v);

		now = monotonic_now();
		if (now >= v->due && !v->over) {
			top_show(v);
			v->due = now + every;
			continue;
		}
		top_wait(v, more);
		now = monotonic_now();
	}
}

static int top_signals(struct verb_top *v)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigdelset(&set, SIGPIPE);
	v->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return v->signal_fd < 0 ? EXIT_FAILED : 0;
}

static int verb_top_run(struct verb_top *v)
{
	const struct private_session_config live = PRIVATE_SESSION_LIVE;
	struct private_session_config private_session = live;
	int status, closed;

	private_session.source = v->options->source;
	status = attachment_open(&v->attachment, v->options, v->options->session ? NULL : &private_session, false);
	if (status == 0)
		status = attachment_create(&v->attachment);
	if (status == 0)
		status = top_signals(v);
	if (status == 0 && top_make(&v->top, v->attachment.tfan) < 0)
		status = EXIT_FAILED;
	if (status == 0)
		status = attachment_enable(&v->attachment, true);
	if (status == 0) {
		v->on_screen = v->options->format == OPTIONS_TEXT && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && top_screen_open();
		top_run(v);
		if (v->on_screen)
			top_screen_close();
		status = v->status;
	}
	closed = attachment_close(&v->attachment);
	if (v->signal_fd >= 0)
		(void)close(v->signal_fd);
	top_release(&v->top);
	return status ? status : closed;
}

int verb_top(const struct verb *verb, int argc, char **argv)
{
	struct verb_top v = { .attachment = ATTACHMENT_NONE, .signal_fd = -1 };
	struct options options;
	int status, r;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	v.options = &options;
	r = writer_open(&v.writer, STDOUT_FILENO);
	status = r < 0 ? message_output(r) : verb_top_run(&v);
	if (r == 0 && status == 0)
		status = message_output(writer_error(&v.writer));
	writer_close(&v.writer);
	options_release(&options);
	return status;
}
