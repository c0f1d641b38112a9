#include "consumers/cli/options_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_MAX (UINT64_C(1000000000) * 1000000000)

/* Digits of `text` as a number times `unit`; *ret_end is what follows them. */
static int options_digits(const char *text, uint64_t unit, const char **ret_end, uint64_t *ret)
{
	uint64_t value = 0;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	}
	if (__builtin_mul_overflow(value, unit, ret))
		return -ERANGE;
	*ret_end = text;
	return 0;
}

int options_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	uint64_t value;
	int r = options_digits(text, 1, &end, &value);

	if (r < 0)
		return r;
	if (*end) {
		unit = strchr(units, *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
		if (!unit || end[1])
			return -EINVAL;
		if (__builtin_mul_overflow(value, 1ULL << (10 * (unit - units + 1)), &value))
			return -ERANGE;
	}
	*ret = value;
	return 0;
}

int options_seconds(const char *text, uint64_t *ret)
{
	const char *begin = text;
	uint64_t value = 0, unit = 1000000000;
	bool whole = *text >= '0' && *text <= '9';
	int r = whole ? options_digits(text, unit, &text, &value) : 0;

	if (r < 0)
		return r;
	/* Digits may be missing on one side of the point. */
	if (*text == '.' && (whole || (text[1] >= '0' && text[1] <= '9'))) {
		for (text++; *text >= '0' && *text <= '9'; text++) {
			/* Digits past the ninth are less than a nanosecond. */
			unit /= 10;
			if (__builtin_add_overflow(value, (uint64_t)(*text - '0') * unit, &value))
				return -ERANGE;
		}
	}
	if (*text || text == begin)
		return -EINVAL;
	*ret = value;
	return 0;
}

static const char *apply_event(struct options *options, const char *value)
{
	const char **bigger = realloc(options->events, (options->event_count + 1) * sizeof(*bigger));

	if (!bigger)
		return "out of memory";
	options->events = bigger;
	options->events[options->event_count++] = value;
	return NULL;
}

static const char *apply_filter(struct options *options, const char *value)
{
	if (options->filter)
		return "can be given once: join filters with && or ||";
	options->filter = value;
	return value[strspn(value, " \t\n")] ? NULL : "needs a filter, as in -f 'comm == \"cat\"'";
}

static const char *apply_source(struct options *options, const char *value)
{
	if (strcmp(value, "raw") != 0 && strcmp(value, "text") != 0)
		return "must be raw or text";
	options->source = value;
	return NULL;
}

static const char *apply_session(struct options *options, const char *value)
{
	options->session = value;
	return *value ? NULL : "needs a name";
}

static const char *apply_config(struct options *options, const char *value)
{
	options->config = value;
	return *value ? NULL : "needs a file";
}

static const char *apply_policy(struct options *options, const char *value)
{
	options->policy = value;
	return *value ? NULL : "needs a file";
}

static const char *apply_directory(struct options *options, const char *value)
{
	options->directory = value;
	return *value ? NULL : "needs a directory";
}

static const char *apply_format(struct options *options, const char *value)
{
	if (strcmp(value, "text") == 0)
		options->format = OPTIONS_TEXT;
	else if (strcmp(value, "json") == 0)
		options->format = OPTIONS_JSON;
	else
		return "must be text or json";
	return NULL;
}

static const char *apply_file(struct options *options, const char *value)
{
	options->file = value;
	return *value ? NULL : "needs a file";
}

static const char *apply_text(struct options *options, const char *value)
{
	options->text = value;
	return *value ? NULL : "needs a file";
}

static const char *apply_pages(struct options *options, const char *value)
{
	options->pages = value;
	return *value ? NULL : "needs a folder";
}

static const char *apply_write(struct options *options, const char *value)
{
	options->write_path = value;
	return *value ? NULL : "needs a file";
}

static const char *apply_count(struct options *options, const char *value)
{
	const char *end;

	int r = options_digits(value, 1, &end, &options->count);

	if (r == -ERANGE)
		return "is too much: at most 18446744073709551615";
	if (r < 0 || *end || options->count == 0)
		return "must be a whole number, 1 or more";
	return NULL;
}

static const char *apply_duration(struct options *options, const char *value)
{
	int r = options_seconds(value, &options->duration);

	/* As an end on the monotonic clock it must not pass over its top. */
	if (r == -ERANGE || (r == 0 && options->duration > DURATION_MAX))
		return "is too long: at most 1000000000 seconds";
	if (r < 0 || options->duration == 0)
		return "must be a number of seconds above 0, such as 10 or .5";
	return NULL;
}

static const char *apply_every(struct options *options, const char *value)
{
	int r = options_seconds(value, &options->every);

	if (r == -ERANGE || (r == 0 && options->every > DURATION_MAX))
		return "is too long: at most 1000000000 seconds";
	if (r < 0 || options->every == 0)
		return "must be a number of seconds above 0, such as 10 or .5";
	return NULL;
}

static const char *apply_ring(struct options *options, const char *value)
{
	uint64_t size;
	int r = options_size(value, &size);

	if (r == -ERANGE || (r == 0 && size > SIZE_MAX / 2))
		return "is too much: at most 1G";
	if (r < 0 || size == 0)
		return "must be a size in bytes, with K, M or G where wanted";
	options->ring_size = (size_t)size;
	return NULL;
}

static const char *apply_overflow(struct options *options, const char *value)
{
	if (strcmp(value, "drop") == 0)
		options->overflow = TFAN_DROP;
	else if (strcmp(value, "overwrite") == 0)
		options->overflow = TFAN_OVERWRITE;
	else
		return "must be drop (the newest are lost) or overwrite (the oldest are lost)";
	return NULL;
}

static const char *apply_interval(struct options *options, const char *value)
{
	const char *end;
	uint64_t milliseconds;

	if (options_digits(value, 1, &end, &milliseconds) < 0 || *end || milliseconds < 1 || milliseconds > 10000)
		return "must be a whole number of milliseconds, 1 to 10000";
	options->interval = value;
	options->interval_ms = (unsigned int)milliseconds;
	return NULL;
}

static const char *apply_on_loss(struct options *options, const char *value)
{
	if (strcmp(value, "report") != 0 && strcmp(value, "exit") != 0)
		return "must be report or exit";
	options->exit_on_loss = *value == 'e';
	return NULL;
}

static const char *apply_quiet(struct options *options, const char *value)
{
	(void)value;
	options->quiet = true;
	return NULL;
}

static const char *apply_include_self(struct options *options, const char *value)
{
	(void)value;
	options->include_self = true;
	return NULL;
}

static const char *apply_process(struct options *options, const char *value)
{
	(void)value;
	options->processes = true;
	return NULL;
}

static const char *apply_state(struct options *options, const char *value)
{
	static const struct {
		const char *name;
		unsigned int what;
	} kinds[] = {
		{ "processes", TFAN_WANT_PROCESSES },
		{ "mappings", TFAN_WANT_MAPPINGS },
		{ "files", TFAN_WANT_FILES },
		{ "sockets", TFAN_WANT_SOCKETS },
	};
	size_t i;

	if (!value)
		options->state = TFAN_WANT_PROCESSES | TFAN_WANT_MAPPINGS | TFAN_WANT_FILES | TFAN_WANT_SOCKETS;
	while (value && *value) {
		size_t length = strcspn(value, ",");

		for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, value, length) == 0)
				break;
		}
		if (i == sizeof(kinds) / sizeof(kinds[0]))
			return "must be some of processes, mappings, files, sockets, separated by commas";
		options->state |= kinds[i].what;
		value += length + (value[length] == ',');
	}
	return options->state ? NULL : "must be some of processes, mappings, files, sockets, separated by commas";
}

static const char *apply_force(struct options *options, const char *value)
{
	(void)value;
	options->force = true;
	return NULL;
}

static const struct options_row options_rows[] = {
	{ 'e', "event", "PROBE", OPTIONS_ALL | VERB_EXPLAIN | VERB_TOP, apply_event, "what to trace, in quotes; any number of them (see PROBE)" },
	{ 'f', "filter", "FILTER", OPTIONS_ALL | VERB_EXPLAIN | VERB_TOP, apply_filter, "keep only events for which this holds; applies to every probe" },
	{ 's', "source", "raw|text", OPTIONS_LIVE | VERB_WATCH | VERB_TOP, apply_source, "which of the kernel's files a private session reads" },
	{ 0, "session", "NAME", VERB_TRACE | VERB_WATCH | VERB_TOP, apply_session, "attach to a running session instead of starting a private one" },
	{ 0, "session", "NAME", VERB_LS, apply_session, "what you may trace in this running session; without it, in a private one" },
	{ 0, "session", "NAME", VERB_EXPLAIN, apply_session, "by this running session, with what is in the kernel for it now" },
	{ 0, "session", "NAME", VERB_STATUS, apply_session, "tell of this session alone" },
	{ 'c', "config", "FILE", VERB_SESSION, apply_config, "settings for start, see tracefan.conf(5)" },
	{ 0, "policy", "FILE", VERB_SESSION, apply_policy, "who may trace what in the session that is started (/etc/tracefan/policy)" },
	{ 0, "directory", "DIR", OPTIONS_ASK | OPTIONS_RUN | VERB_WATCH | VERB_TOP, apply_directory, "where the sessions' sockets are (/run/tracefan)" },
	{ 'o', "output", "text|json", OPTIONS_SHOW | VERB_EXPLAIN | VERB_STATUS | VERB_DOCTOR | VERB_TOP, apply_format, "how the output is written (text)" },
	{ 'o', "output", "FILE", VERB_RECORD, apply_file, "the recording" },
	{ 0, "text", "FILE", VERB_REPLAY, apply_text, "replay ftrace's text output" },
	{ 0, "pages", "DIR", VERB_REPLAY, apply_pages, "replay raw pages, laid out as in tracefs" },
	{ 'n', "count", "COUNT", OPTIONS_ALL | VERB_WATCH, apply_count, "end after so many events" },
	{ 'n', "count", "COUNT", VERB_TOP, apply_count, "end after so many tables" },
	{ 0, "every", "SECONDS", VERB_TOP, apply_every, "time between two tables (1)" },
	{ 'd', "duration", "SECONDS", OPTIONS_ALL | VERB_WATCH | VERB_TOP, apply_duration, "end after this time" },
	{ 0, "ring", "SIZE", OPTIONS_ALL | VERB_WATCH | VERB_TOP, apply_ring, "the ring that events wait in for this program (128M)" },
	{ 0, "overflow", "drop|overwrite", OPTIONS_ALL | VERB_WATCH, apply_overflow, "when it is full, lose the newest or the oldest (drop)" },
	{ 0, "interval", "MS", OPTIONS_LIVE | VERB_WATCH, apply_interval, "how long events may wait under load: latency against work" },
	{ 0, "on-loss", "report|exit", OPTIONS_ALL | VERB_WATCH, apply_on_loss, "when events are lost: tell and go on, or end with status 8 (report)" },
	{ 'w', "write", "FILE", OPTIONS_SHOW, apply_write, "write to FILE instead of standard output" },
	{ 'q', "quiet", NULL, OPTIONS_ALL | VERB_WATCH, apply_quiet, "take every event, but write only the summary" },
	{ 0, "process", NULL, VERB_TRACE, apply_process, "tell with each event whose it is: process, parent, user, executable, cgroup" },
	{ 0, "state", "[=LIST]", VERB_TRACE, apply_state, "first the processes, mappings, files, sockets that there are" },
	{ 0, "include-self", NULL, OPTIONS_LIVE | VERB_WATCH | VERB_TOP, apply_include_self, "trace this program's own process, too" },
	{ 0, "force", NULL, OPTIONS_LIVE | VERB_EXPLAIN | VERB_TOP, apply_force, "place probes that are known to endanger the traced program, too" },
};

#define OPTIONS_ROWS (sizeof(options_rows) / sizeof(options_rows[0]))

const struct options_row *options_table_at(const struct verb *verb, size_t i)
{
	for (size_t at = 0; at < OPTIONS_ROWS; at++) {
		if ((options_rows[at].verbs & verb->bit) && i-- == 0)
			return &options_rows[at];
	}
	return NULL;
}

const struct options_row *options_table_letter(const struct verb *verb, char letter)
{
	for (size_t i = 0; i < OPTIONS_ROWS; i++) {
		if (options_rows[i].letter && options_rows[i].letter == letter && (options_rows[i].verbs & verb->bit))
			return &options_rows[i];
	}
	return NULL;
}

const struct options_row *options_table_name(const struct verb *verb, const char *name, size_t length)
{
	for (size_t i = 0; i < OPTIONS_ROWS; i++) {
		const char *known = options_rows[i].name;

		if ((options_rows[i].verbs & verb->bit) && strlen(known) == length && memcmp(known, name, length) == 0)
			return &options_rows[i];
	}
	return NULL;
}
