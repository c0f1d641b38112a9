#include "consumers/cli/observation.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/command.h"
#include "consumers/cli/intake.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"
#include "consumers/cli/output.h"
#include "consumers/cli/output_file.h"
#include "consumers/cli/summary.h"
#include "consumers/cli/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct observation {
	const struct observation_config *config;
	const struct options *options;
	struct attachment attachment;
	struct writer writer;
	struct output output;
	struct command command;
	struct intake intake;
	struct watch *watch;
	sigset_t mask; /* the one that we were started with */
	struct output_file file; /* of --write; none: standard output */
};

/* ---- the output ---- */

static bool observation_is_input(const struct observation *o, int fd)
{
	const struct private_session_config *session = o->config->private_session;
	struct stat input, output;

	return session && session->input && stat(session->input, &input) == 0 && fstat(fd, &output) == 0 &&
		input.st_dev == output.st_dev && input.st_ino == output.st_ino;
}

/* What was in the files before goes once there is something to write in its place: not for a probe that is mistyped. */
static int observation_begin_output(struct observation *o)
{
	int status = output_file_begin(&o->file);

	return status == 0 && o->config->recording ? output_file_begin(o->config->recording) : status;
}

static int observation_open_output(struct observation *o)
{
	const struct options *options = o->options;
	const char *no_colour = getenv("NO_COLOR");
	const char *path = options->write_path;
	int fd = STDOUT_FILENO;
	bool decorated;
	int r;

	if (path) {
		r = output_file_open(&o->file, path);
		if (r != 0)
			return r;
		fd = o->file.fd;
		if (observation_is_input(o, fd)) {
			message("%s is what is replayed: write to another file", path);
			return EXIT_USAGE;
		}
	}
	r = writer_open(&o->writer, fd);
	if (r < 0) {
		message("%s: %s", path ? path : "standard output", strerror(-r));
		return EXIT_FAILED;
	}
	o->writer.wait = intake_wait_output;
	o->writer.wait_context = &o->intake;
	decorated = isatty(fd) && !(no_colour && *no_colour);
	output_open(&o->output, options->format == OPTIONS_JSON ? &output_json : &output_text, &o->writer, decorated);
	o->output.processes = options->processes;
	return 0;
}

/* ---- running ---- */

/* From here on signals are read where something is waited for. SIGPIPE and SIGXFSZ are never read: a write says EPIPE or EFBIG. */
static int observation_take_signals(struct observation *o)
{
	sigset_t stop, blocked;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGINT);
	(void)sigaddset(&stop, SIGTERM);
	blocked = stop;
	(void)sigaddset(&blocked, SIGPIPE);
	(void)sigaddset(&blocked, SIGXFSZ);
	(void)sigprocmask(SIG_BLOCK, &blocked, &o->mask);
	o->intake.signal_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	if (o->intake.signal_fd >= 0)
		return 0;
	message("signalfd: %s", strerror(errno));
	return EXIT_FAILED;
}

static int observation_start_command(struct observation *o)
{
	int r;

	if (!o->options->command)
		return 0;
	r = command_start(&o->command, o->options->command, &o->mask);
	if (r < 0) {
		message("can't make a process for the command: %s", strerror(-r));
		return EXIT_FAILED;
	}
	o->intake.command = &o->command;
	return 0;
}

/* What the reason of the stop means for a command that runs on. */
static void observation_end_command(struct observation *o)
{
	bool failed = o->intake.stop == INTAKE_OUTPUT && o->intake.status != 0;

	if (o->intake.command && (failed || o->intake.stop == INTAKE_DURATION || o->intake.stop == INTAKE_LOSS ||
		o->intake.stop == INTAKE_RECORDING))
		command_signal(o->intake.command, SIGTERM);
}

static int worse(int a, int b)
{
	return a != 0 ? a : b;
}

/* A router that is just being started again is waited for. */
static int observation_enable(struct observation *o, bool enabled)
{
	int status;

	do
		status = attachment_enable(&o->attachment, enabled);
	while (o->attachment.returning && intake_return(&o->intake));
	return status;
}

/* A replay that was stopped before its end has no rest that anybody wants. */
static void observation_take_rest(struct observation *o)
{
	struct tfan_session_ledger ledger;
	int status;

	if (o->intake.over || attachment_replays(&o->attachment))
		return;
	/* Nobody can be asked for the rest. */
	if (tfan_is_readerless(o->attachment.tfan)) {
		const char *name = tfan_session(o->attachment.tfan)->name;

		message("session \"%s\"'s reader is gone; start it again with: tracefan session start %s", name, name);
		o->intake.status = worse(o->intake.status, EXIT_FAILED);
		intake_take_ready(&o->intake);
		return;
	}
	/* Events that could not be stopped are no reason to keep those back that have come. */
	status = observation_enable(o, false);
	if (o->intake.over)
		return;
	o->intake.status = worse(o->intake.status, status);
	if (o->attachment.unanswered)
		return;
	/* That the kernel's counts are looked at makes the session tell, before the rest, of losses that only they show. Where they
	 * can't be had now the summary says so. */
	status = tfan_session_ledger(o->attachment.tfan, &ledger);
	if ((status < 0 && status != -EAGAIN) || tfan_flush(o->attachment.tfan) < 0) {
		o->intake.status = worse(o->intake.status, message_failure(tfan_failure(o->attachment.tfan), NULL));
		return;
	}
	intake_drain(&o->intake);
	if (o->intake.silent)
		o->attachment.unanswered = true;
}

static int observation_run_traces(struct observation *o)
{
	const unsigned int wants = attachment_state(o->options);
	int status = observation_start_command(o);

	if (status == 0)
		status = observation_enable(o, true);
	if (status == 0 && wants && tfan_capture_state(o->attachment.tfan, wants) < 0)
		status = message_failure(tfan_failure(o->attachment.tfan), NULL);
	if (status != 0)
		return status;
	if (o->watch)
		watch_start(o->watch);
	if (o->options->duration > 0)
		o->intake.deadline = monotonic_now() + o->options->duration;
	/* With the state: once that is all there. */
	if (o->intake.command && !wants)
		command_release_gate(o->intake.command);
	o->intake.running = true;
	intake_run(&o->intake);
	observation_end_command(o);
	observation_take_rest(o);
	return o->intake.status;
}

/* ---- the end ---- */

static void observation_text_summary(const struct summary *summary)
{
	struct writer writer;

	if (writer_open(&writer, STDERR_FILENO) < 0)
		return;
	output_text_summary(&writer, summary);
	(void)writer_flush(&writer);
	writer_close(&writer);
}

/* What became of a recording that could not go on. */
static int observation_tell_recording(const struct observation *o, const struct summary *summary)
{
	const struct tfan_session_ledger *ledger = &summary->session;
	const char *path = o->config->recording ? o->config->recording->path : NULL;

	if (!path || !summary->session_known || ledger->recording_error == 0) {
		if (o->intake.stop == INTAKE_RECORDING)
			message("%s: the recording is cut off", path);
		return o->intake.stop == INTAKE_RECORDING ? EXIT_FAILED : EXIT_DONE;
	}
	if (ledger->unrecorded_known)
		message("%s: %s; %" PRIu64 " of the decoded events are not in the recording, which is cut off there", path,
			strerror(-ledger->recording_error), ledger->unrecorded);
	else
		message("%s: %s; the recording is cut off there", path, strerror(-ledger->recording_error));
	return EXIT_FAILED;
}

/* Returns an exit status. */
static int observation_summarize(struct observation *o)
{
	struct summary summary;
	bool lost;
	int status;

	if (summary_make(o->attachment.tfan, &o->output.plans, &summary) < 0) {
		message("out of memory");
		return EXIT_FAILED;
	}
	summary.only_busy = o->config->watch != NULL;
	if (o->options->format == OPTIONS_JSON && !o->config->hidden) {
		output_json_summary(&o->writer, &summary);
	} else {
		/* Both may lead to the same place, where the account is to stand below what it counts. An error stays with
		 * the writer, and is told with the rest of the output. */
		summary.unshown = writer_flush(&o->writer) < 0;
		observation_text_summary(&summary);
	}
	/* The ledger of a session that others use, too, tells of losses before our time. */
	lost = o->intake.lost || summary_lost(&summary, o->attachment.config != NULL);
	status = observation_tell_recording(o, &summary);
	summary_release(&summary);
	if (status != 0)
		return status;
	return lost && o->options->exit_on_loss ? EXIT_LOST : 0;
}

static int observation_finish_output(struct observation *o)
{
	(void)writer_flush(&o->writer);
	intake_check_output(&o->intake);
	return o->intake.status;
}

/* After everything of the session is gone, so that a command that runs on holds nothing. Who sends a second signal wants their
 * prompt back. */
static int observation_command_status(struct observation *o)
{
	if (!o->intake.command)
		return 0;
	if (o->intake.stop == INTAKE_GOES_ON)
		return 0;
	if (o->intake.stop != INTAKE_SIGNAL)
		intake_wait_command(&o->intake);
	return o->command.ended ? o->command.status : 128 + SIGTERM;
}

static void observation_note(void *context, const char *text)
{
	(void)context;
	message("note: %s", text);
}

/* The events that an observer needs are its own business; whom the policy lets have them is its author's. */
static int observation_watch_refused(const struct observation *o)
{
	const struct tfan_failure *failure = tfan_failure(o->attachment.tfan);
	int status = message_failure(failure, NULL);
	char place[PATH_MAX + sizeof("uprobe:")];

	/* EDQUOT: it is allowed, and too much. */
	if (status != EXIT_NOT_PERMITTED || failure->error == EDQUOT)
		return status;
	message("the policy of the session has to allow all that watch %s needs, by lines such as these:", o->config->watch);
	for (size_t i = 0; watch_need(o->config->watch, i, place, sizeof(place)); i++)
		message("    allow user=%u %s", (unsigned int)getuid(), place);
	return status;
}

/* The traces that an observer wants, instead of those that the options name. */
static int observation_watch(struct observation *o)
{
	const struct watch_sink sink = { .record = intake_watched, .note = observation_note, .context = &o->intake };
	const char *what = o->config->watch, *folder = o->options->file;
	int folder_error = 0;
	int r = watch_open(o->attachment.tfan, what, folder, &sink, &o->watch, &folder_error);

	if (r == 0) {
		o->intake.watch = o->watch;
		tfan_set_notice(o->attachment.tfan, intake_notice, &o->intake);
		return 0;
	}
	if (folder_error != 0) {
		message("%s: %s", folder, strerror(-folder_error));
		return EXIT_LOCATION;
	}
	if (r == -ENOMEM) {
		message("out of memory");
		return EXIT_FAILED;
	}
	return observation_watch_refused(o);
}

/* The session, and the traces, which are not enabled. */
static int observation_prepare(struct observation *o)
{
	const struct observation_config *config = o->config;
	int status = attachment_open(&o->attachment, o->options, config->private_session, config->all_events);

	if (status != 0)
		return status;
	return config->watch ? observation_watch(o) : attachment_create(&o->attachment);
}

/* Who has had enough before it began gets the account of nothing. */
static int observation_give_up(struct observation *o)
{
	int status = o->config->hidden ? EXIT_DONE : observation_begin_output(o);

	status = worse(status, observation_summarize(o));
	return worse(status, observation_finish_output(o));
}

static int observation_session(struct observation *o)
{
	int status = observation_prepare(o);

	if (o->intake.stop == INTAKE_SIGNAL || (status == 0 && intake_interrupted(&o->intake)))
		return observation_give_up(o);
	if (status == 0)
		status = observation_begin_output(o);
	if (status != 0)
		return status;
	o->intake.tfan = o->attachment.tfan;
	o->intake.session = o->attachment.config ? &o->attachment.session : NULL;
	o->output.plans.from_text = tfan_session(o->attachment.tfan)->is_text;
	status = observation_run_traces(o);
	if (o->intake.stop != INTAKE_GOES_ON)
		status = worse(status, observation_summarize(o));
	return worse(status, observation_finish_output(o));
}

int observation_run(const struct observation_config *config)
{
	struct observation o = {
		.config = config,
		.options = config->options,
		.attachment = ATTACHMENT_NONE,
		.command = COMMAND_NONE,
		.file = OUTPUT_FILE_NONE,
	};
	int status, closed;

	status = observation_open_output(&o);
	if (status != 0)
		goto out;
	o.intake = (struct intake){
		.options = config->options,
		.output = &o.output,
		.signal_fd = -1,
		.hidden = config->hidden,
		.recording = config->recording != NULL,
		.deadline = MONOTONIC_NEVER,
		.give_up = MONOTONIC_NEVER,
	};
	o.attachment.wait = intake_wait_answer;
	o.attachment.wait_context = &o.intake;
	status = observation_take_signals(&o);
	o.attachment.session.interrupt = o.intake.signal_fd;
	if (status == 0)
		status = observation_session(&o);
	watch_close(o.watch);
	/* A command that was not let go holds what was open when it was made: the session would not see its owner go. */
	if (o.command.gate >= 0) {
		command_close(&o.command);
		o.intake.command = NULL;
	}
	closed = attachment_close(&o.attachment);
	/* It was missing because a daemon of ours died. */
	if (status == EXIT_MISSING && closed == EXIT_FAILED)
		status = closed;
	if (o.intake.command)
		status = worse(status, observation_command_status(&o));
	status = worse(status, closed);
	command_close(&o.command);
	if (o.intake.signal_fd >= 0)
		(void)close(o.intake.signal_fd);
	output_close(&o.output);
out:
	writer_close(&o.writer);
	output_file_close(&o.file);
	return status;
}

int observation_run_live(const struct options *options, const char *watch)
{
	struct private_session_config private_session = PRIVATE_SESSION_LIVE;
	struct observation_config config = { .options = options, .watch = watch };

	if (!options->session) {
		private_session.source = options->source;
		private_session.interval = options->interval;
		config.private_session = &private_session;
	}
	return observation_run(&config);
}
