/* What `tracefan VERB` can be: one row per verb, one file per row (verb_*.c). */
#ifndef TRACEFAN_CLI_VERB_H
#define TRACEFAN_CLI_VERB_H

enum verb_bit {
	VERB_TRACE = 1 << 0,
	VERB_RECORD = 1 << 1,
	VERB_REPLAY = 1 << 2,
	VERB_LS = 1 << 3,
	VERB_EXPLAIN = 1 << 4,
	VERB_DOCTOR = 1 << 5,
	VERB_STATUS = 1 << 6,
	VERB_SESSION = 1 << 7,
	VERB_WATCH = 1 << 8,
	VERB_TOP = 1 << 9,
};

struct verb {
	const char *name;
	enum verb_bit bit; /* for the table of options */
	const char *page; /* of the manual */
	const char *synopsis;
	const char *summary;
	/* argv[0] is the verb's name. Returns the exit status. */
	int (*run)(const struct verb *verb, int argc, char **argv);
	const char *examples; /* below the options, in its help; NULL: none */
};

/* Runs what the command line asks for. Returns the exit status. */
int verb_main(int argc, char **argv);

/* Help for one verb, on standard output. */
void verb_help(const struct verb *verb);

int verb_trace(const struct verb *verb, int argc, char **argv);
int verb_record(const struct verb *verb, int argc, char **argv);
int verb_replay(const struct verb *verb, int argc, char **argv);
int verb_watch(const struct verb *verb, int argc, char **argv);
int verb_top(const struct verb *verb, int argc, char **argv);
int verb_ls(const struct verb *verb, int argc, char **argv);
int verb_explain(const struct verb *verb, int argc, char **argv);
int verb_status(const struct verb *verb, int argc, char **argv);
int verb_session(const struct verb *verb, int argc, char **argv);
int verb_doctor(const struct verb *verb, int argc, char **argv);

#endif
