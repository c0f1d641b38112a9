/* The process's log: lines on standard error, "program: level: text". Only processes log; libraries
 * (shm, the parsers, libtracefan) return errors instead. */
#ifndef TRACEFAN_BASE_LOG_H
#define TRACEFAN_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTE, LOG_DEBUG };

/* In the environment: how many bytes a file that standard error appends to may have before it is emptied. */
#define LOG_LIMIT "TRACEFAN_LOG_LIMIT"

/* Sets the name at the head of each line and the least important level that is still written.
 * `program` must outlive the process's last log line. Not thread-safe; call once at start. */
void log_open(const char *program, enum log_level most);

/* Writes one line; control characters in the text are escaped, and one that is too long (about 2000 bytes)
 * ends with " [cut]". errno is kept. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_note(...)    log_write(LOG_NOTE, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_DEBUG, __VA_ARGS__)

#endif
