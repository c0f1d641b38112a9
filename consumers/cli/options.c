#include "consumers/cli/options.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/near_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_LIVE (VERB_TRACE | VERB_RECORD)
#define OPTIONS_SHOW (VERB_TRACE | VERB_REPLAY)
#define OPTIONS_ALL  (VERB_TRACE | VERB_RECORD | VERB_REPLAY)
#define OPTIONS_ASK  (VERB_TRACE | VERB_LS | VERB_EXPLAIN)

struct options_row {
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* what it takes, for help; NULL: nothing */
	unsigned int verbs;
	/* Returns NULL, or what is wrong with the value. */
	const char *(*apply)(struct options *options, const char *value);
	const char *help;
};

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
	uint64_t value, unit = 1000000000;
	int r = options_digits(text, unit, &text, &value);

	if (r < 0)
		return r;
	if (*text == '.') {
		text++;
		if (!*text)
			return -EINVAL;
		for (; *text >= '0' && *text <= '9'; text++) {
			/* Digits past the ninth are less than a nanosecond. */
			unit /= 10;
			if (__builtin_add_overflow(value, (uint64_t)(*text - '0') * unit, &value))
				return -ERANGE;
		}
	}
	if (*text)
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
	return NULL;
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

	if (options_digits(value, 1, &end, &options->count) < 0 || *end || options->count == 0)
		return "must be a whole number, 1 or more";
	return NULL;
}

static const char *apply_duration(struct options *options, const char *value)
{
	if (options_seconds(value, &options->duration) < 0 || options->duration == 0)
		return "must be a number of seconds above 0";
	return NULL;
}

static const char *apply_ring(struct options *options, const char *value)
{
	uint64_t size;

	if (options_size(value, &size) < 0 || size == 0 || size > SIZE_MAX / 2)
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

static const char *apply_force(struct options *options, const char *value)
{
	(void)value;
	options->force = true;
	return NULL;
}

static const struct options_row options_rows[] = {
	{ 'e', "event", "PROBE", OPTIONS_ALL | VERB_EXPLAIN, apply_event, "what to trace, in quotes; any number of them (see PROBE)" },
	{ 'f', "filter", "FILTER", OPTIONS_ALL | VERB_EXPLAIN, apply_filter, "keep only events for which this holds; applies to every probe" },
	{ 's', "source", "raw|text", OPTIONS_LIVE, apply_source, "which of the kernel's files a private session reads" },
	{ 0, "session", "NAME", OPTIONS_ASK, apply_session, "attach to a running session instead of starting a private one" },
	{ 0, "directory", "DIR", OPTIONS_ASK, apply_directory, "where the sessions' sockets are (/run/tracefan)" },
	{ 'o', "output", "text|json", OPTIONS_SHOW | VERB_EXPLAIN | VERB_DOCTOR, apply_format, "how the output is written (text)" },
	{ 'o', "output", "FILE", VERB_RECORD, apply_file, "the recording" },
	{ 0, "text", "FILE", VERB_REPLAY, apply_text, "replay ftrace's text output" },
	{ 0, "pages", "DIR", VERB_REPLAY, apply_pages, "replay raw pages, laid out as in tracefs" },
	{ 'n', "count", "COUNT", OPTIONS_SHOW, apply_count, "end after so many events" },
	{ 'd', "duration", "SECONDS", OPTIONS_ALL, apply_duration, "end after this time" },
	{ 0, "ring", "SIZE", OPTIONS_ALL, apply_ring, "the ring that events wait in for this program (64M)" },
	{ 0, "overflow", "drop|overwrite", OPTIONS_ALL, apply_overflow, "when it is full, lose the newest or the oldest (drop)" },
	{ 0, "interval", "MS", OPTIONS_LIVE, apply_interval, "how long events of a private session may wait" },
	{ 0, "on-loss", "report|exit", OPTIONS_ALL, apply_on_loss, "when events are lost: tell and go on, or end with status 8 (report)" },
	{ 'w', "write", "FILE", OPTIONS_SHOW, apply_write, "write to FILE instead of standard output" },
	{ 'q', "quiet", NULL, OPTIONS_SHOW, apply_quiet, "take every event, but write only the summary" },
	{ 0, "include-self", NULL, OPTIONS_LIVE, apply_include_self, "trace this program's own process, too" },
	{ 0, "force", NULL, OPTIONS_LIVE | VERB_EXPLAIN, apply_force, "place probes that are known to endanger the traced program, too" },
};

#define OPTIONS_ROWS (sizeof(options_rows) / sizeof(options_rows[0]))

void options_help(const struct verb *verb)
{
	for (size_t i = 0; i < OPTIONS_ROWS; i++) {
		const struct options_row *row = &options_rows[i];
		char left[48];

		if (!(row->verbs & verb->bit))
			continue;
		(void)snprintf(left, sizeof(left), "%c%c%s --%s %s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
			row->letter ? "," : " ", row->name, row->argument ? row->argument : "");
		printf("  %-31s %s\n", left, row->help);
	}
	printf("  %-31s %s\n", "-h, --help", "this text");
}

static const struct options_row *options_by_letter(const struct verb *verb, char letter)
{
	for (size_t i = 0; i < OPTIONS_ROWS; i++) {
		if (options_rows[i].letter == letter && (options_rows[i].verbs & verb->bit))
			return &options_rows[i];
	}
	return NULL;
}

static const struct options_row *options_by_name(const struct verb *verb, const char *name, size_t length)
{
	for (size_t i = 0; i < OPTIONS_ROWS; i++) {
		const char *known = options_rows[i].name;

		if ((options_rows[i].verbs & verb->bit) && strlen(known) == length && memcmp(known, name, length) == 0)
			return &options_rows[i];
	}
	return NULL;
}

static int options_unknown(const struct verb *verb, const char *argument)
{
	struct near_name near;
	char name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
	near_name_init(&near, name);
	if (argument[1] == '-') {
		for (size_t i = 0; i < OPTIONS_ROWS; i++) {
			if (options_rows[i].verbs & verb->bit)
				near_name_offer(&near, options_rows[i].name);
		}
	}
	if (near.best)
		message("%s has no option '%s'; did you mean --%s?", verb->name, argument, near.best);
	else
		message("%s has no option '%s'; see tracefan %s --help", verb->name, argument, verb->name);
	return EXIT_USAGE;
}

/* One word that begins with '-' and what belongs to it. *at is moved past them. Returns an exit status, 0 to go on. */
static int options_word(const struct verb *verb, char **argv, int *at, struct options *options)
{
	const char *word = argv[*at];
	const char *value = NULL, *wrong;
	const struct options_row *row;

	if (word[1] == '-') {
		size_t length = strcspn(word + 2, "=");

		row = options_by_name(verb, word + 2, length);
		value = word[2 + length] ? word + 2 + length + 1 : NULL;
	} else {
		row = options_by_letter(verb, word[1]);
		value = word[1] && word[2] ? word + 2 : NULL;
	}
	if (!row)
		return options_unknown(verb, word);
	if (!row->argument && value) {
		message("--%s takes no value", row->name);
		return EXIT_USAGE;
	}
	if (row->argument && !value) {
		value = argv[*at + 1];
		if (!value) {
			message("--%s needs a value: %s", row->name, row->argument);
			return EXIT_USAGE;
		}
		*at += 1;
	}
	*at += 1;
	wrong = row->apply(options, value);
	if (wrong) {
		message("--%s %s: %s", row->name, value ? value : "", wrong);
		return EXIT_USAGE;
	}
	return 0;
}

/* A word that is no option: the file of a replay, the pattern of ls. */
static int options_argument(const struct verb *verb, const char *argument, struct options *options)
{
	const char **place = verb->bit == VERB_REPLAY ? &options->file : verb->bit == VERB_LS ? &options->pattern : NULL;

	if (!place && (verb->bit & OPTIONS_LIVE))
		message("'%s' is out of place: a probe follows -e, a command to run follows --", argument);
	else if (!place)
		message("'%s' is out of place: see tracefan %s --help", argument, verb->name);
	else if (*place)
		message("one at a time: '%s' or '%s'", *place, argument);
	if (!place || *place)
		return EXIT_USAGE;
	*place = argument;
	return 0;
}

static int options_command(const struct verb *verb, char **command, struct options *options)
{
	if (!(verb->bit & OPTIONS_LIVE)) {
		message("%s runs no command", verb->name);
		return EXIT_USAGE;
	}
	if (!command[0]) {
		message("a command to run must follow --");
		return EXIT_USAGE;
	}
	options->command = command;
	return 0;
}

/* What is wrong with the options as a whole; NULL: nothing. */
static const char *options_contradiction(const struct verb *verb, const struct options *options)
{
	if (options->session && (options->source || options->interval))
		return "--source and --interval are the session's own: they can't be given together with --session";
	if (verb->bit == VERB_REPLAY && !options->file + !options->text + !options->pages != 2)
		return "what shall be replayed? Give one of FILE, --text FILE, --pages DIR";
	if (verb->bit == VERB_REPLAY && options->filter && options->event_count == 0)
		return "which events is the filter for? Give them with -e";
	if (verb->bit == VERB_RECORD && !options->file)
		return "where shall the recording go? Give -o FILE";
	if ((verb->bit & (OPTIONS_LIVE | VERB_EXPLAIN)) && options->event_count == 0)
		return "what shall be traced? Give at least one -e PROBE, for example -e tracepoint:sched:sched_process_exec";
	return NULL;
}

static int options_read(const struct verb *verb, char **argv, struct options *options)
{
	const char *wrong;
	int status = 0;
	int at = 1;

	while (argv[at] && status == 0) {
		if (strcmp(argv[at], "--") == 0) {
			status = options_command(verb, argv + at + 1, options);
			break;
		}
		if (argv[at][0] == '-' && argv[at][1])
			status = options_word(verb, argv, &at, options);
		else
			status = options_argument(verb, argv[at++], options);
	}
	if (status != 0)
		return status;
	wrong = options_contradiction(verb, options);
	if (wrong) {
		message("%s", wrong);
		return EXIT_USAGE;
	}
	return 0;
}

/* Help wins over every mistake before it: who asks for it is about to correct them. */
static bool options_wants_help(char **argv)
{
	for (int i = 1; argv[i] && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

bool options_parse(const struct verb *verb, int argc, char **argv, struct options *ret, int *ret_status)
{
	struct options options = { 0 };
	int status;

	(void)argc;
	if (options_wants_help(argv)) {
		verb_help(verb);
		*ret_status = EXIT_DONE;
		return false;
	}
	status = options_read(verb, argv, &options);
	if (status != 0) {
		options_release(&options);
		*ret_status = status;
		return false;
	}
	*ret = options;
	return true;
}

void options_release(struct options *options)
{
	free(options->events);
	options->events = NULL;
	options->event_count = 0;
}
