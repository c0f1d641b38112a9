/* A file that is to be written to once there is something to write: what was in it before stays until then, and one that
 * was not there before goes again. */
#ifndef TRACEFAN_CLI_OUTPUT_FILE_H
#define TRACEFAN_CLI_OUTPUT_FILE_H

#include <stdbool.h>

struct output_file {
	const char *path; /* the caller's */
	int fd;
	bool made;        /* by us */
	bool begun;
};

#define OUTPUT_FILE_NONE { .fd = -1 }

/* Says why a file can't be opened for writing, an errno. Returns the exit status: a wrong name is the user's mistake, no room
 * is not. */
int output_file_refused(const char *path, int error);

/* With this user's rights and umask. Both return 0 or an exit status, with everything said. */
int output_file_open(struct output_file *file, const char *path);
/* Empties it; does nothing where none was opened. */
int output_file_begin(struct output_file *file);
void output_file_close(struct output_file *file);

#endif
