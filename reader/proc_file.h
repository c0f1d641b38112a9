/* Whole files and links of /proc, read by way of an open folder: of one and the same process, whatever its number is
 * by then. */
#ifndef TRACEFAN_READER_PROC_FILE_H
#define TRACEFAN_READER_PROC_FILE_H

#include <stddef.h>

/* Reads a file of any size into fresh memory, with a NUL behind it. Returns 0 or -errno; *ret_text is the caller's. */
int proc_file_read(int folder, const char *path, char **ret_text, size_t *ret_size);
/* Reads as much as fits of a file that the kernel writes in one piece, as it does those of one process or thread that are
 * no lists. Returns its size or -errno. */
int proc_file_peek(int folder, const char *path, char *buffer, size_t room);
/* What a link points to: its size, without a NUL, or -errno. */
int proc_file_link(int folder, const char *path, char *buffer, size_t room);

#endif
