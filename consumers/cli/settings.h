/* The file of `session start -c FILE`: lines of KEY = VALUE, comments behind '#', as options for tracefan-reader. */
#ifndef TRACEFAN_CLI_SETTINGS_H
#define TRACEFAN_CLI_SETTINGS_H

#include <stddef.h>

#define SETTINGS_MAX 16

struct settings {
	char *words[SETTINGS_MAX + 1]; /* "--KEY=VALUE", NULL-ended */
	size_t count;
};

struct settings_error {
	int line; /* 0: the file as a whole */
	char message[160];
};

/* Takes in one line (without its newline). Returns 0, or -EINVAL or -ENOMEM with the message filled in. */
int settings_line(struct settings *settings, const char *line, struct settings_error *ret_error);
/* Reads a file. Returns 0 or -errno, with *ret_error filled in. */
int settings_read(const char *path, struct settings *ret, struct settings_error *ret_error);
void settings_release(struct settings *settings);

#endif
