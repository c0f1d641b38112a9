#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/attachment.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/message.h"
#include "consumers/cli/options.h"
#include "consumers/cli/writer.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static void explain_line(struct writer *writer, const char *label, const char *text)
{
	writer_text(writer, label);
	(void)escape_plain(writer, text, strlen(text));
	writer_end_line(writer);
}

/* "0" in the library's texts: the kernel can't have any of it. */
static const char *explain_kernel(const char *filter)
{
	return strcmp(filter, "0") == 0 ? "nothing" : filter;
}

/* None is there for those who want every event, or while nobody wants any: this verb only asks. */
static const char *explain_pushed(const char *pushed)
{
	if (!*pushed)
		return "not shown, since other users' filters are in it";
	return strcmp(pushed, "0") == 0 ? "no filter; explain itself traces nothing" : pushed;
}

static void explain_text(struct writer *writer, const char *name, const struct tfan_explanation *explanation)
{
	explain_line(writer, "", name);
	if (!*explanation->router) {
		explain_line(writer, "  no filter: ", "every event is delivered");
		return;
	}
	explain_line(writer, "  in the kernel:  ", explain_kernel(explanation->kernel));
	explain_line(writer, "  in the router:  ", explanation->exact ? "nothing more" : explanation->router);
	explain_line(writer, "  in the kernel now, for those who trace it: ", explain_pushed(explanation->pushed));
}

static void explain_string(struct writer *writer, const char *key, const char *text)
{
	writer_text(writer, key);
	if (strcmp(text, "0") == 0) {
		writer_text(writer, "null");
		return;
	}
	writer_char(writer, '"');
	escape_json(writer, text, strlen(text));
	writer_char(writer, '"');
}

static void explain_json(struct writer *writer, const char *name, const struct tfan_explanation *explanation)
{
	writer_text(writer, "{\"kind\":\"explanation\",\"probe\":\"");
	escape_json(writer, name, strlen(name));
	explain_string(writer, "\",\"kernel\":", explanation->kernel);
	writer_text(writer, explanation->exact ? ",\"exact\":true" : ",\"exact\":false");
	explain_string(writer, ",\"router\":", explanation->router);
	explain_string(writer, ",\"pushed\":", explanation->pushed);
	writer_char(writer, '}');
	writer_end_line(writer);
}

static int explain_traces(struct tfan *tfan, const struct options *options, struct writer *writer)
{
	struct tfan_trace *trace;

	for (size_t i = 0; (trace = tfan_trace_at(tfan, i)); i++) {
		struct tfan_explanation explanation;

		if (tfan_trace_explain(trace, &explanation) < 0)
			return message_failure(tfan_failure(tfan), NULL);
		if (options->format == OPTIONS_JSON)
			explain_json(writer, tfan_trace_name(trace), &explanation);
		else
			explain_text(writer, tfan_trace_name(trace), &explanation);
	}
	return message_output(writer_flush(writer));
}

int verb_explain(const struct verb *verb, int argc, char **argv)
{
	struct attachment attachment = ATTACHMENT_NONE;
	struct options options;
	struct writer writer;
	int status, closed;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	options.ring_size = ATTACHMENT_LEAST_RING;
	status = attachment_open(&attachment, &options, NULL, false);
	if (status == 0)
		status = attachment_create(&attachment);
	if (status == 0) {
		int r = writer_open(&writer, STDOUT_FILENO);

		status = r < 0 ? message_output(r) : explain_traces(attachment.tfan, &options, &writer);
		if (r == 0)
			writer_close(&writer);
	}
	closed = attachment_close(&attachment);
	options_release(&options);
	return status ? status : closed;
}
