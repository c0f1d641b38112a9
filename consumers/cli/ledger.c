#include "consumers/cli/ledger.h"

void ledger_text_session(struct writer *writer, const char *before, const struct tfan_session_ledger *ledger)
{
	writer_text(writer, before);
	if (ledger->cleared)
		writer_text(writer, "at least ");
	writer_number(writer, "", ledger->committed);
	writer_number(writer, " committed = ", ledger->decoded);
	writer_number(writer, " decoded + ", ledger->undecodable);
	writer_number(writer, " undecodable + ", ledger->lost_kernel);
	writer_text(writer, " lost in the kernel");
	if (ledger->dropped > 0)
		writer_number(writer, "; dropped before they were committed: ", ledger->dropped);
	if (ledger->cleared)
		writer_text(writer, "; somebody else cleared the kernel's buffers, with an unknown number of events");
	writer_end_line(writer);
}

void ledger_json_session(struct writer *writer, const struct tfan_session_ledger *ledger)
{
	if (ledger->cleared)
		writer_text(writer, "\"committed\":null");
	else
		writer_number(writer, "\"committed\":", ledger->committed);
	writer_number(writer, ",\"decoded\":", ledger->decoded);
	writer_number(writer, ",\"undecodable\":", ledger->undecodable);
	writer_number(writer, ",\"lost_kernel\":", ledger->lost_kernel);
}

void ledger_json_trace(struct writer *writer, const struct tfan_ledger *ledger)
{
	writer_number(writer, "\"decoded\":", ledger->decoded);
	writer_number(writer, ",\"delivered\":", ledger->delivered);
	writer_number(writer, ",\"filtered\":", ledger->filtered);
	writer_number(writer, ",\"lost_ring\":", ledger->lost_ring);
}
