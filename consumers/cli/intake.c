#include "consumers/cli/intake.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* While events never stop coming, how many are taken between two looks at the rest. */
#define INTAKE_BATCH 1024

/* Seconds that the session may be silent while it owes the last events. */
#define INTAKE_PATIENCE 20U

/* How long the router may take to tell the end, after the reader of a private session is gone. */
#define INTAKE_LAST_WORDS MONOTONIC_SECOND

static void intake_stop(struct intake *intake, enum intake_stop stop)
{
	if (intake->stop == INTAKE_GOES_ON)
		intake->stop = stop;
}

static void intake_fail(struct intake *intake, enum intake_stop stop, int status)
{
	intake_stop(intake, stop);
	if (intake->status == 0)
		intake->status = status;
}

/* ---- records ---- */

static bool intake_shows(const struct intake *intake)
{
	return !intake->hidden && !intake->options->quiet && intake->stop != INTAKE_COUNT && intake->stop != INTAKE_OUTPUT;
}

static void intake_show(struct intake *intake, const struct tfan_event *event)
{
	int r;

	if (!intake_shows(intake))
		return;
	r = output_record(intake->output, event);
	if (r < 0) {
		message("a record can't be shown: %s", strerror(-r));
		intake_fail(intake, INTAKE_OUTPUT, EXIT_FAILED);
	}
}

void intake_check_output(struct intake *intake)
{
	int error = writer_error(intake->output->writer);

	if (error == 0 || intake->told)
		return;
	intake->told = true;
	if (error == -EPIPE || error == -ECANCELED) {
		intake_stop(intake, INTAKE_OUTPUT);
		return;
	}
	message("writing to %s: %s", intake->options->write_path ? intake->options->write_path : "standard output",
		strerror(-error));
	intake_fail(intake, INTAKE_OUTPUT, EXIT_FAILED);
}

static void intake_end(struct intake *intake, const struct tfan_event *event)
{
	const char *name = intake->options->session ? intake->options->session : "of this program";
	enum tfan_end_reason reason;
	const char *text;

	intake->over = true;
	intake_stop(intake, INTAKE_SESSION);
	if (tfan_event_end(event, &reason, &text) < 0) {
		intake_fail(intake, INTAKE_SESSION, EXIT_FAILED);
		return;
	}
	if (reason == TFAN_END_FINISHED)
		return;
	message("the session %s was ended (%s)%s%s", name, output_end_reason(reason), *text ? ": " : "", text);
	if (reason == TFAN_END_ERROR)
		intake_fail(intake, INTAKE_SESSION, EXIT_FAILED);
	else if (reason == TFAN_END_REFUSED)
		intake_fail(intake, INTAKE_SESSION, EXIT_NOT_PERMITTED);
}

/* What still comes while it ends, for this or another reason, is more than was asked for. */
static bool intake_wants(const struct intake *intake)
{
	return !intake->options->count || intake->seen < intake->options->count;
}

static void intake_count(struct intake *intake)
{
	intake->seen++;
	if (intake->seen == intake->options->count)
		intake_stop(intake, INTAKE_COUNT);
}

static void intake_event(struct intake *intake, const struct tfan_event *event)
{
	if (!intake_wants(intake))
		return;
	intake_show(intake, event);
	intake_count(intake);
}

void intake_watched(void *context, const struct watch_record *record)
{
	struct intake *intake = context;

	if (!intake_wants(intake))
		return;
	if (intake_shows(intake))
		intake->output->format->watched(intake->output, record);
	intake_count(intake);
}

/* A gap may turn out to have cost nothing. */
static void intake_lost(struct intake *intake, const struct tfan_event *event)
{
	struct tfan_lost lost;
	bool known = tfan_event_lost(event, &lost) == 0;

	if (known && lost.source == TFAN_LOST_RECORDING) {
		if (intake->recording)
			intake_fail(intake, INTAKE_RECORDING, EXIT_FAILED);
		return;
	}
	if (known && lost.counted && lost.count == 0)
		return;
	intake->lost = true;
	if (intake->watch)
		watch_lost(intake->watch);
	if (intake->options->exit_on_loss)
		intake_stop(intake, INTAKE_LOSS);
}

/* The processes come with whatever was asked for. */
static bool intake_wants_state(const struct intake *intake, enum tfan_state_kind kind)
{
	static const unsigned int wants[] = {
		[TFAN_STATE_PROCESS] = TFAN_WANT_PROCESSES,
		[TFAN_STATE_THREAD] = TFAN_WANT_PROCESSES,
		[TFAN_STATE_MAPPING] = TFAN_WANT_MAPPINGS,
		[TFAN_STATE_FILE] = TFAN_WANT_FILES,
		[TFAN_STATE_SOCKET] = TFAN_WANT_SOCKETS,
		[TFAN_STATE_END] = ~0U,
	};

	return (intake->options->state & wants[kind]) != 0;
}

/* The command's own beginning is told by events that know whose they are. */
static void intake_state(struct intake *intake, const struct tfan_event *event)
{
	struct tfan_state state;

	if (tfan_event_state(event, &state) < 0)
		return;
	if (intake_wants_state(intake, state.kind))
		intake_show(intake, event);
	if (state.kind == TFAN_STATE_END && intake->command)
		command_release_gate(intake->command);
}

static void intake_record(struct intake *intake, const struct tfan_event *event)
{
	switch (tfan_event_kind(event)) {
	case TFAN_EVENT:
		intake_event(intake, event);
		break;
	case TFAN_LOST:
	case TFAN_GAP:
		intake_show(intake, event);
		intake_lost(intake, event);
		break;
	case TFAN_THROTTLED:
		intake_show(intake, event);
		intake->lost = true;
		if (intake->options->exit_on_loss)
			intake_stop(intake, INTAKE_LOSS);
		break;
	case TFAN_STATE:
		intake_state(intake, event);
		break;
	case TFAN_FILTER:
		intake_show(intake, event);
		break;
	case TFAN_END:
		intake_show(intake, event);
		intake_end(intake, event);
		break;
	case TFAN_FLUSHED:
		intake->flushed = true;
		break;
	}
}

void intake_notice(void *intake, const struct tfan_event *event)
{
	intake_record(intake, event);
}

/* One record, if there is one. Returns as tfan_next; the end, which a notice has told, is no error. */
static int intake_next(struct intake *intake)
{
	const struct tfan_event *event;
	int r;

	if (intake->watch) {
		r = tfan_dispatch(intake->tfan, 1);
		intake->taken += r > 0;
		return r < 0 && intake->over ? 0 : r;
	}
	r = tfan_next(intake->tfan, &event);
	intake->taken += r > 0;
	if (r > 0)
		intake_record(intake, event);
	return r;
}

/* Takes at most a batch, and up to the first reason to stop that was none before. Returns whether there may be more now. */
static bool intake_take(struct intake *intake)
{
	enum intake_stop before = intake->stop;

	for (int i = 0; i < INTAKE_BATCH && intake->stop == before && !intake->over; i++) {
		int r = intake_next(intake);

		if (r == 0)
			return false;
		if (r < 0) {
			intake->over = true;
			intake_fail(intake, INTAKE_SESSION, message_failure(tfan_failure(intake->tfan), NULL));
			break;
		}
		intake_check_output(intake);
	}
	return true;
}

/* ---- everything else ---- */

/* The terminal sends ^C to the command, too. A signal that was sent to this program alone is passed on, as one that programs in
 * the background don't ignore. Either way the command's last events are still awaited. */
static void intake_pass_on(struct intake *intake, const struct signalfd_siginfo *info)
{
	if (info->ssi_code <= 0)
		command_signal(intake->command, SIGTERM);
}

static void intake_signal(struct intake *intake)
{
	struct signalfd_siginfo info;

	if (read(intake->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	intake->signals++;
	if (intake->command && !intake->command->ended && intake->signals == 1) {
		intake_pass_on(intake, &info);
		return;
	}
	if (intake->stop == INTAKE_GOES_ON)
		intake_stop(intake, INTAKE_SIGNAL);
	else if (intake->signals > 1 || intake->stop != INTAKE_COMMAND)
		intake->abandoned = true;
}

static void intake_command(struct intake *intake)
{
	int error = command_collect(intake->command);

	if (error != 0)
		message("can't run '%s': %s", intake->options->command[0], strerror(error));
	intake_stop(intake, INTAKE_COMMAND);
}

/* A reader that replayed everything ends, too: only one that failed is the session's end. What it had published is still on
 * its way. */
static void intake_reader(struct intake *intake)
{
	if (private_session_broken(intake->session))
		intake->give_up = monotonic_now() + INTAKE_LAST_WORDS;
}

/* Sleeps until something happens or `deadline`; with `fd` (-1: none) among the things. Returns whether it was fd. */
static bool intake_poll(struct intake *intake, int fd, short events, uint64_t deadline)
{
	bool command = intake->command && !intake->command->ended;
	bool reader = intake->session && !intake->session->reader.ended;
	bool output = intake->stop == INTAKE_GOES_ON && intake->output->writer->may_block;
	struct pollfd fds[] = {
		{ .fd = fd, .events = events },
		{ .fd = intake->signal_fd, .events = POLLIN },
		{ .fd = command ? intake->command->pidfd : -1, .events = POLLIN },
		{ .fd = reader ? intake->session->reader.pidfd : -1, .events = POLLIN },
		/* Only that its reader has left: nobody waits for the next event then. */
		{ .fd = output ? intake->output->writer->fd : -1, .events = 0 },
	};
	int r = monotonic_poll(fds, sizeof(fds) / sizeof(fds[0]), deadline);

	if (r <= 0)
		return false;
	if (fds[1].revents)
		intake_signal(intake);
	if (fds[2].revents)
		intake_command(intake);
	if (fds[3].revents)
		intake_reader(intake);
	if (fds[4].revents & (POLLERR | POLLHUP))
		intake_stop(intake, INTAKE_OUTPUT);
	return fds[0].revents != 0;
}

/* One round: what is there, then a look at, or a sleep until, something else. */
static void intake_round(struct intake *intake, uint64_t deadline)
{
	enum intake_stop before = intake->stop;
	bool more = intake_take(intake);

	if (!more) {
		(void)writer_flush(intake->output->writer);
		intake_check_output(intake);
	}
	if (intake->over || intake->flushed || intake->stop != before)
		return;
	if (intake->give_up < deadline)
		deadline = intake->give_up;
	intake->heard += intake_poll(intake, tfan_fd(intake->tfan), POLLIN, more ? 0 : deadline);
	if (intake->give_up != MONOTONIC_NEVER && !more && monotonic_now() >= intake->give_up) {
		intake->over = true;
		intake_fail(intake, INTAKE_SESSION, EXIT_FAILED);
	}
}

void intake_run(struct intake *intake)
{
	while (intake->stop == INTAKE_GOES_ON) {
		intake_round(intake, intake->deadline);
		if (intake->deadline != MONOTONIC_NEVER && monotonic_now() >= intake->deadline)
			intake_stop(intake, INTAKE_DURATION);
	}
}

static void intake_give_up(struct intake *intake)
{
	message("the session has sent nothing for %u seconds and owes the rest: its daemons hang or were stopped",
		INTAKE_PATIENCE);
	intake->silent = true;
	intake->over = true;
	intake_fail(intake, INTAKE_SESSION, EXIT_FAILED);
}

void intake_drain(struct intake *intake)
{
	uint64_t deadline = 0, done = 0;

	while (!intake->flushed && !intake->over && !intake->abandoned) {
		if (deadline == 0 || intake->taken + intake->heard != done)
			deadline = monotonic_now() + INTAKE_PATIENCE * MONOTONIC_SECOND;
		done = intake->taken + intake->heard;
		intake_round(intake, deadline);
		if (intake->taken + intake->heard == done && monotonic_now() >= deadline && !intake->flushed && !intake->over)
			intake_give_up(intake);
	}
}

bool intake_interrupted(struct intake *intake)
{
	struct signalfd_siginfo info;

	if (read(intake->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		intake->signals++;
		intake_stop(intake, INTAKE_SIGNAL);
	}
	return intake->stop == INTAKE_SIGNAL;
}

/* What a signal means for an answer that is waited for. */
static bool intake_gives_up(struct intake *intake, bool readerless)
{
	if (!intake->running)
		return intake_interrupted(intake);
	intake_signal(intake);
	return intake->abandoned || (readerless && intake->stop != INTAKE_GOES_ON);
}

static uint64_t intake_answer_deadline(const struct intake *intake, int milliseconds, bool readerless)
{
	/* The router gives a session up by itself in which there is no reader. */
	if (readerless && !intake->running)
		return intake->options->duration ? monotonic_now() + intake->options->duration : MONOTONIC_NEVER;
	return milliseconds < 0 ? MONOTONIC_NEVER : monotonic_now() + (uint64_t)milliseconds * (MONOTONIC_SECOND / 1000);
}

int intake_wait_answer(void *context, int fd, int milliseconds, bool readerless)
{
	struct intake *intake = context;
	const uint64_t deadline = intake_answer_deadline(intake, milliseconds, readerless);

	for (;;) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = intake->signal_fd, .events = POLLIN } };
		int r = monotonic_poll(fds, 2, deadline);

		if (r == 0 || (r < 0 && r != -EINTR))
			return r;
		if (r > 0 && fds[0].revents)
			return 1;
		if (r > 0 && intake_gives_up(intake, readerless))
			return -ECANCELED;
	}
}

void intake_take_ready(struct intake *intake)
{
	while (!intake->over && intake_take(intake))
		;
	(void)writer_flush(intake->output->writer);
	intake_check_output(intake);
}

bool intake_return(struct intake *intake)
{
	const uint64_t deadline = monotonic_now() + INTAKE_PATIENCE * MONOTONIC_SECOND;
	uint64_t taken = intake->taken;

	/* What comes first when it is back is the gap's record. */
	while (intake->taken == taken && !intake->over && !intake->abandoned && monotonic_now() < deadline)
		intake_round(intake, deadline);
	if (intake->taken == taken && !intake->over && !intake->abandoned)
		intake_give_up(intake);
	return !intake->over && !intake->abandoned;
}

int intake_wait_output(void *context, int fd)
{
	struct intake *intake = context;

	while (!intake->abandoned) {
		/* Whose output is waited for, the session is not to blame. */
		intake->taken++;
		if (intake_poll(intake, fd, POLLOUT, MONOTONIC_NEVER))
			return 0;
	}
	return -ECANCELED;
}

void intake_wait_command(struct intake *intake)
{
	while (intake->command && !intake->command->ended && !intake->abandoned)
		(void)intake_poll(intake, -1, 0, MONOTONIC_NEVER);
}
