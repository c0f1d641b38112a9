/* The configuration of a session, `-c FILE`: an INI file, see tracefan.conf(5). Pure but for
 * config_read. */
#ifndef TRACEFAN_READER_CONFIG_H
#define TRACEFAN_READER_CONFIG_H

#include "reader/setting.h"
#include "reader/standing.h"

#include <stddef.h>
#include <sys/types.h>

#define CONFIG_SIZE_MAX (64U << 10)
/* One less than what a line of libinih's may hold. */
#define CONFIG_LINE_MAX 196

struct config {
	char *values[SETTING_COUNT]; /* NULL: not in the file */
	int lines[SETTING_COUNT];
	struct standing *probes;
	size_t probe_count;
};

struct config_error {
	int line; /* 0: the file as a whole */
	char message[320];
};

/* Reads a file's text; every value is one that its setting can take. Returns 0, or -EINVAL or
 * -ENOMEM with *ret_error filled in. */
int config_parse(const char *text, size_t size, struct config *ret, struct config_error *ret_error);

/* Reads a file, which nobody but `owner` and root may be able to write: it says who may do what.
 * Returns 0 or -errno with *ret_error filled in. */
int config_read(const char *path, uid_t owner, struct config *ret, struct config_error *ret_error);

/* Puts the file's settings into *options where the command line has none, and looks for what
 * contradicts. The options then point into the configuration. Returns as config_parse. */
int config_apply(const struct config *config, struct reader_options *options,
	struct config_error *ret_error);

void config_release(struct config *config);

#endif
