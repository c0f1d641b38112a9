#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"
#include "consumers/cli/number.h"
#include "consumers/cli/options.h"
#include "consumers/cli/session_list.h"
#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* What is known of one session: the operator's side is root's, the ledger is for whoever may attach. */
struct status {
	const char *name;
	bool operated, attached;
	struct tfan_operator_status operator_status;
	bool is_text, is_recorded, is_fallback;
	struct tfan_session_ledger ledger;
};

static void status_number(struct writer *writer, const char *before, uint64_t value)
{
	writer_text(writer, before);
	writer_done(writer, number_unsigned(writer_room(writer, NUMBER_SIZE_MAX), value));
}

/* ---- asking ---- */

/* Returns 0 or an exit status. Not being root is none: there is less to tell. */
static int status_operate(struct status *status, const char *directory)
{
	const struct tfan_failure *failure;
	struct tfan_operator *control;
	int result = 0;

	if (tfan_operator_open(directory, status->name, &control) < 0 ||
		tfan_operator_status(control, &status->operator_status) < 0) {
		failure = control ? tfan_operator_failure(control) : NULL;
		if (!failure || failure->category != TFAN_NOT_PERMITTED)
			result = message_failure(failure, NULL);
	} else {
		status->operated = true;
		status->is_text = status->operator_status.is_text;
		status->is_recorded = status->operator_status.is_recorded;
		status->is_fallback = status->operator_status.is_fallback;
	}
	tfan_operator_close(control);
	return result;
}

static int status_attach(struct status *status, const char *directory)
{
	struct tfan_options options = TFAN_OPTIONS;
	const struct tfan_session *session;
	struct tfan *tfan = NULL;
	int result = 0;

	/* Nobody would answer. */
	if (status->operated && status->operator_status.router_pid == 0)
		return 0;
	options.session = status->name;
	options.directory = directory;
	options.program = "tracefan";
	options.ring_size = ATTACHMENT_LEAST_RING;
	if (tfan_open(&options, &tfan) < 0 || tfan_session_ledger(tfan, &status->ledger) < 0) {
		result = message_failure(tfan ? tfan_failure(tfan) : NULL, NULL);
	} else {
		session = tfan_session(tfan);
		status->attached = true;
		status->is_text = session->is_text;
		status->is_recorded = session->is_recorded;
		status->is_fallback = session->is_fallback;
	}
	tfan_close(tfan);
	return result;
}

/* ---- telling ---- */

static void status_text_operated(struct writer *writer, const struct tfan_operator_status *from)
{
	uint64_t seconds = (monotonic_now() - from->started) / MONOTONIC_SECOND;

	status_number(writer, "  running for ", seconds);
	status_number(writer, " s; reader ", (uint64_t)from->reader_pid);
	if (from->router_pid)
		status_number(writer, ", router ", (uint64_t)from->router_pid);
	else
		writer_text(writer, ", no router");
	status_number(writer, "; probes: ", from->probes);
	writer_end_line(writer);
	if (!*from->instance)
		return;
	writer_text(writer, "  instance ");
	writer_text(writer, from->instance);
	status_number(writer, ": ", from->cpus);
	status_number(writer, " CPUs, buffers of ", from->buffer_size / 1024);
	status_number(writer, " KiB each, sub-buffers of ", from->subbuf_size / 1024);
	writer_text(writer, " KiB");
	writer_end_line(writer);
}

/* What the filters of all consumers spared the kernel to record. */
static void status_text_kept(struct writer *writer, const struct tfan_session_ledger *ledger)
{
	if (!ledger->kept_probes)
		return;
	status_number(writer, "  kept away by the kernel: ", ledger->kept_away);
	status_number(writer, " hits of ", ledger->kept_probes);
	writer_text(writer, ledger->kept_probes == 1 ? " probe" : " probes");
	if (ledger->unkept_probes)
		status_number(writer, "; not known of others: ", ledger->unkept_probes);
	writer_end_line(writer);
}

static void status_text(struct writer *writer, const struct status *status)
{
	(void)escape_plain(writer, status->name, strlen(status->name));
	writer_text(writer, status->is_recorded ? ": a recording" : ": live");
	writer_text(writer, status->is_text ? ", from text" : ", from sub-buffers");
	writer_text(writer, status->is_fallback ? ", read one by one" : "");
	writer_end_line(writer);
	if (status->operated)
		status_text_operated(writer, &status->operator_status);
	if (!status->attached)
		return;
	status_number(writer, "  ledger: ", status->ledger.committed);
	status_number(writer, " committed = ", status->ledger.decoded);
	status_number(writer, " decoded + ", status->ledger.undecodable);
	status_number(writer, " undecodable + ", status->ledger.lost_kernel);
	writer_text(writer, " lost in the kernel");
	if (status->ledger.dropped)
		status_number(writer, "; dropped before they were committed: ", status->ledger.dropped);
	writer_end_line(writer);
	status_text_kept(writer, &status->ledger);
}

static void status_json_operated(struct writer *writer, const struct tfan_operator_status *from)
{
	status_number(writer, ",\"started\":", from->started);
	status_number(writer, ",\"reader_pid\":", (uint64_t)from->reader_pid);
	if (from->router_pid)
		status_number(writer, ",\"router_pid\":", (uint64_t)from->router_pid);
	else
		writer_text(writer, ",\"router_pid\":null");
	status_number(writer, ",\"probes\":", from->probes);
	status_number(writer, ",\"cpus\":", from->cpus);
	if (*from->instance) {
		writer_text(writer, ",\"instance\":\"");
		escape_json(writer, from->instance, strlen(from->instance));
		status_number(writer, "\",\"buffer_size\":", from->buffer_size);
		status_number(writer, ",\"subbuf_size\":", from->subbuf_size);
	}
}

static void status_json(struct writer *writer, const struct status *status)
{
	writer_text(writer, "{\"kind\":\"session\",\"session\":\"");
	escape_json(writer, status->name, strlen(status->name));
	writer_text(writer, status->is_text ? "\",\"source\":\"text\"" : "\",\"source\":\"raw\"");
	writer_text(writer, status->is_recorded ? ",\"recorded\":true" : ",\"recorded\":false");
	writer_text(writer, status->is_fallback ? ",\"fallback\":true" : ",\"fallback\":false");
	if (status->operated)
		status_json_operated(writer, &status->operator_status);
	if (status->attached) {
		status_number(writer, ",\"ledger\":{\"committed\":", status->ledger.committed);
		status_number(writer, ",\"decoded\":", status->ledger.decoded);
		status_number(writer, ",\"undecodable\":", status->ledger.undecodable);
		status_number(writer, ",\"lost_kernel\":", status->ledger.lost_kernel);
		status_number(writer, ",\"dropped\":", status->ledger.dropped);
		writer_text(writer, "},\"kept_away\":{\"hits\":");
		if (status->ledger.kept_probes)
			status_number(writer, "", status->ledger.kept_away);
		else
			writer_text(writer, "null");
		status_number(writer, ",\"probes\":", status->ledger.kept_probes);
		status_number(writer, ",\"unknown\":", status->ledger.unkept_probes);
		writer_text(writer, "}}");
	} else {
		writer_text(writer, ",\"ledger\":null,\"kept_away\":null}");
	}
	writer_end_line(writer);
}

static int status_one(struct writer *writer, const char *name, const struct options *options)
{
	struct status status = { .name = name };
	int operated = status_operate(&status, options->directory);
	int attached = operated ? 0 : status_attach(&status, options->directory);

	if (!status.operated && !status.attached)
		return operated ? operated : attached;
	if (options->format == OPTIONS_JSON)
		status_json(writer, &status);
	else
		status_text(writer, &status);
	(void)writer_flush(writer);
	return attached;
}

static int status_all(struct writer *writer, const struct options *options)
{
	const char *directory = options->directory ? options->directory : SESSION_LIST_DIRECTORY;
	struct session_list list;
	int status = EXIT_DONE;
	int r = session_list_read(directory, &list);

	if (r < 0) {
		message("%s: %s", directory, strerror(-r));
		return EXIT_FAILED;
	}
	if (list.count == 0 && options->format == OPTIONS_TEXT)
		message("no session is running");
	for (size_t i = 0; i < list.count; i++) {
		int one = status_one(writer, list.names[i], options);

		status = status ? status : one;
	}
	session_list_release(&list);
	return status;
}

int verb_status(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	struct writer writer;
	int status, written;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	if (writer_open(&writer, STDOUT_FILENO) < 0) {
		message("standard output can't be written");
		return EXIT_FAILED;
	}
	status = options.session ? status_one(&writer, options.session, &options) : status_all(&writer, &options);
	written = message_output(writer_flush(&writer));
	writer_close(&writer);
	options_release(&options);
	return written ? written : status;
}
