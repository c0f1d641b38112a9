/* The reader's command line. Pure: no system call but for names looked up later, nothing logged. */
#ifndef TRACEFAN_READER_OPTIONS_H
#define TRACEFAN_READER_OPTIONS_H

#include "base/confine/confine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum options_source {
	OPTIONS_RAW,
	OPTIONS_TEXT,
	OPTIONS_REPLAY,    /* a recording */
	OPTIONS_TEXT_FILE, /* an ftrace text log */
	OPTIONS_PAGES,     /* a folder of raw pages, laid out as tracefs lays them */
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_REMOVE, /* remove what an earlier run of the session left behind */
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

struct standing;

/* Texts point into argv or into the configuration. */
struct reader_options {
	enum options_action action;
	enum options_source source;
	const char *session;
	const char *directory;
	const char *input;       /* of the file sources */
	const char *group;       /* NULL: the default, if it exists */
	const char *router_user; /* NULL: the default */
	const char *policy;      /* its file; NULL: the usual one, if it exists; "none": none */
	const char *tracefs;     /* NULL: where it is mounted */
	uint64_t buffer_size;    /* bytes per CPU */
	uint64_t subbuf_size;    /* bytes; 0: the usual */
	uint64_t pool_size;      /* bytes */
	uint64_t interval;       /* ns */
	int owner_fd;            /* -1: none */
	enum confine_mode confinement;
	bool verbose;
	const char *config; /* its file; NULL: none */
	struct standing *standing; /* the configuration's probes */
	size_t standing_count;
	uint32_t given;     /* settings that the command line has, 1 << enum setting */
};

/* What was wrong with a command line, for people. */
struct options_error {
	char message[200];
};

/* Reads argv. Returns 0, or -EINVAL with *ret_error filled in. */
int options_parse(
	int argc, char *const argv[], struct reader_options *ret, struct options_error *ret_error);

/* True for a session's name as control_abi.h allows it: it ends up in paths and in names in
 * tracefs. */
bool options_session_valid(const char *name);

/* Where sessions' sockets live unless somebody says so. */
#define OPTIONS_DIRECTORY_USUAL "/run/tracefan"

/* The text behind --help. */
extern const char options_usage[];

/* The exit status when a file that the operator named can't be read (-errno; -EINVAL: what stands in it is wrong). */
int options_file_status(int error);

#endif
