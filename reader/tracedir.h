/* Files of tracefs, by descriptor of their folder: whole reads, single writes, -errno. libtracefs
 * makes and removes instances; its file calls hide which error the kernel gave, and that is what a
 * consumer has to be told. */
#ifndef TRACEFAN_READER_TRACEDIR_H
#define TRACEFAN_READER_TRACEDIR_H

#include <stddef.h>
#include <sys/types.h>

/* Why tracefs can't be used, for people. */
struct tracedir_problem {
	int status; /* enum exit_status */
	char message[400];
};

/* Opens the folder where tracefs is mounted (`path`, or where /proc says when NULL) and checks
 * that it can be used. Returns the descriptor, owned by the caller, or -errno with *ret_problem
 * filled in. */
int tracedir_open(const char *path, struct tracedir_problem *ret_problem);

/* Reads the file to its end into fresh memory with a NUL behind it. Returns 0 or -errno; *ret_data
 * is the caller's to free, ret_size may be NULL. */
int tracedir_read(int folder, const char *path, char **ret_data, size_t *ret_size);
/* The same of an open file, by another way than read(2): `reading` returns as read does, or -errno. */
typedef ssize_t tracedir_reading(void *context, int fd, void *data, size_t size);
int tracedir_read_by(int fd, tracedir_reading *reading, void *context, char **ret_data, size_t *ret_size);

/* Writes the text with one write(2), the only way that the kernel takes a command whole.
 * tracedir_write leaves what is there to the file's own rules; tracedir_append is for files that a
 * truncating open would clear; tracedir_clear is such an open. Return 0 or -errno. */
int tracedir_write(int folder, const char *path, const char *text);
int tracedir_append(int folder, const char *path, const char *text);
int tracedir_clear(int folder, const char *path);

#endif
