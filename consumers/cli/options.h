/* The options of all verbs, and how an argument vector is read into them. */
#ifndef TRACEFAN_CLI_OPTIONS_H
#define TRACEFAN_CLI_OPTIONS_H

#include "consumers/cli/verb.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum options_format {
	OPTIONS_TEXT = 0,
	OPTIONS_JSON = 1,
};

/* Every text is the argument vector's own; only `events` is allocated. */
struct options {
	const char **events; /* -e, in order */
	size_t event_count;
	const char *filter;
	const char *source;    /* raw or text; NULL: the reader's choice */
	const char *session;   /* NULL: a private one */
	const char *directory; /* of the sessions' sockets; NULL: the usual place */
	const char *write_path;
	const char *file;  /* record: to write; replay: to read; watch: the folder */
	const char *text;  /* replay: a text log */
	const char *pages; /* replay: a folder of raw pages */
	const char *pattern; /* ls; NULL: everything */
	const char *action;  /* session: what to do; watch: what to watch */
	const char *config; /* session start: a file */
	const char *policy;   /* session start: a file */
	enum options_format format;
	enum tfan_overflow overflow;
	uint64_t count;    /* 0: no limit */
	uint64_t duration; /* ns; 0: no limit */
	uint64_t every;    /* top: ns; 0: the usual */
	size_t ring_size;  /* 0: the command's own choice */
	const char *interval;      /* NULL: the usual */
	unsigned int interval_ms;  /* the same; 0: the usual */
	bool exit_on_loss, quiet, include_self, force;
	bool processes;      /* with each event, whose it is */
	unsigned int state;  /* enum tfan_state_what; 0: none */
	char **command; /* NULL-ended; NULL: none */
};

/* Reads argv, whose first is the verb's own name. Returns true to go on with *ret; otherwise *ret_status is what to exit
 * with, and all has been said (help on standard output, mistakes on standard error). */
bool options_parse(const struct verb *verb, int argc, char **argv, struct options *ret, int *ret_status);
void options_release(struct options *options);

/* Prints the rows of the options that a verb takes. */
void options_help(const struct verb *verb);

/* "4096", "64K", "4M", "1G". Returns 0, -EINVAL or -ERANGE. */
int options_size(const char *text, uint64_t *ret);
/* Seconds with a decimal fraction as nanoseconds. Returns as above. */
int options_seconds(const char *text, uint64_t *ret);

#endif
