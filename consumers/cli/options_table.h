/* Which options there are: a row each, with the verbs that take it. */
#ifndef TRACEFAN_CLI_OPTIONS_TABLE_H
#define TRACEFAN_CLI_OPTIONS_TABLE_H

#include "consumers/cli/options.h"

#include <stddef.h>

#define OPTIONS_LIVE (VERB_TRACE | VERB_RECORD)
#define OPTIONS_SHOW (VERB_TRACE | VERB_REPLAY | VERB_WATCH)
#define OPTIONS_ALL  (VERB_TRACE | VERB_RECORD | VERB_REPLAY)
#define OPTIONS_ASK  (VERB_TRACE | VERB_LS | VERB_EXPLAIN)
#define OPTIONS_RUN  (VERB_STATUS | VERB_SESSION)

struct options_row {
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* what it takes, for help; NULL: nothing; "[...]": it may be left out, or follows a '=' */
	unsigned int verbs;
	/* Returns NULL, or what is wrong with the value. */
	const char *(*apply)(struct options *options, const char *value);
	const char *help;
};

/* The i-th row of those that a verb takes; NULL past the last. */
const struct options_row *options_table_at(const struct verb *verb, size_t i);
/* Rows that a verb takes, by one name or the other; NULL when there is none. */
const struct options_row *options_table_letter(const struct verb *verb, char letter);
const struct options_row *options_table_name(const struct verb *verb, const char *name, size_t length);

#endif
