/* The settings of a session: what the command line and the configuration have in common. Pure. */
#ifndef TRACEFAN_READER_SETTING_H
#define TRACEFAN_READER_SETTING_H

#include "reader/options.h"

enum setting {
	SETTING_GROUP,
	SETTING_ROUTER_USER,
	SETTING_POLICY,
	SETTING_CONFINEMENT,
	SETTING_POOL,
	SETTING_INTERVAL,
	SETTING_SOURCE,
	SETTING_BUFFER_SIZE,
	SETTING_SUBBUF_SIZE,
	SETTING_CLOCK,
	SETTING_TRACEFS,
	SETTING_COUNT
};

/* A setting's key in the configuration, the section that it belongs into, and its option, if it has
 * one. */
struct setting_name {
	const char *section;
	const char *key;
	const char *option;
};
extern const struct setting_name setting_names[SETTING_COUNT];

/* Reads a value into *options, which keeps a pointer to a text. `shown` is what the message calls
 * the setting. Returns 0, or -EINVAL with *ret_error filled in. */
int setting_parse(enum setting setting, const char *shown, const char *value,
	struct reader_options *options, struct options_error *ret_error);

/* "4K", "8M", "1G" or plain bytes. Returns 0, -EINVAL (not a size) or -ERANGE. */
int setting_size(const char *text, uint64_t *ret);

/* A number between two others. Returns 0, or -EINVAL with *ret_error filled in. */
int setting_number(const char *what, const char *text, unsigned long least, unsigned long most,
	unsigned long *ret, struct options_error *ret_error);

/* Writes a message; returns -EINVAL. */
int setting_fail(struct options_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
