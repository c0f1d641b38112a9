#include "consumers/cli/options.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/near_name.h"
#include "consumers/cli/options_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_help(const struct verb *verb)
{
	const struct options_row *row;

	for (size_t i = 0; (row = options_table_at(verb, i)); i++) {
		char left[48];

		(void)snprintf(left, sizeof(left), "%c%c%s --%s %s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
			row->letter ? "," : " ", row->name, row->argument ? row->argument : "");
		printf("  %-31s %s\n", left, row->help);
	}
	printf("  %-31s %s\n", "-h, --help", "this text");
}

static int options_unknown(const struct verb *verb, const char *argument)
{
	const struct options_row *row;
	struct near_name near;
	char name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
	near_name_init(&near, name);
	if (argument[1] == '-') {
		for (size_t i = 0; (row = options_table_at(verb, i)); i++)
			near_name_offer(&near, row->name);
	}
	if (near.best)
		message("%s has no option '%s'; did you mean --%s?", verb->name, message_word(argument).text, near.best);
	else
		message("%s has no option '%s'; see tracefan %s --help", verb->name, message_word(argument).text, verb->name);
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

		row = options_table_name(verb, word + 2, length);
		value = word[2 + length] ? word + 2 + length + 1 : NULL;
	} else {
		row = options_table_letter(verb, word[1]);
		value = word[1] && word[2] ? word + 2 : NULL;
	}
	if (!row)
		return options_unknown(verb, word);
	if (!row->argument && value) {
		message("--%s takes no value", row->name);
		return EXIT_USAGE;
	}
	if (row->argument && *row->argument != '[' && !value) {
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
		message("--%s %s: %s", row->name, value && *value ? message_word(value).text : "''", wrong);
		return EXIT_USAGE;
	}
	return 0;
}

/* Where a word that is no option goes: the file of a replay, the pattern of ls, what to do with which session. */
static const char **options_place(const struct verb *verb, struct options *options)
{
	if (verb->bit == VERB_REPLAY)
		return &options->file;
	if (verb->bit == VERB_LS)
		return &options->pattern;
	if (verb->bit == VERB_SESSION)
		return options->action ? &options->session : &options->action;
	if (verb->bit == VERB_WATCH)
		return options->action ? &options->file : &options->action;
	return NULL;
}

/* Whether the verb is to do this. */
static bool options_acts(const struct options *options, const char *action)
{
	return options->action && strcmp(options->action, action) == 0;
}

/* Why no word can stand here; NULL: one can. */
static const char *options_no_place(const struct verb *verb, const struct options *options)
{
	if (verb->bit & OPTIONS_LIVE)
		return "a probe follows -e, a command to run follows --";
	if (verb->bit & (VERB_TOP | VERB_EXPLAIN))
		return "a probe follows -e";
	if (verb->bit == VERB_STATUS)
		return "a session's name follows --session";
	if (verb->bit == VERB_SESSION && options_acts(options, "list"))
		return "list takes no name: tracefan status --session NAME tells of one session";
	if (verb->bit == VERB_WATCH && options->action && !options_acts(options, "files"))
		return "one thing is watched at a time, and only files takes a folder; a command to run follows --";
	return verb->bit & (VERB_REPLAY | VERB_LS | VERB_SESSION | VERB_WATCH) ? NULL : "it takes options alone";
}

/* What a word that is no option stands for. */
static const char *options_what(const struct verb *verb, const struct options *options)
{
	switch (verb->bit) {
	case VERB_REPLAY:
		return "the file's name";
	case VERB_LS:
		return "the pattern";
	case VERB_SESSION:
		return options->action ? "the session's name" : "what a session shall do";
	case VERB_WATCH:
		return options->action ? "the folder's name" : "what shall be watched";
	default:
		return "an argument";
	}
}

/* An option whose value may be left out, and that is the word in front of one that has no place: its value stands behind '='. */
static const struct options_row *options_lost_value(const struct verb *verb, const char *before)
{
	const struct options_row *row = strncmp(before, "--", 2) == 0 ? options_table_name(verb, before + 2, strlen(before + 2)) : NULL;

	return row && row->argument && *row->argument == '[' ? row : NULL;
}

/* A word that is no option; `before` is the one in front of it. */
static int options_argument(const struct verb *verb, const char *before, const char *argument, struct options *options)
{
	const char **place = options_place(verb, options);
	const char *wrong = options_no_place(verb, options);
	const struct options_row *lost = wrong ? options_lost_value(verb, before) : NULL;

	if (!*argument)
		message("%s is empty: ''; see tracefan %s --help", options_what(verb, options), verb->name);
	else if (lost)
		message("'%s' is out of place; did you mean --%s=%s?", message_word(argument).text, lost->name, message_word(argument).text);
	else if (wrong)
		message("'%s' is out of place: %s", message_word(argument).text, wrong);
	else if (*place)
		message("one at a time: '%s' or '%s'", message_word(*place).text, message_word(argument).text);
	else
		*place = argument;
	return *argument && place && *place == argument ? 0 : EXIT_USAGE;
}

static int options_command(const struct verb *verb, char **command, struct options *options)
{
	if (!(verb->bit & (OPTIONS_LIVE | VERB_WATCH))) {
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

static const char *options_session_contradiction(const struct options *options)
{
	if (!options->action)
		return "what shall be done? Give start, stop, flush or list";
	if (strcmp(options->action, "list") != 0 && !options->session)
		return "which session? Give its name";
	if (options->config && strcmp(options->action, "start") != 0)
		return "-c is for start";
	return NULL;
}

static const char *options_watch_contradiction(const struct options *options)
{
	if (!options->action)
		return "what shall be watched? Give exec, connect, listen or files DIR";
	return options_acts(options, "files") && !options->file ? "which folder? Give it, as in tracefan watch files /etc" : NULL;
}

/* What is wrong with the options as a whole; NULL: nothing. */
static const char *options_contradiction(const struct verb *verb, const struct options *options)
{
	if (options->session && options->source)
		return "--source is the session's own: it can't be given together with --session";
	if (verb->bit == VERB_SESSION)
		return options_session_contradiction(options);
	if (verb->bit == VERB_WATCH)
		return options_watch_contradiction(options);
	if (verb->bit == VERB_REPLAY && options->text && options->pages)
		return "--text and --pages exclude each other: one thing is replayed";
	if (verb->bit == VERB_REPLAY && options->file && (options->text || options->pages))
		return options->text ? "FILE and --text exclude each other: one thing is replayed"
				     : "FILE and --pages exclude each other: one thing is replayed";
	if (verb->bit == VERB_REPLAY && !options->file && !options->text && !options->pages)
		return "what shall be replayed? Give one of FILE, --text FILE, --pages DIR";
	if (verb->bit == VERB_REPLAY && options->filter && options->event_count == 0)
		return "which events is the filter for? Give them with -e";
	if (verb->bit == VERB_RECORD && !options->file)
		return "where shall the recording go? Give -o FILE";
	if ((verb->bit & (OPTIONS_LIVE | VERB_EXPLAIN | VERB_TOP)) && options->event_count == 0)
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
		if (argv[at][0] == '-' && argv[at][1]) {
			status = options_word(verb, argv, &at, options);
		} else {
			status = options_argument(verb, argv[at - 1], argv[at], options);
			at++;
		}
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
