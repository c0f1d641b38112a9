#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/near_name.h"
#include "consumers/cli/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char verb_probes[] =
	"\n"
	"PROBE is [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [stack] [ustack] [if FILTER], in quotes:\n"
	"  tracepoint:SYSTEM:EVENT                 kprobe:SYMBOL[+OFFSET]\n"
	"  uprobe:PATH:SYMBOL[+OFFSET]             kretprobe:SYMBOL[+maxactive=N]\n"
	"  uprobe:PATH:0xOFFSET (in the file)      uretprobe:PATH:SYMBOL\n"
	"  usdt:PATH:PROVIDER:NAME\n";

static const char verb_trace_examples[] =
	"\n"
	"  tracefan trace -e tracepoint:sched:sched_process_exec\n"
	"  tracefan trace -e 'uprobe:/bin/bash:readline' -d 10\n"
	"  tracefan trace -e 'kprobe:do_sys_openat2 path=+0($arg2):ustring if path ~ \"/etc/*\"' -- ls\n";

static const char verb_record_examples[] =
	"\n"
	"  tracefan record -o sched.rec -e tracepoint:sched:sched_switch -d 5\n"
	"  tracefan record -o started.rec -e tracepoint:sched:sched_process_exec -- make\n"
	"  tracefan replay sched.rec\n";

static const char verb_explain_examples[] =
	"\n"
	"  tracefan explain -e 'tracepoint:sched:sched_switch if prev_comm ~ \"ba*\" && uid in {1000..1999}'\n"
	"  tracefan explain -f 'comm == cat' -e tracepoint:sched:sched_process_exec\n";

static const char verb_ls_examples[] =
	"\n"
	"PATTERN with *, ? or [ is of the whole name or of the event's alone; else it may stand anywhere in the line.\n"
	"\n"
	"  tracefan ls 'sched:*'              the events of a system\n"
	"  tracefan ls openat                 those with this in their name\n"
	"  tracefan ls sched:sched_switch     one event and its fields\n";

static const char verb_watch_examples[] =
	"\n"
	"  exec       each program that is executed, with its arguments, and how its process ended\n"
	"  connect    each connect(2): the address, and what came of it\n"
	"  listen     each listen(2): the address, and what came of it\n"
	"  files DIR  what is made, deleted, renamed, linked or given other attributes below DIR\n"
	"\n"
	"  tracefan watch exec -d 10\n"
	"  tracefan watch files /tmp -- mktemp\n"
	"  tracefan watch --session default connect -o json\n";

static const struct verb verbs[] = {
	{ "trace", VERB_TRACE, "tracefan-trace", "[OPTION]... -e PROBE... [-- COMMAND [ARG...]]", "show events as they happen", verb_trace, verb_trace_examples },
	{ "record", VERB_RECORD, "tracefan-record", "[OPTION]... -e PROBE... -o FILE [-- COMMAND [ARG...]]", "keep events in a file", verb_record, verb_record_examples },
	{ "replay", VERB_REPLAY, "tracefan-replay", "[OPTION]... FILE | --text FILE | --pages DIR", "show the events of a recording", verb_replay, NULL },
	{ "watch", VERB_WATCH, "tracefan-watch", "[OPTION]... exec | connect | listen | files DIR [-- COMMAND [ARG...]]", "tell what programs do, from several probes each", verb_watch, verb_watch_examples },
	{ "top", VERB_TOP, "tracefan-top", "[OPTION]... -e PROBE...", "show how many events each probe brings, again and again", verb_top, NULL },
	{ "ls", VERB_LS, "tracefan", "[OPTION]... [PATTERN]", "list the events that you may trace, or one's fields", verb_ls, verb_ls_examples },
	{ "explain", VERB_EXPLAIN, "tracefan", "[OPTION]... -e PROBE...", "tell what of each filter the kernel does and what the router", verb_explain, verb_explain_examples },
	{ "status", VERB_STATUS, "tracefan", "[OPTION]...", "tell how the running sessions are", verb_status, NULL },
	{ "session", VERB_SESSION, "tracefan", "[OPTION]... start|stop|flush NAME | list", "start, stop and flush sessions that others attach to", verb_session, NULL },
	{ "doctor", VERB_DOCTOR, "tracefan", "[OPTION]...", "tell what this machine lets tracefan do, and what would mend the rest", verb_doctor, NULL },
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

void verb_help(const struct verb *verb)
{
	printf("Usage: tracefan %s %s\n%c%s.\n\n", verb->name, verb->synopsis, verb->summary[0] - 'a' + 'A', verb->summary + 1);
	options_help(verb);
	if (verb->bit & (VERB_TRACE | VERB_RECORD | VERB_EXPLAIN | VERB_TOP))
		(void)fputs(verb_probes, stdout);
	if (verb->examples)
		(void)fputs(verb->examples, stdout);
	printf("\nSee %s(1).\n", verb->page);
}

static void verb_overview(void)
{
	printf("Usage: tracefan VERB [OPTION]...\nMany readers for the kernel's traces.\n\n");
	for (size_t i = 0; i < VERBS; i++)
		printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
	printf("\n  tracefan VERB --help    what a verb takes\n"
	       "  tracefan --version\n"
	       "\n"
	       "Exit status: 0 done, 1 failed while running, 2 wrong usage, 3 not permitted, 4 a kernel feature is missing,\n"
	       "5 bad location, 6 bad fetch arguments, 7 busy, 8 events were lost (--on-loss exit). See tracefan(1).\n");
}

static int verb_unknown(const char *name)
{
	struct near_name near;

	near_name_init(&near, name);
	/* First: "session" is as near to "version". */
	near_name_offer(&near, "--version");
	for (size_t i = 0; i < VERBS; i++)
		near_name_offer(&near, verbs[i].name);
	if (near.best)
		message("there is no verb '%s'; did you mean %s?", message_word(name).text, near.best);
	else
		message("there is no verb '%s'; see tracefan --help", message_word(name).text);
	return EXIT_USAGE;
}

static const struct verb *verb_named(const char *name)
{
	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	}
	return NULL;
}

/* Of a verb, or of all. */
static int verb_tell_help(const char *name)
{
	const struct verb *verb = name ? verb_named(name) : NULL;

	if (name && !verb)
		return verb_unknown(name);
	if (verb)
		verb_help(verb);
	else
		verb_overview();
	return EXIT_DONE;
}

static int verb_tell_version(const char *more)
{
	if (more) {
		message("'%s' is out of place: --version stands alone", message_word(more).text);
		return EXIT_USAGE;
	}
	printf("tracefan %s\n", TRACEFAN_VERSION);
	return EXIT_DONE;
}

static int verb_run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL, *more = argc > 2 ? argv[2] : NULL;
	const struct verb *verb = name ? verb_named(name) : NULL;

	if (!name) {
		message("what shall be done? Try tracefan trace -e tracepoint:sched:sched_process_exec; see tracefan --help");
		return EXIT_USAGE;
	}
	if (verb)
		return verb->run(verb, argc - 1, argv + 1);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return verb_tell_help(more);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return verb_tell_version(more);
	return verb_unknown(name);
}

/* What went through stdio may have failed at any line, or only now. Other output has its own writer, which is asked by its verb. */
int verb_main(int argc, char **argv)
{
	int status = verb_run(argc, argv), written;
	bool failed = ferror(stdout);

	written = message_output(fflush(stdout) != 0 ? -errno : failed ? -EIO : 0);
	return written ? written : status;
}
