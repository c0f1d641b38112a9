#include "consumers/cli/status.h"

#include "consumers/cli/escape.h"
#include "consumers/cli/ledger.h"
#include "consumers/cli/monotonic.h"

#include <string.h>

static void status_text_operated(struct writer *writer, const struct tfan_operator_status *from)
{
	uint64_t seconds = (monotonic_now() - from->started) / MONOTONIC_SECOND;

	writer_number(writer, "  running for ", seconds);
	writer_number(writer, " s; reader ", (uint64_t)from->reader_pid);
	if (from->router_pid)
		writer_number(writer, ", router ", (uint64_t)from->router_pid);
	else
		writer_text(writer, ", no router");
	writer_number(writer, "; probes: ", from->probes);
	writer_end_line(writer);
	if (!*from->instance)
		return;
	writer_text(writer, "  instance ");
	writer_text(writer, from->instance);
	writer_number(writer, ": ", from->cpus);
	writer_number(writer, " CPUs, buffers of ", from->buffer_size / 1024);
	writer_number(writer, " KiB each, sub-buffers of ", from->subbuf_size / 1024);
	writer_text(writer, " KiB");
	writer_end_line(writer);
}

/* What the filters of all consumers spared the kernel to record. */
static void status_text_kept(struct writer *writer, const struct tfan_session_ledger *ledger)
{
	if (!ledger->kept_probes)
		return;
	writer_number(writer, "  kept away by the kernel: ", ledger->kept_away);
	writer_number(writer, " hits of ", ledger->kept_probes);
	writer_text(writer, ledger->kept_probes == 1 ? " probe" : " probes");
	if (ledger->unkept_probes)
		writer_number(writer, "; not known of others: ", ledger->unkept_probes);
	writer_end_line(writer);
}

static const char *status_state_name(enum status_state state)
{
	static const char *const names[] = {
		[STATUS_RUNNING] = "running", [STATUS_READER_DEAD] = "reader-dead", [STATUS_DEAD] = "dead", [STATUS_SILENT] = "silent",
	};

	return names[state];
}

/* What is wrong, and the mend. */
static void status_text_state(struct writer *writer, const struct status *status)
{
	if (status->state == STATUS_SILENT) {
		writer_text(writer, "  its ");
		writer_text(writer, status->silent);
		if (status->silent_pid)
			writer_number(writer, ", process ", (uint64_t)status->silent_pid);
		writer_text(writer, status->silent_pid ? ", does not answer: it hangs or was stopped"
						       : " does not answer: it hangs or was stopped");
	} else {
		writer_text(writer, status->state == STATUS_DEAD ? "  it is dead" : "  its reader is dead");
		writer_text(writer, "; start it again with: tracefan session start ");
		(void)escape_plain(writer, status->name, strlen(status->name));
		writer_text(writer, ", or remove it with: tracefan session stop ");
		(void)escape_plain(writer, status->name, strlen(status->name));
	}
	writer_end_line(writer);
}

static void status_text_trace(struct writer *writer, const struct tfan_consumer_trace *trace)
{
	writer_text(writer, "    ");
	(void)escape_plain(writer, trace->name, strlen(trace->name));
	writer_text(writer, trace->enabled ? "" : " (disabled)");
	writer_number(writer, ": ", trace->ledger.decoded);
	writer_number(writer, " decoded = ", trace->ledger.delivered);
	writer_number(writer, " delivered + ", trace->ledger.filtered);
	writer_number(writer, " filtered + ", trace->ledger.lost_ring);
	writer_text(writer, " lost at the ring");
	if (trace->ledger.gave_up)
		writer_number(writer, "; expressions that gave up: ", trace->ledger.gave_up);
	writer_end_line(writer);
}

static void status_text_consumer(struct writer *writer, const struct tfan_consumer *consumer)
{
	writer_number(writer, "  consumer ", consumer->number);
	writer_text(writer, " (");
	(void)escape_plain(writer, consumer->program, strlen(consumer->program));
	writer_number(writer, "): user ", consumer->uid);
	writer_number(writer, ", process ", (uint64_t)consumer->pid);
	writer_number(writer, "; a ring of ", consumer->ring_size / 1024);
	writer_text(writer, consumer->overflow == TFAN_OVERWRITE ? " KiB that overwrites, " : " KiB that drops, ");
	writer_number(writer, "", consumer->ring_used);
	writer_text(writer, " bytes of it in use");
	writer_end_line(writer);
	for (size_t i = 0; i < consumer->trace_count; i++)
		status_text_trace(writer, &consumer->traces[i]);
}

void status_text(struct writer *writer, const struct status *status)
{
	(void)escape_plain(writer, status->name, strlen(status->name));
	if (status->operated || status->looked) {
		writer_text(writer, status->is_recorded ? ": a recording" : ": events of this machine");
		writer_text(writer, status->is_text ? ", from text" : ", from sub-buffers");
		writer_text(writer, status->is_fallback ? ", read one by one" : "");
	}
	writer_end_line(writer);
	if (status->state != STATUS_RUNNING)
		status_text_state(writer, status);
	if (status->operated)
		status_text_operated(writer, &status->operator_status);
	if (status->attached) {
		ledger_text_session(writer, "  ledger: ", &status->ledger);
		status_text_kept(writer, &status->ledger);
	}
	for (size_t i = 0; i < status->consumer_count; i++)
		status_text_consumer(writer, &status->consumers[i]);
}

static void status_json_operated(struct writer *writer, const struct tfan_operator_status *from)
{
	writer_number(writer, ",\"started\":", from->started);
	writer_number(writer, ",\"reader_pid\":", (uint64_t)from->reader_pid);
	if (from->router_pid)
		writer_number(writer, ",\"router_pid\":", (uint64_t)from->router_pid);
	else
		writer_text(writer, ",\"router_pid\":null");
	writer_number(writer, ",\"probes\":", from->probes);
	writer_number(writer, ",\"cpus\":", from->cpus);
	if (*from->instance) {
		writer_text(writer, ",\"instance\":\"");
		escape_json(writer, from->instance, strlen(from->instance));
		writer_number(writer, "\",\"buffer_size\":", from->buffer_size);
		writer_number(writer, ",\"subbuf_size\":", from->subbuf_size);
	}
}

static void status_json_ledger(struct writer *writer, const struct tfan_session_ledger *ledger)
{
	writer_text(writer, ",\"ledger\":{");
	ledger_json_session(writer, ledger);
	writer_number(writer, ",\"dropped\":", ledger->dropped);
	writer_text(writer, "},\"kept_away\":{\"hits\":");
	if (ledger->kept_probes)
		writer_number(writer, "", ledger->kept_away);
	else
		writer_text(writer, "null");
	writer_number(writer, ",\"probes\":", ledger->kept_probes);
	writer_number(writer, ",\"unknown\":", ledger->unkept_probes);
	writer_char(writer, '}');
}

static void status_json_state(struct writer *writer, const struct status *status)
{
	writer_text(writer, "\",\"state\":\"");
	writer_text(writer, status_state_name(status->state));
	writer_char(writer, '"');
	if (status->state == STATUS_SILENT) {
		writer_text(writer, ",\"silent\":\"");
		writer_text(writer, status->silent);
		writer_text(writer, "\",\"silent_pid\":");
		if (status->silent_pid)
			writer_number(writer, "", (uint64_t)status->silent_pid);
		else
			writer_text(writer, "null");
	}
	if (!status->operated && !status->looked) {
		writer_text(writer, ",\"source\":null,\"recorded\":null,\"fallback\":null");
		return;
	}
	writer_text(writer, status->is_text ? ",\"source\":\"text\"" : ",\"source\":\"raw\"");
	writer_text(writer, status->is_recorded ? ",\"recorded\":true" : ",\"recorded\":false");
	writer_text(writer, status->is_fallback ? ",\"fallback\":true" : ",\"fallback\":false");
}

static void status_json_trace(struct writer *writer, const struct tfan_consumer_trace *trace)
{
	writer_text(writer, "{\"name\":\"");
	escape_json(writer, trace->name, strlen(trace->name));
	writer_number(writer, "\",\"id\":", trace->id);
	writer_text(writer, trace->enabled ? ",\"enabled\":true," : ",\"enabled\":false,");
	ledger_json_trace(writer, &trace->ledger);
	writer_number(writer, ",\"gave_up\":", trace->ledger.gave_up);
	writer_char(writer, '}');
}

static void status_json_consumer(struct writer *writer, const char *session, const struct tfan_consumer *consumer)
{
	writer_text(writer, "{\"kind\":\"consumer\",\"session\":\"");
	escape_json(writer, session, strlen(session));
	writer_number(writer, "\",\"consumer\":", consumer->number);
	writer_number(writer, ",\"uid\":", consumer->uid);
	writer_number(writer, ",\"pid\":", (uint64_t)consumer->pid);
	writer_text(writer, ",\"program\":\"");
	escape_json(writer, consumer->program, strlen(consumer->program));
	writer_number(writer, "\",\"ring\":{\"size\":", consumer->ring_size);
	writer_number(writer, ",\"used\":", consumer->ring_used);
	writer_text(writer, consumer->overflow == TFAN_OVERWRITE ? ",\"overflow\":\"overwrite\"}" : ",\"overflow\":\"drop\"}");
	writer_text(writer, ",\"probes\":[");
	for (size_t i = 0; i < consumer->trace_count; i++) {
		writer_text(writer, i ? "," : "");
		status_json_trace(writer, &consumer->traces[i]);
	}
	writer_text(writer, "]}");
	writer_end_line(writer);
}

void status_json(struct writer *writer, const struct status *status)
{
	writer_text(writer, "{\"kind\":\"session\",\"session\":\"");
	escape_json(writer, status->name, strlen(status->name));
	status_json_state(writer, status);
	if (status->operated)
		status_json_operated(writer, &status->operator_status);
	if (status->attached)
		status_json_ledger(writer, &status->ledger);
	else
		writer_text(writer, ",\"ledger\":null,\"kept_away\":null");
	writer_char(writer, '}');
	writer_end_line(writer);
	for (size_t i = 0; i < status->consumer_count; i++)
		status_json_consumer(writer, status->name, &status->consumers[i]);
}
