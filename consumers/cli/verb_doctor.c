#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/doctor.h"
#include "consumers/cli/escape.h"
#include "consumers/cli/message.h"
#include "consumers/cli/options.h"
#include "consumers/cli/writer.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char *const doctor_states[] = { [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_LACK] = "lack" };

static void doctor_pad(struct writer *writer, const char *text, size_t width)
{
	writer_text(writer, text);
	for (size_t i = strlen(text); i < width; i++)
		writer_char(writer, ' ');
}

static void doctor_text(struct writer *writer, const struct doctor_finding *finding)
{
	doctor_pad(writer, doctor_states[finding->state], 6);
	doctor_pad(writer, finding->name, 15);
	(void)escape_plain(writer, finding->detail, strlen(finding->detail));
	writer_end_line(writer);
	if (*finding->mend) {
		doctor_pad(writer, "", 21);
		writer_text(writer, "mend: ");
		(void)escape_plain(writer, finding->mend, strlen(finding->mend));
		writer_end_line(writer);
	}
}

static void doctor_string(struct writer *writer, const char *key, const char *text)
{
	writer_text(writer, key);
	escape_json(writer, text, strlen(text));
	writer_char(writer, '"');
}

static void doctor_json(struct writer *writer, const struct doctor_finding *finding)
{
	doctor_string(writer, "{\"kind\":\"check\",\"name\":\"", finding->name);
	doctor_string(writer, ",\"state\":\"", doctor_states[finding->state]);
	doctor_string(writer, ",\"detail\":\"", finding->detail);
	if (*finding->mend)
		doctor_string(writer, ",\"mend\":\"", finding->mend);
	else
		writer_text(writer, ",\"mend\":null");
	writer_char(writer, '}');
	writer_end_line(writer);
}

int verb_doctor(const struct verb *verb, int argc, char **argv)
{
	struct doctor_machine machine = DOCTOR_MACHINE;
	struct doctor_finding findings[DOCTOR_CHECKS];
	struct options options;
	struct writer writer;
	int status, written;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	if (writer_open(&writer, STDOUT_FILENO) < 0) {
		message("standard output can't be written");
		return EXIT_FAILED;
	}
	status = EXIT_DONE;
	doctor_check(&machine, findings);
	for (size_t i = 0; i < DOCTOR_CHECKS; i++) {
		if (options.format == OPTIONS_JSON)
			doctor_json(&writer, &findings[i]);
		else
			doctor_text(&writer, &findings[i]);
		if (status == EXIT_DONE && findings[i].state == DOCTOR_LACK)
			status = findings[i].status;
	}
	written = message_output(writer_flush(&writer));
	writer_close(&writer);
	options_release(&options);
	return written ? written : status;
}
